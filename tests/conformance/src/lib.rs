//! What the contracts of traits promise, as suites that every implementation runs.
//!
//! Data: an implementation in, a panic that names the broken promise out. [`comm`] checks
//! communicators, [`store`] stores. A suite knows the trait alone, so that a backend of another crate,
//! a wrapper, a simulated one and one behind MPI are checked by the same cases.

pub mod comm;
pub mod store;

/// Builds the table of a file's cases from its functions, so that none is forgotten in text.
macro_rules! case_table {
    ($($name:ident),* $(,)?) => {
        &[$(super::Case { name: stringify!($name), check: $name }),*]
    };
}
use case_table;
