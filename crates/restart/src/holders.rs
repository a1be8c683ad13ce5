//! Which stores have what a checkpoint names, and who reads it for whom.

use std::collections::BTreeMap;

use standfast_checkpoint::{decode_image, read_image};
use standfast_comm::{Collective, Failure, Fault, Step};
use standfast_format::{Image, Manifest, Rank, SegmentId, SegmentRef, name};
use standfast_store::{Store, prove_absent};

use crate::error::{Error, Phase, Result};
use crate::restart_plan::StoredParts;
use crate::stores::StoreGroups;

/// Which stores have what a checkpoint names.
pub(crate) struct Holders<'a> {
    stores: &'a StoreGroups,
    segments: BTreeMap<SegmentId, Vec<usize>>,
    images: BTreeMap<Rank, Vec<usize>>,
}

impl StoreGroups {
    /// What every store has of a checkpoint. Where all ranks share one store nobody looks, unless
    /// it matters (`look`): whoever opens what is missing will find out.
    pub(crate) fn holders(
        &self,
        ranks: &Collective,
        store: &dyn Store,
        manifest: &Manifest,
        look: bool,
    ) -> Phase<Holders<'_>> {
        let mut holders =
            Holders { stores: self, segments: BTreeMap::new(), images: BTreeMap::new() };
        if self.are_one() && !look {
            return Ok(holders);
        }
        let all = ranks.gather(Step("holders"), self.lead(|| held_of(store, manifest)))?;
        for (rank, held) in all.into_inner().into_iter().enumerate() {
            let Some((segments, images)) = held else { continue };
            for id in segments {
                holders.segments.entry(id).or_default().push(self.of[rank]);
            }
            for image in images {
                holders.images.entry(image).or_default().push(self.of[rank]);
            }
        }
        Ok(holders)
    }
}

impl Holders<'_> {
    /// What any of them has, if somebody looked.
    pub(crate) fn held(&self) -> StoredParts {
        StoredParts {
            segments: self.segments.keys().copied().collect(),
            images: self.images.keys().copied().collect(),
        }
    }

    /// The rank that reads a segment of global storage for this one: its writer for all, so that a
    /// page that many ranks have comes over the network once; else each rank reads it.
    pub(crate) fn reader_of_global(&self, segment: &SegmentRef, is_shared: bool) -> usize {
        let writer = segment.rank.0 as usize % self.stores.of.len();
        if is_shared { writer } else { self.stores.rank }
    }

    /// The rank that reads a segment for this one: this one itself if it can reach it and few want
    /// its pages; else its writer where that can reach it, so that pages of many ranks are
    /// read once. Where nobody has it, this rank: it will find it missing.
    pub(crate) fn reader_of(&self, segment: &SegmentRef, is_shared: bool) -> usize {
        let StoreGroups { rank, of, leaders } = self.stores;
        let writer = segment.rank.0 as usize;
        if self.stores.are_one() {
            return if is_shared && writer < of.len() { writer } else { *rank };
        }
        let Some(stores) = self.segments.get(&segment.id) else { return *rank };
        let has = |store: &usize| stores.contains(store);
        let is_here = has(&self.stores.own());
        match of.get(writer) {
            _ if is_here && !is_shared => *rank,
            Some(store) if has(store) => writer,
            _ if is_here => *rank,
            _ => leaders[stores[0]],
        }
    }

    /// Whether every segment is in the store of the rank that wrote it.
    pub(crate) fn are_at_home(&self, manifest: &Manifest) -> bool {
        let StoreGroups { of, .. } = self.stores;
        self.stores.are_one()
            || manifest.segments.iter().all(|segment| {
                let (home, stores) =
                    (of.get(segment.rank.0 as usize), self.segments.get(&segment.id));
                home.zip(stores).is_some_and(|(home, stores)| stores.contains(home))
            })
    }

    /// This rank's image, from its own store or from whoever has it. What this rank fails
    /// with is the inner result.
    pub(crate) fn image(
        &self,
        ranks: &Collective,
        store: &dyn Store,
        manifest: &Manifest,
    ) -> Phase<Result<Image>> {
        let own = ranks.rank();
        let at_home = || read_image(store, manifest, own).map_err(Error::from);
        let none = Vec::new();
        let stores_of = |rank: usize| self.images.get(&Rank(rank as u32)).unwrap_or(&none);
        let is_away = |rank: &usize| {
            let stores = stores_of(*rank);
            !stores.is_empty() && !stores.contains(&self.stores.of[*rank])
        };
        if self.stores.are_one() || !(0..ranks.size()).any(|rank| is_away(&rank)) {
            return Ok(at_home());
        }
        let send = |rank: usize| {
            let serves =
                is_away(&rank) && self.stores.leaders[stores_of(rank)[0]] == own.0 as usize;
            let object = name::image(manifest.version, manifest.attempt, Rank(rank as u32));
            let bytes = manifest.image(Rank(rank as u32)).map_or(0, |image| image.file_bytes);
            let absent = |error| prove_absent(store, &object, error);
            let read = || store.get(&object, bytes).map_err(absent).map_err(Error::from);
            serves.then(|| read().map_err(|error| Failure::of(own.0, &error)))
        };
        let parts: Vec<SentImage> = (0..ranks.size()).map(send).collect();
        let mut received = ranks.exchange(Step("images of other nodes"), &parts)?;
        if !is_away(&(own.0 as usize)) {
            return Ok(at_home());
        }
        let from = self.stores.leaders[stores_of(own.0 as usize)[0]];
        Ok(match received.swap_remove(from) {
            Some(Ok(bytes)) => decode_image(&bytes, manifest, own).map_err(Error::from),
            Some(Err(failure)) => Err(Error::of_other(failure)),
            None => Err(Error::NoPages(from)),
        })
    }
}

/// An image on its way to the rank that it belongs to, or why it could not be read.
type SentImage = Option<std::result::Result<Vec<u8>, Failure>>;

/// The segments and images of a checkpoint that a store has.
fn held_of(store: &dyn Store, manifest: &Manifest) -> Result<(Vec<SegmentId>, Vec<Rank>)> {
    let wanted: BTreeMap<SegmentId, u64> =
        manifest.segments.iter().map(|segment| (segment.id, segment.file_bytes)).collect();
    let segments = store.list(name::SEGMENTS)?.into_iter();
    let segments =
        segments.filter_map(|object| Some((name::parse_segment(&object.name)?, object.bytes)));
    let images = store.list(name::IMAGES)?.into_iter();
    let images = images.filter_map(|object| name::parse_image(&object.name));
    let own = images.filter(|(version, attempt, _)| {
        (*version, *attempt) == (manifest.version, manifest.attempt)
    });
    Ok((
        segments.filter(|(id, bytes)| wanted.get(id) == Some(bytes)).map(|(id, _)| id).collect(),
        own.map(|(_, _, rank)| rank).collect(),
    ))
}

#[cfg(test)]
mod tests;
