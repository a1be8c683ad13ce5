use super::*;

#[test]
fn ranks_form_a_grid() {
    assert_eq!(Subdomain::of(0, 768).grid, (24, 32));
    assert_eq!(Subdomain::of(0, 7).grid, (1, 7));
    let places: std::collections::HashSet<_> =
        (0..24).map(|rank| Subdomain::of(rank, 24).at).collect();
    assert_eq!(places.len(), 24);
}

#[test]
fn the_storm_is_somewhere_and_moves() {
    let wind = |rank: usize, time: f64| {
        let mut first = Vec::new();
        Subdomain::of(rank, 24).for_each_array(time, |values, _| {
            if first.is_empty() {
                first = values.to_vec();
            }
        });
        first
    };
    let quiet = |values: &[f64]| {
        values.chunks_exact(LEVEL_POINTS).all(|level| level.iter().all(|v| *v == level[0]))
    };
    let stormy =
        |time: f64| -> Vec<usize> { (0..24).filter(|rank| !quiet(&wind(*rank, time))).collect() };
    let (early, late) = (stormy(0.1), stormy(0.9));
    assert!(!early.is_empty() && early.len() < 6, "{early:?}");
    assert!(!late.is_empty() && early != late);
}
