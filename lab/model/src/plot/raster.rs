//! PNG from the SVG text, with a font that travels inside the program.
//!
//! Data: SVG text -> resvg -> PNG bytes.
//!
//! Why an embedded font: compute nodes often have none, and a plot without words is useless.

use resvg::{tiny_skia, usvg};

use super::chart::Chart;
use standfast_model::{ModelError, Result};

const SCALE: f32 = 2.0;

pub(super) fn png(chart: &Chart, svg: &str) -> Result<Vec<u8>> {
    let fail = |reason: String| ModelError::Plot { name: chart.name.clone(), reason };
    let mut options =
        usvg::Options { font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
    options.fontdb_mut().load_font_data(dejavu::sans::regular().to_vec());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| fail(e.to_string()))?;
    let size = tree.size();
    let (width, height) = (size.width() * SCALE, size.height() * SCALE);
    let mut pixels = tiny_skia::Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| fail("the chart has no area".to_owned()))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| fail(e.to_string()))
}
