//! What the ranks of a commit say to each other once their images are stored.
//!
//! The same for ranks that commit their own checkpoint and for those that redeem what others have
//! pledged. All methods but [`Ranks::write_manifest`] talk.

use standfast_checkpoint::publishing::{Happened, Verdict};
use standfast_checkpoint::{Entry, Holdings, Inventory, Order, Publisher};
use standfast_comm::{Collective, Failure, Fault, Step};
use standfast_store::Store;

use crate::error::{Error, Result};
use crate::stores::Stores;

/// The ranks of one commit, and what this one knows.
pub(crate) struct Ranks<'a> {
    pub(crate) team: &'a Collective,
    pub(crate) store: &'a dyn Store,
    pub(crate) stores: &'a Stores,
    pub(crate) order: Order,
    pub(crate) inventory: &'a mut Inventory,
    /// Of this rank; once told, on the first rank, of all of them.
    pub(crate) entries: Vec<Entry>,
}

impl Ranks<'_> {
    /// The first rank gets the entries of all.
    pub(crate) fn tell_images(&mut self, own: Result<()>) -> Happened<Error> {
        let own = own.map(|()| std::mem::take(&mut self.entries));
        let all = match self.team.gather_first(Step("commit: images"), own) {
            Ok(all) => all.into_iter().flatten().collect::<Result<Vec<_>>>(),
            Err(stop) => return Happened::Lost(stop.into()),
        };
        Happened::Images(all.map(|all| {
            self.entries = all.concat();
            self.entries.sort_by_key(|entry| entry.image.rank);
        }))
    }

    /// Writes the manifest over the entries that were told.
    pub(crate) fn write_manifest(&mut self, publisher: &Publisher, ranks: u32) -> Verdict<Error> {
        let entries = std::mem::take(&mut self.entries);
        let written = publisher.write_manifest(self.order, ranks, entries, self.inventory);
        written.map_err(Error::from)
    }

    /// All ranks get the first one's verdict, and know what it knows of the store.
    pub(crate) fn tell_verdict(&mut self, own: Option<Verdict<Error>>) -> Happened<Error> {
        let told = self.team.tell(Step("commit: manifest"), || {
            let own = own.clone().unwrap_or(Verdict::InDoubt(Error::broken("committing")));
            let verdict = own.map_err(|error| Failure::of(0, &error));
            Ok::<(Verdict<Failure>, Holdings), Error>((verdict, Holdings::of(self.inventory)))
        });
        match (told, own) {
            // What it failed with itself it knows better.
            (Ok(_), Some(own)) => Happened::Heard(own),
            (Ok(told), None) => {
                let (verdict, holdings) = told.into_inner();
                holdings.take_in(self.inventory);
                Happened::Heard(verdict.map_err(Error::of_other))
            }
            // What the first rank did is in doubt.
            (Err(stop), _) => Happened::Lost(stop.into()),
        }
    }

    /// The other stores get the manifest.
    pub(crate) fn spread(&mut self) -> Happened<Error> {
        let manifest = self.inventory.checkpoint(self.order.version).map_err(Error::from);
        let spread = self
            .team
            .agree(Step("commit: others"), manifest)
            .and_then(|own| self.stores.spread(self.team, self.store, own, self.inventory));
        match spread {
            Ok(notes) => Happened::Spread(notes),
            Err(stop) => Happened::Lost(stop.into()),
        }
    }
}
