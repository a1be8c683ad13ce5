//! All pairs of values of all settings: a checkpoint brings the same bytes back, or the job is
//! refused with a sentence.

mod pairs;

use std::path::Path;
use std::time::Duration;

use pairs::{Column, Row};
use standfast::config::{KEYS, Loaded};
use standfast::{Job, Kind, Level};
use standfast_agent::{Daemon, Place};
use standfast_comm::{Comm, Solo};
use standfast_testkit::run_threads;

const WORDS: usize = 48 << 10;

/// Settings of a row.
type Words = Vec<(&'static str, String)>;

/// The values to try of every setting.
fn columns(dir: &Path, ranks: usize) -> Vec<Column> {
    let text = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let store = match ranks {
        1 => vec![text("store"), text("store/{node}"), "memory:".to_owned()],
        _ => vec![text("store"), text("store/{node}")],
    };
    let ring = if ranks == 1 { texts(&["off", "auto"]) } else { texts(&["off", "auto", "1"]) };
    let columns = vec![
        ("store", store),
        ("job", texts(&["job", "heat"])),
        ("share", texts(&["private", "group", "private, from 65534"])),
        ("keep", texts(&["8", "1", "2, every 2", "64MiB", "all"])),
        ("capture", texts(&["auto", "cow", "staged", "stop"])),
        ("memory", texts(&["auto", "8MiB"])),
        ("codec", texts(&["fast", "auto", "small", "none", "zstd:1"])),
        ("gpu", texts(&["auto", "on", "off"])),
        ("agent", vec!["auto".into(), "off".into(), "on".into(), text("agent")]),
        ("interval", texts(&["off", "auto", "auto:1h", "1h"])),
        ("signal", texts(&["off", "USR1", "40"])),
        ("restart", texts(&["auto", "eager", "lazy"])),
        ("ring", ring),
        ("global", vec!["off".into(), text("global")]),
        ("global_keep", texts(&["all", "2", "every 2"])),
        ("global_rate", texts(&["off", "200MB/s"])),
        ("global_key", texts(&["off", "!printf '%064d' 7"])),
    ];
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        KEYS.iter().map(|key| key.name).collect::<Vec<_>>(),
        "every setting is tried"
    );
    columns
}

fn words(columns: &[Column], row: &Row) -> Words {
    let chosen = columns.iter().zip(row);
    chosen.filter_map(|((name, values), at)| Some((*name, values[(*at)?].clone()))).collect()
}

/// The sentence that refuses these settings.
fn sentence(words: &Words) -> Option<&'static str> {
    let of = |wanted: &str| words.iter().find(|(name, _)| *name == wanted).map(|(_, text)| &**text);
    let has_no_global = of("global") == Some("off");
    if has_no_global && of("global_rate").is_some_and(|rate| rate != "off") {
        return Some("global_rate has no effect without global");
    }
    if has_no_global && of("global_keep").is_some_and(|keep| keep != "all") {
        return Some("global_keep has no effect without global");
    }
    let agent = of("agent").is_some_and(|agent| !["auto", "off"].contains(&agent));
    if agent && of("store") == Some("memory:") {
        return Some("needs a directory store; memory: is written by the ranks");
    }
    let shared = of("store").is_some_and(|store| !store.contains("{node}"));
    if shared && of("ring") == Some("1") {
        return Some("ring = 1 needs a store per node: put {node} in store, or set ring = off");
    }
    None
}

fn contents(rank: usize, step: u64) -> Vec<u64> {
    // Some pages are equal on all ranks, some are zero, some change with every step.
    let word = |at: usize| match (at / 512) % 4 {
        0 => 0,
        1 => at as u64,
        2 => (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ rank as u64,
        _ => (at as u64 ^ step << 20).wrapping_mul(0xd134_2543_de82_ef95) + rank as u64,
    };
    (0..WORDS).map(word).collect()
}

fn open(words: &Words, dir: &Path, comm: &dyn Comm) -> standfast::Result<Job> {
    let mut all: Vec<(String, String)> =
        words.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
    all.push(("lab.node".into(), format!("n{}", comm.rank())));
    all.push(("lab.agent_command".into(), "/no/such/command".into()));
    if words.contains(&("agent", "on".into())) {
        all.push(("lab.agent_dir".into(), dir.join("agent").to_str().unwrap().into()));
    }
    let loaded = Loaded::load(&all)?;
    if comm.size() == 1 { Job::open_loaded(loaded) } else { Job::open_comm(loaded, comm) }
}

fn write(job: &Job, comm: &dyn Comm) {
    let field = job.alloc::<u64>("field", WORDS).unwrap();
    for step in 1..=3 {
        field.write().copy_from_slice(&contents(comm.rank(), step));
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
    }
}

fn read(job: &Job, comm: &dyn Comm) {
    let field = job.alloc::<u64>("field", WORDS).unwrap();
    assert_eq!(job.restart().unwrap().unwrap().version.0, 3);
    assert!(*field.read() == *contents(comm.rank(), 3), "other bytes");
}

fn life(words: &Words, dir: &Path, comm: &dyn Comm) {
    let job = open(words, dir, comm).unwrap();
    write(&job, comm);
    if words.contains(&("store", "memory:".into())) {
        // It dies with its job, so the same one reads it.
        return read(&job, comm);
    }
    job.close().unwrap();
    let job = open(words, dir, comm).unwrap();
    read(&job, comm);
    job.close().unwrap();
}

fn try_all(ranks: usize) {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let columns = columns(dir, ranks);
    let rows = pairs::rows(&columns, |row| sentence(&words(&columns, row)).is_some());
    for row in &rows {
        let words = words(&columns, row);
        println!("{words:?}");
        let homes: Vec<String> = (0..ranks).map(|rank| format!("agent-n{rank}")).collect();
        let agents: Vec<_> = homes.iter().map(|home| serve(&dir.join(home))).collect();
        match (sentence(&words), ranks) {
            (Some(sentence), 1) => refused(open(&words, dir, &Solo::default()), sentence),
            (Some(sentence), _) => {
                run_threads(ranks, |comm| refused(open(&words, dir, &comm), sentence));
            }
            (None, 1) => life(&words, dir, &Solo::default()),
            (None, _) => {
                run_threads(ranks, |comm| life(&words, dir, &comm));
            }
        }
        for (place, thread) in agents {
            standfast_agent::stop(&place, true).unwrap();
            thread.join().unwrap();
        }
        for entry in std::fs::read_dir(dir).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
    }
}

/// An agent in this process.
fn serve(dir: &Path) -> (Place, std::thread::JoinHandle<()>) {
    let place = Place::open(Some(dir)).unwrap();
    let daemon = Daemon::bind(&place, Duration::from_secs(600)).unwrap().unwrap();
    (place, std::thread::spawn(move || daemon.run()))
}

fn refused(opened: standfast::Result<Job>, sentence: &str) {
    let error = opened.expect_err("such settings make no sense");
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    assert!(error.to_string().contains(sentence), "{error}");
}

#[test]
fn one_process_gets_its_bytes_back_with_all_pairs_of_settings() {
    try_all(1);
}

#[test]
fn two_ranks_get_their_bytes_back_with_all_pairs_of_settings() {
    try_all(2);
}

#[test]
fn ranks_must_have_the_same_settings() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let store = dir.join("{node}").to_str().unwrap().to_owned();
    run_threads(4, |comm| {
        let ring = if comm.rank() == 3 { "2" } else { "off" };
        let words = vec![("store", store.clone()), ("ring", ring.to_owned())];
        let sentence = "rank 3 has ring = 2, rank 0 has ring = off: all ranks need the same value";
        refused(open(&words, dir, &comm), sentence);
    });
}

#[test]
fn a_ring_needs_nodes_and_ranks_need_memory() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let store = dir.join("{node}").to_str().unwrap().to_owned();
    run_threads(4, |comm| {
        let words = vec![("store", store.clone()), ("ring", "3".to_owned())];
        refused(open(&words, dir, &comm), "ring = 3 needs 6 nodes; this job has 4: use ring = 2");
    });
    let alone = vec![("store", "memory:".to_owned()), ("memory", "1MiB".to_owned())];
    let sentence = "memory = 1MiB is too small for one rank: at least 2MiB";
    refused(open(&alone, dir, &Solo::default()), sentence);
}
