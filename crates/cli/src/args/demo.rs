//! Arguments of `demo`.

use clap::Args;

/// Arguments of `demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Cells along each side of the plate [default: 1024]
    #[arg(long, value_parser = clap::value_parser!(u32).range(16..=8192))]
    pub(crate) size: Option<u32>,
    /// Steps in time [default: 1500]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) steps: Option<u64>,
    /// Steps between checkpoints; at most a fifth of all steps [default: a twelfth]
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: Option<u64>,
}
