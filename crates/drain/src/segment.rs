//! One segment on its way: read, verified, compressed, sent, block by block.
//!
//! ```text
//! local segment -> threads: read a stretch, verify, compress -> ring of ready blocks -> one sender
//! ```
//! The sender takes blocks in whatever order they are ready; the index keeps their order, with the
//! same slots and hashes.
//!
//! Why a ring between them: sending is what takes the time, and it must never wait for a codec. While
//! ranks write, nothing is read, but what is ready is sent. The ring is bounded ([`RING_BLOCKS`]):
//! when it is full, compressing waits.

use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use standfast_format::{
    Block, SEGMENT_FOOTER_BYTES, SEGMENT_HEADER_BYTES, SegmentFooter, SegmentHeader, SegmentId,
    SegmentIndex, SegmentRef, StoreHeader, name,
};
use standfast_reduce::{BlockEncoder, Encoded};
use standfast_restart::{WholeBlock, each_block};
use standfast_store::{ObjectWriter, Store};
use standfast_sys::help;
use standfast_write::SegmentReader;

use crate::encoding::Codecs;
use crate::error::{Error, Result};
use crate::flow::Flow;

/// Compressed blocks that are ready to go, at most: 16 MiB of blocks of the usual size.
const RING_BLOCKS: usize = 128;

/// A block that is ready to go.
struct Ready {
    number: u32,
    record: Block,
    bytes: Vec<u8>,
}

/// A segment on its way, and how it goes.
pub(crate) struct Passage<'a> {
    pub(crate) from: &'a SegmentReader,
    pub(crate) header: &'a StoreHeader,
    pub(crate) codecs: &'a Codecs,
    pub(crate) flow: &'a Flow<'a>,
}

impl Passage<'_> {
    /// Carries the segment over; returns how the target's images have to refer to it.
    pub(crate) fn carry(&self, wanted: &SegmentRef, to: &dyn Store) -> Result<SegmentRef> {
        let from = self.from;
        let mut writer = to.create(&name::segment(wanted.id), Some(wanted.file_bytes))?;
        let mut head = vec![0; SEGMENT_HEADER_BYTES];
        from.read_at(0, &mut head)?;
        writer.append(&head)?;
        let sending = Sending { writer, blocks: vec![None; from.index().blocks.len()] };
        let sending = match self.codecs.threads() {
            0 => self.in_turn(sending)?,
            _ => self.beside(sending)?,
        };
        sending.seal(from.index(), wanted)
    }

    /// The caller's thread does everything, a block at a time.
    fn in_turn(&self, sending: Sending) -> Result<Sending> {
        let sending = Mutex::new(sending);
        let whole = "one thread has it";
        self.fill(|ready| self.send(&mut sending.lock().expect(whole), ready))?;
        Ok(sending.into_inner().expect(whole))
    }

    /// A thread sends while others fill the ring. Where no thread can be started, it goes in turn.
    fn beside(&self, sending: Sending) -> Result<Sending> {
        let (ring, ready) = sync_channel(RING_BLOCKS);
        let sending = Mutex::new(Some(sending));
        let take = || sending.lock().expect("nobody panics with it").take().expect("taken once");
        // Sends what the ring offers, until nobody fills it any more.
        let send = || {
            let mut sending = take();
            ready.into_iter().try_for_each(|block| self.send(&mut sending, block))?;
            Ok::<_, Error>(sending)
        };
        std::thread::scope(|scope| {
            let Some(sender) = help(scope, send) else { return self.in_turn(take()) };
            // Where the ring is closed, the sender has failed, and tells why.
            let filled = self.fill(|ready| ring.send(ready).map_err(|_| Error::Stopped));
            drop(ring);
            // A ring that nobody empties any more is not what went wrong.
            let sending = sender.join().expect("the sender does not panic")?;
            filled.map(|()| sending)
        })
    }

    /// Reads, verifies and compresses everything, and passes it on.
    fn fill(&self, put: impl Fn(Ready) -> Result<()> + Sync) -> Result<()> {
        let Self { from, header, codecs, flow } = *self;
        let encoder = || codecs.encoder(from.raw_bytes_max());
        each_block(
            from,
            header,
            codecs.threads(),
            encoder,
            || flow.pass(),
            |encoder, block| {
                let record = *from.block(block.number);
                let smaller = smaller(encoder, &block, record);
                flow.read(u64::from(record.stored_bytes));
                let record = Block { codec: smaller.codec, filter: smaller.filter, ..record };
                put(Ready { number: block.number, record, bytes: smaller.bytes.to_vec() })
            },
        )
    }

    fn send(&self, sending: &mut Sending, ready: Ready) -> Result<()> {
        let Ready { number, record, bytes } = ready;
        self.flow.pass()?;
        let began = Instant::now();
        let offset = sending.writer.written();
        sending.writer.append(&bytes)?;
        let stored_bytes = bytes.len() as u32;
        sending.blocks[number as usize] = Some(Block { offset, stored_bytes, ..record });
        self.flow.sent(bytes.len() as u64)?;
        self.codecs.sent(bytes.len() as u64, began.elapsed());
        Ok(())
    }
}

/// The block as it is, or encoded anew where that makes it smaller.
fn smaller<'a>(
    encoder: &'a mut BlockEncoder,
    block: &WholeBlock<'a>,
    record: Block,
) -> Encoded<'a> {
    let encoded = encoder.encode(block.raw, 0);
    if encoded.bytes.len() < block.stored.len() {
        return encoded;
    }
    Encoded { codec: record.codec, filter: record.filter, bytes: block.stored }
}

struct Sending {
    writer: Box<dyn ObjectWriter>,
    blocks: Vec<Option<Block>>,
}

impl Sending {
    fn seal(mut self, index: &SegmentIndex, wanted: &SegmentRef) -> Result<SegmentRef> {
        let blocks: Vec<Block> =
            self.blocks.into_iter().map(|block| block.expect("every block was sent")).collect();
        let (bytes, digest) = SegmentIndex::encode_parts(
            index.id,
            index.page_bytes,
            index.hash,
            &blocks,
            &index.hashes,
        );
        let index_offset = self.writer.written();
        self.writer.append(&bytes)?;
        let footer = SegmentFooter { id: index.id, index_offset, index_bytes: bytes.len() as u64 };
        self.writer.append(&footer.encode())?;
        let file_bytes = self.writer.seal()?;
        Ok(SegmentRef { file_bytes, index: digest, ..*wanted })
    }
}

/// How to refer to a segment that another node has brought to the target; `None` if it is not there
/// yet. What it holds that node has verified.
pub(crate) fn landed(
    to: &dyn Store,
    header: &StoreHeader,
    wanted: &SegmentRef,
) -> Result<Option<SegmentRef>> {
    let found = read_index(to, header, wanted.id)?;
    let found = found.filter(|(index, ..)| index.slots() == wanted.slots);
    Ok(found.map(|(_, digest, file_bytes)| SegmentRef { file_bytes, index: digest, ..*wanted }))
}

/// How to refer to a segment that is in the target already, whoever left it there; `None` if there
/// is none, or one that does not hold the same pages.
pub(crate) fn found(
    to: &dyn Store,
    header: &StoreHeader,
    local: &SegmentIndex,
    wanted: &SegmentRef,
) -> Result<Option<SegmentRef>> {
    let Some((index, digest, file_bytes)) = read_index(to, header, wanted.id)? else {
        return Ok(None);
    };
    let same = index.hash == local.hash
        && index.page_bytes == local.page_bytes
        && index.hashes == local.hashes;
    Ok(same.then_some(SegmentRef { file_bytes, index: digest, ..*wanted }))
}

type Found = (SegmentIndex, standfast_format::Digest, u64);

/// The index of a sealed segment. One that cannot be understood is written again.
fn read_index(to: &dyn Store, header: &StoreHeader, id: SegmentId) -> Result<Option<Found>> {
    let object = match to.open(&name::segment(id)) {
        Ok(object) => object,
        Err(error) if error.kind() == standfast_format::Kind::Missing => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let file_bytes = object.bytes();
    let read = |offset: u64, bytes: usize| -> Result<Vec<u8>> {
        let mut buf = vec![0; bytes];
        let filled = object.read_full(offset, &mut buf).map_err(Error::from)?;
        buf.truncate(filled);
        Ok(buf)
    };
    let head = read(0, SEGMENT_HEADER_BYTES)?;
    let is_ours =
        SegmentHeader::decode(&head).is_ok_and(|own| own.id == id && own.job == header.id);
    let footer_at = file_bytes.saturating_sub(SEGMENT_FOOTER_BYTES as u64);
    let footer = SegmentFooter::decode(&read(footer_at, SEGMENT_FOOTER_BYTES)?, file_bytes);
    let (true, Ok(footer)) = (is_ours, footer) else { return Ok(None) };
    let bytes = read(footer.index_offset, footer.index_bytes as usize)?;
    let index = SegmentIndex::decode(&bytes, footer.index_offset).ok();
    Ok(index.filter(|(index, _)| index.id == id).map(|(index, digest)| (index, digest, file_bytes)))
}
