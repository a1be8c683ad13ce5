//! Programs that know nothing of Standfast: killed, resumed, and their answer is the same.
//!
//! Each program prints `step N` as it goes and `answer ...` at its end, and exits with 7.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod allocation;
mod call;
mod failure;
mod mismatch;
mod program;
mod resume;
