#!/usr/bin/env bash
# Builds every fuzz target with a stable toolchain and runs each for some seconds:
#   fuzz/run.sh [SECONDS-PER-TARGET] [TARGET...]
# Seeds are made by the targets themselves. What was found stays in fuzz/corpus; an input that
# breaks something is left in fuzz/artifacts, and the run fails. Needs g++ (for libFuzzer).
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-5}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(basename -s .rs fuzz_targets/*.rs)
fi

host=$(rustc -vV | sed -n 's/^host: //p')
out=${CARGO_TARGET_DIR:-$PWD/target}
# The coverage that libFuzzer steers by; with --target, so that build scripts do without.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for option in inline-8bit-counters pc-table trace-compares; do
    coverage+=" -Cllvm-args=-sanitizer-coverage-$option"
done
RUSTFLAGS="$coverage --cfg fuzzing -Cdebug-assertions" \
    cargo build --locked --release --quiet --target "$host" --bins

# One target; prints its line, fails if something broke.
fuzz() {
    local target=$1 log="artifacts/$1.log" runs coverage
    mkdir -p "corpus/$target" "artifacts/$target"
    if STANDFAST_TEST_SEEDS="corpus/$target" "$out/$host/release/$target" "corpus/$target" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
        -artifact_prefix="artifacts/$target/" >"$log" 2>&1; then
        runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")
        coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
        printf '%-16s %9s runs  %s\n' "$target" "$runs" "$coverage"
    else
        printf '%-16s FAILED, see fuzz/%s\n%s\n' "$target" "$log" "$(tail -30 "$log")"
        return 1
    fi
}
export -f fuzz
export seconds out host
# A target runs on one core.
printf '%s\0' "${targets[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'fuzz {}'
