//! What the checks of a GPU share: host memory through a device, as PCCR does it.

pub mod pipeline;
