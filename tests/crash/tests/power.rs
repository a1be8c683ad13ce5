//! Power loss: the file system goes down right after a checkpoint was acknowledged.
//!
//! Killing a process loses nothing that the kernel has; only this shows that what is reported as
//! durable has really reached the medium. A file that nobody synced is written beside the store:
//! were it whole afterwards, the power would not have been off at all.

use std::path::Path;

use standfast_crash_tests::life::{Style, Worker};
use standfast_crash_tests::mount::Mounted;
use standfast_crash_tests::program::Setup;
use standfast_crash_tests::report::{Facts, Line};
use standfast_crash_tests::setting;

const EXE: &str = env!("CARGO_BIN_EXE_crash-worker");
/// More than happens before the power goes.
const STEPS: u64 = 10_000;
const UNSYNCED_BYTES: usize = 1 << 20;

/// Mounts a file system that can be shut down, or says why this machine cannot.
fn mounted(kind: &str, image: &Path) -> Result<Mounted, String> {
    let mounted = Mounted::image(kind, 512, image)?;
    mounted.power_off()?;
    mounted.power_on();
    Ok(mounted)
}

fn power_loss(kind: &str) {
    let images = tempfile::tempdir().unwrap();
    let disk = match mounted(kind, &images.path().join("disk")) {
        Ok(disk) => disk,
        Err(why) => return println!("skipped: no {kind} to shut down here: {why}"),
    };
    let seed = setting("STANDFAST_TEST_SEED", 1);
    let setup = Setup { dir: disk.path().to_str().unwrap(), seed, threads: 2 };
    let worker = Worker::new(EXE, &setup);
    let mut facts = Facts::default();
    for style in [Style::Waiting, Style::Overlapping, Style::Waiting] {
        let mut life = worker.run(STEPS, style, None);
        life.wait_for(&Line::Durable(facts.durable + 3));
        let unsynced = disk.path().join("unsynced");
        std::fs::write(&unsynced, vec![1; UNSYNCED_BYTES]).unwrap();
        disk.power_off().unwrap();
        let ended = life.kill();
        disk.power_on();
        let lost = std::fs::read(&unsynced).map_or(true, |bytes| bytes != [1; UNSYNCED_BYTES]);
        assert!(lost, "the power was not off: unsynced bytes are still there");
        let newest = worker.check(facts.and(&ended.lines), &format!("{kind} lost its power"));
        facts = Facts { durable: newest, begun: newest };
    }
}

#[test]
fn what_was_acknowledged_survives_power_loss_on_xfs() {
    power_loss("xfs");
}

#[test]
fn what_was_acknowledged_survives_power_loss_on_ext4() {
    power_loss("ext4");
}
