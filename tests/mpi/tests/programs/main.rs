//! MPI programs in C and Fortran against the installed library, on every MPI that is installed.

mod conformance;
mod fortran;
mod handed;
mod heat;
mod installed;
mod mpi;
mod parts;
mod signals;
