//! The command from outside: real stores, real processes, exit codes and what is printed.

mod agent;
mod damage;
mod demo;
mod drain;
mod encrypted;
mod export;
mod finished;
mod fixture;
mod leave;
mod looking;
mod planning;
mod prune;
mod references;
mod ring;
mod run;
mod slurm;
mod trust;
