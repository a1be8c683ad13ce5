//! The queue on the CPU references: every block comes back decodable, whoever asks and whatever
//! fails.

use std::sync::{Arc, Mutex};

use standfast_format::CodecKind;
use standfast_gpu::Error;
use standfast_gpu::gpu_queue::{BLOCK_BYTES, GpuQueue};
use standfast_reduce::{BlockDecoder, Offload};
use standfast_stand_in::{Faults, StandInEngine, Step};
use standfast_testkit::vectors;

type Log<T> = Arc<Mutex<Vec<T>>>;

fn queue(faults: &Faults) -> (GpuQueue, Log<usize>, Log<String>) {
    let (started, said) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
    let engine = StandInEngine::new(faults.clone(), Arc::clone(&started));
    let log = Arc::clone(&said);
    let queue = GpuQueue::start(engine, move |text| log.lock().unwrap().push(text)).unwrap();
    (queue, started, said)
}

fn round_trip(queue: &GpuQueue, rank: u32, raw: &[u8], elem: u8) -> Option<CodecKind> {
    let mut out = Vec::new();
    let (codec, filter) = queue.encode(rank, raw, elem, &mut out)?;
    if codec != CodecKind::None {
        let mut decoder = BlockDecoder::new(BLOCK_BYTES);
        assert!(decoder.decode(codec, filter, &out, raw.len()).unwrap() == raw);
        assert!(out.len() < raw.len());
    }
    Some(codec)
}

#[test]
fn blocks_of_many_threads_and_sorts_come_back() {
    let (queue, started, said) = queue(&Faults::default());
    std::thread::scope(|scope| {
        for rank in 0..6 {
            let queue = &queue;
            scope.spawn(move || {
                for (seed, (make, elem, expected)) in [
                    (vectors::noisy_f64 as fn(usize, u64) -> Vec<u8>, 8, CodecKind::Float),
                    (vectors::bf16_weights, 2, CodecKind::Float),
                    (vectors::records, 0, CodecKind::Deflate),
                    (vectors::random, 0, CodecKind::None),
                ]
                .into_iter()
                .enumerate()
                {
                    let raw = make(BLOCK_BYTES, u64::from(rank) * 10 + seed as u64 + 1);
                    assert_eq!(round_trip(queue, rank, &raw, elem), Some(expected));
                }
            });
        }
    });
    assert_eq!(started.lock().unwrap().iter().sum::<usize>(), 24);
    assert_eq!(round_trip(&queue, 0, &[1; 4096], 0), None, "short blocks are not for the device");
    drop(queue);
    assert!(said.lock().unwrap().is_empty());
}

#[test]
fn after_a_fault_everybody_is_told_to_help_himself() {
    for step in [Step::Encode, Step::Wait] {
        let faults = Faults::default();
        let (queue, _, said) = queue(&faults);
        let raw = vectors::noisy_f64(BLOCK_BYTES, 1);
        assert_eq!(round_trip(&queue, 0, &raw, 8), Some(CodecKind::Float));
        let code = "CUDA_ERROR_LAUNCH_FAILED".into();
        let lost = Error::Lost { what: "encoding", code };
        faults.plan(step, lost.clone(), 1);
        std::thread::scope(|scope| {
            for rank in 0..8 {
                let (queue, raw) = (&queue, &raw);
                scope.spawn(move || assert_eq!(round_trip(queue, rank, raw, 8), None));
            }
        });
        drop(queue);
        let expected = format!("the CPU takes over from the GPU: {lost}");
        assert_eq!(*said.lock().unwrap(), [expected]);
    }
}
