//! Staged pages on their way out: encoded in pieces, two on their way, cut into blocks.
//!
//! What they are encoded with is tried on a sample, every time anew: what makes it smallest. Speed
//! is not weighed, for every encoder here is faster than what the blocks are written to.
//!
//! Blocks: one chunk of the float codec (256 KiB), or of Deflate (64 KiB); where pages are larger,
//! one page. A block that does not save a 32nd is handed out as it is.

use standfast_capture::Drained;
use standfast_format::{CodecKind, FilterKind};
use standfast_reduce::BlockDecoder;

use super::backend::{Backend, Encoding};
use super::{Choice, DeviceMemory, Slot};
use crate::deflate;
use crate::error::{Error, Result};
use crate::float::{self, Element};
use crate::packed::Packed;

/// Bytes of pages on their way at a time, in each of two lanes; a multiple of every page.
const PIECE_BYTES: usize = 16 << 20;
/// Bytes of pages that encoders are tried on.
const SAMPLE_BYTES: usize = 1 << 20;
/// A block must save one byte of so many.
const SAVING: usize = 32;

/// Where blocks go; false: no more are wanted.
type Take<'a> = dyn FnMut(Drained<'_>) -> bool + 'a;

/// Lanes that are kept: of the encoding in use, and for trying.
pub(super) struct Encoders<B: Backend> {
    lanes: Option<(Encoding, Vec<B::Lane>)>,
    tried: Vec<(Encoding, B::Lane)>,
}

impl<B: Backend> Default for Encoders<B> {
    fn default() -> Self {
        Self { lanes: None, tried: Vec::new() }
    }
}

impl<B: Backend> DeviceMemory<B> {
    pub(super) fn drain_any(
        &mut self,
        staged: &[u32],
        elem: u8,
        choice: Choice,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let page_bytes = self.settings.page_bytes;
        let slots: Option<Vec<Slot>> =
            staged.iter().map(|at| self.staged.get(*at as usize).copied()).collect();
        let slots = slots.ok_or_else(|| Error::invalid("pages that are not staged"))?;
        let there = |slot: &Slot| matches!(slot, Slot::Device(_));
        for run in slots.chunk_by(|a, b| there(a) == there(b)) {
            let numbers: Vec<u32> = run.iter().map(|slot| slot.number()).collect();
            let more = match there(&run[0]) {
                true => self.drain_device(&numbers, elem, choice, take)?,
                false => numbers
                    .iter()
                    .all(|slot| take(Drained::Pages(self.copies.page(*slot, page_bytes)))),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// From the arena: encoded where that works, as they are where it does not.
    fn drain_device(
        &mut self,
        slots: &[u32],
        elem: u8,
        choice: Choice,
        take: &mut Take<'_>,
    ) -> Result<bool> {
        let mut done = 0;
        let outcome = self.choose(slots, elem, choice).and_then(|encoding| match encoding {
            Some(encoding) => self.through_lanes(encoding, slots, &mut done, take),
            None => self.through_lanes(Encoding::Raw, slots, &mut done, &mut |drained| {
                let Drained::Block { bytes, .. } = drained else { return take(drained) };
                take(Drained::Pages(bytes))
            }),
        });
        match outcome {
            Err(error) if error.is_made_good() => self.notices.takes_over(&error),
            outcome => return outcome,
        }
        self.as_they_are(&slots[done..], take)
    }

    /// What to encode with; `None`: the processor encodes.
    fn choose(&mut self, slots: &[u32], elem: u8, choice: Choice) -> Result<Option<Encoding>> {
        let number = match elem {
            2 => Some(Element::Bf16),
            4 => Some(Element::F32),
            8 | 16 => Some(Element::F64),
            _ => None,
        };
        let deflate = self.settings.page_bytes <= deflate::CHUNK_BYTES;
        let candidates: Vec<Encoding> = match (choice, number) {
            (Choice::None, _) => return Ok(None),
            (Choice::Deflate, _) if deflate => vec![Encoding::Deflate],
            (Choice::Deflate, _) => return Ok(None),
            (Choice::Auto | Choice::Float, Some(element)) => vec![Encoding::Float(element)],
            (Choice::Float, None) => Element::ALL.map(Encoding::Float).to_vec(),
            (Choice::Auto, None) => {
                let all = Element::ALL.map(Encoding::Float).into_iter();
                all.chain(deflate.then_some(Encoding::Deflate)).collect()
            }
        };
        let pages = (SAMPLE_BYTES / self.settings.page_bytes).clamp(1, slots.len());
        let sample: Vec<u32> = (0..pages).map(|at| slots[at * slots.len() / pages]).collect();
        let raw_bytes = pages * self.settings.page_bytes;
        let mut best = (Encoding::Raw, raw_bytes - raw_bytes / SAVING);
        for candidate in candidates {
            let bytes = self.try_out(candidate, &sample)?;
            if bytes < best.1 {
                best = (candidate, bytes);
            }
        }
        Ok(Some(best.0))
    }

    /// Bytes to which an encoder brings the sample.
    fn try_out(&mut self, encoding: Encoding, sample: &[u32]) -> Result<usize> {
        let Some(arena) = &self.arena else { return Err(Error::invalid("nothing is staged")) };
        let tried = &mut self.encoders.tried;
        let at = match tried.iter().position(|(known, _)| *known == encoding) {
            Some(at) => at,
            None => {
                tried.push((encoding, self.backend.lane(encoding, SAMPLE_BYTES)?));
                tried.len() - 1
            }
        };
        let lane = &mut tried[at].1;
        self.backend.start(lane, &arena.memory, sample)?;
        let (packed, _) = self.backend.finish(lane)?;
        Ok(packed.sizes().iter().map(|size| *size as usize).sum())
    }

    /// Piece by piece through two lanes; `done` counts the pages that were handed out.
    fn through_lanes(
        &mut self,
        encoding: Encoding,
        slots: &[u32],
        done: &mut usize,
        take: &mut Take<'_>,
    ) -> Result<bool> {
        let Some(arena) = &self.arena else { return Err(Error::invalid("nothing is staged")) };
        if self.encoders.lanes.as_ref().is_none_or(|(known, _)| *known != encoding) {
            // The old ones first: there may be room for one set only.
            self.encoders.lanes = None;
            let lanes = (0..2).map(|_| self.backend.lane(encoding, PIECE_BYTES));
            self.encoders.lanes = Some((encoding, lanes.collect::<Result<_>>()?));
        }
        let (_, lanes) = self.encoders.lanes.as_mut().expect("made above");
        let page_bytes = self.settings.page_bytes;
        let pieces: Vec<&[u32]> = slots.chunks(PIECE_BYTES / page_bytes).collect();
        let mut cutter = Cutter { encoding, page_bytes, stream: Vec::new() };
        for at in 0..pieces.len() + 1 {
            if let Some(piece) = pieces.get(at) {
                self.backend.start(&mut lanes[at % 2], &arena.memory, piece)?;
            }
            let Some(piece) = at.checked_sub(1).map(|at| pieces[at]) else { continue };
            let (packed, bytes) = self.backend.finish(&mut lanes[(at - 1) % 2])?;
            if !cutter.cut(piece.len(), &packed, bytes, take)? {
                // The other lane may still be at work, and its buffers are used again.
                if at < pieces.len() {
                    self.backend.finish(&mut lanes[at % 2])?;
                }
                return Ok(false);
            }
            *done += piece.len();
        }
        Ok(true)
    }

    /// Brings pages over as they are, without kernels or buffers, for the processor to encode.
    fn as_they_are(&mut self, slots: &[u32], take: &mut Take<'_>) -> Result<bool> {
        let Some(arena) = &self.arena else { return Err(Error::invalid("nothing is staged")) };
        let page_bytes = self.settings.page_bytes;
        let mut page = vec![0; page_bytes];
        for slot in slots {
            self.backend.read_staged(&arena.memory, *slot as usize, &mut page)?;
            if !take(Drained::Pages(&page)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Cuts encoded pieces into blocks.
struct Cutter {
    encoding: Encoding,
    page_bytes: usize,
    stream: Vec<u8>,
}

impl Cutter {
    /// Returns false when no more is wanted.
    fn cut(
        &mut self,
        pages: usize,
        packed: &Packed,
        bytes: &[u8],
        take: &mut Take<'_>,
    ) -> Result<bool> {
        let chunk_bytes = match self.encoding {
            Encoding::Deflate => deflate::CHUNK_BYTES,
            Encoding::Raw | Encoding::Float(_) => float::CHUNK_BYTES,
        };
        let block_pages = (chunk_bytes / self.page_bytes).max(1);
        let chunks_of_block = (block_pages * self.page_bytes).div_ceil(chunk_bytes);
        let ranges: Vec<_> = packed.ranges().collect();
        for first in (0..pages).step_by(block_pages) {
            let count = block_pages.min(pages - first);
            let raw_bytes = count * self.page_bytes;
            let more = match self.encoding {
                Encoding::Raw => {
                    let raw = &bytes[first * self.page_bytes..][..raw_bytes];
                    take(block(count, CodecKind::None, raw))
                }
                Encoding::Deflate => {
                    let chunk = &bytes[ranges[first / block_pages].clone()];
                    offer(CodecKind::Deflate, chunk, count, raw_bytes, take)?
                }
                Encoding::Float(element) => {
                    let at = first / block_pages * chunks_of_block;
                    let end = (at + chunks_of_block).min(ranges.len());
                    let sizes = Packed::new(packed.sizes()[at..end].to_vec());
                    let payload = &bytes[ranges[at].start..][..sizes.bytes()];
                    self.stream = float::frame(element, raw_bytes as u64, &sizes, payload);
                    offer(CodecKind::Float, &self.stream, count, raw_bytes, take)?
                }
            };
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn block(pages: usize, codec: CodecKind, bytes: &[u8]) -> Drained<'_> {
    Drained::Block { pages: pages as u32, codec, filter: FilterKind::None, bytes }
}

/// Hands out an encoded block, or the pages in it where encoding did not pay.
fn offer(
    codec: CodecKind,
    encoded: &[u8],
    pages: usize,
    raw_bytes: usize,
    take: &mut Take<'_>,
) -> Result<bool> {
    if encoded.len() + raw_bytes / SAVING <= raw_bytes {
        return Ok(take(block(pages, codec, encoded)));
    }
    let mut decoder = BlockDecoder::new(raw_bytes);
    let raw = decoder.decode(codec, FilterKind::None, encoded, raw_bytes)?;
    Ok(take(block(pages, CodecKind::None, raw)))
}
