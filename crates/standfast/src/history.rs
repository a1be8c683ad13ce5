//! The history of a job as all ranks and levels have it: the newest that anybody can read.
//!
//! Data: `history` in every store and in global storage -> the one with the largest revision.

use standfast_checkpoint::history::{read, update, write};
use standfast_comm::{Collective, Step};
use standfast_format::{History, Start, StoreHeader};
use standfast_restart::{Inventory, read_header};
use standfast_store::Store;

use crate::config::Config;
use crate::error::{Phase, Result};
use crate::identity;
use crate::location;
use crate::stores::Stores;

/// What the stores of the nodes say, and why one of them could not be read.
pub(crate) fn agree(
    team: &Collective,
    stores: &Stores,
    store: &dyn Store,
    header: &StoreHeader,
) -> Phase<(History, Option<String>)> {
    // A history that cannot be read is told, and keeps nobody from restarting.
    let own = stores.lead(|| Ok(read(store, header).map_err(|error| error.to_string())));
    let all = team.gather(Step("open: history"), own)?.into_inner();
    let mut newest = History::new(header.id);
    let mut unread = None;
    for one in all.into_iter().flatten() {
        match one {
            Ok(Some(history)) if history.revision > newest.revision => newest = history,
            Ok(_) => {}
            Err(why) => unread = Some(why),
        }
    }
    // Another store has it.
    let unread = unread.filter(|_| newest.revision == 0);
    Ok((newest, unread))
}

/// What global storage says, if it has this job.
pub(crate) fn of_global(config: &Config, header: &StoreHeader) -> Option<History> {
    let store = location::open_global(config).ok()??;
    read(&*store, header).ok().flatten()
}

/// Marks a job as finished, or as one to go on with, for whoever ran its program and knows how it
/// ended; tells whether that is a change. A job without checkpoints has nothing to be marked.
pub fn mark(config: &Config, store: &dyn Store, finished: bool) -> Result<bool> {
    let inventory = Inventory::read(store)?;
    let header = &inventory.header;
    let known = read(store, header).ok().flatten();
    let mut history = known.unwrap_or_else(|| History::new(header.id));
    let own = |sequence| history.is_of_last(sequence);
    let has_any = inventory.checkpoints.iter().any(|one| own(one.sequence));
    if history.is_finished() == finished || finished && !has_any {
        return Ok(false);
    }
    if history.starts.is_empty() {
        history.begin(Start::default());
    }
    history.change(|last| last.finished_ns = if finished { identity::now_ns() } else { 0 });
    write(store, &history)?;
    tell_global(config, header, &history)?;
    Ok(true)
}

/// Brings global storage up to date, if it has this job: nobody may drain any more.
pub(crate) fn tell_global(config: &Config, header: &StoreHeader, history: &History) -> Result<()> {
    let Some(store) = location::open_global(config)? else { return Ok(()) };
    match read_header(&*store) {
        Ok(there) if there.id == header.id => Ok(update(&*store, header, history)?),
        _ => Ok(()),
    }
}
