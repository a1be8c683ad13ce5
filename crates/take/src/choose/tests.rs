use super::*;

fn offer(cow_ns: Option<u64>, staged_ns: Option<u64>) -> Offer {
    Offer { can_freeze: true, cow_ns, staged_ns, stop_ns: 100 }
}

#[test]
fn what_is_asked_for_is_done_where_all_ranks_can() {
    let (both, none) = (offer(Some(9), Some(1)), offer(None, None));
    let (cow, staged) = (offer(Some(9), None), offer(None, Some(9)));
    for (asked, offers, way) in [
        (Capture::Stop, &[both][..], Way::Stop),
        (Capture::Cow, &[both, both], Way::Cow),
        (Capture::Cow, &[both, staged], Way::Staged),
        (Capture::Cow, &[cow, staged], Way::Stop),
        (Capture::Staged, &[both, staged], Way::Staged),
        (Capture::Staged, &[both, cow], Way::Stop),
        (Capture::Auto, &[both, staged], Way::Staged),
        (Capture::Auto, &[both, cow], Way::Cow),
        (Capture::Auto, &[both, none], Way::Stop),
        (Capture::Auto, &[both, Offer { can_freeze: false, ..both }], Way::Stop),
    ] {
        assert_eq!(choose(asked, offers), way, "{asked:?} {offers:?}");
    }
}

#[test]
fn the_cheapest_way_for_the_slowest_rank_is_taken() {
    let [quick, slow] = [offer(Some(5), Some(9)), offer(Some(20), Some(10))];
    assert_eq!(choose(Capture::Auto, &[quick]), Way::Cow);
    assert_eq!(choose(Capture::Auto, &[quick, slow]), Way::Staged);
}

#[test]
fn programs_that_write_at_once_are_staged_and_others_are_not() {
    let bytes = 1 << 30;
    let cow_is_less = |costs: &Costs| costs.cow_ns(0, bytes) < costs.staged_ns(bytes);
    let mut costs = Costs::default();
    assert!(!cow_is_less(&costs), "nothing is known");
    costs.copied(bytes, 120_000_000);
    costs.early(0.01);
    assert!(cow_is_less(&costs), "it writes to little: {costs:?}");
    // It writes to everything while it is protected.
    costs.shielded(bytes, 1_000_000, Held { ns: 900_000_000, bytes });
    assert!(!cow_is_less(&costs), "{costs:?}");
}

#[test]
fn a_copy_into_memory_that_is_not_there_yet_can_cost_more_than_stopping() {
    let bytes = 1 << 30;
    let mut costs = Costs::default();
    let way = |costs: &Costs, cold: u64, warm_ns| {
        let staged_ns = Some(costs.staged_ns(bytes) + costs.cold_ns(cold, warm_ns));
        let offer =
            Offer { can_freeze: true, cow_ns: None, staged_ns, stop_ns: costs.stop_ns(bytes) };
        choose(Capture::Auto, &[offer])
    };
    assert_eq!(way(&costs, 0, None), Way::Staged);
    assert_eq!(way(&costs, bytes, None), Way::Stop);
    assert_eq!(way(&costs, bytes, Some(0.2)), Way::Staged, "huge pages are there soon");
    assert_eq!(way(&costs, bytes / 8, Some(1.7)), Way::Staged, "most of it is ready");
    // The store turns out to be slow.
    (0..4).for_each(|_| costs.stopped(bytes, 4_000_000_000));
    assert_eq!(way(&costs, bytes, Some(1.7)), Way::Staged);
}
