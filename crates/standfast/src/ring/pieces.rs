//! Members and shards as the star reads and writes them: objects of a store.
//!
//! A member is several objects end to end. What is made goes to objects that become visible when
//! each is complete; every block was checked before it came here.

use std::collections::{BTreeMap, VecDeque};

use standfast_format::Manifest;
use standfast_ring::topology::Piece;
use standfast_ring::{Outside, Shard, Sink, Source, Stamp, Topology};
use standfast_store::{ObjectReader, ObjectWriter, Store};

use super::files;

/// The pieces of one checkpoint in one store.
pub(super) struct Pieces<'a> {
    store: &'a dyn Store,
    manifest: &'a Manifest,
    topology: &'a Topology,
    readers: BTreeMap<String, Box<dyn ObjectReader>>,
    making: BTreeMap<Piece, Making>,
}

/// A piece in the making: the objects that are still to be written, the first of them begun.
struct Making {
    objects: VecDeque<(String, u64)>,
    writer: Option<Box<dyn ObjectWriter>>,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(
        store: &'a dyn Store,
        manifest: &'a Manifest,
        topology: &'a Topology,
    ) -> Self {
        let (readers, making) = (BTreeMap::new(), BTreeMap::new());
        Self { store, manifest, topology, readers, making }
    }

    /// The objects of a piece; a shard's length is not known from the manifest.
    fn objects(&self, piece: Piece, shard_bytes: u64) -> Vec<(String, u64)> {
        let members = self.topology.members(piece.group);
        match members.get(piece.index as usize) {
            Some(Some(rank)) => files::member(self.manifest, *rank),
            Some(None) => Vec::new(),
            None => {
                let row = piece.index - members.len() as u32;
                vec![(files::shard(self.manifest, piece.group, row), shard_bytes)]
            }
        }
    }

    /// Opens a shard of so many bytes, or tells why it cannot be used: also one that is whole, but
    /// of another checkpoint or group than its name says.
    pub(super) fn shard(&self, piece: Piece, bytes: u64) -> Result<Shard, String> {
        let mut own = Self::new(self.store, self.manifest, self.topology);
        let shard = Shard::open(bytes, |at, into| own.read(piece, at, into))
            .map_err(|error| error.to_string())?;
        let Stamp { job, version, attempt } = shard.header.stamp;
        if job != self.manifest.job {
            return Err("it is of another job".into());
        }
        if (version, attempt) != (self.manifest.version, self.manifest.attempt) {
            return Err(format!("it is of an attempt at checkpoint {version}, not of this one"));
        }
        if shard.piece() != piece {
            return Err(format!("it is {}, not {piece}", shard.piece()));
        }
        Ok(shard)
    }

    fn read_object(&mut self, name: &str, at: u64, into: &mut [u8]) -> Result<(), Outside> {
        if !self.readers.contains_key(name) {
            // Pieces are read in order: one reader at a time is enough, and bounds the files open.
            self.readers.clear();
            self.readers.insert(name.to_owned(), self.store.open(name)?);
        }
        let found = self.readers[name].read_full(at, into)?;
        if found < into.len() {
            return Err(format!("{name} is shorter than it was").into());
        }
        Ok(())
    }
}

impl Source for Pieces<'_> {
    fn read(&mut self, piece: Piece, at: u64, into: &mut [u8]) -> Result<(), Outside> {
        let (mut start, mut at, mut into) = (0u64, at, into);
        for (name, bytes) in self.objects(piece, u64::MAX) {
            let end = start.saturating_add(bytes);
            if at < end && !into.is_empty() {
                let now = usize::try_from(end - at).unwrap_or(usize::MAX).min(into.len());
                let (own, rest) = into.split_at_mut(now);
                self.read_object(&name, at - start, own)?;
                (into, at) = (rest, at + now as u64);
            }
            start = end;
        }
        if into.is_empty() { Ok(()) } else { Err("the piece is shorter".into()) }
    }
}

impl Making {
    /// Ends the objects that are complete, and begins the next one.
    fn turn(&mut self, store: &dyn Store) -> Result<(), Outside> {
        while let Some((name, bytes)) = self.objects.front() {
            match &self.writer {
                Some(writer) if writer.written() < *bytes => return Ok(()),
                Some(_) => {
                    self.writer.take().expect("it is there").seal()?;
                    self.objects.pop_front();
                }
                None => self.writer = Some(store.create(name, Some(*bytes))?),
            }
        }
        Ok(())
    }

    fn append(&mut self, store: &dyn Store, mut bytes: &[u8]) -> Result<(), Outside> {
        self.turn(store)?;
        while !bytes.is_empty() {
            let (Some((_, length)), Some(writer)) = (self.objects.front(), &mut self.writer) else {
                return Err("the piece is longer than its files".into());
            };
            let room = usize::try_from(length - writer.written()).unwrap_or(usize::MAX);
            let (own, rest) = bytes.split_at(room.min(bytes.len()));
            writer.append(own)?;
            bytes = rest;
            self.turn(store)?;
        }
        Ok(())
    }
}

impl Sink for Pieces<'_> {
    fn begin(&mut self, piece: Piece, bytes: u64, head: &[u8]) -> Result<(), Outside> {
        let objects = self.objects(piece, bytes).into();
        let mut making = Making { objects, writer: None };
        making.append(self.store, head)?;
        self.making.insert(piece, making);
        Ok(())
    }

    fn append(&mut self, piece: Piece, bytes: &[u8]) -> Result<(), Outside> {
        let making = self.making.get_mut(&piece).ok_or("the piece was not begun")?;
        making.append(self.store, bytes)
    }

    fn end(&mut self, piece: Piece, tail: &[u8]) -> Result<(), Outside> {
        let mut making = self.making.remove(&piece).ok_or("the piece was not begun")?;
        making.append(self.store, tail)?;
        match making.objects.is_empty() {
            true => Ok(()),
            false => Err("the piece is shorter than its files".into()),
        }
    }

    fn abandon(&mut self, piece: Piece) {
        // A writer that is dropped leaves nothing.
        self.making.remove(&piece);
    }

    fn forget(&mut self, piece: Piece) {
        for (name, _) in self.objects(piece, 0) {
            // One that stays is pruned with its checkpoint.
            let _ = self.store.remove(&name);
        }
    }
}
