//! Standfast's bytes on disk: ids, names, headers, segments, images and manifests.
//!
//! Data: the path crates fill these types; `encode` gives the bytes of a file, `decode` checks
//! bytes that came from a disk, a socket or a stranger. No I/O, no clock, no randomness here.
//! docs/FORMAT.md describes the same bytes for people; both change in one commit.
//!
//! The chain of trust: a manifest names images by digest, an image names segment indexes by
//! digest, an index holds every page's hash. Whoever holds a good manifest finds every other
//! damaged, swapped or stale file.
//!
//! ```
//! use standfast_format::{Digest, HashKind, Image, JobId, Rank, RegionImage, Run, Version};
//!
//! let image = Image {
//!     job: JobId([1; 16]),
//!     version: Version(1),
//!     rank: Rank(0),
//!     page_bytes: 4096,
//!     hash: HashKind::Xxh3,
//!     segments: vec![],
//!     regions: vec![RegionImage {
//!         name: "temperature".into(),
//!         bytes: 8192,
//!         elem: 8,
//!         pages_digest: Digest([0; 32]),
//!         runs: vec![Run::Zero { pages: 2 }],
//!     }],
//!     references: None,
//! };
//! let (mut bytes, digest) = image.encode();
//! assert_eq!(Image::decode(&bytes).unwrap(), (image, digest));
//! bytes[40] ^= 1;
//! assert!(Image::decode(&bytes).is_err());
//! ```

#![forbid(unsafe_code)]

mod algorithm;
mod drains;
pub mod encrypted;
mod error;
mod frame;
mod history;
mod human;
mod id;
mod identity;
mod image;
mod kind;
mod manifest;
pub mod name;
mod pledge;
mod profile;
mod reference;
mod segment;
mod store;

pub use algorithm::{CodecKind, FilterKind, HASH_BYTES_MAX, HashKind};
pub use drains::{Arrival, DRAINS_BYTES_MAX, DRAINS_MAX, Drains};
pub use error::{Error, Result};
pub use frame::{FORMAT_VERSION, FRAME_BYTES};
pub use history::{DECLARED_BYTES_MAX, Declared, HISTORY_BYTES_MAX, History, STARTS_MAX, Start};
pub use human::{human_bytes, human_ns};
pub use id::{AttemptId, Digest, Fingerprint, JobId, Rank, SegmentId, Version};
pub use identity::{IDENTITY_BYTES_MAX, StoreIdentity};
pub use image::{Image, RegionImage, Run, SegmentRef};
pub use kind::{Kind, Retry};
pub use manifest::{Abandoned, ImageRef, Level, Manifest, Node, Stats};
pub use pledge::{Pledge, PledgedPart, PledgedStream};
pub use profile::{Tally, WRITE_BOUNDS, WRITE_CLASSES, WriteCount, Writes};
pub use reference::{Reference, Referred};
pub use segment::{
    BLOCK_BYTES_MAX, Block, PAGE_BYTES_MAX, PAGE_BYTES_MIN, SEGMENT_FOOTER_BYTES,
    SEGMENT_HEADER_BYTES, SegmentFooter, SegmentHeader, SegmentIndex, check_page_bytes,
};
pub use store::{STORE_HEADER_BYTES_MAX, StoreHeader};
