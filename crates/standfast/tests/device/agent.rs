//! Device regions of jobs whose pages go to the node's agent, which encodes them itself.

use std::time::Duration;

use standfast::{Job, Version};
use standfast_agent::{Daemon, Place};
use standfast_comm::Comm;
use standfast_testkit::run_threads;

use crate::world::{World, bytes_of, noise};

#[test]
fn the_agent_takes_pages_of_devices() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
    let daemon = Daemon::bind(&place, Duration::from_secs(600)).unwrap().unwrap();
    let agent = std::thread::spawn(move || daemon.run());
    let settings = [
        ("lab.agent_dir", place.dir().to_str().unwrap()),
        ("lab.agent_command", "/no/such/command"),
        ("lab.write", "wag-dbi"),
    ];
    for (ranks, pipeline, mode) in [(1, "pipelined", "all"), (2, "gpu", "all"), (3, "gpu", "local")]
    {
        let more = [("lab.pipeline", pipeline), ("lab.mode", mode)];
        let world = World::new(&[&settings[..], &more].concat());
        run_threads(ranks, |comm| {
            let job = Job::open_comm(world.loaded(), &comm).unwrap();
            let contents = |step| bytes_of(&noise(7 + step + 100 * comm.rank() as u64, 1_000_000));
            let mut device = contents(0);
            world.protect(&job, "field", &mut device, 8).unwrap();
            let host = job.alloc::<u64>("step", 1).unwrap();
            world.durable(&job);
            device.copy_from_slice(&contents(1));
            host.write()[0] = 1;
            let version = world.durable(&job);
            let notes = job.report(version).unwrap().notes;
            assert!(notes.is_empty(), "{notes:?}");
            for version in [1, 2] {
                device.fill(9);
                job.restart_from(Version(version)).unwrap();
                assert!(device == contents(version - 1));
                assert_eq!(host.read()[0], version - 1);
            }
            drop(host);
            job.close().unwrap();
        });
    }
    standfast_agent::stop(&place, true).unwrap();
    agent.join().unwrap();
}
