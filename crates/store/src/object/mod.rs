//! Objects in an object store: S3 and whatever speaks its protocol.
//!
//! Data: small objects are single puts; large ones are multipart uploads whose completion makes
//! them visible at once; reads are ranged gets. The client is the `object_store` crate; this
//! module is its blocking face.
//!
//! Durability is the service's: a put that was answered is durable. `object-file:` is the same
//! client on a local directory, to test without a service; its removals are not synced.
//!
//! Limits:
//! - Uploads that a crash left behind are invisible here but cost money; the client cannot list
//!   them, so [`discard_unsealed`](Store::discard_unsealed) frees nothing. Give the bucket a
//!   lifecycle rule that aborts incomplete multipart uploads.
//! - A lock is an object that a crash leaves behind; it counts for half a minute more.

mod bridge;
mod errors;
mod lock;
mod reader;
mod writer;

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore as Client, ObjectStoreExt, PutMode, PutPayload, RetryConfig};

use crate::contract::{Lock, LockGuard, ObjectMeta, ObjectReader, ObjectWriter, Store};
use crate::error::{Error, Result};
use crate::name::{check_name, check_prefix, is_valid};
use bridge::Bridge;
use lock::Lease;

/// A store behind the `object_store` client.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    service: Arc<Service>,
}

/// What readers, writers and locks share.
#[derive(Debug)]
struct Service {
    client: Arc<dyn Client>,
    bridge: Bridge,
    prefix: Path,
    described: String,
    lease: Lease,
}

impl ObjectStore {
    /// Opens `s3://bucket/prefix`. Credentials, region and endpoint come from the usual `AWS_*`
    /// environment variables; a plain `http://` endpoint needs `AWS_ALLOW_HTTP=true`.
    pub fn s3(location: &str) -> Result<Self> {
        let (bucket, prefix) = location
            .strip_prefix("s3://")
            .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
            .filter(|(bucket, _)| !bucket.is_empty())
            .ok_or_else(|| refused(location, "an S3 location is s3://bucket/prefix"))?;
        // Another part of the process may have chosen already; any choice will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Short: whoever drains retries on its own, and a restart should not hang for minutes.
        let retry = RetryConfig {
            max_retries: 5,
            retry_timeout: std::time::Duration::from_secs(30),
            ..RetryConfig::default()
        };
        let client = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
        Self::new(Arc::new(client.map_err(|e| refused(location, e))?), prefix, location)
    }

    /// Opens `object-file:///path`, creating the directory.
    pub fn local(location: &str, path: &std::path::Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(|e| refused(location, e))?;
        let client = LocalFileSystem::new_with_prefix(path).map_err(|e| refused(location, e))?;
        Self::new(Arc::new(client.with_fsync(true)), "", location)
    }

    /// An empty store in memory behind the same client, for tests.
    pub fn in_memory() -> Result<Self> {
        Self::new(Arc::new(InMemory::new()), "", "object-memory:")
    }

    /// Any other client, with the objects below `prefix`; `described` is for messages.
    pub fn new(client: Arc<dyn Client>, prefix: &str, described: &str) -> Result<Self> {
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|e| refused(described, e))?;
        let bridge = Bridge::start().map_err(|e| refused(described, e))?;
        let described = described.trim_end_matches('/').to_owned();
        let lease = Lease::default();
        Ok(ObjectStore { service: Arc::new(Service { client, bridge, prefix, described, lease }) })
    }

    #[cfg(test)]
    fn with_lease(self, lease: Lease) -> Self {
        let mut service = Arc::into_inner(self.service).expect("nobody else has it yet");
        service.lease = lease;
        Self { service: Arc::new(service) }
    }
}

fn refused(location: &str, why: impl std::fmt::Display) -> Error {
    Error::Location { store: location.to_owned(), why: why.to_string() }
}

impl Service {
    /// The client's path of an object or directory of this store.
    fn path(&self, name: &str) -> Path {
        let parts = self.prefix.parts();
        let name = name.split('/').filter(|part| !part.is_empty()).map(Into::into);
        parts.chain(name).collect()
    }

    /// For `map_err`: names the operation, the object and the store.
    fn failed(&self, op: &'static str, name: &str) -> impl Fn(object_store::Error) -> Error {
        move |source| errors::of(op, name, &self.described, source)
    }

    fn put(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Result<()> {
        let (client, path) = (self.client.clone(), self.path(name));
        let put = async move { client.put_opts(&path, PutPayload::from(bytes), mode.into()).await };
        self.bridge.run(put).map(drop).map_err(self.failed("put", name))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let (client, path) = (self.client.clone(), self.path(name));
        let remove = async move {
            // S3 answers the removal of nothing with success.
            client.head(&path).await?;
            client.delete(&path).await
        };
        self.bridge.run(remove).map_err(self.failed("remove", name))
    }

    /// The objects directly or deeper below a directory, with names relative to the store,
    /// whatever they are called.
    fn list(&self, directory: &str) -> Result<Vec<ObjectMeta>> {
        let (client, top) = (self.client.clone(), self.path(directory));
        let walk = async move {
            let (mut found, mut todo) = (Vec::new(), vec![top]);
            while let Some(path) = todo.pop() {
                let below = client.list_with_delimiter(Some(&path)).await?;
                // Some services list an empty directory as an object within itself.
                found.extend(below.objects.into_iter().filter(|object| object.location != path));
                todo.extend(below.common_prefixes);
            }
            Ok(found)
        };
        let found = self.bridge.run(walk).map_err(self.failed("list", directory))?;
        let named = found
            .into_iter()
            .map(|object| ObjectMeta { name: self.name_of(&object.location), bytes: object.size });
        Ok(named.collect())
    }

    /// The name in this store of what a listing found in it.
    fn name_of(&self, path: &Path) -> String {
        let skip = match self.prefix.as_ref().len() {
            0 => 0,
            bytes => bytes + 1,
        };
        path.as_ref().get(skip..).unwrap_or_default().to_owned()
    }
}

impl Store for ObjectStore {
    fn describe(&self) -> String {
        self.service.described.clone()
    }

    fn create(&self, name: &str, size_hint: Option<u64>) -> Result<Box<dyn ObjectWriter>> {
        check_name(name, &self.service.described)?;
        Ok(Box::new(writer::UploadWriter::new(self.service.clone(), name, size_hint)))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name, &self.service.described)?;
        self.service.put(name, bytes.to_vec(), PutMode::Overwrite)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        check_name(name, &self.service.described)?;
        self.service.put(name, bytes.to_vec(), PutMode::Create)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ObjectReader>> {
        check_name(name, &self.service.described)?;
        Ok(Box::new(reader::RangeReader::open(self.service.clone(), name)?))
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        check_prefix(prefix, &self.service.described)?;
        let mut objects = self.service.list(prefix)?;
        objects.retain(|object| is_valid(&object.name));
        objects.sort_unstable();
        Ok(objects)
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name, &self.service.described)?;
        self.service.remove(name)
    }

    fn discard_unsealed(&self) -> Result<u64> {
        Ok(0)
    }

    fn lock(&self, lock: Lock) -> Result<LockGuard> {
        lock::take(&self.service, lock)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}
