"""Measures nvCOMP on buffers that `gpu-check --write-buffers DIR` left.

    python3 nvcomp.py DIR > peer.jsonl

Needs the packages nvidia-nvcomp-cu13 and cupy. The buffer is on the device before and the result
after; the median of seven rounds counts, after two to warm up. Chunks of 64 KiB, as ours.
"""

import json
import pathlib
import statistics
import sys
import time

import cupy
import numpy
from nvidia import nvcomp

ALGORITHMS = ["Deflate", "GDeflate", "ANS", "Zstd", "LZ4"]
CHUNK_BYTES = 65536


def measure(data, algorithm):
    codec = nvcomp.Codec(algorithm=algorithm, uncomp_chunk_size=CHUNK_BYTES)
    source = nvcomp.as_array(data)
    times = []
    for _ in range(9):
        cupy.cuda.runtime.deviceSynchronize()
        started = time.perf_counter()
        encoded = codec.encode(source)
        cupy.cuda.runtime.deviceSynchronize()
        times.append(time.perf_counter() - started)
    return {
        "gb_s": data.nbytes / statistics.median(times[2:]) / 1e9,
        "ratio": data.nbytes / encoded.buffer_size,
    }


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        data = cupy.asarray(numpy.fromfile(path, dtype=numpy.uint8))
        for algorithm in ALGORITHMS:
            line = {"type": "peer", "codec": "nvCOMP " + algorithm, "buffer": path.name}
            try:
                line |= measure(data, algorithm)
            except Exception as error:  # one algorithm that fails leaves the others
                line["error"] = str(error)
            print(json.dumps(line), flush=True)


main()
