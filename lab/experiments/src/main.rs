//! Bars and experiments: every promised figure, measured by a command.
//!
//! `bars` runs the bars of every capability that exists, by its letter; further experiments are
//! subcommands of their own. Results go to stdout, one line each; `--json` gives JSON lines.

mod aggregation;
mod bars;
mod campaign;
mod compare;
mod dedup;
mod figures;
mod hosts;
mod kill;
mod levels;
mod listing;
mod mpi;
mod pipeline;
mod report;
mod ring;
mod trust;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures what Standfast promises.
#[derive(Parser)]
#[command(name = "experiments", version)]
struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Measure every bar and print value, goal and ceiling
    Bars(bars::Args),
    Figures(figures::Args),
    Compaction(trust::compaction::Args),
    DedupWorst(dedup::worst::Args),
    DedupBest(dedup::best::Args),
    DedupStencil(dedup::stencil::Args),
    DedupCorpus(dedup::corpus::Args),
    KillRanks(kill::Args),
    Compare(compare::Args),
    Hosts(hosts::Args),
    Campaign(campaign::Args),
    CampaignRank(campaign::rank::Args),
    CampaignGlobal(campaign::global::Args),
    Aggregation(aggregation::Args),
    AggregationRank(aggregation::rank::Args),
    /// Be the agent of an experiment
    #[command(hide = true)]
    Agent {
        /// What `standfast agent` takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    Codecs(levels::codecs::Args),
    Ndp(levels::ndp::Args),
    Pause(levels::pause::Args),
    Slowdown(levels::slowdown::Args),
    LevelsKills(levels::kills::Args),
    LevelsProgram(levels::program::Args),
    LevelsDrain(levels::program::DrainArgs),
    LevelsVerify(levels::kills::VerifyArgs),
    MpiRank(mpi::rank::Args),
    Pipeline(pipeline::Args),
    Star(ring::star::Args),
    Tolerance(ring::tolerance::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().experiment {
        Experiment::Bars(args) => return Ok(bars::run(&args)),
        Experiment::Compaction(args) => trust::compaction::run(&args),
        Experiment::Figures(args) => figures::run(&args),
        Experiment::DedupWorst(args) => dedup::worst::run(&args),
        Experiment::DedupBest(args) => dedup::best::run(&args),
        Experiment::DedupStencil(args) => dedup::stencil::run(&args),
        Experiment::DedupCorpus(args) => dedup::corpus::run(&args),
        Experiment::KillRanks(args) => kill::run(&args),
        Experiment::Compare(args) => compare::run(&args),
        Experiment::Hosts(args) => hosts::run(&args),
        Experiment::Codecs(args) => levels::codecs::run(&args),
        Experiment::Ndp(args) => levels::ndp::run(&args),
        Experiment::Pause(args) => levels::pause::run(&args),
        Experiment::Slowdown(args) => levels::slowdown::run(&args),
        Experiment::LevelsKills(args) => levels::kills::run(&args),
        Experiment::LevelsProgram(args) => levels::program::run(&args),
        Experiment::LevelsDrain(args) => levels::program::drain(&args),
        Experiment::LevelsVerify(args) => levels::kills::verify(&args),
        Experiment::Campaign(args) => campaign::run(&args),
        Experiment::CampaignRank(args) => campaign::rank::run(&args),
        Experiment::CampaignGlobal(args) => campaign::global::run(&args),
        Experiment::MpiRank(args) => mpi::rank::run(&args),
        Experiment::Pipeline(args) => pipeline::run(&args),
        Experiment::Star(args) => ring::star::run(&args),
        Experiment::Tolerance(args) => ring::tolerance::run(&args),
        Experiment::Aggregation(args) => aggregation::run(&args),
        Experiment::AggregationRank(args) => aggregation::rank::run(&args),
        Experiment::Agent { words } => return Ok(standfast_agent::command(&words)),
    }?;
    Ok(ExitCode::SUCCESS)
}
