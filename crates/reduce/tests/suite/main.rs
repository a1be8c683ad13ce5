//! Demands on the crate as its users see it: codecs, blocks, page hashes.

mod block;
mod codec;
mod data;
mod hash;
