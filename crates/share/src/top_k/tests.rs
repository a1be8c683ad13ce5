use super::*;
use standfast_comm::Error;

#[test]
fn requests_for_what_this_rank_does_not_store_are_refused() {
    // Rank 1 of 3 holds entries 2, 5 and 9 of the view, and owns the last two.
    let held = [(2, 0, 7), (5, 1, 8), (9, 1, 3)].map(|(entry, owner, candidate)| Held {
        entry,
        owner,
        candidate,
    });
    let ask = |entries: &[u32]| {
        let request: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        let mut pairs = Pairs::new(3);
        let asked = answer(&held, 1, &[Vec::new(), Vec::new(), request], &mut pairs);
        asked.map(|count| (count, pairs.wanted[2].clone()))
    };
    assert_eq!(ask(&[5, 9]).unwrap(), (2, vec![8, 3]));
    for wrong in [&[2][..], &[4], &[9, 5], &[5, 5], &[u32::MAX]] {
        assert!(matches!(ask(wrong), Err(Error::Message { rank: 1, from: 2, .. })), "{wrong:?}");
    }
    let cut = answer(&held, 1, &[vec![5, 0]], &mut Pairs::new(3));
    assert!(cut.is_err());
}
