//! `libstandfast_preload.so`: checkpoints of whole programs that know nothing of Standfast.
//!
//! ```text
//! malloc & co. -> `allocator` -> mimalloc, in a range of addresses of our own (`arena`)
//! signal, call -> `checkpoint`: other threads stop (`stop`), a twin is forked, all go on
//! twin         -> `twin`: describes the process, gives its pages to the engine, exits
//! next start   -> `start` -> `resume`: address space as it was -> `pour`: memory, threads
//! ```
//! Why a twin: it is the state at one instant for the price of copying page tables, the engine
//! can take all the time and memory it likes, and no thread or lock of ours is ever in the
//! program. Why everything that is writable is captured, not only the heap: pointers into the
//! heap lie in globals, on stacks and in libraries, and the allocator's own state is among them.
//!
//! Invariants:
//! - In the program's process this library allocates nothing, takes no lock, and calls only what
//!   may be called in a signal handler. A checkpoint may come inside of malloc.
//! - The engine never allocates from the captured arena: in a twin, and in a process about to be
//!   resumed, malloc is the C library's.
//! - What `control` holds belongs to the running process and is neither captured nor restored.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

pub mod allocator;
mod arena;
pub mod call;
mod checkpoint;
mod context;
mod control;
mod maps;
mod pour;
mod resume;
mod start;
mod stop;
mod system;
mod twin;
mod zone;
