//! What Standfast's tests share: stores that misbehave on purpose, ranks that are threads or processes,
//! a real S3 server, data to hash and compress, and libraries that other packages make.
//!
//! ```
//! use std::sync::Arc;
//! use standfast_format::Kind;
//! use standfast_store::{MemoryStore, Store};
//! use standfast_testkit::{Fault, FaultyStore, Op};
//!
//! let store = FaultyStore::new(Arc::new(MemoryStore::new()));
//! store.inject(Fault::Fail { op: Op::Put, nth: 1, kind: Kind::Full });
//! store.put("a", b"first").unwrap();
//! assert_eq!(store.put("b", b"second").unwrap_err().kind(), Kind::Full);
//! assert_eq!(store.fired(), 1);
//! ```
//!
//! Not for production: nothing here is durable or fast.

pub mod built;
pub mod command;
mod faulty;
mod funneled;
pub mod must;
mod processes;
mod s3;
mod settings;
pub mod talk;
mod threads;
pub mod vectors;

pub use faulty::{Fault, FaultyStore, Op};
pub use funneled::Funneled;
pub use processes::Processes;
pub use s3::S3Server;
pub use settings::last_of_each;
pub use threads::{Threads, run_threads};
