//! One life of the job: its processes, and what they tell.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// No life takes this long to begin or to end.
const PATIENCE: Duration = Duration::from_secs(60);

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
    /// Holds the ranks' sockets.
    _meeting: tempfile::TempDir,
}

impl Life {
    /// Starts all ranks.
    pub(super) fn start(
        commands: Vec<Command>,
        meeting: tempfile::TempDir,
    ) -> anyhow::Result<Self> {
        let (sender, lines) = channel();
        let mut ranks = Vec::new();
        for (rank, mut command) in commands.into_iter().enumerate() {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().context("starting a rank")?;
            listen(rank, child.stdout.take().context("its output is a pipe")?, sender.clone());
            ranks.push(child);
        }
        Ok(Self { ranks, lines, heard: Heard::default(), _meeting: meeting })
    }

    /// Waits until every rank has restarted and compared; the step they all came back to.
    pub(super) fn begin(&mut self) -> anyhow::Result<u64> {
        let until = Instant::now() + PATIENCE;
        let mut steps = vec![None; self.ranks.len()];
        while steps.iter().any(Option::is_none) {
            let left = until.saturating_duration_since(Instant::now());
            let (rank, line) = match self.lines.recv_timeout(left) {
                Ok(told) => told,
                Err(RecvTimeoutError::Timeout) => bail!("it hangs"),
                Err(RecvTimeoutError::Disconnected) => bail!("it ends without a word"),
            };
            match line.split_once(' ') {
                Some(("begins", step)) => steps[rank] = Some(step.parse()?),
                Some(("fails", why)) => bail!("rank {rank}: {why}"),
                _ => self.hear(&line),
            }
        }
        let steps: Vec<u64> = steps.into_iter().flatten().collect();
        let same = steps.iter().all(|step| *step == steps[0]);
        if !same {
            bail!("ranks begin after different steps: {steps:?}");
        }
        self.heard.begun = self.heard.begun.max(steps[0]);
        self.heard.local = self.heard.local.max(steps[0]);
        Ok(steps[0])
    }

    fn hear(&mut self, line: &str) {
        let Some((word, step)) = line.split_once(' ') else { return };
        let Ok(step) = step.parse() else { return };
        let place = match word {
            "begun" => &mut self.heard.begun,
            "local" => &mut self.heard.local,
            "ring" => &mut self.heard.ring,
            _ => return,
        };
        *place = (*place).max(step);
    }

    /// Lets it run.
    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            match self.lines.recv_timeout(left) {
                Ok((_, line)) => self.hear(&line),
                Err(_) => std::thread::sleep(end.saturating_duration_since(Instant::now())),
            }
        }
    }

    /// Kills one rank and waits for the others, or kills all.
    pub(super) fn kill(&mut self, victim: Option<usize>) -> anyhow::Result<()> {
        match victim {
            Some(rank) => {
                let rank = rank % self.ranks.len();
                self.ranks[rank].kill()?;
                self.wait_all(Instant::now() + Duration::from_secs(5))?;
            }
            None => self.ranks.iter_mut().try_for_each(Child::kill)?,
        }
        self.end()
    }

    /// Ends what is still running.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        for rank in &mut self.ranks {
            // It may be gone already.
            let _ = rank.kill();
            rank.wait()?;
        }
        while let Ok((_, line)) = self.lines.try_recv() {
            self.hear(&line);
        }
        Ok(())
    }

    /// Ranks that lose one of them say so and end; those that hang are killed afterwards.
    fn wait_all(&mut self, until: Instant) -> anyhow::Result<()> {
        while Instant::now() < until {
            let mut alive = 0;
            for rank in &mut self.ranks {
                alive += usize::from(rank.try_wait()?.is_none());
            }
            if alive == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard
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

fn listen(rank: usize, out: ChildStdout, sender: Sender<(usize, String)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send((rank, line)).is_err() {
                break;
            }
        }
    });
}
