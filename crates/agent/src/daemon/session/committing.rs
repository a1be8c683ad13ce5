//! A commit under way: it has the session's inventory, and gives it back however it ends.

use std::time::Instant;

use serde_json::json;
use standfast_checkpoint::publishing::Role;
use standfast_checkpoint::{Order, refresh};
use standfast_format::Kind;
use standfast_restart::Inventory;

use super::{Ended, Session, State, settled_failed};
use crate::daemon::commit::{self, Ready};
use crate::message::{Failure, Settled};

/// A commit under way. Dropped, it has ended: as it was settled, or by a panic.
pub(super) struct Committing<'a> {
    session: &'a Session,
    order: Order,
    inventory: Option<Inventory>,
    settled: Option<Settled>,
    started: Instant,
}

impl<'a> Committing<'a> {
    pub(super) fn begin(session: &'a Session, state: &mut State, order: Order) -> Self {
        state.committing = Some(order);
        let inventory = Some(state.inventory.take().expect("one commit at a time"));
        Self { session, order, inventory, settled: None, started: Instant::now() }
    }

    /// Commits, or pledges.
    pub(super) fn run(mut self, ready: Ready) {
        let Session { begin, publisher, .. } = self.session;
        let role = if begin.is_whole() { Role::Agent } else { Role::Pledger };
        let inventory = self.inventory.as_mut().expect("taken at the end");
        let ranks = begin.job_ranks;
        self.settled = Some(commit::commit(publisher, self.order, ranks, role, ready, inventory));
    }

    fn log(&self, settled: &Settled) {
        let (store, version) = (&self.session.begin.store.path, self.order.version.0);
        let ms = self.started.elapsed().as_millis() as u64;
        let (event, why) = match &settled.outcome {
            Ok(()) if settled.pledged.is_some() => ("pledged", None),
            Ok(()) => ("committed", None),
            Err(failure) => ("failed", Some(failure.clone().into_error().to_string())),
        };
        let mut fields = json!({ "store": store, "version": version, "ms": ms });
        if let Some(why) = why {
            fields["why"] = json!(why);
        }
        self.session.log.event(event, fields);
    }
}

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        let mut inventory = self.inventory.take().expect("taken here alone");
        let settled = self.settled.take().unwrap_or_else(|| {
            // How far it came only the store knows.
            refresh(&*self.session.publisher.store, &mut inventory);
            let failure = Failure::new(Kind::Bug, "committing panicked; please report it");
            settled_failed(self.order.attempt, failure, Some(&inventory))
        });
        self.log(&settled);
        let mut state = self.session.state();
        state.committing = None;
        state.inventory = Some(inventory);
        state.end(self.order.attempt, Ended::Settled);
        match settled.outcome {
            Ok(()) => state.committed += 1,
            Err(_) => state.failed += 1,
        }
        let news = state.news(settled);
        self.session.release_if_broken(&state);
        drop(state);
        self.session.changed.notify_all();
        news.tell();
    }
}
