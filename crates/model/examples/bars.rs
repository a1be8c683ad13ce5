//! Prints the crate's bars: `cargo run --release -p standfast-model --example bars [-- quick]`.

fn main() -> Result<(), standfast_model::ModelError> {
    let quick = std::env::args().nth(1).as_deref() == Some("quick");
    let bars = standfast_model::bars::bars(quick)?;
    print!("{}", standfast_model::render::bars(&bars));
    Ok(())
}
