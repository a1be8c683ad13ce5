use super::*;

#[test]
fn a_new_plan_is_never_worse_than_the_kept_one() {
    for background in [true, false] {
        let inputs = Inputs { background, ..Inputs::example() };
        let chosen = Machine::best(&inputs).unwrap();
        for case in cases(&inputs, &chosen).unwrap() {
            // A tie between codecs may cost up to a thousandth.
            assert!(case.efficiency_replanned >= case.efficiency_kept - 2e-3, "{case:?}");
        }
    }
}
