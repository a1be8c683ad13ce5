//! A drain whose target takes nothing: it says why, waits longer each time, and goes on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use standfast::{Kind, Level};
use standfast_crash_tests::mount::Mounted;
use standfast_crash_tests::program::{JOB, Program, Setup};
use standfast_drain::policy::Policy;
use standfast_drain::{Drain, Encoding, Event, Flow, Progress, Until};
use standfast_store::Options;
use standfast_testkit::must::or_leave_out;

/// Long enough for a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A target that fails and is mended after the drain has waited so often; returns what it said
/// each time.
fn drain_to(target: &Mounted, mend_after: usize, mend: impl FnOnce()) -> Vec<(String, Duration)> {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { dir: dir.path().to_str().unwrap(), seed: 3, threads: 2 };
    let program = Program::open(&setup).unwrap();
    program.go_to(1);
    let version = program.job.checkpoint(None).unwrap();
    program.job.wait(version, Level::Local).unwrap();
    drop(program);
    let open = |path: &std::path::Path| {
        let place = path.join(JOB);
        standfast_store::open(place.to_str().unwrap(), &Options::default())
    };
    let local = open(dir.path()).unwrap();
    let (stop, progress) = (AtomicBool::new(false), Progress::default());
    let (waits, arrived) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let run = || {
        let encoding = Encoding { codec: "lz4".parse().unwrap(), threads: 1 };
        let until = Until { policy: Policy::Newest, follow: true, tries: 0 };
        let flow = Flow::new(&*local, &stop, &progress);
        let mut tell = |event: Event<'_>| match event {
            Event::Waits(error, pause) => {
                assert!(matches!(error.kind(), Kind::Full | Kind::Denied), "{error}");
                waits.lock().unwrap().push((error.to_string(), pause));
            }
            Event::Arrived(..) => arrived.store(true, Ordering::SeqCst),
            _ => {}
        };
        let global = until.persist(&flow, &mut tell, || Ok(open(target.path())?))?;
        Drain::open(&*local, &*global, encoding)?.run(&until, &flow, &mut tell)
    };
    std::thread::scope(|scope| {
        let running = scope.spawn(run);
        wait_for("waits", || waits.lock().unwrap().len() >= mend_after);
        assert_eq!(offered(target), 0, "it is marked as global before it is there");
        mend();
        wait_for("an arrival", || arrived.load(Ordering::SeqCst));
        stop.store(true, Ordering::SeqCst);
        let ended = running.join().unwrap();
        assert!(matches!(ended, Err(standfast_drain::Error::Stopped)), "{ended:?}");
    });
    assert_eq!(offered(target), 1);
    restarts(target);
    waits.into_inner().unwrap()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} do not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many manifests the target has.
fn offered(target: &Mounted) -> usize {
    let Ok(entries) = std::fs::read_dir(target.path().join(JOB).join("manifests")) else {
        return 0;
    };
    let names = entries.map(|entry| entry.unwrap().file_name());
    // A copy of the store's header is among them.
    names.filter(|name| name.to_string_lossy().starts_with('v')).count()
}

/// A job on the target alone is where the program was.
fn restarts(target: &Mounted) {
    let setup = Setup { dir: target.path().to_str().unwrap(), seed: 3, threads: 2 };
    let program = Program::open(&setup).unwrap();
    program.job.restart().unwrap().unwrap();
    assert!(program.is_at(1), "the checkpoint restores to something else");
}

fn assert_patient(waits: &[(String, Duration)], why: &str) {
    assert!(waits.iter().all(|(text, _)| text.contains(why)), "{waits:?}");
    assert!(waits.windows(2).all(|two| two[1].1 > two[0].1), "pauses grow: {waits:?}");
}

#[test]
fn a_full_target_is_tried_again_until_it_has_room() {
    let Some(target) = or_leave_out("mount", Mounted::tmpfs(16)) else { return };
    let filler = target.path().join("filler");
    std::fs::write(&filler, vec![1; (16 << 20) - (100 << 10)]).unwrap();
    let waits = drain_to(&target, 2, || std::fs::remove_file(&filler).unwrap());
    assert_patient(&waits, "No space left");
    assert!(waits.iter().all(|(text, _)| text.contains(target.path().to_str().unwrap())));
}

#[test]
fn a_read_only_target_is_tried_again_until_it_can_be_written() {
    let Some(target) = or_leave_out("mount", Mounted::tmpfs(16)) else { return };
    target.set_read_only(true);
    let waits = drain_to(&target, 2, || target.set_read_only(false));
    assert_patient(&waits, "Read-only");
}
