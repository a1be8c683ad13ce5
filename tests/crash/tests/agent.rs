//! Ranks and the node's agent killed at random instants, life after life on the same store.
//!
//! Each life is a job of several processes that writes through the agent. A kill takes one rank, all
//! of them, the agent, or everybody at once; what is left of the ranks is killed a little later, as a
//! launcher would. Then must hold:
//! - No checkpoint that was told to be durable is lost, and every one on offer restores.
//! - If the agent lives, a checkpoint from whose call every rank has returned is durable.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use standfast_crash_tests::node::{Node, RANKS};
use standfast_crash_tests::report::Line;
use standfast_crash_tests::{random, setting};

const EXE: &str = env!("CARGO_BIN_EXE_crash-rank");
/// Long enough for some checkpoints, short enough for many lives.
const LIFE_US_MAX: u64 = 200_000;
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
    lines: std::thread::JoinHandle<Vec<Line>>,
}

fn start(node: &Node, meeting: &Path, rank: usize) -> Life {
    let mut command = Command::new(EXE);
    command.arg("rank").arg(&node.dir).arg(node.seed.to_string()).arg(meeting);
    command.arg(rank.to_string()).stdout(Stdio::piped()).stdin(Stdio::null()).stderr(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STANDFAST_") {
            command.env_remove(name);
        }
    }
    let mut child = command.spawn().expect("the rank can be started");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = std::thread::spawn(move || {
        out.lines().map_while(Result::ok).filter_map(|line| Line::parse(&line)).collect()
    });
    Life { child, lines }
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
fn killed_ranks_and_agents_lose_nothing() {
    let kills = setting("STANDFAST_TEST_AGENT_KILLS", 20);
    let seed = setting("STANDFAST_TEST_SEED", 1);
    let dir = tempfile::tempdir().unwrap();
    let node = Node { dir: dir.path().to_owned(), command: EXE.into(), seed };
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
        let told = live_and_die(&node, victim, instant, rest, &mut state);
        let agent_lives = matches!(victim, Victim::OneRank | Victim::AllRanks);
        let least = told.durable.max(newest).max(if agent_lives { told.returned } else { 0 });
        // The next opening is one with the agent, or one without.
        let write = if kill % 2 == 0 { "pool" } else { "wag-dbi" };
        let (found, findings) = node.check(write, least, told.begun.max(newest));
        assert!(findings.is_empty(), "{what}, {told:?}:\n  {}", findings.join("\n  "));
        made += found - newest.min(found);
        newest = found;
    }
    let _ = standfast_agent::stop(&node.place(), true);
    println!("{kills} kills {by_victim:?}, {made} checkpoints between them, seed {seed}");
    assert!(made > kills / 4, "the lives are too short to prove anything");
}

fn live_and_die(
    node: &Node,
    victim: Victim,
    instant: Duration,
    rest: Duration,
    state: &mut u64,
) -> Told {
    let meeting = tempfile::tempdir().unwrap();
    let mut ranks: Vec<Life> = (0..RANKS).map(|rank| start(node, meeting.path(), rank)).collect();
    let agent = wait_for_agent(node);
    std::thread::sleep(instant);
    let one = random(state) as usize % RANKS;
    match victim {
        Victim::OneRank => ranks[one].child.kill().unwrap(),
        Victim::Agent => kill_agent(agent),
        Victim::AllRanks => kill_all(&mut ranks),
        Victim::Everybody => {
            kill_agent(agent);
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

/// The agent's process, once it answers and has the job.
fn wait_for_agent(node: &Node) -> Option<Pid> {
    for _ in 0..10_000 {
        if let Ok(status) = standfast_agent::status(&node.place())
            && !status.sessions.is_empty()
        {
            return Pid::from_raw(status.pid as i32);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

fn kill_agent(agent: Option<Pid>) {
    kill_process(agent.expect("it answered"), Signal::KILL).expect("it lives");
}
