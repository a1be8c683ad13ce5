//! A device that fails: no checkpoint is lost, and it is said once.

use standfast::{Kind, Level, Version};
use standfast_gpu::Error;
use standfast_stand_in::Step;

use crate::world::{World, bytes_of, noise};

#[test]
fn out_of_device_memory_costs_time_and_no_checkpoint() {
    for step in [Step::Tracker, Step::Scan, Step::Arena, Step::Stage, Step::Lane, Step::Encode] {
        let world = World::new(&[]);
        let error = Error::OutOfMemory { what: "anything", bytes: 1 << 40 };
        world.faults.plan(step, error, usize::MAX);
        let mut device = bytes_of(&noise(3, 1_000_000));
        let job = world.open();
        world.protect(&job, "field", &mut device, 8).unwrap();
        let mut told = Vec::new();
        for round in 0..3 {
            device[round * 100_000] ^= 1;
            let version = world.durable(&job);
            told.extend(job.report(version).unwrap().notes);
        }
        let message = "the CPU takes over from the GPU: out of device memory: \
                       1099511627776 bytes for anything";
        assert_eq!(told, [message], "{step:?}");
        let expected = device.clone();
        device.fill(0);
        job.restart().unwrap().unwrap();
        assert!(device == expected, "{step:?}");
    }
}

#[test]
fn a_lost_device_fails_its_checkpoint_and_no_other() {
    let lost = || Error::Lost { what: "encoding", code: "CUDA_ERROR_LAUNCH_FAILED".into() };
    for step in [Step::Wait, Step::Scan, Step::Stage, Step::Encode] {
        let world = World::new(&[]);
        let mut device = bytes_of(&noise(3, 200_000));
        let first = device.clone();
        let job = world.open();
        let host = job.alloc::<u64>("step", 1).unwrap();
        world.protect(&job, "field", &mut device, 8).unwrap();
        world.durable(&job);
        device[5] ^= 1;
        host.write()[0] = 1;
        world.faults.plan(step, lost(), usize::MAX);
        let failed = job.checkpoint(None).and_then(|version| job.wait(version, Level::Local));
        assert_eq!(failed.unwrap_err().kind(), Kind::Io, "{step:?}");
        // Host memory alone can still be saved, and the first checkpoint is whole.
        job.unprotect("field").unwrap();
        world.durable(&job);
        world.faults.clear();
        world.protect(&job, "field", &mut device, 8).unwrap();
        let version = world.durable(&job);
        assert_eq!(job.report(version).unwrap().stats.new_pages, 1, "{step:?}");
        job.restart_from(Version(1)).unwrap();
        assert!(device == first && host.read()[0] == 0, "{step:?}");
    }
}

#[test]
fn a_device_that_cannot_be_filled_is_an_error_not_an_older_checkpoint() {
    let world = World::new(&[]);
    let mut device = bytes_of(&noise(3, 10_000));
    let job = world.open();
    world.protect(&job, "field", &mut device, 8).unwrap();
    world.durable(&job);
    world.durable(&job);
    let lost = Error::Lost { what: "copying", code: "CUDA_ERROR_UNKNOWN".into() };
    world.faults.plan(Step::Copy, lost, 1);
    let error = job.restart().unwrap_err();
    assert!(error.to_string().contains("copying"), "{error}");
    assert_eq!(job.restart().unwrap().unwrap().version, Version(2));
}

#[test]
fn writing_during_the_call_is_found() {
    // A program that goes on writing shows as a copy that is not what was hashed.
    let world = World::new(&[]);
    let mut device = bytes_of(&noise(3, 10_000));
    let job = world.open();
    world.protect(&job, "field", &mut device, 8).unwrap();
    world.faults.plan(Step::Stage, Error::Changed { pages: 3 }, 1);
    assert_eq!(job.checkpoint(None).unwrap_err().kind(), Kind::Invalid);
    world.durable(&job);
}
