//! Reading one object by ranges, several at once for large requests.
//!
//! Why each get names the version: an object replaced after it was opened must give an error,
//! never a mixture of old and new.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStoreExt};

use standfast_format::Kind;

use super::Service;
use crate::contract::ObjectReader;
use crate::error::{Error, Result};

/// Bytes per request.
const RANGE_BYTES: usize = 8 << 20;
/// Requests at once; with the bytes above, the memory a read takes.
const RANGES_IN_FLIGHT: usize = 4;

pub(super) struct RangeReader {
    service: Arc<Service>,
    name: String,
    path: Path,
    bytes: u64,
    version: Option<String>,
}

impl RangeReader {
    pub(super) fn open(service: Arc<Service>, name: &str) -> Result<RangeReader> {
        let path = service.path(name);
        let (client, asked) = (service.client.clone(), path.clone());
        let found = service.bridge.run(async move { client.head(&asked).await });
        let found = found.map_err(service.failed("open", name))?;
        let name = name.to_owned();
        Ok(RangeReader { service, name, path, bytes: found.size, version: found.e_tag })
    }

    fn request(&self, range: Range<u64>) -> tokio::task::JoinHandle<object_store::Result<Bytes>> {
        let (client, path) = (self.service.client.clone(), self.path.clone());
        let options = GetOptions {
            range: Some(range.into()),
            if_match: self.version.clone(),
            ..GetOptions::default()
        };
        self.service
            .bridge
            .spawn(async move { client.get_opts(&path, options).await?.bytes().await })
    }

    /// Fills `buf` by requests that are all under way at once.
    fn fill(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut at = offset;
        let ranges = buf.chunks_mut(RANGE_BYTES).map(|piece| {
            let range = at..at + piece.len() as u64;
            at = range.end;
            (piece, range)
        });
        let requests: Vec<_> = ranges.map(|(piece, range)| (piece, self.request(range))).collect();
        for (piece, request) in requests {
            let answer = self.service.bridge.run(async move { request.await? });
            let answer = answer.map_err(self.service.failed("read", &self.name))?;
            if answer.len() != piece.len() {
                // The object has its length still: this answer was cut off.
                let (object, store) = (self.name.clone(), self.service.described.clone());
                let source = format!("{} of {} bytes were sent", answer.len(), piece.len()).into();
                let (op, kind) = ("read", Kind::Transient);
                return Err(Error::Backend { op, object, store, kind, source });
            }
            piece.copy_from_slice(&answer);
        }
        Ok(())
    }
}

impl ObjectReader for RangeReader {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let rest = self.bytes.saturating_sub(offset);
        let count = usize::try_from(rest).unwrap_or(usize::MAX).min(buf.len());
        let mut at = offset;
        for window in buf[..count].chunks_mut(RANGE_BYTES * RANGES_IN_FLIGHT) {
            self.fill(at, window)?;
            at += window.len() as u64;
        }
        Ok(count)
    }
}
