//! C and C++ programs against the installed library: built, linked, run, killed.

mod abi;
mod heat;
mod installed;
