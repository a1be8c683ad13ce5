//! What jobs went through, one by one and all together.

use std::collections::BTreeMap;

use serde_json::json;

use super::Args;
use super::plan::Plan;

/// What one job went through.
#[derive(Default)]
pub(super) struct Course {
    pub(super) lives: usize,
    /// What happened, and what the job was at.
    pub(super) faults: Vec<(&'static str, &'static str)>,
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
    by_instant: BTreeMap<&'static str, usize>,
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
        for (kind, instant) in &course.faults {
            *self.by_kind.entry(kind).or_default() += 1;
            *self.by_instant.entry(instant).or_default() += 1;
        }
    }

    pub(super) fn tell(&self, args: &Args) {
        let Self { jobs, lives, faults, promised, wrong, seconds, by_kind, by_instant } = self;
        if args.json {
            println!(
                "{}",
                json!({ "type": "campaign", "jobs": jobs, "first_seed": args.seed, "lives": lives,
                        "faults": faults, "promised": promised, "wrong": wrong,
                        "seconds": seconds, "by_kind": by_kind, "by_instant": by_instant })
            );
            return;
        }
        let list = |counts: &BTreeMap<&str, usize>| {
            let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        println!("faults:   {}", list(by_kind));
        println!("during:   {}", list(by_instant));
        println!(
            "{jobs} jobs, {lives} lives, {faults} faults, something was promised before {promised} ends; {wrong} jobs went wrong; {seconds} s"
        );
    }
}
