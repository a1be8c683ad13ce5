//! From a location as users write it to an open store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::contract::Store;
use crate::dir::DirStore;
use crate::error::{Error, Result};
use crate::memory::MemoryStore;
#[cfg(feature = "object")]
use crate::object::ObjectStore;
use standfast_sys::ALIGN;
use standfast_sys::trust::Trust;

/// How a directory store moves its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Direct where the file system allows it, buffered otherwise.
    #[default]
    Auto,
    /// Past the page cache; an error where the file system refuses.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// How a store works. Backends other than directories ignore what does not concern them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Direct or buffered.
    pub io: Io,
    /// Threads that write chunks, 1 to 64, shared by all objects of the store.
    pub io_threads: usize,
    /// Bytes per write: a multiple of 4096, at most 64 MiB. A store holds at most
    /// `2 * io_threads` chunks on their way, and one per open writer.
    pub chunk_bytes: usize,
    /// Whose files are read, and who may read those that are written.
    pub trust: Trust,
}

impl Default for Options {
    /// Measured (`cargo bench -p experiments --bench durable -- --grid` in the lab): four threads reach
    /// the device's rate and eight add nothing; chunks of 2 MiB sit in huge pages, which takes the
    /// kernel much less work per write than 1 MiB, and 4 MiB only take more memory.
    fn default() -> Self {
        let (io, trust) = (Io::Auto, Trust::default());
        Options { io, io_threads: 4, chunk_bytes: 2 << 20, trust }
    }
}

const IO_THREADS_MAX: usize = 64;
const CHUNK_BYTES_MAX: usize = 64 << 20;

impl Options {
    /// Refuses options that cannot work; `store` is only for the message.
    pub(crate) fn check(&self, store: &str) -> Result<()> {
        let refuse = |why: String| Err(Error::Location { store: store.to_owned(), why });
        if !(1..=IO_THREADS_MAX).contains(&self.io_threads) {
            return refuse(format!("io_threads is {}, not 1 to {IO_THREADS_MAX}", self.io_threads));
        }
        let chunk = self.chunk_bytes;
        if chunk == 0 || chunk > CHUNK_BYTES_MAX || !chunk.is_multiple_of(ALIGN) {
            return refuse(format!(
                "chunk_bytes is {chunk}, not a multiple of {ALIGN} up to 64 MiB"
            ));
        }
        Ok(())
    }
}

/// Opens the store at a location: a path, `file:///path` or `memory:`; with feature `object`
/// also `s3://bucket/prefix` and `object-file:///path`.
///
/// A directory is created if need be; `memory:` is a new, empty store each time.
pub fn open(location: &str, options: &Options) -> Result<Arc<dyn Store>> {
    let Some((scheme, rest)) = split_scheme(location) else {
        return Ok(Arc::new(DirStore::open(location, options)?));
    };
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(MemoryStore::new())),
        "file" => Ok(Arc::new(DirStore::open(absolute_path(location, rest)?, options)?)),
        #[cfg(feature = "object")]
        "object-file" => {
            let path = absolute_path(location, rest)?;
            // The client knows nothing of owners: the directory is all that is between it and others.
            DirStore::open(&path, options)?;
            Ok(Arc::new(ObjectStore::local(location, &path)?))
        }
        #[cfg(feature = "object")]
        "s3" => Ok(Arc::new(ObjectStore::s3(location)?)),
        #[cfg(not(feature = "object"))]
        "object-file" | "s3" => {
            Err(refused(location, "this build has no object stores (feature \"object\")"))
        }
        _ => Err(refused(location, "unknown kind of location")),
    }
}

/// `s3://...`, `memory:`; a path with a colon in it (`./a:b`, `/x:y`) has no scheme.
fn split_scheme(location: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = location.split_once(':')?;
    let looks = !scheme.is_empty()
        && scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (looks && (rest.is_empty() || rest.starts_with("//"))).then_some((scheme, rest))
}

/// The path of `file:///path`: only this machine's files have one.
fn absolute_path(location: &str, rest: &str) -> Result<PathBuf> {
    match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => Ok(PathBuf::from(path)),
        _ => Err(refused(location, "a file location is file:///absolute/path")),
    }
}

fn refused(location: &str, why: &str) -> Error {
    Error::Location { store: location.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests;
