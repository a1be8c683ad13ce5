use super::*;

#[test]
fn a_run_in_two_parts_is_the_run_in_one() {
    let (size, steps) = (48, 60);
    let mut conductivity = vec![0.0; size * size];
    fill_conductivity(&mut conductivity, size);
    let run = |field: &mut [f64], from: u64, to: u64| {
        let mut solver = Solver::new(size, steps);
        (from..to).for_each(|step| solver.step(step, field, &conductivity));
    };
    let (mut whole, mut parts) = (vec![0.0; size * size], vec![0.0; size * size]);
    run(&mut whole, 0, steps);
    run(&mut parts, 0, 23);
    run(&mut parts, 23, steps);
    assert!(whole.iter().zip(&parts).all(|(a, b)| a.to_bits() == b.to_bits()));
    assert!(whole.iter().all(|value| (0.0..=HOT).contains(value)), "stable and positive");
    assert!(whole.iter().any(|value| *value > 0.0 && *value < HOT), "heat has flowed");
}
