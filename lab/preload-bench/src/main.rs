//! `preload-bench [TURNS] [ROUNDS]`: prints the ratio, as text and as a JSON line.

use anyhow::Result;
use preload_bench::{compare, library};
use serde_json::json;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let turns = args.next().map_or(Ok(25), |text| text.parse())?;
    let rounds = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let compared = compare(&library()?, turns, rounds)?;
    let ratio = compared.ratio();
    eprintln!("time under the preload library / plain mimalloc: {ratio:.3} (goal: at most 1.10)");
    println!(
        "{}",
        json!({
            "type": "bar", "issue": "C", "name": "preload malloc / mimalloc", "value": ratio,
            "goal": 1.1, "better": "less", "met": ratio <= 1.1, "threads": compared.threads,
            "ours_s": compared.ours_s, "plain_s": compared.plain_s,
        })
    );
    Ok(())
}
