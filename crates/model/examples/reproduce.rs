//! Writes every reproduction as SVG and PNG, and one HTML report, into a directory.
//!
//! `cargo run -p standfast-model --example reproduce -- OUT_DIR`

use std::path::PathBuf;

use standfast_model::{paper, plot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::args().nth(1).ok_or("usage: reproduce OUT_DIR")?);
    std::fs::create_dir_all(&out)?;
    let items = paper::names().into_iter().map(paper::reproduce).collect::<Result<Vec<_>, _>>()?;
    for chart in items.iter().flat_map(|item| &item.charts) {
        std::fs::write(out.join(format!("{}.svg", chart.name)), plot::svg(chart))?;
        #[cfg(feature = "png")]
        std::fs::write(out.join(format!("{}.png", chart.name)), plot::png(chart)?)?;
    }
    let page = plot::report("Published results, computed again", &items);
    std::fs::write(out.join("report.html"), page)?;
    for item in &items {
        println!("{}", standfast_model::render::reproduction(item));
    }
    Ok(())
}
