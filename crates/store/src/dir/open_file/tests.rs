use std::os::unix::fs::symlink;
use std::path::Path;

use standfast_format::Kind;

use super::OPEN_MAX;
use crate::contract::{ObjectReader, Store};
use crate::dir::DirStore;
use crate::location::Options;

const READERS: usize = 10 * OPEN_MAX;

/// Descriptors of this process that lead below a directory.
fn descriptors(below: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.parent() == Some(below)).count()
}

fn name(number: usize) -> String {
    format!("segments/{number}")
}

fn contents(number: usize) -> Vec<u8> {
    vec![number as u8; 5000]
}

/// More readers than files may be open, each of an object of its own.
fn readers(store: &DirStore) -> Vec<Box<dyn ObjectReader>> {
    let open = |number| {
        store.put(&name(number), &contents(number)).unwrap();
        store.open(&name(number)).unwrap()
    };
    (0..READERS).map(open).collect()
}

#[test]
fn many_readers_share_few_descriptors() {
    let home = tempfile::tempdir().unwrap();
    let store = DirStore::open(home.path(), &Options::default()).unwrap();
    let below = home.path().canonicalize().unwrap().join("segments");
    let readers = readers(&store);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (readers, below) = (&readers, &below);
            scope.spawn(move || {
                let mut buf = vec![0; 5000];
                for number in (0..READERS).map(|at| (at * 7 + part * 31) % READERS) {
                    assert_eq!(readers[number].read_at(0, &mut buf).unwrap(), buf.len());
                    assert_eq!(buf, contents(number));
                    assert!(descriptors(below) <= OPEN_MAX + 8);
                }
            });
        }
    });
    // Space of removed files is free as soon as nobody reads them.
    drop(readers);
    assert_eq!(descriptors(&below), 0);
}

#[test]
fn what_is_opened_again_must_be_the_same_file() {
    let home = tempfile::tempdir().unwrap();
    let store = DirStore::open(home.path(), &Options::default()).unwrap();
    let readers = readers(&store);
    let mut buf = vec![0; 10];
    let mut kind = |number: usize| readers[number].read_at(0, &mut buf).map_err(|e| e.kind());
    store.put(&name(0), &contents(99)).unwrap();
    assert_eq!(kind(0), Err(Kind::Transient));
    store.remove(&name(1)).unwrap();
    assert_eq!(kind(1), Err(Kind::Missing));
    let file = |number| home.path().join(name(number));
    std::fs::remove_file(file(2)).unwrap();
    symlink(file(3), file(2)).unwrap();
    assert_eq!(kind(2), Err(Kind::Corrupt));
    assert_eq!(kind(3), Ok(10));
}
