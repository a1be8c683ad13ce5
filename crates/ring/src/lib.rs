//! Shards on a ring of node groups: a lost node's bytes come back from other nodes.
//!
//! Data: the job's nodes -> [`topology`] -> [`encode()`] gives every rank the shards it keeps ->
//! after a loss [`recover()`] gives every rank back what it had. The arithmetic is in [`code`] and
//! [`kernel`], the messages in the star, the files in [`shard`]. docs/RING.md tells it for users.
//!
//! This crate does no I/O: it talks through a [`Comm`](standfast_comm::Comm), reads a [`Source`]
//! and writes a [`Sink`]; whoever has something faster than the CPU brings an [`Arithmetic`]. It
//! decides nothing about durability; a shard counts when whoever owns the sink has committed it.
//!
//! ```
//! use standfast_comm::Comm;
//! use standfast_format::{AttemptId, JobId, Version};
//! use standfast_ring::{
//!     Holding, Memory, Options, Recovery, Shape, Stamp, Topology, encode, recover,
//!     topology::Piece,
//! };
//! use standfast_testkit::run_threads;
//!
//! let stamp = Stamp { job: JobId([1; 16]), version: Version(1), attempt: AttemptId([2; 8]) };
//! run_threads(4, |comm| {
//!     // Four nodes, groups of two: any two of them may be lost.
//!     let topology = Topology::of_nodes(4, Shape::full(2)).unwrap();
//!     let (group, place) = topology.group_of(comm.rank());
//!     let own = Piece { group, index: place as u32 };
//!     let bytes = vec![comm.rank() as u8 + 1; 5000];
//!     let memory = Memory::default();
//!     memory.put(own, bytes.clone());
//!     let (mut source, mut sink) = (memory.clone(), memory.clone());
//!     let options = Options::default();
//!     let encoded =
//!         encode(&comm, &topology, stamp, 5000, options, &mut source, &mut sink).unwrap();
//!
//!     // Nodes 0 and 1, a whole group, lose everything.
//!     let survives = comm.rank() > 1;
//!     let holding = Holding {
//!         members: survives.then_some((comm.rank(), 5000)).into_iter().collect(),
//!         shards: if survives { encoded.shards } else { vec![] },
//!     };
//!     if !survives {
//!         memory.pieces().into_iter().for_each(|piece| _ = memory.remove(piece));
//!     }
//!     let (heirs, block_bytes) = (&[0, 1, 2, 3], options.block_bytes);
//!     let recovery = Recovery { topology: &topology, stamp, heirs, block_bytes };
//!     recover(&comm, recovery, &holding, &mut source, &mut sink).unwrap();
//!     assert_eq!(memory.get(own), Some(bytes));
//! });
//! ```

pub mod code;
mod encode;
mod error;
pub mod field;
mod frame;
pub mod kernel;
mod matrix;
mod memory;
pub mod recover;
pub mod shard;
mod star;
#[cfg(test)]
mod tests;
pub mod topology;

pub use encode::{Encoded, Options, Order, encode, encode_with};
pub use error::{Error, Outside, Result};
pub use matrix::Matrix;
pub use memory::Memory;
pub use recover::{Holding, Recovered, Recovery, recover, recover_with};
pub use shard::{Shard, Stamp};
pub use star::{Arithmetic, Block, Cpu, FACTORS_MAX, Factors, Means, Report, Sink, Source};
pub use topology::{Shape, Topology};
