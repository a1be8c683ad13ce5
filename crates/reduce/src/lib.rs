//! Reduction: what is zero is dropped, what is known is referenced, the rest is compressed.
//!
//! Data: pages from `capture` -> [`is_zero`], [`PageHasher`] -> unique pages, joined to blocks ->
//! [`BlockEncoder`] -> stored blocks for `write`. On restart [`BlockDecoder`] undoes the block and
//! the page hashes prove the result.
//!
//! This crate does no I/O. Only [`Scanner`] starts threads, for the time of one scan. It works on slices, and every object
//! holds memory bounded by what it was made for.
//!
//! ```
//! use standfast_format::HashKind;
//! use standfast_reduce::{BlockDecoder, BlockEncoder, FilterChoice, PageHasher, is_zero};
//!
//! let page: Vec<u8> = (0..512).flat_map(|i| (300.0 + f64::from(i)).to_le_bytes()).collect();
//! assert!(!is_zero(&page));
//!
//! let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
//! let mut name = [0; 16];
//! hasher.hash(&page, &mut name);
//!
//! let mut encoder = BlockEncoder::new("zstd:3".parse()?, FilterChoice::Auto, 1 << 17);
//! let stored = encoder.encode(&page, 8);
//! assert!(stored.bytes.len() < page.len() / 2);
//!
//! let mut decoder = BlockDecoder::new(1 << 17);
//! let back = decoder.decode(stored.codec, stored.filter, stored.bytes, page.len())?;
//! let mut again = [0; 16];
//! hasher.hash(back, &mut again);
//! assert_eq!(name, again);
//! # Ok::<(), standfast_reduce::Error>(())
//! ```

mod adapt;
mod block;
mod catalog;
mod codec;
mod error;
mod filter;
pub mod float;
mod hash;
mod offload;
mod page_table;
mod probe;
mod scan;
mod source;
mod walk;
mod zero;

pub use adapt::Adaptive;
pub use block::{BlockDecoder, BlockEncoder, Encoded};
pub use catalog::{Catalog, Found, PageRef};
pub use codec::{Codec, CodecChoice, CodecSpec, codec};
pub use error::{Error, Result};
pub use filter::{FILTERS_ALLOWED, FilterChoice, shuffle, unshuffle};
pub use hash::{PageHasher, SECRET_CONTEXT};
pub use offload::Offload;
pub use page_table::PageTable;
pub use scan::{Changed, Consume, Scanner, Target};
pub use source::{Brought, Hashed, PageAt, PageSource, Reach, Take};
pub use zero::is_zero;
