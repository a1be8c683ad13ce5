//! Arguments of `demo`.

use clap::{Args, ValueEnum};

/// What the demonstration's MPI solver is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    C,
    Fortran,
    Rust,
}

/// Arguments of `demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// One process instead of MPI ranks over nodes; implied by --store, which keeps its checkpoints
    #[arg(long)]
    pub(crate) solo: bool,
    /// What the MPI solver is written in
    #[arg(long, value_enum, default_value = "c", conflicts_with = "solo")]
    pub(crate) language: Language,
    /// Cells along each side of the plate [default: 1024]
    #[arg(long, value_parser = clap::value_parser!(u32).range(16..=8192))]
    pub(crate) size: Option<u32>,
    /// Steps in time [default: as many as take some 18 s
    /// here, 1500 with --solo]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) steps: Option<u64>,
    /// Steps between checkpoints; at most a fifth of all steps [default: a sixth, a twelfth with
    /// --solo]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: Option<u64>,
}
