//! How a program comes back.

use super::Key;
use super::text::{Words, word, word_of};

/// When a restart gives control back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// When everything is in memory.
    Eager,
    /// At once; pages arrive when they are touched, the rest behind.
    Lazy,
}

const RESTARTS: Words<Restart> = &[("eager", Restart::Eager), ("lazy", Restart::Lazy)];

pub(super) const RESTART: Key = Key {
    name: "restart",
    help: "When a restart gives control back: eager (everything is there), lazy (at once; pages come when they are touched, the rest behind; a page that cannot be read then ends the program, and the next restart reads all of that checkpoint first)",
    default: "eager",
    set: |config, text| word(&mut config.restart, RESTARTS, text),
    show: |config| word_of(config.restart, RESTARTS),
};
