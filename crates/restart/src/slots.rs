//! Reading pages by segment and slot, for other ranks that refer to them.

use std::sync::atomic::AtomicU64;

use standfast_checkpoint::Unreadable;
use standfast_format::{
    Digest, HashKind, Image, Kind, Rank, RegionImage, Run, SegmentRef, StoreHeader, Version,
};
use standfast_store::Store;
use standfast_write::Error as PackError;

use crate::error::Result;
use crate::rebuild::{Rebuild, Unproven};
use crate::remote::Slots;
use crate::sink::MemorySink;

/// Segments open for reading single pages, each verified.
pub struct SlotReader {
    rebuild: Rebuild,
    /// Bytes of a page's hash.
    hash_bytes: usize,
}

impl SlotReader {
    /// Opens segments, each in the store that it is to be read from; [`Slots::segment`] is then a
    /// place in this list.
    pub fn open<'a>(
        header: &StoreHeader,
        (hash, page_bytes): (HashKind, u32),
        segments: Vec<SegmentRef>,
        threads: usize,
        store_of: impl Fn(&SegmentRef) -> &'a dyn Store,
    ) -> Result<Self> {
        let image = Image {
            job: header.id,
            version: Version(0),
            rank: Rank(0),
            page_bytes,
            hash,
            segments,
            regions: Vec::new(),
            references: None,
        };
        // Without regions there is nothing to prove.
        let all = |segment: &SegmentRef| Some(store_of(segment));
        let unproven: Unproven = Rebuild::open_sharing(header, image, threads, all)?;
        Ok(Self { rebuild: unproven.prove(Vec::new())?, hash_bytes: hash.bytes() })
    }

    /// The hashes of these pages, end to end.
    pub fn hashes(&self, slots: Slots) -> Result<&[u8]> {
        self.check(slots)?;
        let from = slots.slot as usize * self.hash_bytes;
        let hashes = self.rebuild.hashes_of(slots.segment);
        Ok(&hashes[from..from + slots.pages as usize * self.hash_bytes])
    }

    /// Reads lists of pages, each into a buffer of its own.
    pub fn read(&mut self, lists: &[Vec<Slots>], buffers: Vec<&mut [u8]>) -> Result<()> {
        lists.iter().flatten().try_for_each(|slots| self.check(*slots))?;
        let page_bytes = u64::from(self.rebuild.image.page_bytes);
        let region = |list: &Vec<Slots>| {
            let run = |slots: &Slots| Run::Stored {
                pages: slots.pages,
                segment: slots.segment,
                slot: slots.slot,
            };
            let pages: u64 = list.iter().map(|slots| u64::from(slots.pages)).sum();
            RegionImage {
                name: String::new(),
                bytes: pages * page_bytes,
                elem: 0,
                pages_digest: Digest([0; 32]),
                runs: list.iter().map(run).collect(),
            }
        };
        self.rebuild.image.regions = lists.iter().map(region).collect();
        let sink = MemorySink::new(buffers.into_iter().map(Some).collect());
        Ok(self.rebuild.rebuild(&sink, |_| true, &AtomicU64::new(0))?)
    }

    /// Slots come from other ranks: they may be nonsense.
    fn check(&self, slots: Slots) -> Result<()> {
        let segments = &self.rebuild.image.segments;
        let segment = segments.get(slots.segment as usize);
        let segment = segment.ok_or_else(|| Unreadable::Told {
            kind: Kind::Corrupt,
            why: format!(
                "a page of segment number {} is asked for, of {}",
                slots.segment,
                segments.len()
            ),
        })?;
        let end = slots.slot.checked_add(slots.pages);
        if slots.pages == 0 || end.is_none_or(|end| end > segment.slots) {
            let why = "a page beyond its end is asked for";
            return Err(PackError::Mismatch { id: segment.id, why }.into());
        }
        Ok(())
    }
}
