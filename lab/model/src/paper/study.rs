//! The NDP paper's compression study: an input.
//!
//! Data: measured factors and speeds of seven utilities on seven mini-apps -> means, factors.
//!
//! Invariants:
//! - Means that are computed here are unweighted.

use standfast_model::Result;

pub(super) const MB: f64 = 1e6;
pub(super) const GB: f64 = 1e9;

/// One mini-application of the compression study: factor and speed of each utility.
pub(super) struct MiniApp {
    pub(super) name: &'static str,
    /// Share of bytes removed, %, and MB/s of one thread, in the order of [`UTILITIES`].
    pub(super) measured: [(f64, f64); 7],
}

/// Compression utilities with their level.
pub(super) const UTILITIES: [&str; 7] =
    ["gzip(1)", "gzip(6)", "bzip2(1)", "bzip2(9)", "xz(1)", "xz(6)", "lz4(1)"];

/// Mean factors that the text prints, %: of gzip(1), xz(6) and lz4(1).
pub(super) const TEXT_MEANS: [Option<f64>; 7] =
    [Some(72.77), None, None, None, None, Some(83.25), Some(64.75)];

/// Mean factors in the study's last line, %.
pub(super) const COLUMN_MEANS: [f64; 7] = [72.8, 74.7, 75.5, 76.3, 80.6, 83.3, 64.8];

/// The study's measurements.
pub(super) const MINI_APPS: [MiniApp; 7] = [
    MiniApp {
        name: "CoMD",
        measured: [
            (84.2, 153.7),
            (84.4, 92.3),
            (85.1, 32.5),
            (85.0, 30.4),
            (86.0, 23.5),
            (86.2, 8.2),
            (82.8, 658.3),
        ],
    },
    MiniApp {
        name: "HPCCG",
        measured: [
            (88.4, 150.7),
            (92.3, 61.6),
            (92.4, 5.9),
            (93.6, 4.6),
            (96.9, 47.5),
            (98.7, 7.4),
            (81.6, 447.8),
        ],
    },
    MiniApp {
        name: "miniFE",
        measured: [
            (71.5, 84.5),
            (77.6, 24.1),
            (80.7, 10.7),
            (82.3, 10.1),
            (87.6, 18.3),
            (91.1, 1.6),
            (54.8, 253.9),
        ],
    },
    MiniApp {
        name: "miniMD",
        measured: [
            (57.0, 52.2),
            (58.4, 27.7),
            (59.1, 10.0),
            (59.5, 9.2),
            (63.4, 8.0),
            (67.9, 2.5),
            (47.0, 345.3),
        ],
    },
    MiniApp {
        name: "miniSmac",
        measured: [
            (35.0, 37.3),
            (35.5, 24.4),
            (31.4, 6.9),
            (32.4, 6.0),
            (47.5, 5.1),
            (48.8, 2.6),
            (24.1, 342.7),
        ],
    },
    MiniApp {
        name: "miniAero",
        measured: [
            (84.3, 138.5),
            (85.7, 61.2),
            (86.6, 12.0),
            (87.1, 8.2),
            (88.1, 28.4),
            (92.8, 4.3),
            (80.5, 567.9),
        ],
    },
    MiniApp {
        name: "pHPCCG",
        measured: [
            (89.1, 154.0),
            (89.1, 63.2),
            (93.1, 6.8),
            (94.0, 4.8),
            (94.7, 45.9),
            (97.3, 7.0),
            (82.4, 477.7),
        ],
    },
];

/// Mean factor (share removed) and mean speed (bytes/s) of a utility over the mini-apps.
pub(super) fn mean_of(utility: usize) -> (f64, f64) {
    let n = MINI_APPS.len() as f64;
    let sum = |f: fn(&(f64, f64)) -> f64| -> f64 {
        MINI_APPS.iter().map(|app| f(&app.measured[utility])).sum()
    };
    (sum(|m| m.0) / n / 100.0, sum(|m| m.1) / n * MB)
}

/// Factors of gzip(1), the utility the paper settles on.
pub(super) fn gzip_factors() -> Vec<f64> {
    MINI_APPS.iter().map(|app| app.measured[0].0 / 100.0).collect()
}

/// Mean of a quantity over the mini-apps' gzip(1) factors.
pub(super) fn mean_over_apps(f: impl Fn(f64) -> Result<f64>) -> Result<f64> {
    let values = gzip_factors().into_iter().map(f).collect::<Result<Vec<_>>>()?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
