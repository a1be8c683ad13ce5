//! Locks as objects: whoever creates the object first holds the lock.
//!
//! ```text
//! lock.reader.exclusive    created only if absent: the one that prunes
//! lock.reader.shared/ID    one per reader
//! ```
//! and so on for every place. Each writes its object first and looks for the other sort's
//! afterwards, so of two that come at once at least one sees the other and steps back; both may.
//!
//! Unlike flock, nothing removes the object of a holder that died. Guessing by age would one day
//! remove a living one's, so the message says what to remove and a person decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use object_store::{ObjectStoreExt, PutMode};

use super::Service;
use crate::contract::{Lock, LockGuard};
use crate::error::{Error, Result};
use crate::holder;

pub(super) fn take(service: &Arc<Service>, lock: Lock) -> Result<LockGuard> {
    if matches!(lock, Lock::Busy | Lock::Idle) {
        return Ok(LockGuard::new(lock, ()));
    }
    let exclusive = format!("{}.exclusive", lock.place());
    let shared = format!("{}.shared", lock.place());
    if lock.is_shared() {
        let held = Held::create(service, lock, format!("{shared}/{}", unique()))?;
        if holder_of(service, &exclusive)?.is_some() {
            return Err(locked(service, lock, &exclusive));
        }
        return Ok(LockGuard::new(lock, held));
    }
    let held = Held::create(service, lock, exclusive)?;
    if let Some(other) = service.list(&shared)?.first() {
        return Err(locked(service, lock, &other.name));
    }
    Ok(LockGuard::new(lock, held))
}

/// The object that is the lock; dropping it removes the object.
struct Held {
    service: Arc<Service>,
    object: String,
}

impl Held {
    fn create(service: &Arc<Service>, lock: Lock, object: String) -> Result<Held> {
        // The second line tells our own object from another's when an answer got lost and the
        // client asked again.
        let text = format!("{}\n{}\n", holder::this_process(), unique());
        match service.put(&object, text.clone().into_bytes(), PutMode::Create) {
            Ok(()) => {}
            Err(Error::Exists { .. }) => {
                if holder_of(service, &object)?.as_deref() != Some(text.as_bytes()) {
                    return Err(locked(service, lock, &object));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(Held { service: service.clone(), object })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A failure leaves a lock behind; the next one's message names it.
        let _ = self.service.remove(&self.object);
    }
}

/// The text of a lock; `None` if nobody holds it.
fn holder_of(service: &Service, object: &str) -> Result<Option<Vec<u8>>> {
    let (client, path) = (service.client.clone(), service.path(object));
    let found = service.bridge.run(async move {
        match client.get_range(&path, 0..holder::HOLDER_BYTES_MAX as u64).await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    found.map_err(service.failed("read", object))
}

fn locked(service: &Service, lock: Lock, object: &str) -> Error {
    let text = holder_of(service, object).ok().flatten();
    let holder = text.and_then(|text| holder::read_back(&text));
    let holder = holder.unwrap_or_else(|| "another process".to_owned());
    let holder = format!("{holder}; if that has died, remove {object} there");
    Error::Locked { lock, store: service.described.clone(), holder }
}

/// Different for every call, process and host.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{now:x}-{:x}-{number:x}", std::process::id())
}
