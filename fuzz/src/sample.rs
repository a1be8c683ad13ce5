//! A small sound store with a few checkpoints: what seeds and damage start from.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use standfast::config::Loaded;
use standfast::{Job, Level};
use standfast_store::{MemoryStore, Store};

/// The objects of the store, and what its checkpoints hold.
pub(crate) struct Sample {
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    /// Region contents by version and name.
    pub(crate) contents: BTreeMap<(u64, String), Vec<u8>>,
}

/// Made once a process.
pub(crate) static SAMPLE: LazyLock<Sample> = LazyLock::new(make);

fn make() -> Sample {
    let settings = [
        ("job", "sample"),
        ("lab.threads", "1"),
        ("lab.page", "1KiB"),
        ("lab.block", "4KiB"),
        ("lab.segment", "16KiB"),
        ("lab.pool", "16KiB"),
        ("lab.track", "hash"),
    ];
    let loaded = Loaded::load(&settings.map(|(name, text)| (name.into(), text.into())));
    let store = MemoryStore::new();
    let job = Job::open_store(loaded.expect("sound settings"), Arc::new(store.clone()))
        .expect("a new store in memory");
    let field = job.alloc::<u64>("field", 3000).expect("a new region");
    let tail = job.alloc::<u8>("tail", 1500).expect("a new region");
    let mut contents = BTreeMap::new();
    for version in 1..=3u64 {
        fill(&mut field.write(), version);
        tail.write().fill(version as u8 - 1);
        let taken = job.checkpoint(None).expect("memory takes everything");
        job.wait(taken, Level::Local).expect("memory takes everything");
        let bytes = field.read().iter().flat_map(|value| value.to_le_bytes()).collect();
        contents.insert((version, "field".into()), bytes);
        contents.insert((version, "tail".into()), tail.read().to_vec());
    }
    let listed = store.list("").expect("memory can be listed");
    let get = |name: &str| store.get(name, u64::MAX).expect("memory can be read");
    let objects = listed.into_iter().map(|object| (get(&object.name), object.name));
    Sample { objects: objects.map(|(bytes, name)| (name, bytes)).collect(), contents }
}

/// A third constant, a third smooth and new in each version, a third zero.
fn fill(field: &mut [u64], version: u64) {
    let third = field.len() / 3;
    for (at, value) in field.iter_mut().enumerate() {
        *value = match at / third {
            0 => (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            1 => (at as u64 / 8) * version,
            _ => 0,
        };
    }
}
