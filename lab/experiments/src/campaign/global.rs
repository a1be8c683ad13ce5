//! What global storage offers, as a process of its own: the campaign's has no leave to go there.

use anyhow::bail;
use standfast_restart::{Inventory, Unreadable};
use standfast_store::Options;

/// The newest version in a global store
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    #[arg(long)]
    place: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let store = standfast_store::open(&args.place, &Options::default())?;
    let inventory = match Inventory::read(&*store) {
        Ok(inventory) => inventory,
        Err(Unreadable::NoStore(_)) => {
            println!("0");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(damaged) = inventory.damaged.first() {
        bail!("it offers something broken: {}", damaged.error);
    }
    // The one that was taken last: a job that has gone back counts its steps again.
    let newest = inventory.checkpoints.first();
    println!("{}", newest.map_or(0, |manifest| manifest.version.0));
    Ok(())
}
