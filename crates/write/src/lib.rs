//! Writing: unique pages of a rank become large sealed segments, and segments give blocks back.
//!
//! ```text
//! pages -> Batch -> SegmentSink: in this process -> Segments (encoder threads) -> segments/<id>
//!                                through the agent -> Segments of the agent's ---^
//! ```
//! A [`Batch`] copies pages into blocks; its [`SegmentSink`] decides who writes them. [`Packer`] is
//! what a process needs that writes for itself; [`SegmentCore`] makes segments, there and in the
//! node's agent. [`SegmentReader`] reads them for `restart`.
//!
//! ```
//! use std::sync::Arc;
//! use standfast_format::{HashKind, JobId, Rank, SegmentId};
//! use standfast_write::{PackSettings, Packer, Pipeline, SegmentReader, SegmentSettings};
//! use standfast_reduce::{FilterChoice, PageHasher};
//! use standfast_store::{MemoryStore, Store};
//!
//! let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
//! let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
//! let settings = PackSettings {
//!     pool_bytes: 1 << 20,
//!     block_bytes: 1 << 17,
//!     page_bytes: 4096,
//!     pipeline: Pipeline::Pipelined,
//!     threads: 1,
//!     codec: "lz4".parse()?,
//!     filter: FilterChoice::Auto,
//! };
//! let packer = Packer::new(Arc::clone(&store), settings, hasher.clone());
//! let job = JobId([1; 16]);
//! let segments =
//!     SegmentSettings { job, rank: Rank(0), hash: HashKind::Xxh3, page_bytes: 4096, created_ns: 0 };
//!
//! let page = [42; 4096];
//! let mut hash = vec![0; 16];
//! hasher.hash(&page, &mut hash);
//! let mut batch = packer.begin(segments);
//! batch.open_segment(SegmentId([2; 16]), None);
//! batch.push(&page, &hash, 0)?;
//! batch.close_segment()?;
//! let sealed = batch.finish().seal()?;
//!
//! let reader = SegmentReader::open(&*store, job, &sealed[0].reference)?;
//! assert_eq!(reader.index().slots(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What this is not: it decides nothing about which pages are new, and commits nothing.

mod batch;
mod encode;
mod error;
mod inside;
mod packer;
mod pipeline;
mod pool;
mod reader;
mod segment;
mod segments;
mod sink;
mod speed;
mod unit;

pub use batch::{Batch, Pending};
pub use encode::SegmentCore;
pub use error::{Error, Result};
pub use inside::Writing;
pub use packer::{PackSettings, Packer};
pub use pipeline::Pipeline;
pub use reader::SegmentReader;
pub use segment::{SealedSegment, SegmentSettings};
pub use segments::{Placed, Segments, SharedSegment};
pub use sink::{Filled, Head, SegmentSink, Unsealed};
pub use unit::{Lender, Unit};
