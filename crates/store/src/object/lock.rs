//! Locks as objects: whoever creates the object first holds the lock, for as long as it keeps it
//! fresh.
//!
//! ```text
//! lock.reader.exclusive    created only if absent: the one that prunes
//! lock.reader.shared/ID    one per reader
//! ```
//! and so on for every place. Each writes its object first and looks for the other sort's
//! afterwards, so of two that come at once at least one sees the other and steps back; both may.
//!
//! Unlike flock, nothing removes the object of a holder that died. So a holder writes its object
//! again and again ([`Lease::beat`]), and one that was not written for [`Lease::time`] counts as
//! left behind: whoever finds it in its way removes it. Ages are told by the service's own clock:
//! an object that was just written tells what time it is there.
//!
//! A holder that cannot reach the service for that long, or is stopped, loses its lock without
//! knowing. What locks guard is safe all the same against anything but a prune in that time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as Client, ObjectStoreExt, PutMode, PutPayload};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Service;
use crate::contract::{Lock, LockGuard};
use crate::error::{Error, Result};
use crate::holder;

/// How long a lock counts without its holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    /// From the last time it was written.
    pub(super) time: Duration,
    /// How often its holder writes it.
    pub(super) beat: Duration,
}

impl Default for Lease {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), beat: Duration::from_secs(6) }
    }
}

impl Lease {
    /// Whether a lock was left behind, by the time of an object that was written just now.
    fn is_over(self, lock: &ObjectMeta, now: &ObjectMeta) -> bool {
        let age = now.last_modified.signed_duration_since(lock.last_modified);
        age.to_std().is_ok_and(|age| age > self.time)
    }
}

pub(super) fn take(service: &Arc<Service>, lock: Lock) -> Result<LockGuard> {
    if matches!(lock, Lock::Busy | Lock::Idle) {
        return Ok(LockGuard::new(lock, ()));
    }
    let exclusive = format!("{}.exclusive", lock.place());
    let shared = format!("{}.shared", lock.place());
    let held = match lock.is_shared() {
        true => {
            let held = Held::create(service, lock, format!("{shared}/{}", unique()))?;
            if let Some(other) = meta(service, &exclusive)? {
                step_over(service, lock, &held.object, &other)?;
            }
            held
        }
        false => {
            let held = match Held::create(service, lock, exclusive.clone()) {
                Err(error @ Error::Locked { .. }) => {
                    take_over(service, lock, &exclusive).map_err(|still| still.unwrap_or(error))?
                }
                created => created?,
            };
            for other in below(service, &shared)? {
                step_over(service, lock, &held.object, &other)?;
            }
            held
        }
    };
    Ok(LockGuard::new(lock, held))
}

/// Removes a lock that was left behind; an error if it was not. `own` was written just now.
fn step_over(service: &Service, lock: Lock, own: &str, other: &ObjectMeta) -> Result<()> {
    let object = service.name_of(&other.location);
    let now = meta(service, own)?;
    if !now.is_some_and(|now| service.lease.is_over(other, &now)) {
        return Err(locked(service, lock, &object));
    }
    match service.remove(&object) {
        Err(Error::Missing { .. }) => Ok(()),
        removed => removed,
    }
}

/// Takes an exclusive lock that was left behind. `Err(None)`: it was not.
fn take_over(
    service: &Arc<Service>,
    lock: Lock,
    exclusive: &str,
) -> std::result::Result<Held, Option<Error>> {
    let text = holder_of(service, exclusive)?;
    // An object that only tells the time.
    let probe = Held::create(service, lock, format!("{}.probe/{}", lock.place(), unique()))?;
    if let Some(other) = meta(service, exclusive)? {
        let now = meta(service, &probe.object)?;
        if !now.is_some_and(|now| service.lease.is_over(&other, &now)) {
            return Err(None);
        }
        // Another may have been faster, and what is there now is its own.
        if holder_of(service, exclusive)? != text {
            return Err(None);
        }
        match service.remove(exclusive) {
            Ok(()) | Err(Error::Missing { .. }) => {}
            Err(error) => return Err(Some(error)),
        }
    }
    Ok(Held::create(service, lock, exclusive.to_owned())?)
}

/// The object that is the lock, kept fresh; dropping it removes the object.
struct Held {
    service: Arc<Service>,
    object: String,
    /// Dropped to end the beating.
    stop: Option<oneshot::Sender<()>>,
    beating: Option<JoinHandle<()>>,
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
        let (stop, stopped) = oneshot::channel();
        let (client, path) = (service.client.clone(), service.path(&object));
        let beating = service.bridge.spawn(beat(client, path, text, service.lease.beat, stopped));
        let (stop, beating) = (Some(stop), Some(beating));
        Ok(Held { service: service.clone(), object, stop, beating })
    }
}

/// Writes a lock again and again, as long as it is the own one. What fails is tried next time.
async fn beat(
    client: Arc<dyn Client>,
    path: Path,
    text: String,
    every: Duration,
    mut stopped: oneshot::Receiver<()>,
) {
    while tokio::time::timeout(every, &mut stopped).await.is_err() {
        let own = match client.get_range(&path, 0..holder::HOLDER_BYTES_MAX as u64).await {
            Ok(found) => found.as_ref() == text.as_bytes(),
            // Taken away, by somebody who believed its holder dead.
            Err(object_store::Error::NotFound { .. }) => false,
            Err(_) => continue,
        };
        if !own {
            return;
        }
        let _ = client.put(&path, PutPayload::from(text.clone())).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(beating) = self.beating.take() {
            // A beat under way would bring the object back.
            let _ = self.service.bridge.run(async move {
                let _ = beating.await;
                Ok(())
            });
        }
        // A failure leaves a lock behind, which counts until its time is over.
        let _ = self.service.remove(&self.object);
    }
}

/// A lock's object; `None` if there is none.
fn meta(service: &Service, object: &str) -> Result<Option<ObjectMeta>> {
    let (client, path) = (service.client.clone(), service.path(object));
    let found = service.bridge.run(async move {
        match client.head(&path).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    found.map_err(service.failed("look at", object))
}

/// The locks below a directory.
fn below(service: &Service, directory: &str) -> Result<Vec<ObjectMeta>> {
    let (client, path) = (service.client.clone(), service.path(directory));
    let listed = service.bridge.run(async move {
        let mut found = client.list_with_delimiter(Some(&path)).await?.objects;
        found.retain(|object| object.location != path);
        Ok(found)
    });
    listed.map_err(service.failed("list", directory))
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
    let seconds = service.lease.time.as_secs();
    let holder = format!("{holder}; if that has died, its lock ends within {seconds} s");
    Error::Locked { lock, store: service.described.clone(), holder }
}

/// Different for every call, process and host.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{now:x}-{:x}-{number:x}", std::process::id())
}

#[cfg(test)]
mod tests;
