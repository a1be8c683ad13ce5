//! Space for the next checkpoint in a bounded local store, by removing the oldest checkpoints.
//!
//! Data: the bound, what the store holds, what all its ranks protect -> the oldest checkpoints go, one
//! after the other, until the next one fits whatever it turns out to need.
//!
//! Who goes first: those that are marked as damaged, if another is there.
//!
//! Who stays: the newest one, until there is a newer; what somebody reads or drains; segments that
//! newer checkpoints refer to; and as long as anything else can go, the newest one that survives
//! the loss of a node. If there is no space then, nothing of the program has been touched: the
//! call fails, or waits until a drain or a reader lets go.
//!
//! All of it is collective.

use std::time::Duration;

use standfast_comm::{Collective, Step};
use standfast_format::SegmentId;
use standfast_restart::Inventory;
use standfast_store::Store;

use crate::error::{Cause, Phase, Result};
use crate::prune::Keep;
use crate::ring;
use crate::stores::Stores;

/// How often somebody who waits looks again.
const LOOK: Duration = Duration::from_millis(100);
/// Images and indexes take less than this share of the pages.
const METADATA_SHARE: u64 = 64;

/// What a store may take.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    /// 0: what there is.
    pub(crate) bytes: u64,
    /// Whether a checkpoint that does not fit waits for somebody who holds what could go.
    pub(crate) waits: bool,
}

/// What a store would need beyond its bound.
struct Lack {
    bytes: u64,
    used: u64,
    need: u64,
}

/// Frees space for a checkpoint of so many protected bytes of this rank; returns the segments that
/// are gone.
pub(crate) fn make(
    team: &Collective,
    store: &dyn Store,
    stores: &Stores,
    limit: Limit,
    inventory: &mut Inventory,
    protected_bytes: u64,
) -> Phase<Vec<SegmentId>> {
    let mut removed = Vec::new();
    if limit.bytes == 0 {
        return Ok(removed);
    }
    let protected = team.collect(Step("space: protected"), protected_bytes)?;
    let mut spared =
        team.collect(Step("space: spared"), ring::newest(store, inventory))?.into_inner();
    loop {
        let mut kept = inventory.checkpoints.len();
        loop {
            let lack = lack(team, store, stores, &protected, limit.bytes)?;
            if lack.bytes == 0 {
                return Ok(removed);
            }
            match kept {
                2.. => kept -= 1,
                _ if !spared.is_empty() => spared.clear(),
                _ => {
                    team.agree(Step("space: refuse"), refuse(limit, inventory, lack))?;
                    break;
                }
            }
            let versions = spared.iter().flatten().copied().collect();
            let keep = Keep { newest: kept, versions, drop_marked: true, ..Keep::default() };
            removed.extend(stores.prune(team, store, keep, inventory)?.0);
        }
        std::thread::sleep(LOOK);
    }
}

/// What the fullest store lacks; the same on all ranks.
fn lack(
    team: &Collective,
    store: &dyn Store,
    stores: &Stores,
    protected: &[u64],
    bound: u64,
) -> Phase<Lack> {
    let own = stores.lead(|| {
        let used = store.list("")?.iter().map(|object| object.bytes).sum::<u64>();
        let ranks = protected.iter().enumerate().filter(|(rank, _)| stores.is_here(*rank));
        let pages = ranks.map(|(_, bytes)| bytes).sum::<u64>();
        let need = pages.saturating_add(pages / METADATA_SHARE);
        Ok((used.saturating_add(need).saturating_sub(bound), used, need))
    });
    let all = team.gather(Step("space: lack"), own)?;
    let fullest = all.into_inner().into_iter().flatten().max().unwrap_or_default();
    Ok(Lack { bytes: fullest.0, used: fullest.1, need: fullest.2 })
}

/// An error, unless waiting is wanted and may help: somebody holds what could go.
fn refuse(limit: Limit, inventory: &Inventory, lack: Lack) -> Result<()> {
    if limit.waits && inventory.checkpoints.len() > 1 {
        return Ok(());
    }
    let Lack { used, need, .. } = lack;
    Err(Cause::NoRoom { bound: limit.bytes, used, need }.into())
}
