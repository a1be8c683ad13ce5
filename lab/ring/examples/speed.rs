//! Prints how fast shards are computed here, and the crate's bars: `cargo run --release --example speed --features isal`.

use lab_ring::{bars, speeds};
use standfast_ring::kernel::Kernel;

fn main() -> standfast_ring::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("bars") {
        return print_bars();
    }
    println!("kernel {}; GB/s of members on one core", Kernel::best().name());
    println!("{:>4} {:>4}  {:9} {:>7} {:>7} {:>7}", "k", "m", "buffers", "ours", "ISA-L", "memory");
    for (k, m) in [(4, 2), (8, 8), (16, 4), (32, 32)] {
        for in_cache in [true, false] {
            let speed = speeds(k, m, in_cache, 7)?;
            let place = if in_cache { "in cache" } else { "streamed" };
            let isal = speed.isal.map_or("-".into(), |rate| format!("{:.1}", rate / 1e9));
            let (ours, memory) = (speed.ours / 1e9, speed.memory / 1e9);
            println!("{k:>4} {m:>4}  {place:9} {ours:>7.1} {isal:>7} {memory:>7.1}");
        }
    }
    print_bars()
}

fn print_bars() -> standfast_ring::Result<()> {
    bars(3, |bar| {
        let direction = if bar.higher_is_better { ">=" } else { "<=" };
        let met = if bar.is_met() { "" } else { "  MISSED" };
        let ((ceiling, unit), value, goal) = (bar.ceiling, bar.value, bar.goal);
        println!("{:58} {value:6.2} {direction} {goal} ({ceiling:.2} {unit}){met}", bar.name);
    })
}
