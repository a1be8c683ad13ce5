//! Prints the crate's bars: `cargo run --release -p standfast-model --example bars [-- SEED]`.

use standfast_model::{bars, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(bars::SEED), |text| text.parse())?;
    print!("{}", render::bars(&bars::bars(false, seed)?));
    Ok(())
}
