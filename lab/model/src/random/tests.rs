use super::*;

#[test]
fn moments_are_right() {
    let mut random = Random::new(7);
    let n = 200_000;
    let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / n as f64;
    assert!((mean(&mut || random.unit()) - 0.5).abs() < 0.004);
    assert!((mean(&mut || random.exponential(3.0)) - 3.0).abs() < 0.04);
    // Shape 2: the mean is scale * sqrt(pi) / 2.
    let expected = 5.0 * std::f64::consts::PI.sqrt() / 2.0;
    assert!((mean(&mut || random.weibull(2.0, 5.0)) - expected).abs() < 0.04);
    let picked = mean(&mut || random.pick(&[0.25, 0.5, 0.25]) as f64);
    assert!((picked - 1.0).abs() < 0.01);
}

#[test]
fn seeds_decide() {
    let draw = |seed| {
        let mut random = Random::new(seed);
        (0..4).map(|_| random.below(1000)).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}
