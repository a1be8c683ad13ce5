//! A whole store, damaged at arbitrary places: whatever is read back is right, or refused.
//!
//! Damage without new checksums must never be taken for data. Damage with new checksums (an
//! attacker's, or a bug's) may be, but must not bring the reader down.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use arbitrary::{Arbitrary, Unstructured};
use standfast::{Manifest, Rank};
use standfast_format::{Image, StoreHeader};
use standfast_restart::{Inventory, Rebuild, Sink, check_segment, read_image};
use standfast_store::{MemoryStore, Store};
use standfast_write::SegmentReader;

use crate::envelope;
use crate::sample::SAMPLE;

/// Regions above this are not rebuilt: a hostile image may claim any number of zero pages.
const REBUILD_BYTES_MAX: u64 = 8 << 20;
const EDITS_MAX: usize = 8;

/// One thing done to one object.
#[derive(Arbitrary, Debug)]
enum Edit {
    /// A byte is changed, counted from the start or from the end.
    Flip { at: u16, mask: u8, from_end: bool },
    /// Eight bytes are replaced: lengths, offsets and counts.
    Number { at: u16, value: u64, from_end: bool },
    /// It ends early.
    Cut { by: u16 },
    /// Bytes are added at its end.
    Grow { by: u8 },
    /// It is gone.
    Remove,
    /// It has another object's contents.
    Replace { by: u8 },
    /// Its checksums are made to fit what was done to it.
    Reseal,
}

/// Damages the sample store as the input says, and reads everything back.
pub fn whole_store(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let mut objects = SAMPLE.objects.clone();
    let mut resealed = false;
    for _ in 0..EDITS_MAX {
        let Ok((pick, edit)) = <(u8, Edit)>::arbitrary(&mut input) else { break };
        if input.is_empty() {
            break;
        }
        resealed |= matches!(edit, Edit::Reseal);
        apply(&mut objects, pick, &edit);
    }
    let store = MemoryStore::new();
    for (name, bytes) in &objects {
        store.put(name, bytes).expect("memory takes everything");
    }
    read_everything(&store, !resealed);
}

fn apply(objects: &mut BTreeMap<String, Vec<u8>>, pick: u8, edit: &Edit) {
    if objects.is_empty() {
        return;
    }
    let name = |pick: u8| objects.keys().nth(usize::from(pick) % objects.len()).cloned();
    let Some(name_of_it) = name(pick) else { return };
    if let Edit::Replace { by } = edit {
        let other = name(*by).and_then(|name| objects.get(&name)).cloned().unwrap_or_default();
        objects.insert(name_of_it, other);
        return;
    }
    if let Edit::Remove = edit {
        objects.remove(&name_of_it);
        return;
    }
    let bytes = objects.get_mut(&name_of_it).expect("just found");
    edit_bytes(bytes, edit, name_of_it.starts_with("segments/"));
}

fn edit_bytes(bytes: &mut Vec<u8>, edit: &Edit, is_segment: bool) {
    let place = |at: u16, from_end: bool, len: usize| {
        let at = usize::from(at) % len.max(1);
        if from_end { len.saturating_sub(at + 1) } else { at }
    };
    match *edit {
        Edit::Flip { at, mask, from_end } => {
            let at = place(at, from_end, bytes.len());
            bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= mask);
        }
        Edit::Number { at, value, from_end } => {
            let at = place(at, from_end, bytes.len());
            let new = value.to_le_bytes();
            bytes[at..].iter_mut().zip(new).for_each(|(byte, new)| *byte = new);
        }
        Edit::Cut { by } => bytes.truncate(bytes.len().saturating_sub(usize::from(by))),
        Edit::Grow { by } => bytes.extend(std::iter::repeat_n(by, usize::from(by))),
        Edit::Reseal if is_segment => envelope::reseal_segment(bytes),
        Edit::Reseal => {
            envelope::reseal(bytes);
        }
        Edit::Remove | Edit::Replace { .. } => {}
    }
}

/// Inventory, then every image and region, then every segment on its own.
fn read_everything(store: &MemoryStore, must_be_right: bool) {
    let Ok(inventory) = Inventory::read(store) else { return };
    let none = AtomicU64::new(0);
    for manifest in &inventory.checkpoints {
        if let Ok(image) = read_image(store, manifest, Rank(0)) {
            rebuild(store, &inventory.header, image, must_be_right);
        }
        for segment in segments(store, &inventory.header, manifest) {
            check_segment(&segment, &inventory.header, 1, &none, drop);
        }
    }
}

fn segments(store: &MemoryStore, header: &StoreHeader, manifest: &Manifest) -> Vec<SegmentReader> {
    let opened =
        manifest.segments.iter().map(|wanted| SegmentReader::open(store, header.id, wanted));
    opened.flatten().collect()
}

fn rebuild(store: &MemoryStore, header: &StoreHeader, image: Image, must_be_right: bool) {
    if image.bytes() > REBUILD_BYTES_MAX {
        return;
    }
    let version = image.version.0;
    let Ok(rebuild) = Rebuild::open(store, header, image, 1) else { return };
    let regions = &rebuild.image().regions;
    let memory = regions.iter().map(|region| vec![0xaa; region.bytes as usize]).collect();
    let sink = Kept(Mutex::new(memory));
    if rebuild.rebuild(&sink, |_| true, &AtomicU64::new(0)).is_err() || !must_be_right {
        return;
    }
    let memory = sink.0.into_inner().expect("nobody panicked");
    for (region, found) in regions.iter().zip(memory) {
        let expected = SAMPLE.contents.get(&(version, region.name.clone()));
        assert!(expected == Some(&found), "checkpoint {version} gave wrong bytes");
    }
}

/// Keeps what arrives.
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Kept {
    fn put(&self, region: usize, offset: u64, bytes: impl Iterator<Item = u8>) {
        let mut memory = self.0.lock().expect("nobody panicked");
        let from = usize::try_from(offset).expect("regions are small");
        memory[region][from..].iter_mut().zip(bytes).for_each(|(byte, new)| *byte = new);
    }
}

impl Sink for Kept {
    type Error = std::convert::Infallible;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> Result<(), Self::Error> {
        self.put(region, offset, bytes.iter().copied());
        Ok(())
    }

    fn zeros(&self, region: usize, offset: u64, bytes: u64) -> Result<(), Self::Error> {
        let bytes = usize::try_from(bytes).expect("regions are small");
        self.put(region, offset, std::iter::repeat_n(0, bytes));
        Ok(())
    }
}
