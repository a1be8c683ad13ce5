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
use standfast_testkit::must::or_leave_out;

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

fn power_loss(kind: &str, cow: bool) {
    let images = tempfile::tempdir().unwrap();
    let disk = mounted(kind, &images.path().join("disk"));
    let Some(disk) = or_leave_out("powerloss", disk) else { return };
    let seed = setting("STANDFAST_TEST_SEED", 1);
    let setup = Setup { dir: disk.path().to_str().unwrap(), seed, threads: 2 };
    let worker = Worker::new(EXE, &setup).with_cow(cow);
    let mut facts = Facts::default();
    let mut lost = 0;
    for style in [Style::Waiting, Style::Overlapping, Style::Waiting] {
        let mut life = worker.run(STEPS, style, None);
        // Only what was acknowledged before: with the power off, pruning fails.
        let durable = facts.durable + 3;
        life.wait_for(&Line::Durable(durable));
        let unsynced = disk.path().join("unsynced");
        std::fs::write(&unsynced, vec![1; UNSYNCED_BYTES]).unwrap();
        disk.power_off().unwrap();
        let ended = life.kill();
        disk.power_on();
        let whole = std::fs::read(&unsynced).is_ok_and(|bytes| bytes == [1; UNSYNCED_BYTES]);
        lost += usize::from(!whole);
        let begun = facts.and(&ended.lines).begun;
        let newest = worker.check(Facts { durable, begun }, &format!("{kind} lost its power"));
        facts = Facts { durable: newest, begun: newest };
    }
    // A sync of the worker's own files may have taken it along now and then, but not always.
    assert!(lost > 0, "the power was never off: unsynced bytes are still there");
}

#[test]
fn what_was_acknowledged_survives_power_loss_on_xfs() {
    power_loss("xfs", false);
}

#[test]
fn what_was_acknowledged_survives_power_loss_on_ext4() {
    power_loss("ext4", false);
}

#[test]
fn what_was_acknowledged_of_snapshots_survives_power_loss() {
    power_loss("xfs", true);
}
