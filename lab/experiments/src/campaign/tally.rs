//! What jobs went through, one by one and all together.

use std::collections::BTreeMap;

use serde_json::json;

use super::Args;
use super::fault::Struck;
use super::plan::Plan;
use super::stage::Stage;

/// What one job went through.
#[derive(Default)]
pub(super) struct Course {
    pub(super) lives: usize,
    pub(super) faults: Vec<Struck>,
    /// Ends after which something had been promised.
    pub(super) promised: usize,
    pub(super) findings: Vec<String>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Tally {
    jobs: usize,
    lives: usize,
    faults: usize,
    promised: usize,
    wrong: usize,
    pub(super) seconds: u64,
    by_kind: BTreeMap<&'static str, usize>,
    by_stage: BTreeMap<Stage, ByStage>,
}

/// Faults in one stage.
#[derive(Clone, Copy, Default)]
struct ByStage {
    faults: usize,
    /// Those that struck while a process was held there.
    held: usize,
}

impl Course {
    /// Tells of it, with how to repeat what went wrong.
    pub(super) fn tell(&self, args: &Args, plan: &Plan) {
        let place = if args.no_s3 { " --no-s3" } else { "" };
        let again = format!("experiments campaign --seeds 1 --seed {}{place}", plan.seed);
        if args.json {
            println!(
                "{}",
                json!({ "type": "job", "seed": plan.seed, "plan": plan.to_string(),
                        "lives": self.lives, "faults": self.faults.len(),
                        "findings": self.findings, "again": again })
            );
            return;
        }
        let verdict = if self.findings.is_empty() { "held" } else { "WRONG" };
        println!("seed {:>4}  {plan}: {verdict}", plan.seed);
        for finding in &self.findings {
            println!("           {finding}\n           again: {again}");
        }
    }
}

impl Tally {
    pub(super) fn wrong(&self) -> usize {
        self.wrong
    }

    pub(super) fn take_in(&mut self, course: &Course) {
        self.jobs += 1;
        self.lives += course.lives;
        self.faults += course.faults.len();
        self.promised += course.promised;
        self.wrong += usize::from(!course.findings.is_empty());
        for Struck { kind, stage, held } in &course.faults {
            *self.by_kind.entry(kind).or_default() += 1;
            let by_stage = self.by_stage.entry(*stage).or_default();
            by_stage.faults += 1;
            by_stage.held += usize::from(*held);
        }
    }

    pub(super) fn tell(&self, args: &Args) {
        let Self { jobs, lives, faults, promised, wrong, seconds, by_kind, by_stage: _ } = self;
        if args.json {
            println!(
                "{}",
                json!({ "type": "campaign", "jobs": jobs, "first_seed": args.seed, "lives": lives,
                        "faults": faults, "promised": promised, "wrong": wrong,
                        "seconds": seconds, "by_kind": by_kind,
                        "by_stage": self.counts(|by_stage| by_stage.faults),
                        "held_by_stage": self.counts(|by_stage| by_stage.held) })
            );
            return;
        }
        let list = |counts: &BTreeMap<&str, usize>| {
            let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        println!("faults:   {}", list(by_kind));
        println!("during:   {}", list(&self.counts(|by_stage| by_stage.faults)));
        println!("held at:  {}", list(&self.counts(|by_stage| by_stage.held)));
        println!(
            "{jobs} jobs, {lives} lives, {faults} faults, something was promised before {promised} ends; {wrong} jobs went wrong; {seconds} s"
        );
    }
    /// A number for every stage.
    fn counts(&self, of: impl Fn(ByStage) -> usize) -> BTreeMap<&'static str, usize> {
        let count = |stage| of(self.by_stage.get(&stage).copied().unwrap_or_default());
        Stage::ALL.into_iter().map(|stage| (stage.name(), count(stage))).collect()
    }
}
