//! Device regions of several ranks: pages are shared among ranks, wherever they lie.

use standfast::{Job, Level, Version};
use standfast_comm::Comm;
use standfast_testkit::run_threads;

use crate::world::{World, bytes_of, noise};

/// The first half is the same on all ranks.
fn contents(rank: usize, step: u64) -> Vec<u8> {
    let mut all = noise(7 + step, 100 * 512);
    all.extend(noise(100 + rank as u64, 100 * 512));
    bytes_of(&all)
}

#[test]
fn ranks_share_pages_of_their_devices() {
    for (mode, new_pages) in [("all", 100 + 3 * 100), ("local", 3 * 200)] {
        let world =
            World::new(&[("lab.mode", mode), ("lab.segment", "256KiB"), ("lab.page", "4KiB")]);
        run_threads(3, |comm| {
            let job = Job::open_comm(world.loaded(), &comm).unwrap();
            let mut device = contents(comm.rank(), 0);
            world.protect(&job, "field", &mut device, 8).unwrap();
            let host = job.alloc::<u64>("step", 1).unwrap();
            host.write()[0] = 1;
            let version = world.durable(&job);
            let stats = job.report(version).unwrap().stats;
            assert_eq!(stats.new_pages, new_pages + 1 + if mode == "all" { 0 } else { 2 });
            device.copy_from_slice(&contents(comm.rank(), 1));
            host.write()[0] = 2;
            world.durable(&job);
            device.fill(9);
            for (version, step) in [(2, 1), (1, 0)] {
                job.restart_from(Version(version)).unwrap();
                assert!(device == contents(comm.rank(), step), "{mode} {version}");
                assert_eq!(host.read()[0], version);
            }
            drop(host);
            job.close().unwrap();
        });
    }
}

#[test]
fn a_rank_whose_device_fails_fails_the_checkpoint_everywhere() {
    let world = World::new(&[]);
    run_threads(2, |comm| {
        let own = World::new(&[]);
        let job = Job::open_comm(world.loaded(), &comm).unwrap();
        let mut device = contents(comm.rank(), 0);
        own.protect(&job, "field", &mut device, 8).unwrap();
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        device[3] ^= 1;
        if comm.rank() == 1 {
            let code = "CUDA_ERROR_UNKNOWN".into();
            let lost = standfast_gpu::Error::Lost { what: "hashing", code };
            own.faults.plan(standfast_stand_in::Step::Scan, lost, 1);
        }
        assert!(job.checkpoint(None).is_err());
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        job.close().unwrap();
    });
}

#[test]
fn ranks_go_on_while_their_share_is_still_on_the_device() {
    let world = World::new(&[("lab.mode", "all"), ("lab.segment", "256KiB"), ("lab.page", "4KiB")]);
    run_threads(3, |comm| {
        let job = Job::open_comm(world.loaded(), &comm).unwrap();
        let mut device = contents(comm.rank(), 0);
        world.protect(&job, "field", &mut device, 8).unwrap();
        let version = job.checkpoint(None).unwrap();
        // Written at once: what is stored is what was there in the call.
        device.fill(9);
        job.wait(version, Level::Local).unwrap();
        let stats = job.report(version).unwrap().stats;
        assert_eq!(stats.new_pages, 100 + 3 * 100);
        job.restart_from(version).unwrap();
        assert!(device == contents(comm.rank(), 0));
        job.close().unwrap();
    });
}

#[test]
fn a_device_lost_behind_the_call_takes_the_checkpoint_of_all_with_it() {
    let world = World::new(&[("lab.mode", "all")]);
    run_threads(2, |comm| {
        let own = World::new(&[]);
        let job = Job::open_comm(world.loaded(), &comm).unwrap();
        let mut device = contents(comm.rank(), 0);
        own.protect(&job, "field", &mut device, 8).unwrap();
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        device.copy_from_slice(&contents(comm.rank(), 1));
        if comm.rank() == 1 {
            let code = "CUDA_ERROR_LAUNCH_FAILED".into();
            let lost = standfast_gpu::Error::Lost { what: "encoding", code };
            own.faults.plan(standfast_stand_in::Step::Encode, lost, usize::MAX);
        }
        let version = job.checkpoint(None).unwrap();
        let failed = job.wait(version, Level::Local);
        assert!(failed.is_err(), "others refer to what the device had");
        own.faults.clear();
        let version = own.durable(&job);
        device.fill(9);
        job.restart_from(version).unwrap();
        assert!(device == contents(comm.rank(), 1), "nothing refers to the lost pages");
        job.close().unwrap();
    });
}
