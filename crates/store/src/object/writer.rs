//! Writing one object: a single put if it is small, else a multipart upload.
//!
//! Invariants:
//! - At most [`PARTS_IN_FLIGHT`] parts are on their way, plus the one being filled.
//! - Nothing is visible before the upload is completed; dropped or failed, it is aborted.

use std::collections::VecDeque;
use std::sync::Arc;

use object_store::{MultipartUpload, ObjectStoreExt, PutMode, PutPayload};
use standfast_format::Kind;
use tokio::task::JoinHandle;

use super::Service;
use crate::contract::ObjectWriter;
use crate::error::{Error, Object, Result};

/// Smallest part: S3 wants 5 MiB, and below 8 the round trips show.
const PART_BYTES_MIN: usize = 8 << 20;
const PART_BYTES_MAX: usize = 512 << 20;
/// S3 takes 10 000 parts; a hint is trusted up to this many, leaving room for a low one.
const PARTS_PLANNED: u64 = 8000;
/// Where no hint helped, parts double in size after each so many: 1.5 TB before parts run out.
const PARTS_PER_SIZE: usize = 1400;
const PARTS_IN_FLIGHT: usize = 4;

type Upload = Box<dyn MultipartUpload>;

pub(super) struct UploadWriter {
    service: Arc<Service>,
    name: String,
    part_bytes: usize,
    parts: usize,
    filling: Vec<u8>,
    sent: u64,
    upload: Option<Upload>,
    in_flight: VecDeque<JoinHandle<object_store::Result<()>>>,
    failed: Option<(Kind, String)>,
}

impl UploadWriter {
    pub(super) fn new(service: Arc<Service>, name: &str, size_hint: Option<u64>) -> UploadWriter {
        UploadWriter {
            service,
            name: name.to_owned(),
            part_bytes: part_bytes(size_hint),
            parts: 0,
            filling: Vec::new(),
            sent: 0,
            upload: None,
            in_flight: VecDeque::new(),
            failed: None,
        }
    }

    fn check(&self) -> Result<()> {
        let Some((kind, first)) = self.failed.clone() else { return Ok(()) };
        let object = Object::new(&*self.name, &*self.service.described);
        Err(Error::GivenUp { object, kind, first })
    }

    fn give_up(&mut self, error: Error) -> Error {
        self.failed = Some((error.kind(), error.to_string()));
        self.abort();
        error
    }

    fn fill(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) =
                bytes.split_at(bytes.len().min(self.part_bytes - self.filling.len()));
            self.filling.extend_from_slice(now);
            bytes = later;
            if self.filling.len() == self.part_bytes {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn send_part(&mut self) -> Result<()> {
        while self.in_flight.len() >= PARTS_IN_FLIGHT {
            self.await_oldest()?;
        }
        let part = std::mem::take(&mut self.filling);
        self.sent += part.len() as u64;
        self.parts += 1;
        if self.parts.is_multiple_of(PARTS_PER_SIZE) {
            self.part_bytes = (2 * self.part_bytes).min(PART_BYTES_MAX);
        }
        let request = self.upload()?.put_part(PutPayload::from(part));
        self.in_flight.push_back(self.service.bridge.spawn(request));
        Ok(())
    }

    fn upload(&mut self) -> Result<&mut Upload> {
        let begun = match self.upload.take() {
            Some(begun) => begun,
            None => {
                let (client, path) = (self.service.client.clone(), self.service.path(&self.name));
                let begun =
                    self.service.bridge.run(async move { client.put_multipart(&path).await });
                begun.map_err(self.service.failed("begin the upload of", &self.name))?
            }
        };
        Ok(self.upload.insert(begun))
    }

    fn await_oldest(&mut self) -> Result<()> {
        let Some(oldest) = self.in_flight.pop_front() else { return Ok(()) };
        let landed = self.service.bridge.run(async move { oldest.await? });
        landed.map_err(self.service.failed("upload", &self.name))
    }

    fn finish(&mut self) -> Result<()> {
        if self.upload.is_none() {
            let bytes = std::mem::take(&mut self.filling);
            self.sent = bytes.len() as u64;
            return self.service.put(&self.name, bytes, PutMode::Overwrite);
        }
        if !self.filling.is_empty() {
            self.send_part()?;
        }
        while !self.in_flight.is_empty() {
            self.await_oldest()?;
        }
        let Some(upload) = self.upload.take() else { return Ok(()) };
        let completed = self.service.bridge.run(complete(upload));
        completed.map_err(self.service.failed("complete the upload of", &self.name))
    }

    /// Best effort: what the service keeps of it is invisible.
    fn abort(&mut self) {
        self.filling = Vec::new();
        for request in self.in_flight.drain(..) {
            request.abort();
        }
        if let Some(mut upload) = self.upload.take() {
            let _ = self.service.bridge.run(async move { upload.abort().await });
        }
    }
}

async fn complete(mut upload: Upload) -> object_store::Result<()> {
    let completed = upload.complete().await;
    if completed.is_err() {
        let _ = upload.abort().await;
    }
    completed.map(drop)
}

fn part_bytes(size_hint: Option<u64>) -> usize {
    let planned = size_hint.unwrap_or(0).div_ceil(PARTS_PLANNED);
    let planned = usize::try_from(planned).unwrap_or(usize::MAX).min(PART_BYTES_MAX);
    planned.next_multiple_of(1 << 20).max(PART_BYTES_MIN)
}

impl ObjectWriter for UploadWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.fill(bytes).map_err(|error| self.give_up(error))
    }

    fn written(&self) -> u64 {
        self.sent + self.filling.len() as u64
    }

    fn settle(&mut self) -> Result<()> {
        self.check()?;
        while !self.in_flight.is_empty() {
            self.await_oldest().map_err(|error| self.give_up(error))?;
        }
        Ok(())
    }

    fn seal(mut self: Box<Self>) -> Result<u64> {
        self.check()?;
        self.finish().map_err(|error| self.give_up(error))?;
        Ok(self.sent)
    }
}

impl Drop for UploadWriter {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests;
