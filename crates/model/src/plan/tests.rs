use super::*;
use proptest::prelude::*;

#[test]
fn a_plan_is_whole_and_sound() {
    let plan = plan(&Inputs::example()).unwrap();
    assert_eq!(plan.levels.len(), 3);
    assert!(plan.efficiency > 0.8, "{plan:?}");
    assert!((plan.breakdown.total() - 1.0).abs() < 1e-9);
    assert!(plan.ring_survival >= Inputs::example().failures.survival);
    assert!(plan.group_m <= plan.group_k && plan.group_m >= 1);
    assert!(plan.levels.windows(2).all(|pair| pair[1].every >= pair[0].every));
    assert!(plan.sensitivity.len() >= 4);
    assert!(crate::render::plan(&plan).contains("efficiency"));
}

#[test]
fn rarer_failures_mean_longer_intervals() {
    let mut inputs = Inputs::example();
    let short = plan(&inputs).unwrap().interval_s();
    inputs.failures.mtti_s *= 9.0;
    let long = plan(&inputs).unwrap().interval_s();
    assert!(long > 2.0 * short, "{short} {long}");
}

#[test]
fn one_node_has_no_ring() {
    let mut inputs = Inputs::example();
    inputs.job.nodes = 1;
    let plan = plan(&inputs).unwrap();
    assert_eq!(plan.levels.len(), 2);
    assert_eq!(plan.group_k, 0);
}

#[test]
fn bad_inputs_are_named() {
    for (field, spoil) in [
        ("mtti_s", (|i: &mut Inputs| i.failures.mtti_s = -1.0) as fn(&mut Inputs)),
        ("local_write_bps", |i| i.rates.local_write_bps = 0.0),
        ("survival", |i| i.failures.survival = 1.5),
        ("bytes_per_node", |i| i.job.bytes_per_node = f64::NAN),
        ("nodes", |i| i.job.nodes = 0),
        ("ranks_per_node", |i| i.job.ranks_per_node = 0),
        ("codec factor", |i| i.codecs[0].factor = 1.0),
        ("shards", |i| (i.ring.group, i.ring.shards) = (Some(3), Some(5))),
        ("group", |i| i.ring.group = Some(129)),
        ("shards", |i| i.ring.shards = Some(0)),
    ] {
        let mut inputs = Inputs::example();
        spoil(&mut inputs);
        let text = plan(&inputs).unwrap_err().to_string();
        assert!(text.contains(field), "{field}: {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_machine_gets_a_plan_or_a_reason(
        nodes in 1u64..5000, size in 6.0f64..12.0, changed in 0.01f64..1.0, mtti in 1.0f64..6.5,
        process in prop::sample::select(vec![0.0, 0.3, 1.0]), rate in 6.0f64..11.0,
        background in prop::bool::weighted(0.9),
    ) {
        let mut inputs = Inputs::example();
        inputs.job.nodes = nodes;
        inputs.job.bytes_per_node = 10f64.powf(size);
        inputs.job.changed_share = changed;
        inputs.failures.mtti_s = 10f64.powf(mtti);
        inputs.failures.process_share = process;
        inputs.rates.global_write_bps = 10f64.powf(rate);
        inputs.background = background;
        match plan(&inputs) {
            Ok(plan) => {
                prop_assert!((0.0..1.0).contains(&plan.efficiency), "{}", plan.efficiency);
                prop_assert!((plan.breakdown.total() - 1.0).abs() < 1e-6);
                prop_assert!(plan.interval_s() > 0.0);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("no plan"), "{error}"),
        }
    }
}

#[test]
fn given_groups_are_kept_or_refused() {
    let mut inputs = Inputs::example();
    inputs.ring.group = Some(4);
    let chosen = plan(&inputs).unwrap();
    assert_eq!(chosen.group_k, 4);
    inputs.ring.shards = Some(3);
    assert_eq!(plan(&inputs).unwrap().group_m, 3);
    (inputs.ring.shards, inputs.failures.survival) = (Some(1), 0.99999);
    let text = plan(&inputs).unwrap_err().to_string();
    assert!(text.contains("4 nodes with 1 shards"), "{text}");
}

#[test]
fn an_impossible_wish_says_so() {
    let mut inputs = Inputs::example();
    inputs.failures.nodes_per_incident = 40.0;
    inputs.failures.survival = 0.9999;
    let text = plan(&inputs).unwrap_err().to_string();
    assert!(text.starts_with("no plan:"), "{text}");
}
