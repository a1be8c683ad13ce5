//! Publishing: a sealed attempt becomes a checkpoint, in the one documented order.
//!
//! 1. every rank seals its segments
//! 2. the ranks tell each other what they sealed: nobody refers to what is not there
//! 3. every rank writes its image
//! 4. the first rank, told that all images are there, writes the manifest: from here on the
//!    checkpoint exists. Where nodes have stores of their own, the leaders of the others write the
//!    same manifest there
//! 5. the first rank, or every leader, prunes what is beyond `keep`, and the others are told
//!
//! Each step is durable before the next begins (the store's contract), so a crash anywhere leaves
//! the old checkpoints or the old ones and the new one, and files that the next opening removes.
//! What comes next, and what is taken back where a step fails, [`publishing`] decides; here are the
//! steps of a rank.
//!
//! Where each node has an agent, it does step 1 for its ranks.
//!
//! Step 1 is a thread's work ([`super::committer`]). The others need the ranks to talk: where any
//! thread may do that it is the same thread's work, otherwise it is done inside the program's next
//! collective call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use standfast_checkpoint::publishing::{
    self, Aftermath, Files, Happened, Role, Steps, Talk, Verdict,
};
use standfast_checkpoint::{Described, Inventory, Order, Part, Publisher, failpoint};
use standfast_comm::{Collective, Step};
use standfast_format::{Level, Manifest, Rank, SegmentId, Version};
use standfast_take::{Attempt, Closed, Committed, Published, Sealed, Taken};

use super::ranks::Ranks;
use crate::error::{Error, Phase, Result, Stop};
use crate::progress::{Board, Progress};
use crate::ring::{self, Protection};
use crate::space::Limit;
use crate::stores::Stores;

/// Where ranks tell each other what they have sealed, or that they have not.
const SEGMENTS: Step = Step("commit: segments");

/// What committing needs to know of the job.
#[derive(Clone)]
pub(crate) struct CommitSettings {
    pub(crate) rank: Rank,
    pub(crate) publisher: Publisher,
    pub(crate) board: Arc<Board>,
    pub(crate) stores: Stores,
    /// What the local store may take.
    pub(crate) limit: Limit,
    /// Where the nodes of the job are protected.
    pub(crate) ring: ring::Protection,
    pub(crate) multiplier: ring::Multiplier,
}

impl CommitSettings {
    /// What the thread does with what was taken: all of it, where it may talk to other ranks.
    pub(super) fn close(
        &self,
        taken: Taken,
        team: Option<&Collective>,
        inventory: &mut Inventory,
    ) -> Closed<Error> {
        let captured = match taken {
            Taken::Frozen(frozen) if team.is_none() && frozen.needs_team() => {
                return Closed::Frozen(frozen);
            }
            Taken::Frozen(frozen) => frozen.ingest(team),
            Taken::Captured(captured) => captured,
        };
        match (captured.seal(inventory), team) {
            (Closed::Sealed(sealed), Some(team)) => {
                Closed::Published(Box::new(self.publish(*sealed, team, inventory)))
            }
            (Closed::Published(published), _) => {
                let published = Box::new(published.map_err(Error::from));
                self.tell(published.order.version, &published.state);
                Closed::Published(published)
            }
            (Closed::Sealed(sealed), None) => Closed::Sealed(sealed),
            (Closed::Frozen(frozen), _) => Closed::Frozen(frozen),
        }
    }

    /// Steps 2 to 5, and the news for whoever waits. Collective.
    pub(super) fn publish(
        &self,
        sealed: Attempt<Sealed>,
        team: &Collective,
        inventory: &mut Inventory,
    ) -> Attempt<Published<Error>> {
        let (mut attempt, sealed) = sealed.advance(());
        let (order, notes) = (attempt.order, &mut attempt.notes);
        let committing = AssertUnwindSafe(|| self.commit(team, order, sealed, inventory, notes));
        // Whoever waits for this checkpoint must not wait for ever.
        let broken = Error::broken("committing");
        let mut outcome = catch_unwind(committing).unwrap_or(Err(broken));
        let level = self.protect(team, (order.version, outcome.is_ok()), inventory, notes);
        if let Ok(committed) = &mut outcome {
            committed.level = level;
        }
        let state = Published { outcome };
        self.tell(order.version, &state);
        attempt.advance(state).0
    }

    /// Brings a committed checkpoint to level ring, where that is wanted. One that does not get
    /// there is a checkpoint all the same.
    fn protect(
        &self,
        team: &Collective,
        (version, committed): (Version, bool),
        inventory: &Inventory,
        notes: &mut Vec<String>,
    ) -> Level {
        let topology = match &self.ring {
            Protection::On(topology) => topology,
            Protection::Off => return Level::Local,
            Protection::Unable(why) => {
                notes.push(format!("it does not survive the loss of a node: {why}"));
                return Level::Local;
            }
        };
        // All ranks encode, or none does.
        let own = inventory.checkpoint(version).ok().filter(|_| committed);
        let all = team.all_hold(Step("ring"), [own.is_some()]);
        let (Ok([true]), Some(manifest)) = (all.map(|all| *all), own) else {
            notes.push("it does not survive the loss of a node: a rank could not encode it".into());
            return Level::Local;
        };
        self.board.set(version, Progress::Reached(Level::Local));
        let encoding = AssertUnwindSafe(|| {
            let (store, mut multiplier) = (&*self.publisher.store, self.multiplier.clone());
            ring::protect(team, store, &self.stores, topology, manifest, &mut multiplier)
        });
        let encoded = catch_unwind(encoding).map_err(|_| Error::broken("encoding"));
        let encoded = encoded.and_then(|encoded| Ok(encoded?));
        notes.extend(self.multiplier.notes());
        match encoded {
            Ok(survives) => {
                notes.push(survives);
                Level::Ring
            }
            Err(error) => {
                notes.push(format!("it does not survive the loss of a node: {error}"));
                self.board.lose(&error);
                Level::Local
            }
        }
    }

    fn commit(
        &self,
        team: &Collective,
        order: Order,
        Sealed { part, own, pledged }: Sealed,
        inventory: &mut Inventory,
        notes: &mut Vec<String>,
    ) -> Result<Committed> {
        let role = Role::Rank {
            first: team.is_first(),
            leads: self.stores.leader() == self.rank.0 as usize,
            one_store: self.stores.are_one(),
            pledged,
        };
        let same = |other: &Manifest| other.version == order.version;
        let replaced = inventory.checkpoints.iter().any(same);
        let (begun, described, part) = match part {
            Ok((described, part)) => (Ok(()), Some(described), part),
            Err(error) => (Err(error.into()), None, Part::default()),
        };
        let (store, stores, entries) = (&*self.publisher.store, &self.stores, Vec::new());
        let ranks = Ranks { team, store, stores, order, inventory, entries };
        let mut steps = RankSteps { settings: self, own, described, part, replaced, ranks };
        let done = publishing::drive(role, begun, &mut steps)?;
        notes.extend(done.notes);
        Ok(Committed::of(order, steps.part, done.removed, inventory)?)
    }

    /// Tells whoever waits. Before anybody takes the outcome in: they must find it told.
    fn tell(&self, version: Version, Published { outcome }: &Published<Error>) {
        let progress = match outcome {
            Ok(committed) => Progress::Done(committed.level),
            Err(error) => {
                self.board.lose(error);
                Progress::Failed(error.clone())
            }
        };
        self.board.set(version, progress);
    }
}

/// The steps of one rank.
struct RankSteps<'a> {
    settings: &'a CommitSettings,
    own: Vec<SegmentId>,
    /// Until it is written.
    described: Option<Described>,
    /// Of this rank; once told, of all ranks.
    part: Part,
    /// Whether a checkpoint of this version was there.
    replaced: bool,
    ranks: Ranks<'a>,
}

impl Steps for RankSteps<'_> {
    type Error = Error;

    fn store_images(&mut self) -> Result<()> {
        failpoint::pass("commit.before_image");
        let broken = Error::broken("committing");
        let mut described = self.described.take().ok_or(broken)?;
        // What this rank has described is there.
        described.place(&self.part.moved(), |_| true)?;
        let entry = self.settings.publisher.write_image(self.ranks.order, described)?;
        self.ranks.entries = vec![entry];
        Ok(())
    }

    fn write_manifest(&mut self) -> Verdict<Error> {
        self.ranks.write_manifest(&self.settings.publisher, self.ranks.team.size() as u32)
    }

    fn prune(&mut self) -> Aftermath {
        self.settings.publisher.prune(self.replaced, self.ranks.inventory)
    }

    fn remove(&mut self, files: Files) -> bool {
        let (publisher, order) = (&self.settings.publisher, self.ranks.order);
        match files {
            Files::Pledge => publisher.discard_pledge(order),
            Files::Data => {
                let (rank, own) = (std::iter::once(self.settings.rank), self.own.iter().copied());
                publisher.discard(order, rank, own);
                true
            }
        }
    }

    fn talk(&mut self, talk: Talk<Error>) -> Happened<Error> {
        match talk {
            Talk::Parts(own) => {
                let own = own.map(|()| std::mem::take(&mut self.part));
                match self.ranks.team.gather(SEGMENTS, own) {
                    Ok(all) => {
                        self.part = Part::join(all.into_inner());
                        Happened::Told(Ok(()))
                    }
                    Err(stop @ Stop::Lost(_)) => Happened::Lost(stop.into()),
                    Err(stop) => Happened::Told(Err(stop.into())),
                }
            }
            Talk::Images(own) => self.ranks.tell_images(own),
            Talk::Verdict(own) => self.ranks.tell_verdict(own),
            Talk::Spread => self.ranks.spread(),
            Talk::Prune => match self.prune_all() {
                Ok(done) => Happened::Pruned(done),
                Err(stop) => Happened::Lost(stop.into()),
            },
        }
    }
}

impl RankSteps<'_> {
    /// Step 5 where nodes have stores of their own.
    fn prune_all(&mut self) -> Phase<Aftermath> {
        let CommitSettings { publisher, ring, .. } = self.settings;
        let Ranks { team, store, stores, inventory, .. } = &mut self.ranks;
        let mut keep = publisher.keep();
        let beyond = keep.newest != 0 && inventory.checkpoints.len() > keep.newest;
        if !(beyond || self.replaced) {
            return Ok(Aftermath::default());
        }
        if let Protection::On(_) = ring {
            // Newer ones may not get there: then this is what survives the loss of a node.
            keep.versions.extend(ring::newest(*store, inventory));
        }
        let (removed, notes) = stores.prune(team, *store, keep, inventory)?;
        Ok(Aftermath { removed, notes })
    }
}
