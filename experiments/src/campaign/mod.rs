//! `campaign`: a job of several nodes under faults drawn from a seed, and every restart checked.
//!
//! ```text
//! seed -> Plan (nodes, ranks, settings, faults)
//! life: processes start -> restart -> every byte compared -> checkpoints, with what was promised
//! fault: at a random instant; afterwards the next life must begin where it was promised, or later
//! ```
//! What a fault leaves standing is worked out from the levels that a checkpoint was said to have
//! reached: a kill keeps local ones, a lost disk those on the ring, the loss of all disks those in
//! global storage. A checkpoint that nobody promised may be there or not, but never be wrong.

mod fault;
mod life;
mod plan;
pub(crate) mod rank;
mod world;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use serde_json::json;

use plan::Plan;
use rank::Bug;
use world::World;

/// A job of several nodes under random faults; every restart is checked bit by bit
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many jobs, each with some faults
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Seed of the first job
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plant a bug that the campaign must find, and fail if it does not
    #[arg(long, value_enum)]
    plant: Option<Bug>,
    /// Where the jobs' nodes are, one directory below for each
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// JSON lines instead of text
    #[arg(long)]
    json: bool,
}

/// What one job went through.
#[derive(Default)]
struct Course {
    faults: usize,
    /// Faults after which something had been promised.
    promised: usize,
    findings: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let began = Instant::now();
    let (mut faults, mut promised, mut wrong) = (0, 0, 0);
    for seed in args.seed..args.seed + args.seeds {
        let plan = Plan::of(seed);
        let course = go(args, &plan)?;
        faults += course.faults;
        promised += course.promised;
        wrong += usize::from(!course.findings.is_empty());
        tell(args, &plan, &course);
    }
    let seconds = began.elapsed().as_secs();
    match args.json {
        true => println!(
            "{}",
            json!({ "type": "campaign", "jobs": args.seeds, "first_seed": args.seed,
                    "faults": faults, "promised": promised, "wrong": wrong, "seconds": seconds })
        ),
        false => println!(
            "{} jobs, {faults} faults, something was promised before {promised} of them; {wrong} jobs went wrong; {seconds} s",
            args.seeds
        ),
    }
    match (args.plant, wrong) {
        (None, 0) => Ok(()),
        (None, _) => bail!("{wrong} jobs went wrong"),
        (Some(bug), 0) => bail!("the planted bug {bug:?} was not found"),
        (Some(_), _) => Ok(()),
    }
}

fn tell(args: &Args, plan: &Plan, course: &Course) {
    let again = format!("experiments campaign --seeds 1 --seed {}", plan.seed);
    if args.json {
        println!(
            "{}",
            json!({ "type": "job", "seed": plan.seed, "plan": plan.to_string(),
                    "faults": course.faults, "findings": course.findings })
        );
        return;
    }
    let verdict = if course.findings.is_empty() { "held" } else { "WRONG" };
    println!("seed {:>4}  {plan}: {verdict}", plan.seed);
    for finding in &course.findings {
        println!("           {finding}");
    }
    if !course.findings.is_empty() {
        println!("           again: {again}");
    }
}

/// One job from its first start to its end.
fn go(args: &Args, plan: &Plan) -> anyhow::Result<Course> {
    let world = World::new(plan, &args.dir, args.plant)?;
    let mut course = Course::default();
    // The next life begins at this step or later, and at no step that was never begun.
    let (mut least, mut most) = (0, 0);
    // Whether a life that refuses to begin breaks a promise.
    let mut must_begin = true;
    for (at, fault) in plan.faults.iter().map(Some).chain([None]).enumerate() {
        let mut life = world.start()?;
        match life.begin() {
            Ok(step) if (least..=most).contains(&step) => {}
            Ok(step) => course
                .findings
                .push(format!("life {at} begins after step {step}, not from {least} to {most}")),
            Err(_) if !must_begin => {
                // Nothing was promised, and it says what is damaged: somebody clears it away.
                life.end()?;
                world.clear()?;
                (least, most) = (0, 0);
                continue;
            }
            Err(error) => course.findings.push(format!("life {at} does not begin: {error:#}")),
        }
        if !course.findings.is_empty() {
            life.end()?;
            break;
        }
        let Some(fault) = fault else {
            life.end()?;
            break;
        };
        let promise = fault.strike(&world, life)?;
        course.faults += 1;
        course.promised += usize::from(promise.least > 0);
        (least, must_begin) = (promise.least, promise.least > 0 || !fault.damages());
        most = most.max(promise.most);
    }
    world.stop();
    Ok(course)
}

/// What must hold after a fault.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    /// A step that was promised at a level that the fault leaves standing.
    least: u64,
    /// The last step that was begun.
    most: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_plan_and_others_give_others() {
        let plans: Vec<String> = (0..50).map(|seed| Plan::of(seed).to_string()).collect();
        assert_eq!(plans[7], Plan::of(7).to_string());
        let different: std::collections::HashSet<&String> = plans.iter().collect();
        assert!(different.len() > 40, "{} of 50", different.len());
    }

    #[test]
    fn every_fault_is_drawn() {
        let drawn: std::collections::HashSet<_> = (0..300)
            .flat_map(|seed| Plan::of(seed).faults)
            .map(|fault| std::mem::discriminant(&fault.kind))
            .collect();
        assert_eq!(drawn.len(), 8);
    }
}
