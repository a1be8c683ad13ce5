//! Host memory through a GPU: blocks are compressed there where `pipeline = gpu` asks for it.
//!
//! Without a usable device everything goes on as with `pipelined`, and the report says why.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standfast_gpu::broker::{BLOCK_BYTES, Broker};
use standfast_write::{PackSettings, Packer, Pipeline};

use super::capture::Capturer;

impl Capturer {
    /// A packer whose blocks go to a device, if that is asked for and there is one.
    pub(super) fn start_on_gpu(&mut self, settings: PackSettings) -> Packer {
        let (store, hasher) = (Arc::clone(&self.store), self.hasher.clone());
        if settings.pipeline != Pipeline::Gpu {
            return Packer::new(store, settings, hasher);
        }
        let notes = Arc::clone(&self.gpu_notes);
        let say = move |note| lock(&notes).push(note);
        match Broker::open(say) {
            Some(broker) => {
                let block_bytes = BLOCK_BYTES.max(settings.page_bytes);
                let settings = PackSettings { block_bytes, ..settings };
                Packer::offloaded(store, settings, hasher, Arc::new(broker))
            }
            None => Packer::new(store, settings, hasher),
        }
    }

    /// Notes what the device had to say.
    pub(super) fn note_gpu(&mut self) {
        self.notes.append(&mut lock(&self.gpu_notes));
    }
}

fn lock(notes: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}
