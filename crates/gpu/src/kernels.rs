//! The kernels: our CUDA sources, compiled on the machine that runs them.
//!
//! Data: `kernels/*.cu` (in the binary as text) -> NVRTC -> machine code of this very device ->
//! functions, each source compiled on first use.
//!
//! Why machine code and not PTX: a run-time compiler newer than the driver writes PTX that the
//! driver refuses; machine code of the same major version it takes.

#[cfg(feature = "cuda")]
mod compile;

#[cfg(feature = "cuda")]
pub(crate) use compile::Loaded;

#[cfg(feature = "cuda")]
const PRELUDE: &str = include_str!("../kernels/prelude.cuh");

/// One source file.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    name: &'static str,
    text: &'static str,
}

pub(crate) static HASH: Source = Source { name: "hash", text: include_str!("../kernels/hash.cu") };
pub(crate) static PAGES: Source =
    Source { name: "pages", text: include_str!("../kernels/pages.cu") };
pub(crate) static ERASURE: Source =
    Source { name: "erasure", text: include_str!("../kernels/erasure.cu") };
pub(crate) static FLOAT: Source =
    Source { name: "float", text: include_str!("../kernels/float.cu") };
pub(crate) static DEFLATE: Source =
    Source { name: "deflate", text: include_str!("../kernels/deflate.cu") };

/// One function of a source.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a compiler reads it"))]
pub(crate) struct Kernel {
    pub(crate) source: &'static Source,
    pub(crate) name: &'static str,
    /// Dynamic shared memory it may ask for beyond what every kernel gets.
    pub(crate) shared_bytes_max: u32,
}

impl Kernel {
    pub(crate) const fn new(source: &'static Source, name: &'static str) -> Self {
        Kernel { source, name, shared_bytes_max: 0 }
    }

    pub(crate) const fn shared(self, shared_bytes_max: u32) -> Self {
        Kernel { shared_bytes_max, ..self }
    }
}

#[cfg(test)]
mod tests;
