//! `mpi-rank`: what one rank does; started by the experiments, not by people.

use std::path::PathBuf;

use serde_json::json;
use standfast_comm::Comm;
use standfast_mpi::Library;

use super::life;
use crate::compare;
use crate::dedup::{names::unique, pace};

/// One rank of an experiment.
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// The adapter compiled for this MPI
    #[arg(long)]
    library: PathBuf,
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// The collective phase against hashing
    Pace {
        /// Pages of each rank
        #[arg(long)]
        pages: usize,
        /// Repetitions
        #[arg(long)]
        rounds: usize,
        /// Follow so many pages by top-K instead of all of them
        #[arg(long)]
        threshold: Option<u32>,
    },
    /// A job that is to be killed
    Life(life::Args),
    /// One way of saving and loading
    Compare(compare::rank::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let library = Library::start(&args.library)?;
    let world = library.world()?;
    match &args.part {
        Part::Pace { pages, rounds, threshold } => {
            let hashes = unique(world.rank(), *pages);
            let pace = pace::measure(&world, &hashes, *rounds, *threshold)?;
            if world.rank() == 0 {
                let (collective_s, hashing_s) = (pace.collective_s, pace.hashing_s);
                println!("{}", json!({ "collective_s": collective_s, "hashing_s": hashing_s }));
            }
        }
        Part::Life(args) => life::run(args, &world)?,
        Part::Compare(args) => compare::rank::run(args, &world)?,
    }
    Ok(())
}
