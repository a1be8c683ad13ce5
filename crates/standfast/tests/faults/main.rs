//! The engine over a store that misbehaves: every call of a checkpoint fails once in every way,
//! every object comes back damaged in every way.
//!
//! What must hold, whatever the store does: a checkpoint fails with the store's own kind of
//! error or is there; older checkpoints stay; the next one works and restores to the right
//! bytes; damage is reported with the object's name and never returned as data.

mod damage;
mod lines;
mod opening;
mod reading;
mod world;
mod writing;
