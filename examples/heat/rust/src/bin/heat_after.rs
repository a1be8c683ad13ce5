//! A square plate, hot at its upper edge and cold at the others. In every step each inner point
//! takes the mean of its four neighbours, and so the heat spreads.

use std::error::Error;

use standfast::Job;

fn spread(plate: &mut [f64], n: usize) {
    for row in 1..n - 1 {
        for column in 1..n - 1 {
            let here = row * n + column;
            plate[here] =
                0.25 * (plate[here - n] + plate[here + n] + plate[here - 1] + plate[here + 1]);
        }
    }
}

fn save(plate: &[f64], path: &str) -> std::io::Result<()> {
    let bytes: Vec<u8> = plate.iter().flat_map(|value| value.to_ne_bytes()).collect();
    std::fs::write(path, bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, n, steps, every, output] = &arguments[..] else {
        return Err("usage: heat N STEPS EVERY OUTPUT".into());
    };
    let (n, steps, every): (usize, u64, u64) = (n.parse()?, steps.parse()?, every.parse()?);
    if n < 3 || every < 1 {
        return Err("N must be at least 3 and EVERY at least 1".into());
    }

    let job = Job::open(&[])?;
    let plate = job.alloc::<f64>("plate", n * n)?;
    let saved_step = job.alloc::<u64>("step", 1)?;
    plate.write()[..n].fill(100.0);
    if job.restart()?.is_some() {
        println!("goes on from step {}", saved_step.read()[0]);
    }
    let mut step = saved_step.read()[0];

    while step < steps {
        spread(&mut plate.write(), n);
        step += 1;
        saved_step.write()[0] = step;
        job.point()?;
        if step % every == 0 {
            println!("step {step}: {:.9} degrees inside", plate.read()[n / 16 * n + n / 2]);
        }
    }
    save(&plate.read(), output)?;
    job.finish()?;
    Ok(())
}
