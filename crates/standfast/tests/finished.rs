//! A finished job is finished, and another job is another job.

use standfast::config::{Loaded, RestartFrom};
use standfast::{Error, Job, Kind, Level, Value, Version};
use standfast_comm::Comm;
use standfast_testkit::run_threads;
use tempfile::TempDir;

fn open(dir: &TempDir, more: &[(&str, &str)]) -> Job {
    let store = dir.path().join("store");
    let mut settings = vec![("store", store.to_str().unwrap()), ("job", "heat")];
    settings.extend_from_slice(more);
    Job::open(&settings).unwrap()
}

/// Comes back to the newest checkpoint, or begins; tells which one, and what is in memory.
fn restart(job: &Job) -> (Result<Option<Version>, Error>, Value<u64>) {
    let step = job.value::<u64>("step").unwrap();
    let restarted = job.restart().map(|restarted| restarted.map(|one| one.version));
    (restarted, step)
}

/// A life of the program: declares, restarts, takes a checkpoint of `step`, and is then asked to end.
fn live(dir: &TempDir, more: &[(&str, &str)], step: u64, end: impl FnOnce(Job)) {
    let job = open(dir, more);
    let value = job.value::<u64>("step").unwrap();
    let _ = job.restart();
    value.set(step);
    let version = job.checkpoint(None).unwrap();
    job.wait(version, Level::Local).unwrap();
    end(job);
}

fn versions(job: &Job) -> Vec<u64> {
    job.list().iter().map(|manifest| manifest.version.0).collect()
}

#[test]
fn a_finished_job_begins_anew_and_keeps_its_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    live(&dir, &[], 40, |job| job.finish().unwrap());
    let job = open(&dir, &[]);
    let (found, step) = restart(&job);
    assert_eq!((found.unwrap(), step.get()), (None, 0));
    assert_eq!(versions(&job), [1]);
    assert_eq!(job.checkpoint(None).unwrap(), Version(2));
    job.close().unwrap();
    // That one was cut off: what counts is its own.
    let job = open(&dir, &[]);
    assert_eq!(restart(&job).0.unwrap(), Some(Version(2)));
    assert_eq!(versions(&job), [2, 1]);
}

#[test]
fn a_job_that_is_closed_dropped_or_has_failed_goes_on() {
    type End = (&'static str, fn(Job));
    let ends: [End; 3] = [
        ("closed", |job| job.close().unwrap()),
        ("dropped", drop),
        ("failed", |job| {
            job.checkpoint(Some(Version(0))).unwrap_err();
            job.finish().unwrap();
        }),
    ];
    for (what, end) in ends {
        let dir = tempfile::tempdir().unwrap();
        live(&dir, &[], 40, end);
        let job = open(&dir, &[]);
        let (found, step) = restart(&job);
        assert_eq!((found.unwrap(), step.get()), (Some(Version(1)), 40), "{what}");
    }
}

#[test]
fn a_checkpoint_of_a_finished_job_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    live(&dir, &[], 40, |job| job.finish().unwrap());
    let job = open(&dir, &[]);
    let (found, _step) = restart(&job);
    assert_eq!(found.unwrap(), None);
    let error = job.checkpoint(Some(Version(1))).unwrap_err();
    assert!(error.to_string().contains("of an earlier start of this job"), "{error}");
    job.checkpoint(Some(Version(7))).unwrap();
    // Its own may be.
    job.checkpoint(Some(Version(7))).unwrap();
    job.settle().unwrap();
    assert_eq!(versions(&job), [7, 1]);
}

#[test]
fn another_input_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(&dir, &[]);
    job.declare("nx", "1024").unwrap();
    let (found, _step) = restart(&job);
    assert_eq!(found.unwrap(), None);
    job.checkpoint(None).unwrap();
    assert!(job.declare("ny", "8").is_err(), "too late");
    job.close().unwrap();

    let differing = |more: &[(&str, &str)]| {
        let job = open(&dir, more);
        job.declare("nx", "2048").unwrap();
        let (found, step) = restart(&job);
        (job, found, step)
    };
    let (job, found, _step) = differing(&[]);
    let error = found.unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("nx: 1024 then, 2048 now"), "{error}");
    drop((job, _step));
    let (job, found, _step) = differing(&[("restart", "1")]);
    assert!(found.unwrap_err().to_string().contains("nx: 1024 then"), "also for a given one");
    drop(job);
    // Who begins anew has checkpoints of its own, and the next one is asked for its input.
    let (job, found, _step) = differing(&[("restart", "never")]);
    assert_eq!(found.unwrap(), None);
    drop((job, _step));
    let (job, found, _step) = differing(&[]);
    assert_eq!(found.unwrap(), None, "no step back");
    job.checkpoint(None).unwrap();
    job.close().unwrap();
    assert_eq!(differing(&[]).1.unwrap(), Some(Version(2)));
    let job = open(&dir, &[("restart", "force")]);
    assert_eq!(restart(&job).0.unwrap(), Some(Version(2)), "nothing is declared, and yet");
}

#[test]
fn a_program_that_goes_on_after_a_refusal_mixes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let job = open(&dir, &[]);
    job.declare("nx", "1024").unwrap();
    let _step = job.value::<u64>("step").unwrap();
    job.checkpoint(None).unwrap();
    job.close().unwrap();
    let job = open(&dir, &[]);
    job.declare("nx", "2048").unwrap();
    let (found, _step) = restart(&job);
    found.unwrap_err();
    job.checkpoint(None).unwrap();
    job.close().unwrap();
    let job = open(&dir, &[]);
    job.declare("nx", "2048").unwrap();
    assert_eq!(restart(&job).0.unwrap(), Some(Version(2)));
}

#[test]
fn a_given_checkpoint_or_force_goes_on_from_a_finished_job() {
    for how in ["1", "force"] {
        let dir = tempfile::tempdir().unwrap();
        live(&dir, &[], 40, |job| job.finish().unwrap());
        let job = open(&dir, &[("restart", how)]);
        assert_eq!(job.config().config.timing.from, how.parse::<RestartFrom>().unwrap());
        assert_eq!(restart(&job).0.unwrap(), Some(Version(1)), "{how}");
        drop(job);
        // It was cut off before its first checkpoint, and goes on from where it had begun.
        let job = open(&dir, &[]);
        let (found, step) = restart(&job);
        assert_eq!((found.unwrap(), step.get()), (Some(Version(1)), 40), "{how}");
    }
}

#[test]
fn a_store_that_does_not_tell_is_restarted_with_a_remark() {
    let dir = tempfile::tempdir().unwrap();
    live(&dir, &[], 40, |job| job.close().unwrap());
    let history = dir.path().join("store/heat/history");
    assert!(history.is_file());
    std::fs::remove_file(&history).unwrap();
    assert_eq!(restart(&open(&dir, &[])).0.unwrap(), Some(Version(1)), "as version 0.1 left it");
    std::fs::write(&history, b"noise").unwrap();
    let job = open(&dir, &[]);
    let _step = job.value::<u64>("step").unwrap();
    let notes = job.restart().unwrap().unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("history")), "{notes:?}");
}

/// All ranks of a job with a store for each, each asked what it came back to.
fn ranks(dir: &TempDir, more: &[(&str, String)], each: fn(&Job, usize)) -> Vec<Option<Version>> {
    run_threads(3, |comm| {
        let rank = comm.rank();
        let store = dir.path().join("{node}").to_string_lossy().into_owned();
        let mut settings = vec![("store".to_owned(), store), ("job".into(), "heat".into())];
        settings.push(("lab.node".into(), format!("node{rank}")));
        settings.extend(more.iter().map(|(name, text)| ((*name).to_owned(), text.clone())));
        let job = Job::open_comm(Loaded::load(&settings).unwrap(), &comm).unwrap();
        let _step = job.value::<u64>("step").unwrap();
        let found = job.restart().unwrap().map(|restarted| restarted.version);
        each(&job, rank);
        match found {
            Some(_) => job.close().unwrap(),
            None => job.finish().unwrap(),
        }
        found
    })
}

#[test]
fn a_node_without_its_store_learns_from_the_others_that_the_job_has_finished() {
    let dir = tempfile::tempdir().unwrap();
    let take = |job: &Job, _: usize| {
        job.checkpoint(None).unwrap();
    };
    assert_eq!(ranks(&dir, &[], take), vec![None; 3]);
    std::fs::remove_file(dir.path().join("node0/heat/history")).unwrap();
    assert_eq!(ranks(&dir, &[], |_, _| {}), vec![None; 3], "it has finished");
    let force = [("restart", "force".to_owned())];
    assert_eq!(ranks(&dir, &force, |_, _| {}), vec![Some(Version(1)); 3]);
    assert_eq!(ranks(&dir, &[], |_, _| {}), vec![Some(Version(1)); 3], "it was closed after that");
}

#[test]
fn ranks_that_declare_different_values_do_not_agree() {
    let dir = tempfile::tempdir().unwrap();
    let found = run_threads(2, |comm| {
        let rank = comm.rank();
        let store = dir.path().join("store").to_string_lossy().into_owned();
        let settings = [("store".to_owned(), store), ("job".into(), "heat".into())];
        let job = Job::open_comm(Loaded::load(&settings).unwrap(), &comm).unwrap();
        job.declare("nx", &rank.to_string()).unwrap();
        job.restart().map(|_| ()).map_err(|error| error.to_string())
    });
    assert!(
        found.iter().all(|one| one.as_ref().is_err_and(|why| why.contains("declares"))),
        "{found:?}"
    );
}
