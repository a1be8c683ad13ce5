//! The ring: what encoding costs and what it survives.

pub(crate) mod bars;
mod schemes;
mod sets;
pub(crate) mod star;
pub(crate) mod tolerance;
