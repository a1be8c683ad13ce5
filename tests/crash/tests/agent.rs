//! Ranks and agents killed at random instants, life after life on the same stores.
//!
//! Each life is a job of several processes that writes through the agent of its node, or through those
//! of two nodes. A kill takes one rank, all of them, an agent, or everybody at once; what is left of
//! the ranks is killed a little later, as a launcher would. Then must hold:
//! - No checkpoint that was told to be durable is lost, and every one on offer restores.
//! - If the agents live, a checkpoint from whose call every rank has returned is durable. (Not with
//!   `capture = cow`: there the promise begins when the pages are copied.)

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standfast_agent::Place;
use standfast_crash_tests::node::{Jobs, RANKS};
use standfast_crash_tests::report::Line;
use standfast_crash_tests::{random, setting};
use standfast_testkit::command::clean;

const EXE: &str = env!("CARGO_BIN_EXE_crash-rank");
/// From the first checkpoint of a life on: long enough for some, short enough for many lives.
const LIFE_US_MAX: u64 = 150_000;
/// A life that begins no checkpoint for so long is killed as well.
const BEGIN_MAX: Duration = Duration::from_secs(5);
/// How much later those die that the first kill left alive.
const REST_US_MAX: u64 = 60_000;

/// What a kill takes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    OneRank,
    AllRanks,
    Agent,
    Everybody,
}

/// A running rank and what it tells.
struct Life {
    child: Child,
    /// Whether it has begun a checkpoint.
    has_begun: Arc<AtomicBool>,
    lines: std::thread::JoinHandle<Vec<Line>>,
}

fn start(jobs: &Jobs, meeting: &Path, rank: usize) -> Life {
    let mut command = Command::new(EXE);
    command.arg("rank").arg(&jobs.dir).arg(jobs.seed.to_string()).arg(jobs.nodes.to_string());
    command.arg(&jobs.capture).arg(meeting);
    command.arg(rank.to_string()).stdout(Stdio::piped()).stdin(Stdio::null()).stderr(Stdio::null());
    clean(&mut command);
    let mut child = command.spawn().expect("the rank can be started");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let has_begun = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&has_begun);
    let lines = std::thread::spawn(move || {
        let lines = out.lines().map_while(Result::ok).filter_map(|line| Line::parse(&line));
        let note = |line: &Line| {
            if matches!(line, Line::Begun(_)) {
                begun.store(true, Ordering::SeqCst);
            }
        };
        lines.inspect(note).collect()
    });
    Life { child, has_begun, lines }
}

/// What a job was told, over all ranks.
#[derive(Debug)]
struct Told {
    durable: u64,
    /// The last checkpoint from whose call every rank has returned.
    returned: u64,
    begun: u64,
}

impl Told {
    fn of(ranks: &[Vec<Line>]) -> Self {
        let last = |lines: &Vec<Line>, pick: fn(&Line) -> Option<u64>| {
            lines.iter().filter_map(pick).max().unwrap_or(0)
        };
        let durable =
            |line: &Line| if let Line::Durable(version) = line { Some(*version) } else { None };
        let returned =
            |line: &Line| if let Line::Returned(version) = line { Some(*version) } else { None };
        let begun =
            |line: &Line| if let Line::Begun(version) = line { Some(*version) } else { None };
        Self {
            durable: ranks.iter().map(|lines| last(lines, durable)).max().unwrap_or(0),
            returned: ranks.iter().map(|lines| last(lines, returned)).min().unwrap_or(0),
            begun: ranks.iter().map(|lines| last(lines, begun)).max().unwrap_or(0),
        }
    }
}

#[test]
fn killed_ranks_and_the_agent_lose_nothing() {
    campaign(1, "stop", 14);
}

#[test]
fn killed_ranks_and_agents_of_several_nodes_lose_nothing() {
    campaign(2, "stop", 10);
}

#[test]
fn killed_ranks_that_never_stop_and_the_agent_lose_nothing() {
    campaign(1, "cow", 6);
    campaign(2, "cow", 4);
}

/// Kills `usual` times, or as often as the environment says.
fn campaign(nodes: usize, capture: &str, usual: u64) {
    let kills = setting("STANDFAST_TEST_AGENT_KILLS", usual);
    let seed = setting("STANDFAST_TEST_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let (command, capture) = (EXE.into(), capture.to_owned());
    let jobs = Jobs { dir: dir.path().to_owned(), command, seed, nodes, capture, drains: false };
    let mut state = seed;
    let (mut newest, mut made, mut by_victim) = (0, 0, [0; 4]);
    for kill in 0..kills {
        let victim = match random(&mut state) % 8 {
            0..3 => Victim::OneRank,
            3..5 => Victim::AllRanks,
            5..7 => Victim::Agent,
            _ => Victim::Everybody,
        };
        by_victim[victim as usize] += 1;
        let instant = Duration::from_micros(random(&mut state) % LIFE_US_MAX);
        let rest = Duration::from_micros(random(&mut state) % REST_US_MAX);
        let what = format!("kill {kill} of {victim:?} after {instant:?} and {rest:?}, seed {seed}");
        let told = live_and_die(&jobs, victim, instant, rest, &mut state);
        let agents_live = matches!(victim, Victim::OneRank | Victim::AllRanks);
        let promised = agents_live && jobs.capture == "stop";
        let least = told.durable.max(newest).max(if promised { told.returned } else { 0 });
        // The next opening is one with the agent, or one without.
        let write = if kill % 2 == 0 { "pool" } else { "wag-dbi" };
        let (found, findings) = jobs.check(write, least, told.begun.max(newest));
        assert!(findings.is_empty(), "{what}, {told:?}:\n  {}", findings.join("\n  "));
        made += found - newest.min(found);
        newest = found;
    }
    for place in jobs.places() {
        let _ = standfast_agent::stop(&place, true);
    }
    println!(
        "{nodes} nodes, capture {}: {kills} kills {by_victim:?}, {made} checkpoints between them, seed {seed}",
        jobs.capture
    );
    assert!(made > kills / 4, "the lives are too short to prove anything");
}

fn live_and_die(
    jobs: &Jobs,
    victim: Victim,
    instant: Duration,
    rest: Duration,
    state: &mut u64,
) -> Told {
    let meeting = tempfile::tempdir().unwrap();
    let mut ranks: Vec<Life> = (0..RANKS).map(|rank| start(jobs, meeting.path(), rank)).collect();
    let agents: Vec<Pid> = jobs.places().iter().map(wait_for_agent).collect();
    let began = Instant::now();
    while !ranks[0].has_begun.load(Ordering::SeqCst) && began.elapsed() < BEGIN_MAX {
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(instant);
    let one = random(state) as usize % RANKS;
    match victim {
        Victim::OneRank => ranks[one].child.kill().unwrap(),
        Victim::Agent => kill_agent(agents[one % agents.len()]),
        Victim::AllRanks => kill_all(&mut ranks),
        Victim::Everybody => {
            agents.iter().for_each(|agent| kill_agent(*agent));
            kill_all(&mut ranks);
        }
    }
    std::thread::sleep(rest);
    kill_all(&mut ranks);
    let lines: Vec<Vec<Line>> = ranks
        .into_iter()
        .map(|mut life| {
            life.child.wait().unwrap();
            life.lines.join().unwrap()
        })
        .collect();
    Told::of(&lines)
}

fn kill_all(ranks: &mut [Life]) {
    ranks.iter_mut().for_each(|life| life.child.kill().expect("a child can be killed"));
}

/// An agent's process, once it answers and has the job.
fn wait_for_agent(place: &Place) -> Pid {
    for _ in 0..10_000 {
        if let Ok(status) = standfast_agent::status(place)
            && !status.sessions.is_empty()
        {
            return Pid::from_raw(status.pid as i32).expect("processes have numbers");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("no agent at {}", place.dir().display());
}

fn kill_agent(agent: Pid) {
    kill_process(agent, Signal::KILL).expect("it lives");
}
