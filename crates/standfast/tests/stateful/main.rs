//! Random sequences of everything a program can do, against a model that any reader can check.
//!
//! The model is a list of committed checkpoints with the bytes of each region; the engine is a
//! job on a store in memory that outlives it, reopened with other settings now and then. After
//! every restart or recovery the memory must be what the model says.
//!
//! More cases: `PROPTEST_CASES=5000 cargo test -p standfast --test stateful --release`.

mod world;

use proptest::prelude::*;
use world::World;

/// Region names; the first one is large enough to be tracked by the kernel.
const NAMES: [&str; 3] = ["large", "small", "odd"];
const LARGE_BYTES: usize = (1 << 20) + 4096 * 3;
const VERSIONS: u64 = 9;

/// What a program can do.
#[derive(Clone, Debug)]
enum Action {
    /// Writes so many stretches of this length, at places and with bytes that the seed decides.
    Write { region: usize, stretches: u8, bytes: usize, seed: u64 },
    /// Makes a region what it was in an earlier checkpoint, without the library's help.
    WriteOld { region: usize, pick: usize },
    /// Fills a region with zeros.
    Zero { region: usize },
    /// Unprotects a region and protects another length of memory under its name.
    Resize { region: usize, bytes: usize },
    /// Two regions of one length exchange their memory, as solvers with two buffers do.
    Exchange,
    /// A region's memory is given back to the system and taken anew, maybe at the same place.
    Renew { region: usize, byte: u8 },
    /// Takes a checkpoint: the next version, or a chosen one.
    Checkpoint { version: Option<u64>, wait: bool },
    /// Restarts from the newest, or from one of those there are.
    Restart { pick: Option<usize> },
    /// Recovers one region of one checkpoint into a buffer.
    Recover { region: usize, pick: usize },
    /// Closes the job and opens it again with these settings.
    Reopen { settings: Settings },
}

/// What may change between two openings.
#[derive(Clone, Copy, Debug)]
struct Settings {
    hash: &'static str,
    codec: &'static str,
    page: &'static str,
    mode: &'static str,
    track: &'static str,
    capture: &'static str,
    keep: usize,
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

fn settings() -> impl Strategy<Value = Settings> {
    (
        one_of(&["xxh3", "xxh3", "blake3", "sha1"]),
        one_of(&["none", "lz4", "zstd:1", "deflate:1"]),
        one_of(&["4KiB", "4KiB", "1KiB", "16KiB"]),
        one_of(&["all", "all", "collective", "local", "incremental", "full"]),
        one_of(&["auto", "uffd", "mprotect", "hash"]),
        one_of(&["stop", "cow", "staged", "auto"]),
        0usize..4,
    )
        .prop_map(|(hash, codec, page, mode, track, capture, keep)| Settings {
            hash,
            codec,
            page,
            mode,
            track,
            capture,
            keep,
        })
}

fn action() -> impl Strategy<Value = Action> {
    let region = 0..NAMES.len();
    let version = prop_oneof![3 => Just(None), 1 => (1..=VERSIONS).prop_map(Some)];
    prop_oneof![
        4 => (region.clone(), 1u8..5, 1usize..9000, any::<u64>())
            .prop_map(|(region, stretches, bytes, seed)| Action::Write { region, stretches, bytes, seed }),
        1 => (region.clone(), any::<u64>())
            .prop_map(|(region, seed)| Action::Write { region, stretches: 1, bytes: LARGE_BYTES, seed }),
        1 => (region.clone(), 0usize..8).prop_map(|(region, pick)| Action::WriteOld { region, pick }),
        1 => region.clone().prop_map(|region| Action::Zero { region }),
        1 => (1..NAMES.len(), 0usize..30_000).prop_map(|(region, bytes)| Action::Resize { region, bytes }),
        1 => Just(Action::Exchange),
        1 => (region.clone(), 0u8..2).prop_map(|(region, byte)| Action::Renew { region, byte }),
        5 => (version, any::<bool>()).prop_map(|(version, wait)| Action::Checkpoint { version, wait }),
        2 => proptest::option::of(0usize..8).prop_map(|pick| Action::Restart { pick }),
        1 => (region, 0usize..8).prop_map(|(region, pick)| Action::Recover { region, pick }),
        1 => settings().prop_map(|settings| Action::Reopen { settings }),
    ]
}

/// Every way to find changed pages and to take them.
const WAYS: [(&str, &str); 9] = [
    ("auto", "stop"),
    ("uffd", "stop"),
    ("mprotect", "stop"),
    ("hash", "stop"),
    ("uffd", "cow"),
    ("mprotect", "cow"),
    ("uffd", "staged"),
    ("hash", "staged"),
    ("auto", "auto"),
];

fn usual() -> Settings {
    Settings {
        hash: "xxh3",
        codec: "lz4",
        page: "4KiB",
        mode: "all",
        track: "auto",
        capture: "stop",
        keep: 2,
    }
}

/// Some seconds' worth of cases, unless somebody wants more.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        ProptestConfig::default().cases
    } else {
        40
    };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_restore_is_what_the_model_says(
        first in settings(),
        actions in proptest::collection::vec(action(), 1..40),
    ) {
        let mut world = World::new(first);
        actions.iter().for_each(|action| world.act(action));
        world.finish();
    }
}

/// New memory at the old place: nobody has written to it, yet it is not what it was.
#[test]
fn memory_that_was_taken_anew_is_captured_anew() {
    for (track, capture) in WAYS {
        let mut world = World::new(Settings { track, capture, ..usual() });
        for byte in [0, 1, 0] {
            world.write(0, 1, LARGE_BYTES, 1);
            world.act(&Action::Checkpoint { version: None, wait: true });
            world.act(&Action::Renew { region: 0, byte });
            world.act(&Action::Checkpoint { version: None, wait: true });
        }
        world.finish();
    }
}

/// Two buffers that change places between checkpoints without a byte being written: the pages
/// that the kernel calls unwritten are another region's now.
#[test]
fn buffers_that_change_places_are_captured_where_they_are() {
    for (track, capture) in WAYS {
        let mut world = World::new(Settings { track, capture, ..usual() });
        world.write(0, 1, LARGE_BYTES, 1);
        for _ in 0..4 {
            world.act(&Action::Checkpoint { version: None, wait: true });
            world.act(&Action::Exchange);
        }
        world.act(&Action::Checkpoint { version: None, wait: true });
        world.finish();
    }
}
