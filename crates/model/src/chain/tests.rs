use super::*;

#[test]
fn a_single_lifted_segment_is_dalys_formula() {
    let (m, segment, restore) = (1800.0, 400.0, 90.0);
    let repair = Repair {
        level: 0,
        own_share: 1.0,
        within_share: 1.0,
        restore_s: restore,
        interruptible: true,
    };
    let block = Block::attempt(1.0 / m, segment).lifted(1.0 / m, &repair);
    let daly = m * f64::exp(restore / m) * f64::exp_m1(segment / m);
    assert!((block.spent.total() / daly - 1.0).abs() < 1e-12);
    assert!((block.commits - 1.0).abs() < 1e-12);
    assert!((block.spent.kept - segment).abs() < 1e-9);
}

#[test]
fn sequences_add_up() {
    let part = Block::attempt(1e-3, 50.0);
    let joined = part.times(4);
    let whole = Block::attempt(1e-3, 200.0);
    assert!((joined.commits - whole.commits).abs() < 1e-12);
    assert!((joined.spent.total() - whole.spent.total()).abs() < 1e-9);
    assert_eq!(geometric(0.0, 7), 7.0);
}
