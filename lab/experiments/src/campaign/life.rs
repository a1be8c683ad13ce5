//! One life of the job: its processes, and what they tell.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};

use super::gate::Gate;
use super::stage::Stage;
use super::watch::watch;

/// No life takes this long to begin or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a word is waited for that may never come: no ring, no room.
const WORD_MAX: Duration = Duration::from_millis(1500);
/// How long a stage is waited for.
const STAGE_MAX: Duration = Duration::from_millis(2500);

/// What a rank tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// It has come back.
    Begins,
    /// A checkpoint is asked for.
    Begun,
    /// The call has returned.
    Taken,
    /// It is durable on the nodes.
    Local,
    /// It is on the ring.
    Ring,
}

impl Word {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "begins" => Word::Begins,
            "begun" => Word::Begun,
            "taken" => Word::Taken,
            "local" => Word::Local,
            "ring" => Word::Ring,
            _ => return None,
        })
    }

    /// What the rank does after it has told this, if that is known.
    fn stage(self) -> Option<Stage> {
        match self {
            Word::Begun => Some(Stage::Capture),
            Word::Taken => Some(Stage::Pack),
            Word::Begins | Word::Local | Word::Ring => None,
        }
    }
}

/// What the ranks have told: the last step of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub(super) begun: u64,
    pub(super) local: u64,
    pub(super) ring: u64,
}

/// Processes of one start.
pub(super) struct Life {
    ranks: Vec<Child>,
    lines: Receiver<(usize, String)>,
    heard: Heard,
    gate: Arc<Gate>,
    /// How many ranks have found all others.
    met: usize,
    /// Where every rank has come back to.
    came_back: Vec<Option<u64>>,
    /// What ranks have said of checkpoints that they could not use.
    remarks: Vec<String>,
    failed: Option<String>,
    /// Memory that came back with other bytes.
    wrong: Option<String>,
    /// Holds the ranks' sockets.
    _meeting: tempfile::TempDir,
}

impl Life {
    /// Starts all ranks.
    pub(super) fn start(
        commands: Vec<Command>,
        meeting: tempfile::TempDir,
        gate: &Arc<Gate>,
    ) -> anyhow::Result<Self> {
        let (sender, lines) = channel();
        let came_back = vec![None; commands.len()];
        let mut life = Self {
            ranks: Vec::new(),
            lines,
            heard: Heard::default(),
            gate: Arc::clone(gate),
            met: 0,
            came_back,
            remarks: Vec::new(),
            failed: None,
            wrong: None,
            _meeting: meeting,
        };
        gate.starts();
        for (rank, mut command) in commands.into_iter().enumerate() {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().context("starting a rank")?;
            let out = child.stdout.take().context("its output is a pipe");
            let pid = child.id();
            // From here on it is killed with the others.
            life.ranks.push(child);
            listen((rank, pid), out?, sender.clone(), Arc::clone(gate));
        }
        Ok(life)
    }

    /// Waits until every rank has restarted and compared; the step they all came back to.
    pub(super) fn begin(&mut self) -> anyhow::Result<u64> {
        let until = Instant::now() + PATIENCE;
        while self.came_back.iter().any(Option::is_none) {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok((rank, line)) => self.hear(rank, &line),
                Err(RecvTimeoutError::Timeout) => bail!("it hangs"),
                Err(RecvTimeoutError::Disconnected) => bail!("it ends without a word"),
            }
            if let Some(why) = self.failed.take() {
                bail!(why);
            }
        }
        self.came_back().context("every rank has told where it came back to")?
    }

    /// The step that all ranks came back to, if all of them have.
    pub(super) fn came_back(&self) -> Option<anyhow::Result<u64>> {
        let steps = self.came_back.iter().copied().collect::<Option<Vec<u64>>>()?;
        let same = steps.iter().all(|step| *step == steps[0]);
        let differ = || anyhow!("ranks begin after different steps: {steps:?}");
        Some(if same { Ok(steps[0]) } else { Err(differ()) })
    }

    fn hear(&mut self, rank: usize, line: &str) {
        self.met += usize::from(line == "met");
        let Some((word, rest)) = line.split_once(' ') else { return };
        match word {
            "wrong" => self.wrong = Some(format!("rank {rank}: {rest}")),
            "fails" => self.failed = Some(format!("rank {rank}: {rest}")),
            "remark" if rank == 0 => self.remarks.push(rest.to_owned()),
            _ => {}
        }
        let (Some(word), Ok(step)) = (Word::parse(word), rest.parse()) else { return };
        word.stage().into_iter().for_each(|stage| self.gate.told(stage));
        let heard = &mut self.heard;
        match word {
            Word::Begins => {
                self.came_back[rank] = Some(step);
                if self.came_back.iter().all(Option::is_some) {
                    self.gate.begins();
                }
            }
            Word::Begun => heard.begun = heard.begun.max(step),
            Word::Local => heard.local = heard.local.max(step),
            Word::Ring => heard.ring = heard.ring.max(step),
            Word::Taken => {}
        }
    }

    /// Lets it run.
    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match self.lines.recv_timeout(left) {
                Ok((rank, line)) => self.hear(rank, &line),
                Err(_) => std::thread::sleep(end.saturating_duration_since(Instant::now())),
            }
        }
    }

    /// Lets it run until something was told so many times, or does not come.
    pub(super) fn run_until_told(&mut self, word: Word, times: usize) {
        let until = Instant::now() + WORD_MAX;
        let mut told = 0;
        while told < times {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((rank, line)) = self.lines.recv_timeout(left) else { return };
            self.hear(rank, &line);
            told +=
                usize::from(line.split_once(' ').and_then(|one| Word::parse(one.0)) == Some(word));
        }
    }

    /// Lets it run until somebody is held in a stage, after so many acts of it. Says so, or that it
    /// does not come to it: a job that has come back recovers no more.
    pub(super) fn run_until_held(&mut self, stage: Stage, acts: usize) -> bool {
        let until = Instant::now() + STAGE_MAX;
        self.gate.aim(stage, acts);
        while Instant::now() < until && !self.gate.is_holding() {
            match self.lines.recv_timeout(Duration::from_micros(500)) {
                Ok((rank, line)) => self.hear(rank, &line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stage == Stage::Recovery && self.came_back().is_some() {
                break;
            }
        }
        self.gate.is_holding()
    }

    /// Kills some ranks.
    pub(super) fn kill(&mut self, ranks: &[usize]) -> anyhow::Result<()> {
        Ok(ranks.iter().try_for_each(|rank| self.ranks[*rank].kill())?)
    }

    /// Ends what is still running, and hears it out.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        for rank in &mut self.ranks {
            // It may be gone already.
            let _ = rank.kill();
        }
        for rank in &mut self.ranks {
            rank.wait()?;
        }
        // Until the last line of every rank was read.
        while let Ok((rank, line)) = self.lines.recv_timeout(Duration::from_secs(1)) {
            self.hear(rank, &line);
        }
        Ok(())
    }

    /// Ranks that lose one of them say so and end.
    pub(super) fn wait_for_end(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut alive = 0;
            for rank in &mut self.ranks {
                alive += usize::from(rank.try_wait()?.is_none());
            }
            if alive == 0 {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("{alive} ranks do not find out that another one is gone");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether all ranks have found each other: only then can one miss another. Before, that is for who
    /// has started them.
    pub(super) fn have_met(&self) -> bool {
        self.met == self.ranks.len()
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard
    }

    /// Whether some memory came back with other bytes, and where.
    pub(super) fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    pub(super) fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

fn listen(
    (rank, pid): (usize, u32),
    out: ChildStdout,
    sender: Sender<(usize, String)>,
    gate: Arc<Gate>,
) {
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let Some(listener) = line.strip_prefix("watch ") {
                // One that was killed needs nobody.
                let _ = listener.parse().map(|listener| watch(pid, listener, &gate));
                continue;
            }
            if sender.send((rank, line)).is_err() {
                break;
            }
        }
    });
}
