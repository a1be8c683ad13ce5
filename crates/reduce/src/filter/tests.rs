use super::*;
use proptest::prelude::*;

#[test]
fn bytes_go_to_their_planes() {
    let src: Vec<u8> = (0..11).collect();
    let mut dst = [0; 11];
    shuffle(4, &src, &mut dst);
    assert_eq!(dst, [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10]);
}

#[test]
fn settings_lead_back_and_others_are_refused() {
    for text in FILTERS_ALLOWED.split(", ") {
        assert_eq!(text.parse::<FilterChoice>().unwrap().to_string(), text);
    }
    let error = "shuffle2".parse::<FilterChoice>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "filter \"shuffle2\" is not known: allowed are auto, none, shuffle4, shuffle8, delta4, delta8"
    );
}

proptest! {
    #[test]
    fn both_ways_agree_and_lead_back(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        elem in prop::sample::select(vec![4_usize, 8]),
    ) {
        let (mut fast, mut plain) = (vec![0; bytes.len()], vec![0; bytes.len()]);
        shuffle(elem, &bytes, &mut fast);
        shuffle_portable(elem, &bytes, &mut plain, 0..bytes.len() / elem);
        prop_assert_eq!(&fast, &plain);

        let (mut back, mut plain_back) = (vec![0; bytes.len()], vec![0; bytes.len()]);
        unshuffle(elem, &fast, &mut back);
        unshuffle_portable(elem, &fast, &mut plain_back, 0..bytes.len() / elem);
        prop_assert_eq!(&back, &bytes);
        prop_assert_eq!(&plain_back, &bytes);
    }
}
