//! Maxima of functions with one peak, over real intervals and over counts.
//!
//! Data: a closure over a model -> the argument of its peak.
//!
//! Why no derivative: the models mix exponentials with integer ratios; a few dozen evaluations
//! cost microseconds.

/// Golden-section search for the peak of `f` on a logarithmic scale between two positive ends.
pub fn peak(low: f64, high: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut a, mut b) = (low.ln(), high.ln());
    let mut c = b - GOLDEN * (b - a);
    let mut d = a + GOLDEN * (b - a);
    let (mut at_c, mut at_d) = (f(c.exp()), f(d.exp()));
    while b - a > 1e-5 {
        if at_c > at_d {
            (b, d, at_d) = (d, c, at_c);
            c = b - GOLDEN * (b - a);
            at_c = f(c.exp());
        } else {
            (a, c, at_c) = (c, d, at_d);
            d = a + GOLDEN * (b - a);
            at_d = f(d.exp());
        }
    }
    (0.5 * (a + b)).exp()
}

/// The count from 1 to `max` at which `f` peaks.
pub fn peak_count(max: u64, f: impl Fn(u64) -> f64) -> u64 {
    let (mut low, mut high) = (1, max.max(1));
    while high - low > 2 {
        let middle = low + (high - low) / 2;
        if f(middle) < f(middle + 1) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut best = low;
    for count in low..=high {
        if f(count) > f(best) {
            best = count;
        }
    }
    best
}

#[cfg(test)]
mod tests;
