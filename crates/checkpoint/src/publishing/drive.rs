//! Doing what a commit decides, over a store and the ranks.

use super::{Aftermath, Do, Files, Happened, Publishing, Role, Talk, Verdict};

/// What a commit acts on.
pub trait Steps {
    /// What can go wrong.
    type Error: Clone;

    /// Stores the own images, or the pledge.
    fn store_images(&mut self) -> Result<(), Self::Error>;

    /// Writes the manifest over the images of all ranks.
    fn write_manifest(&mut self) -> Verdict<Self::Error>;

    /// Prunes the store, where it is the only one.
    fn prune(&mut self) -> Aftermath;

    /// Removes files of this attempt, as far as the store lets it. False: the pledge may still be there.
    fn remove(&mut self, files: Files) -> bool;

    /// Talks to the other ranks, and tells what came of it.
    fn talk(&mut self, talk: Talk<Self::Error>) -> Happened<Self::Error>;
}

/// Commits; `begun`: whether the own segments are durable.
pub fn drive<S: Steps>(
    role: Role,
    begun: Result<(), S::Error>,
    steps: &mut S,
) -> Result<Aftermath, S::Error> {
    let mut publishing = Publishing::new(role);
    let mut happened = Happened::Begun(begun);
    loop {
        happened = match publishing.next(happened) {
            Do::Talk(talk) => steps.talk(talk),
            Do::StoreImages => Happened::Stored(steps.store_images()),
            Do::WriteManifest => Happened::Manifest(steps.write_manifest()),
            Do::Prune => Happened::Pruned(steps.prune()),
            Do::Remove(files) => Happened::Removed(steps.remove(files)),
            Do::Done(end) => return end,
        };
    }
}
