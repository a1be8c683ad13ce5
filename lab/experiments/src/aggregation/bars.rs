//! The bars of aggregated writes.

use std::path::Path;

use standfast_measure::{Bar, Better};

use crate::bars::Sheet;

use super::{Case, Point, measure};

const LETTER: &str = "D";
/// Pool of the node; each process has as much in the ways without an agent.
const POOL_MIB: u64 = 256;
/// How often both ways are compared.
const PAIRS: usize = 3;

/// Measures the bars, handing each over as soon as it is known.
pub(crate) fn bars(quick: bool, dir: &Path, sheet: &mut Sheet) -> anyhow::Result<()> {
    let case = |write| Case {
        write,
        pool_mib: POOL_MIB,
        ranks: 8,
        rounds: if quick { 3 } else { 5 },
        scale: 1.0,
        codec: "none",
        io: "auto",
        dir,
    };
    // In turn, for disks are faster at one moment than at another; the pair in the middle counts.
    let pair = |_| Ok((measure(&case("direct"))?, measure(&case("wag-dbi"))?));
    let mut pairs = (0..PAIRS).map(pair).collect::<anyhow::Result<Vec<(Point, Point)>>>()?;
    let ratio = |(direct, shared): &(Point, Point)| shared.blocked_s / direct.blocked_s;
    pairs.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let middle = &pairs[PAIRS / 2];
    let (direct, shared) = middle;
    let name = "8 ranks, realistic pieces: wag-dbi blocked time, times direct";
    let ceiling = direct.blocked_s * 1e3;
    sheet.bar(
        Bar::new(LETTER, name, ratio(middle), Better::Lower, 0.25).ceiling(ceiling, "ms direct"),
    );
    let name = "8 ranks, realistic pieces: mean disk write of wag-dbi, MiB";
    sheet.bar(Bar::new(LETTER, name, shared.write_mib_average, Better::Higher, 1.0));
    let size = shared.pool_size_mib.unwrap_or(f64::INFINITY);
    let name = "8 ranks, realistic pieces: pool of the node, times the configured one";
    sheet.bar(Bar::new(LETTER, name, size / POOL_MIB as f64, Better::Lower, 1.0));
    Ok(())
}
