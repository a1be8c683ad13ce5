//! [`Comm`](standfast_comm::Comm) over MPI, without MPI: this crate links none.
//!
//! Data: the program's `MPI_Comm` -> the adapter (`bindings/mpi/standfast_mpi.c`, compiled with the
//! program's own `mpicc`) -> a [`CommTable`] of C functions -> [`Mpi`], which the engine uses.
//!
//! Why a table: what `MPI_Comm` is differs between MPIs, and so does the name of the library. One
//! libstandfast serves them all, and other transports can come the same way.
//!
//! What is done where: the adapter translates single calls, one function each, and knows how to
//! wait. This crate does what needs thought: it cuts long messages into pieces that MPI's counts
//! can express, chooses between one collective call and pairs, and checks everything that comes
//! back.
//!
//! Invariants:
//! - Nothing that the table returns is trusted: lengths are checked before memory is reserved.
//! - Memory that a send may still read stays borrowed until the send has ended.
//! - A communicator is let go by the thread that may call MPI, or not at all.

mod comm;
mod error;
mod functions;
mod library;
mod pieces;
mod table;
#[cfg(test)]
mod tests;

pub use comm::Mpi;
pub use error::{Error, Result};
pub use library::Library;
pub use table::{CommFacts, CommTable};
