//! Starts programs under `libstandfast_preload.so`, and brings them back.
//!
//! ```text
//! checkpoint:  program -> library: threads stopped, twin forked -> twin writes memory + `process`
//! resume:      store -> [`resume::prepare`]: description checked, pages in an anonymous file
//!              -> [`Launch::spawn`] -> library, before `main`: pages poured, threads recreated
//! ```
//! Why the launcher reads the checkpoint and not the program: reading needs threads and memory of
//! its own, which would lie where the program's memory has to come back to.
//!
//! Invariants:
//! - A program is resumed only if every file that it had mapped has the same contents as then.
//! - The settings of the run that resumes count, not those of the run that took the checkpoint.

mod error;
mod files;
mod library;
pub mod plan;
pub mod resume;
mod spawn;
mod twins;

pub use error::{Error, Result};
pub use files::digest;
pub use library::find;
pub use spawn::{Launch, RESUME, SETTINGS, SIGNAL};
pub use twins::{TWIN, twins};
