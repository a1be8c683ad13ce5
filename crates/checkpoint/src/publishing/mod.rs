//! The decisions of a commit: what to do next, given what has happened. No I/O, clock or thread.
//!
//! ```text
//! own segments durable -> parts told -> images stored -> images told -> manifest -> (prune)
//!   -> verdict told -> (manifest to other stores -> prune in all of them) -> (pledge removed) -> done
//! ```
//! Who does what is a value, the [`Role`]: a rank takes all of these steps, an agent of all ranks
//! those that need no talking, an agent of one node ends with its pledge, and who redeems pledges
//! begins with the images. [`drive`] does what is said here, and reports what came of it.
//!
//! Why without I/O: what goes wrong in a commit is an order of events. Tests try all of them.
//!
//! Invariants:
//! - A manifest is written only after the segments and images of all ranks are durable.
//! - A pledge is removed before anything that it names, or after the manifest is there.
//! - Nothing is removed once a manifest may name it: an outcome in doubt stays in doubt.
//! - Who cannot reach the others removes nothing that they may still commit.

mod drive;
#[cfg(test)]
mod tests;

pub use drive::{Steps, drive};

use standfast_format::SegmentId;

/// Who commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A rank, together with the others.
    Rank {
        /// It writes the manifest.
        first: bool,
        /// It is the first rank of its store.
        leads: bool,
        /// All ranks share one store.
        one_store: bool,
        /// The agents of the nodes pledge this attempt.
        pledged: bool,
    },
    /// An agent, for all ranks of the job.
    Agent,
    /// An agent, for the ranks of its node: what it stores instead of images is the pledge.
    Pledger,
    /// A rank that commits what dead ranks have pledged.
    Redeemer {
        /// It writes the manifest.
        first: bool,
    },
}

/// What a commit did besides making the checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Aftermath {
    /// Segments that are gone, or may be.
    pub removed: Vec<SegmentId>,
    /// What its reader should know.
    pub notes: Vec<String>,
}

/// What became of the manifest.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Verdict<E> {
    /// The checkpoint exists.
    Committed(Aftermath),
    /// It does not.
    Failed(E),
    /// Writing the manifest failed, and yet it may be there: what it names must stay.
    InDoubt(E),
}

impl<E> Verdict<E> {
    /// The same verdict with another sort of failure.
    pub fn map_err<F>(self, f: impl FnOnce(E) -> F) -> Verdict<F> {
        match self {
            Verdict::Committed(published) => Verdict::Committed(published),
            Verdict::Failed(error) => Verdict::Failed(f(error)),
            Verdict::InDoubt(error) => Verdict::InDoubt(f(error)),
        }
    }
}

/// What has happened.
#[derive(Debug)]
pub enum Happened<E> {
    /// The own segments are durable, or could not be made so.
    Begun(Result<(), E>),
    /// Every rank has told what it has made durable; or one has failed, and all know it.
    Told(Result<(), E>),
    /// The own images are durable, or the pledge is; or they could not be made so.
    Stored(Result<(), E>),
    /// The first rank knows the images of all ranks, or that one has failed. Others know nothing
    /// yet; of redeemers, all know of a failure.
    Images(Result<(), E>),
    /// What became of the manifest that was written.
    Manifest(Verdict<E>),
    /// What is beyond `keep` is gone.
    Pruned(Aftermath),
    /// What the first rank has told.
    Heard(Verdict<E>),
    /// The other stores have the manifest, but for those of which a note tells why not.
    Spread(Vec<String>),
    /// It was removed, as far as the store lets it. False: the pledge may still be there.
    Removed(bool),
    /// A rank cannot be reached: nobody knows how far the others have come.
    Lost(E),
}

/// What is to be done next.
#[derive(Debug)]
pub enum Do<E> {
    /// Talk to the other ranks, which do the same.
    Talk(Talk<E>),
    /// Store the own images; a [`Role::Pledger`] its pledge.
    StoreImages,
    /// Write the manifest.
    WriteManifest,
    /// Prune the one store.
    Prune,
    /// Remove something of this attempt.
    Remove(Files),
    /// Nothing more.
    Done(Result<Aftermath, E>),
}

/// What ranks do together.
#[derive(Debug)]
pub enum Talk<E> {
    /// Tell what is durable.
    Parts(Result<(), E>),
    /// Tell the first rank of the own images; redeemers tell all.
    Images(Result<(), E>),
    /// Tell the verdict, on the first rank; hear it, on the others.
    Verdict(Option<Verdict<E>>),
    /// Write the manifest to all stores.
    Spread,
    /// Prune all stores.
    Prune,
}

/// Files of an attempt that whoever commits has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// The node's pledge.
    Pledge,
    /// Images and segments: of this rank, or of all ranks that an agent writes for.
    Data,
}

/// A commit under way.
#[derive(Debug)]
pub struct Publishing<E> {
    role: Role,
    /// The own images failed with this: the others know less of it.
    own: Option<E>,
    /// Whether other ranks may have gone on to what cannot be taken back.
    told: bool,
    /// What is still to be removed, last first, and what is said then.
    removing: Vec<Files>,
    end: Result<Aftermath, E>,
}

impl<E: Clone> Publishing<E> {
    /// Before anything has happened.
    pub fn new(role: Role) -> Self {
        let end = Ok(Aftermath::default());
        Self { role, own: None, told: false, removing: Vec::new(), end }
    }

    /// What to do after this.
    pub fn next(&mut self, what: Happened<E>) -> Do<E> {
        match what {
            Happened::Begun(own) => match (self.role, own) {
                (Role::Rank { .. }, own) => Do::Talk(Talk::Parts(own)),
                (_, Ok(())) => Do::StoreImages,
                // Who seals segments takes them back where that fails.
                (_, Err(error)) => Do::Done(Err(error)),
            },
            Happened::Told(Ok(())) => {
                self.told = true;
                Do::StoreImages
            }
            Happened::Told(Err(error)) => self.take_back(error),
            Happened::Stored(own) => self.stored(own),
            Happened::Images(Err(error)) if matches!(self.role, Role::Redeemer { .. }) => {
                self.take_back(error)
            }
            Happened::Images(all) => match (self.is_first(), all) {
                (false, _) => Do::Talk(Talk::Verdict(None)),
                (true, Ok(())) => Do::WriteManifest,
                (true, Err(error)) => Do::Talk(Talk::Verdict(Some(Verdict::Failed(error)))),
            },
            Happened::Manifest(Verdict::Committed(_)) if self.has_one_store() => Do::Prune,
            Happened::Manifest(verdict) => self.tell(verdict),
            Happened::Pruned(published) if self.has_one_store() => {
                self.tell(Verdict::Committed(published))
            }
            Happened::Pruned(published) => self.finish(published),
            Happened::Heard(verdict) => self.heard(verdict),
            Happened::Spread(notes) => match self.role {
                // A store that does not know the new checkpoint keeps what it has.
                Role::Rank { .. } if notes.is_empty() => Do::Talk(Talk::Prune),
                _ => self.finish(Aftermath { notes, ..Aftermath::default() }),
            },
            Happened::Removed(is_gone) => {
                if !is_gone {
                    // What a pledge names must stay as long as it does.
                    self.removing.clear();
                }
                self.remove_next()
            }
            // The others may be dead; what all nodes have pledged counts then.
            Happened::Lost(error) if self.told || self.is_pledged() => Do::Done(Err(error)),
            Happened::Lost(error) => self.take_back(error),
        }
    }

    fn stored(&mut self, own: Result<(), E>) -> Do<E> {
        match (self.role, own) {
            (Role::Rank { .. } | Role::Redeemer { .. }, own) => {
                self.told = true;
                self.own = own.as_ref().err().cloned();
                Do::Talk(Talk::Images(own))
            }
            (Role::Agent, Ok(())) => Do::WriteManifest,
            (Role::Pledger, Ok(())) => self.finish(Aftermath::default()),
            (Role::Agent | Role::Pledger, Err(error)) => self.take_back(error),
        }
    }

    /// Tells the verdict to those who do not know it.
    fn tell(&mut self, verdict: Verdict<E>) -> Do<E> {
        match self.role {
            Role::Rank { .. } | Role::Redeemer { .. } => Do::Talk(Talk::Verdict(Some(verdict))),
            Role::Agent | Role::Pledger => self.heard(verdict),
        }
    }

    fn heard(&mut self, verdict: Verdict<E>) -> Do<E> {
        match verdict {
            Verdict::Committed(published) if self.has_one_store() => self.finish(published),
            Verdict::Committed(_) => Do::Talk(Talk::Spread),
            Verdict::Failed(error) => {
                let error = self.own.take().unwrap_or(error);
                self.take_back(error)
            }
            Verdict::InDoubt(error) => Do::Done(Err(error)),
        }
    }

    /// The checkpoint exists: the pledge has been kept.
    fn finish(&mut self, published: Aftermath) -> Do<E> {
        self.end = Ok(published);
        if let Role::Rank { leads: true, pledged: true, .. } = self.role {
            self.removing = vec![Files::Pledge];
        }
        self.remove_next()
    }

    /// There will be no such checkpoint. What a redeemer leaves goes when the store is cleaned.
    fn take_back(&mut self, error: E) -> Do<E> {
        self.end = Err(error);
        self.removing = match self.role {
            Role::Redeemer { .. } => vec![],
            // The pledge first: it must not name what is gone.
            Role::Pledger | Role::Rank { pledged: true, .. } => vec![Files::Data, Files::Pledge],
            Role::Agent | Role::Rank { .. } => vec![Files::Data],
        };
        self.remove_next()
    }

    fn remove_next(&mut self) -> Do<E> {
        match self.removing.pop() {
            Some(files) => Do::Remove(files),
            None => Do::Done(std::mem::replace(&mut self.end, Ok(Aftermath::default()))),
        }
    }

    fn is_first(&self) -> bool {
        matches!(self.role, Role::Rank { first: true, .. } | Role::Redeemer { first: true })
    }

    fn has_one_store(&self) -> bool {
        matches!(self.role, Role::Agent | Role::Rank { one_store: true, .. })
    }

    fn is_pledged(&self) -> bool {
        matches!(self.role, Role::Rank { pledged: true, .. })
    }
}
