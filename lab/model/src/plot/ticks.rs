//! Round numbers along an axis.
//!
//! Data: [`Axis`] -> positions and texts of its ticks.
//!
//! Invariants:
//! - Ticks lie within the axis; a linear axis has four to eleven, unless it is very short.

use super::chart::Axis;

/// Values that get a tick and a text.
pub(crate) fn ticks(axis: &Axis) -> Vec<(f64, String)> {
    if axis.log { log_ticks(axis) } else { linear_ticks(axis) }
}

fn linear_ticks(axis: &Axis) -> Vec<(f64, String)> {
    let span = axis.high - axis.low;
    let rough = span / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let first = (axis.low / step - 1e-9).ceil() as i64;
    let last = (axis.high / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|index| index as f64 * step)
        .map(|value| (value, number(value, step)))
        .collect()
}

fn log_ticks(axis: &Axis) -> Vec<(f64, String)> {
    let decades = (axis.high / axis.low).log10();
    let steps: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let mut found = Vec::new();
    for exponent in axis.low.log10().floor() as i32..=axis.high.log10().ceil() as i32 {
        for step in steps {
            let value = step * 10f64.powi(exponent);
            if value >= axis.low * (1.0 - 1e-9) && value <= axis.high * (1.0 + 1e-9) {
                found.push((value, number(value, value)));
            }
        }
    }
    found
}

/// As many decimals as the step needs, and thousands apart.
fn number(value: f64, step: f64) -> String {
    let decimals = (0..6)
        .find(|&d| {
            let scaled = step * 10f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        })
        .unwrap_or(6) as usize;
    let plain = format!("{value:.decimals$}");
    let (whole, rest) = plain.split_once('.').unwrap_or((&plain, ""));
    let digits = whole.trim_start_matches('-');
    if digits.len() < 5 {
        return plain;
    }
    let mut spaced = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            spaced.push(',');
        }
        spaced.push(digit);
    }
    let sign = if whole.starts_with('-') { "-" } else { "" };
    if rest.is_empty() { format!("{sign}{spaced}") } else { format!("{sign}{spaced}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_round() {
        let texts = |axis: &Axis| ticks(axis).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(
            texts(&Axis::linear("share, %", 0.0, 100.0)),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(texts(&Axis::log("n", 1.0, 1000.0)).len(), 10);
        assert_eq!(number(25000.0, 5000.0), "25,000");
        assert_eq!(number(0.25, 0.05), "0.25");
    }

    proptest! {
        #[test]
        fn ticks_stay_inside(low in -1e4f64..1e4, span in 1e-3f64..1e6) {
            let axis = Axis::linear("x", low, low + span);
            let found = ticks(&axis);
            prop_assert!((3..=12).contains(&found.len()));
            prop_assert!(found.iter().all(|(v, _)| (-0.001..=1.001).contains(&axis.place(*v))));
        }
    }
}
