//! A rod that cools, which goes on where it was killed.
//!
//! ```text
//! cargo run -p standfast --example rod -- /tmp/rod 2000     # kill it at any time
//! cargo run -p standfast --example rod -- /tmp/rod 2000     # goes on from the last checkpoint
//! ```

use standfast::Job;

const CELLS: usize = 1 << 16;
/// Steps between checkpoints.
const EVERY: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let store = args.next().unwrap_or_else(|| "standfast-store".into());
    let steps: u64 = args.next().map_or(Ok(1000), |text| text.parse())?;

    let job = Job::builder().store(&store).job("rod").open()?;
    let rod = job.alloc::<f64>("rod", CELLS)?;
    let step = job.value::<u64>("step")?;
    match job.restart()? {
        Some(_) => println!("continues after step {}", step.get()),
        None => rod.write()[CELLS / 2] = 1e6,
    }
    while step.get() < steps {
        diffuse(&mut rod.write());
        step.set(step.get() + 1);
        if step.get().is_multiple_of(EVERY) {
            job.checkpoint(None)?;
        }
    }
    println!("step {}: {:.3} in the middle", step.get(), rod.read()[CELLS / 2]);
    Ok(job.finish()?)
}

fn diffuse(rod: &mut [f64]) {
    let mut left = rod[0];
    for at in 1..rod.len() - 1 {
        let here = rod[at];
        rod[at] += 0.25 * (left - 2.0 * here + rod[at + 1]);
        left = here;
    }
}
