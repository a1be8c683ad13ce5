//! What this machine reaches: kernels, stars and recoveries beside their ceilings.
//!
//! Data: [`bars`] measures -> [`Reading`]s with goals, for letter E of the bars.
//!
//! Every ceiling comes from the same run on the same buffers: ISA-L where it is linked (feature
//! `isal`), moving the same bytes through memory otherwise.

mod arithmetic;
mod ends;
#[cfg(feature = "isal")]
mod isal;
mod star;
mod two_steps;

pub use arithmetic::{Speed, speeds};
pub use ends::{Lent, Nowhere};
pub use star::{Form, StarTime, node_time, star_time};

use std::time::Duration;

use standfast_ring::Result;
use star::Stage;

/// Bytes of every virtual node's member: many blocks, and hundreds of nodes fit in memory.
const MEMBER_BYTES: usize = 1 << 20;
/// Bytes of a member of the star that is held against its parts: starting threads and touching
/// new memory do not count in a real checkpoint.
const MEMBER_BYTES_STAR: usize = 32 << 20;
/// Bytes of a member where few nodes are measured by the clock.
const MEMBER_BYTES_FEW: usize = 8 << 20;

/// One measured bar.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What was measured.
    pub name: String,
    /// The value.
    pub value: f64,
    /// What it must reach.
    pub goal: f64,
    /// Whether it must be at least the goal, or at most.
    pub higher_is_better: bool,
    /// The ceiling of the same run and its unit.
    pub ceiling: (f64, &'static str),
}

impl Reading {
    /// Whether the goal is reached.
    pub fn is_met(&self) -> bool {
        if self.higher_is_better { self.value >= self.goal } else { self.value <= self.goal }
    }
}

/// Measures every bar of this crate, handing each over as soon as it is known. Takes some seconds;
/// more rounds make it steadier.
pub fn bars(rounds: usize, mut each: impl FnMut(Reading)) -> Result<()> {
    for (k, m) in [(8, 8), (4, 2)] {
        for in_cache in [true, false] {
            // Short; many of them find a quiet moment.
            each(encode_bar(&speeds(k, m, in_cache, 4 * rounds)?));
        }
    }
    for in_cache in [true, false] {
        each(multiply_add_bar(in_cache, 4 * rounds));
    }
    each(star_bar(rounds)?);
    flat_bars(rounds, &mut each)?;
    each(recovery_bar(rounds)?);
    Ok(())
}

fn encode_bar(speed: &Speed) -> Reading {
    let (ceiling, of, goal) = match speed.isal {
        Some(isal) => (isal, "ISA-L", 0.9),
        // In the cache no code runs at the speed of a copy; half a read each way is near.
        None => (speed.memory, "moving the bytes", if speed.in_cache { 0.25 } else { 0.7 }),
    };
    let place = if speed.in_cache { "in cache" } else { "streamed" };
    Reading {
        name: format!("encode k={} m={} {place}, share of {of}", speed.k, speed.m),
        value: speed.ours / ceiling,
        goal,
        higher_is_better: true,
        ceiling: (ceiling / 1e9, "GB/s"),
    }
}

fn multiply_add_bar(in_cache: bool, rounds: usize) -> Reading {
    let (ours, isal, memory) = arithmetic::multiply_add_speeds(in_cache, rounds);
    let (ceiling, of, goal) = match isal {
        Some(isal) => (isal, "ISA-L", 0.9),
        None => (memory, "moving the bytes", 0.5),
    };
    let place = if in_cache { "in cache" } else { "streamed" };
    Reading {
        name: format!("multiply and add {place}, share of {of}"),
        value: ours / ceiling,
        goal,
        higher_is_better: true,
        ceiling: (ceiling / 1e9, "GB/s"),
    }
}

/// A star of eight nodes against its arithmetic and its messages alone.
fn star_bar(rounds: usize) -> Result<Reading> {
    let stage = Stage::new(8, 4, MEMBER_BYTES_STAR)?;
    let (mut star, mut messages, mut arithmetic) = (Duration::MAX, Duration::MAX, Duration::MAX);
    // In turns, so that a quiet or a busy moment of the machine is shared.
    for _ in 0..2 * rounds {
        star = star.min(stage.encode_only()?);
        messages = messages.min(stage.messages());
        arithmetic = arithmetic.min(stage.arithmetic());
    }
    let parts = messages + arithmetic;
    Ok(Reading {
        name: "star of 8 nodes, times arithmetic + messages alone".into(),
        value: star.as_secs_f64() / parts.as_secs_f64(),
        goal: 1.3,
        higher_is_better: false,
        ceiling: (parts.as_secs_f64() * 1e3, "ms"),
    })
}

/// The busiest group's processor time must not grow with the job, the machine's load being equal.
fn flat_bars(rounds: usize, each: &mut impl FnMut(Reading)) -> Result<()> {
    let all = 256;
    let busiest = |nodes| {
        let stage = Stage::jobs(all / nodes, nodes, 4, MEMBER_BYTES)?;
        least(rounds, || Ok(stage.encode()?.1))
    };
    let few = busiest(8)?;
    for nodes in [64, all] {
        each(Reading {
            name: format!("encode per node, jobs of {nodes} nodes against 8"),
            value: busiest(nodes)?.as_secs_f64() / few.as_secs_f64(),
            goal: 1.15,
            higher_is_better: false,
            ceiling: (few.as_secs_f64() * 1e3, "ms of processor"),
        });
    }
    Ok(())
}

/// Bringing one node back against encoding its group.
fn recovery_bar(rounds: usize) -> Result<Reading> {
    let stage = Stage::new(8, 4, MEMBER_BYTES_FEW)?;
    // Two groups are encoded at once, with the same processors.
    let encode = least(rounds, || Ok(stage.encode()?.0 / 2))?;
    let recover = least(rounds, || stage.recover())?;
    Ok(Reading {
        name: "recovery of one node, times encoding its group".into(),
        value: recover.as_secs_f64() / encode.as_secs_f64(),
        goal: 1.2,
        higher_is_better: false,
        ceiling: (encode.as_secs_f64() * 1e3, "ms"),
    })
}

fn least(rounds: usize, mut run: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let times: Vec<Duration> = (0..rounds.max(1)).map(|_| run()).collect::<Result<_>>()?;
    Ok(times.into_iter().min().expect("at least one round"))
}
