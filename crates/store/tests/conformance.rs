//! Every backend of this crate against the one suite.

use std::path::Path;
use std::sync::Arc;

use standfast_conformance::store as conformance;
use standfast_store::{DirStore, EncryptedStore, Io, Key, MemoryStore, Options, Store};
use standfast_testkit::must::leave_out;
use tempfile::TempDir;

/// Runs the suite on directories below `parent`.
fn directories(parent: &Path, options: &Options) {
    let base = TempDir::new_in(parent).unwrap();
    conformance::run(|| {
        let fresh = TempDir::new_in(base.path()).unwrap().keep();
        Arc::new(DirStore::open(fresh.join("new/store"), options).unwrap())
    });
}

#[test]
fn memory() {
    conformance::run(|| Arc::new(MemoryStore::new()));
}

fn encrypted(below: impl Store + 'static) -> Arc<dyn Store> {
    let key = Key::read("5".repeat(64).as_bytes()).unwrap().unwrap();
    Arc::new(EncryptedStore::new(Arc::new(below), key))
}

#[test]
fn encrypted_memory() {
    conformance::run(|| encrypted(MemoryStore::new()));
}

#[test]
fn encrypted_directory() {
    let base = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    conformance::run(|| {
        let fresh = TempDir::new_in(base.path()).unwrap().keep();
        encrypted(DirStore::open(fresh, &Options::default()).unwrap())
    });
}

#[cfg(feature = "object")]
#[test]
fn encrypted_object_store() {
    conformance::run(|| encrypted(standfast_store::ObjectStore::in_memory().unwrap()));
}

#[test]
fn directory_as_configured_by_default() {
    directories(Path::new(env!("CARGO_TARGET_TMPDIR")), &Options::default());
}

#[test]
fn directory_buffered() {
    let options = Options { io: Io::Buffered, ..Options::default() };
    directories(Path::new(env!("CARGO_TARGET_TMPDIR")), &options);
}

#[test]
fn directory_direct_with_the_smallest_chunks() {
    let options =
        Options { io: Io::Direct, io_threads: 2, chunk_bytes: 4096, ..Options::default() };
    let probe = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = DirStore::open(probe.path(), &options).unwrap();
    if let Err(error) = store.create("probe", None) {
        return leave_out("direct", error);
    }
    directories(Path::new(env!("CARGO_TARGET_TMPDIR")), &options);
}

#[test]
fn directory_in_memory_file_system() {
    if !Path::new("/dev/shm").is_dir() {
        return leave_out("mount", "there is no /dev/shm");
    }
    directories(Path::new("/dev/shm"), &Options::default());
}

#[cfg(feature = "object")]
#[test]
fn object_store_on_local_files() {
    let base = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    conformance::run(|| {
        let fresh = TempDir::new_in(base.path()).unwrap().keep();
        let location = format!("object-file://{}/store", fresh.display());
        standfast_store::open(&location, &Options::default()).unwrap()
    });
}

#[cfg(feature = "object")]
#[test]
fn object_store_in_memory() {
    conformance::run(|| Arc::new(standfast_store::ObjectStore::in_memory().unwrap()));
}

/// Runs where `STANDFAST_TEST_S3=s3://bucket/prefix` and the usual `AWS_*` variables are set.
#[cfg(feature = "object")]
#[test]
fn s3() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let Ok(location) = std::env::var("STANDFAST_TEST_S3") else {
        return leave_out("s3-service", "STANDFAST_TEST_S3 is not set");
    };
    let (start, next) = (std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap(), AtomicU64::new(0));
    conformance::run(|| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let fresh = format!("{location}/{}-{number}", start.as_nanos());
        standfast_store::open(&fresh, &Options::default()).unwrap()
    });
}
