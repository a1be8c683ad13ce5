//! The solver of `standfast demo --language rust`: a plate at room temperature, and a laser that goes
//! round on it. The warmer the metal, the better it conducts: every rank has the same table of that.
//!
//! Every rank has a strip of rows, between a row of its neighbour above and one of that below. It is
//! linked with no MPI: `HEAT_MPI` names the adapter, compiled with the `mpicc` of the one it runs on.
//! Stores, ring, agents and global storage are settings: nothing here knows of them.
//!
//! Rank 0 tells on its output what happens, in the lines that `examples/heat/nodes/heat.c` describes.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use standfast::config::Loaded;
use standfast::{Job, Protected};
use standfast_comm::{Comm, Tag};
use standfast_mpi::Library;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TABLE: usize = 1 << 18;
const HOT: f64 = 1000.0;
const COOL: f64 = 20.0;
/// Rows that go up, and rows that go down.
const UP: Tag = Tag(1);
const DOWN: Tag = Tag(2);

/// A rank's part of the plate.
struct Strip<'a> {
    comm: &'a dyn Comm,
    n: usize,
    first: usize,
    rows: usize,
    steps: u64,
}

fn fill(plate: &mut [f64], table: &mut [f64]) {
    plate.fill(COOL);
    for (at, value) in table.iter_mut().enumerate() {
        let at = at as f64;
        let wave = (at * 1e-3).cos();
        *value = 0.12 + 0.1 * (at * (1.5 / TABLE as f64)).sin() * wave * wave;
    }
}

impl Strip<'_> {
    /// Brings the rows of the neighbours up to date.
    fn exchange(&self, plate: &mut [f64]) -> Result<()> {
        let (n, rows, rank) = (self.n, self.rows, self.comm.rank());
        let bytes =
            |row: &[f64]| row.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        let (above, below) =
            (rank.checked_sub(1), Some(rank + 1).filter(|it| *it < self.comm.size()));
        if let Some(above) = above {
            self.comm.send(above, UP, &bytes(&plate[n..2 * n]))?;
        }
        if let Some(below) = below {
            let received = self.comm.receive(below, UP)?;
            set(&mut plate[(rows + 1) * n..], &received);
            self.comm.send(below, DOWN, &bytes(&plate[rows * n..(rows + 1) * n]))?;
        }
        if let Some(above) = above {
            set(&mut plate[..n], &self.comm.receive(above, DOWN)?);
        }
        Ok(())
    }

    /// One step in time; the rim of the plate stays cool.
    fn spread(&self, plate: &mut [f64], table: &[f64], next: &mut [f64]) -> Result<()> {
        let n = self.n;
        self.exchange(plate)?;
        for row in 1..=self.rows {
            for at in row * n + 1..(row + 1) * n - 1 {
                let here = plate[at];
                let around = plate[at - n] + plate[at + n] + plate[at - 1] + plate[at + 1];
                let conducts = table[(here * ((TABLE - 1) as f64 / HOT)) as usize];
                next[at] = here + conducts * (around - 4.0 * here);
            }
            next[row * n] = COOL;
            next[(row + 1) * n - 1] = COOL;
        }
        let own = n..(self.rows + 1) * n;
        plate[own.clone()].copy_from_slice(&next[own]);
        Ok(())
    }

    /// The laser heats what of its spot lies in this strip.
    fn shine(&self, plate: &mut [f64], step: u64) {
        let n = self.n as f64;
        let angle = std::f64::consts::TAU * step as f64 / self.steps as f64;
        let (x, y, radius) =
            (n * (0.5 + 0.3 * angle.cos()), n * (0.5 + 0.3 * angle.sin()), n / 40.0);
        for row in 1..=self.rows {
            let dy = (self.first + row) as f64 - y;
            for column in (x - radius) as usize..=(x + radius) as usize {
                let dx = column as f64 - x;
                if dx * dx + dy * dy <= radius * radius {
                    plate[row * self.n + column] = HOT;
                }
            }
        }
    }

    /// The strips behind each other, in one file.
    fn save(&self, plate: &[f64], path: &str) -> Result<()> {
        for turn in 0..self.comm.size() {
            self.comm.barrier()?;
            if turn == self.comm.rank() {
                let mut options = File::options();
                let options = options.write(true).create(true).append(turn > 0).truncate(turn == 0);
                let own = &plate[self.n..(self.rows + 1) * self.n];
                let bytes: Vec<u8> = own.iter().flat_map(|value| value.to_ne_bytes()).collect();
                options.open(path)?.write_all(&bytes)?;
            }
        }
        Ok(())
    }

    /// Only the first rank speaks, and at once: a rank that is killed says nothing more.
    fn say(&self, text: std::fmt::Arguments<'_>) {
        if self.comm.rank() == 0 {
            let mut out = std::io::stdout().lock();
            // Nobody may be listening any more.
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        }
    }

    /// Goes on from the newest checkpoint of any level, or begins.
    fn start(
        &self,
        job: &Job,
        plate: &Protected<f64>,
        table: &Protected<f64>,
        step: &Protected<u64>,
    ) -> Result<()> {
        match job.restart()? {
            Some(restarted) => {
                self.say(format_args!("started {} {}", step.read()[0], restarted.version));
                let skipped = restarted.skipped.iter();
                skipped.for_each(|(it, why)| self.say(format_args!("note   skipped {it}: {why}")));
                restarted.notes.iter().for_each(|note| self.say(format_args!("note   {note}")));
            }
            None => {
                fill(&mut plate.write(), &mut table.write());
                self.say(format_args!("started 0 0"));
            }
        }
        Ok(())
    }
}

fn set(row: &mut [f64], bytes: &[u8]) {
    for (value, bytes) in row.iter_mut().zip(bytes.chunks_exact(8)) {
        *value = f64::from_ne_bytes(bytes.try_into().expect("eight of them"));
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, n, steps, every, output] = &arguments[..] else {
        return Err("usage: HEAT_MPI=adapter.so heat_nodes N STEPS EVERY OUTPUT".into());
    };
    let (n, steps, every): (usize, u64, u64) = (n.parse()?, steps.parse()?, every.parse()?);
    let adapter = std::env::var_os("HEAT_MPI").ok_or("HEAT_MPI names no adapter")?;
    let library = Library::start(Path::new(&adapter))?;
    let world = library.world()?;
    let work = Work { n, steps, every, output };
    if let Err(error) = solve(&world, &work) {
        eprintln!("heat: rank {}: {error}", world.rank());
        // At once: an end of MPI would wait for the other ranks.
        std::process::exit(1);
    }
    Ok(())
}

/// What was asked for.
struct Work<'a> {
    n: usize,
    steps: u64,
    every: u64,
    output: &'a str,
}

fn solve(world: &dyn Comm, work: &Work<'_>) -> Result<()> {
    let Work { n, steps, every, output } = *work;
    let (rank, size) = (world.rank(), world.size());
    if n < 80 || n < size || steps < 1 || every < 1 {
        return Err(
            "N must be at least 80 and the number of ranks, STEPS and EVERY at least 1".into()
        );
    }
    let first = n * rank / size;
    let strip = Strip { comm: world, n, first, rows: n * (rank + 1) / size - first, steps };

    let job = Job::open_comm(Loaded::load(&[])?, world)?;
    let plate = job.alloc::<f64>("plate", (strip.rows + 2) * n)?;
    let table = job.alloc::<f64>("table", TABLE)?;
    let done = job.alloc::<u64>("step", 1)?;
    let mut next = vec![COOL; (strip.rows + 2) * n];
    strip.start(&job, &plate, &table, &done)?;

    let (began, from) = (Instant::now(), done.read()[0]);
    for step in from..steps {
        strip.spread(&mut plate.write(), &table.read(), &mut next)?;
        strip.shine(&mut plate.write(), step);
        done.write()[0] = step + 1;
        // At the steps of the demonstration, and besides when one is due or asked for: steps are
        // short, so that looking now and then is enough.
        let looks = (step + 1) % (steps / 200 + 1) == 0;
        let taken = match (step + 1) % every {
            0 => Some(job.checkpoint(None)?),
            _ if looks => job.point()?,
            _ => None,
        };
        if let Some(version) = taken {
            strip.say(format_args!("checkpoint {version} {}", step + 1));
        }
        if looks {
            strip.say(format_args!("step {}", step + 1));
        }
    }
    strip.save(&plate.read(), output)?;
    strip.say(format_args!("finished {} {:.3}", steps - from, began.elapsed().as_secs_f64()));
    job.finish()?;
    Ok(())
}
