//! A star whose products a device makes leaves the bytes that the CPU leaves. The device is a
//! stand-in made of the CPU kernels; gpu-check runs the same jobs on a real one.

mod job;

use std::sync::{Arc, Mutex};

use standfast_gpu::Error;
use standfast_gpu::erasure::{self, Code, DeviceArithmetic, Family, Input, Output, Room};
use standfast_ring::{Arithmetic, Block, Cpu, Factors, Memory};
use standfast_stand_in::{Faults, Step, device_pieces, host_erasure};
use standfast_testkit::vectors;

use job::Job;

/// Pieces far shorter than blocks, so that every block is several.
const ROOM: Room = Room { piece_bytes: 256, ..DeviceArithmetic::ROOM };
const BLOCK_BYTES: u32 = 1024;

/// What was said, by all ranks.
type Said = Arc<Mutex<Vec<String>>>;

fn on(faults: &Faults, said: &Said) -> DeviceArithmetic {
    let (device, said) = (host_erasure(ROOM, faults).unwrap(), Arc::clone(said));
    DeviceArithmetic::new(device, move |note| said.lock().unwrap().push(note))
}

/// Shapes, the nodes that are lost, and members of unequal lengths.
fn jobs() -> Vec<(Job, Vec<usize>)> {
    let shapes = [
        ((2, 1, 1), &[1][..]),
        ((4, 2, 2), &[0, 1][..]),
        ((6, 3, 2), &[1, 4][..]),
        ((8, 4, 4), &[0, 2, 3, 1][..]),
        ((20, 10, 10), &[0, 3, 4, 7, 9][..]),
    ];
    let lengths = [3000, 1, 1024, 0, 700, 2049, 5000];
    let job = |(shape, lost): ((usize, usize, usize), &[usize])| {
        (Job::new(shape, BLOCK_BYTES, |rank| lengths[rank % 7]).unwrap(), lost.to_vec())
    };
    shapes.into_iter().map(job).collect()
}

#[test]
fn pieces_in_host_memory_give_the_same_shards_and_come_back() {
    for (job, lost) in jobs() {
        let expected = job.run(&lost, |_| Ok((Memory::default(), Box::new(Cpu) as _))).unwrap();
        assert!(expected.0 == expected.1, "everything came back");
        let (faults, said) = (Faults::default(), Said::default());
        let found = job.run(&lost, |_| Ok((Memory::default(), Box::new(on(&faults, &said)) as _)));
        assert!(found.unwrap() == expected, "the same files");
        assert!(said.lock().unwrap().is_empty());
    }
}

#[test]
fn pieces_in_device_memory_give_the_same_shards_and_come_back() {
    for (job, lost) in jobs() {
        let expected = job.run(&lost, |_| Ok((Memory::default(), Box::new(Cpu) as _))).unwrap();
        let (faults, said) = (Faults::default(), Said::default());
        let found = job.run(&lost, |_| {
            let pieces = device_pieces(&faults);
            let arithmetic = on(&faults, &said).with_pieces(pieces.clone());
            Ok((pieces, Box::new(arithmetic) as _))
        });
        assert!(found.unwrap() == expected, "the same files");
        assert!(said.lock().unwrap().is_empty());
    }
}

/// Plans a fault before a given product, once or for ever.
struct FailsAt {
    inner: DeviceArithmetic,
    products_left: usize,
    fault: (Step, Error, usize),
    faults: Faults,
}

impl Arithmetic for FailsAt {
    fn multiply(&mut self, factors: &Factors, block: Block<'_>, products: &mut [&mut [u8]]) {
        if self.products_left == 0 {
            let (step, error, times) = self.fault.clone();
            self.faults.plan(step, error, times);
        }
        self.products_left = self.products_left.wrapping_sub(1);
        self.inner.multiply(factors, block, products);
    }
}

#[test]
fn the_cpu_takes_over_in_the_middle_and_says_so_once() {
    let (job, lost) = jobs().swap_remove(3);
    let expected = job.run(&lost, |_| Ok((Memory::default(), Box::new(Cpu) as _))).unwrap();
    let lost_device = Error::Lost { what: "waiting for work", code: "a test".into() };
    let full = Error::OutOfMemory { what: "a code's matrix", bytes: 4 };
    for (step, error) in
        [(Step::Copy, full), (Step::Encode, lost_device.clone()), (Step::Wait, lost_device)]
    {
        let fault = (step, error, 1);
        for at in [0, 1, 4] {
            let said = Said::default();
            let found = job.run(&lost, |rank| {
                // Each rank has a device of its own; that of every other one fails.
                let faults = Faults::default();
                let inner = on(&faults, &said);
                let products_left = if rank % 2 == 0 { at } else { usize::MAX };
                let own = FailsAt { inner, products_left, fault: fault.clone(), faults };
                Ok((Memory::default(), Box::new(own) as _))
            });
            assert!(found.unwrap() == expected, "{fault:?} at {at}");
            let said = said.lock().unwrap();
            let message = format!("the CPU takes over from the GPU: {}", fault.1);
            assert!(!said.is_empty() && said.len() <= 4, "{said:?}");
            assert!(said.iter().all(|note| *note == message), "{said:?}");
        }
    }
}

#[test]
fn a_lost_device_fails_the_pieces_on_it_and_nobody_waits_for_them() {
    let (job, lost) = jobs().swap_remove(1);
    let said = Said::default();
    let gone = Error::Lost { what: "copying to the host", code: "a test".into() };
    let fault = (Step::Copy, gone.clone(), usize::MAX);
    let ended = job.run(&lost, |rank| {
        let faults = Faults::default();
        let pieces = device_pieces(&faults);
        let inner = on(&faults, &said).with_pieces(pieces.clone());
        let products_left = if rank == 0 { 1 } else { usize::MAX };
        let own = FailsAt { inner, products_left, fault: fault.clone(), faults };
        Ok((pieces, Box::new(own) as _))
    });
    // The block that was there is multiplied by the CPU; the next one cannot be read.
    assert_eq!(said.lock().unwrap().len(), 1);
    let error = ended.err().unwrap().to_string();
    assert!(error.contains(&gone.to_string()) || error.contains("rank 0"), "{error}");
}

#[test]
fn without_a_device_the_cpu_multiplies() {
    let (job, lost) = jobs().swap_remove(1);
    let expected = job.run(&lost, |_| Ok((Memory::default(), Box::new(Cpu) as _))).unwrap();
    let said = Said::default();
    let found = job.run(&lost, |_| {
        let said = Arc::clone(&said);
        let own = DeviceArithmetic::open(move |note| said.lock().unwrap().push(note));
        Ok((Memory::default(), Box::new(own) as _))
    });
    assert!(found.unwrap() == expected);
    let said = said.lock().unwrap();
    assert!(said.iter().all(|note| note.starts_with("no GPU is used: ")), "{said:?}");
}

fn views<'a>(shards: &'a [Vec<u8>], pinned: bool) -> Vec<Input<'a>> {
    let view = |shard: &'a Vec<u8>| match pinned {
        true => Input::Pinned(shard),
        false => Input::Pageable(shard),
    };
    shards.iter().map(view).collect()
}

#[test]
fn host_products_of_any_length_are_those_of_the_cpu() {
    for (k, m) in [(1, 1), (3, 2), (8, 8), (20, 4)] {
        let code = Code::new(Family::Cauchy, k, m).unwrap();
        let room = Room { columns: k, rows: m, piece_bytes: 64 };
        let mut device = host_erasure(room, &Faults::default()).unwrap();
        for bytes in [0, 1, 63, 64, 65, 192, 1000] {
            let data: Vec<Vec<u8>> = (0..k).map(|at| vectors::random(bytes, at as u64)).collect();
            let plain: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            let expected = erasure::multiply(code.parity(), &plain);
            for pinned in [false, true] {
                let mut rows = vec![vec![0; bytes]; m];
                let mut out: Vec<Output<'_>> = rows
                    .iter_mut()
                    .map(|row| if pinned { Output::Pinned(row) } else { Output::Pageable(row) })
                    .collect();
                device.multiply(code.parity(), &views(&data, pinned), &mut out).unwrap();
                assert_eq!(rows, expected, "{k}+{m}, {bytes} bytes");
            }
        }
    }
}

#[test]
fn faults_and_wrong_arguments_are_typed() {
    let faults = Faults::default();
    let room = Room { columns: 2, rows: 1, piece_bytes: 64 };
    let full = Error::OutOfMemory { what: "pieces of shards", bytes: 128 };
    faults.plan(Step::Lane, full.clone(), 1);
    assert_eq!(host_erasure(room, &faults).err(), Some(full));
    for piece_bytes in [0, 63] {
        assert!(host_erasure(Room { piece_bytes, ..room }, &faults).is_err());
    }
    assert!(host_erasure(Room { columns: 129, ..room }, &faults).is_err());

    let mut device = host_erasure(room, &faults).unwrap();
    let code = Code::new(Family::Cauchy, 2, 1).unwrap();
    let data = [vectors::random(500, 1), vectors::random(500, 2)];
    let mut row = vec![0; 500];
    let mut run = |shards: &[Input<'_>], bytes: usize| {
        device.multiply(code.parity(), shards, &mut [Output::Pageable(&mut row[..bytes])])
    };
    let is_wrong = |ended: Result<(), Error>| matches!(ended, Err(Error::Invalid { .. }));
    assert!(is_wrong(run(&views(&data, false), 499)));
    assert!(is_wrong(run(&views(&data[..1], false), 500)));
    // The first fault counts; afterwards it works again.
    let lost = Error::Lost { what: "waiting for work", code: "a test".into() };
    faults.plan(Step::Wait, lost.clone(), 1);
    assert_eq!(run(&views(&data, false), 500), Err(lost));
    assert_eq!(run(&views(&data, false), 500), Ok(()));
    assert_eq!(row, erasure::multiply(code.parity(), &[&data[0], &data[1]])[0]);
}
