use super::*;

fn seen(share: f64, ns: f64) -> Seen {
    let raw_bytes = 1 << 17;
    Seen {
        raw_bytes,
        stored_bytes: (raw_bytes as f64 * share) as u64,
        zip_s: raw_bytes as f64 * ns * 1e-9,
        timed_bytes: raw_bytes,
        promised_bytes: raw_bytes as f64 * 0.5,
    }
}

fn class(knowledge: &Knowledge, at: usize) -> Class {
    knowledge.classes().into_iter().find(|class| class.at == at).expect("it came")
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.02
}

#[test]
fn what_was_seen_is_believed_and_the_rest_is_guessed_from_it() {
    let mut knowledge = Knowledge::new();
    knowledge.learn(3, LZ4, &seen(0.4, 1.4));
    let classes = [class(&knowledge, 3)];
    assert!(near(classes[0].options[LZ4].share, 0.4));
    // Slower than guessed: so will the others be.
    assert!(near(classes[0].options[ZSTD].zip_s, 1.4 * LADDER[ZSTD].1 * 1e-9));
    assert!(classes[0].options[ZSTD].share < 0.4);
    assert!(knowledge.is_known(3, LZ4) && !knowledge.is_known(3, ZSTD));
    assert!(near(classes[0].weight, 1.0));
}

#[test]
fn codecs_are_compared_on_the_same_block_only() {
    let mut knowledge = Knowledge::new();
    knowledge.learn(3, LZ4, &seen(0.4, 1.0));
    let pair = Pair::new((3e-4, 30_000), (1e-4, 60_000));
    (0..20).for_each(|_| knowledge.compare(3, ZSTD, pair));
    let zstd = class(&knowledge, 3).options[ZSTD];
    assert!((zstd.zip_s / 3e-9 - 1.0).abs() < 0.1 && (zstd.share / 0.2 - 1.0).abs() < 0.1);
    // Blocks come that shrink well with the one: the other would have done well too.
    (0..50).for_each(|_| knowledge.learn(3, ZSTD, &seen(0.1, 3.0)));
    let options = class(&knowledge, 3).options;
    assert!((options[LZ4].share / options[ZSTD].share / 2.0 - 1.0).abs() < 0.1);
    assert!((options[ZSTD].zip_s / options[LZ4].zip_s / 3.0 - 1.0).abs() < 0.1);
    // Another class has never compared them: it believes this one.
    knowledge.learn(7, LZ4, &seen(0.6, 2.0));
    let other = class(&knowledge, 7).options[ZSTD];
    assert!((other.zip_s / 6e-9 - 1.0).abs() < 0.15 && (other.share / 0.3 - 1.0).abs() < 0.15);
    assert!(!knowledge.is_known(7, ZSTD) && knowledge.is_known(3, ZSTD));
    assert!(knowledge.is_known_of_others(7, ZSTD));
    // Blocks that shrink to nearly nothing are another matter.
    knowledge.learn(4, LZ4, &seen(0.01, 0.2));
    let guessed = class(&knowledge, 4).options[ZSTD];
    assert!(!knowledge.is_known_of_others(4, ZSTD));
    assert!(near(guessed.share, 0.01 * LADDER[ZSTD].2), "{guessed:?}");
}

#[test]
fn a_block_of_which_nothing_is_left_says_little() {
    let mut knowledge = Knowledge::new();
    knowledge.learn(3, LZ4, &seen(0.2, 1.0));
    for _ in 0..10 {
        knowledge.compare(3, ZSTD, Pair::new((2e-4, 100), (1e-4, 1_000)));
        knowledge.compare(3, ZSTD, Pair::new((2e-4, 40_000), (1e-4, 50_000)));
    }
    let zstd = class(&knowledge, 3).options[ZSTD];
    assert!((zstd.share / 0.16 - 1.0).abs() < 0.05, "{zstd:?}");
}

#[test]
fn a_disturbed_time_does_not_stay() {
    let mut knowledge = Knowledge::new();
    knowledge.learn(3, LZ4, &seen(0.4, 9.0));
    (0..200).for_each(|_| knowledge.learn(3, LZ4, &seen(0.4, 1.0)));
    assert!((class(&knowledge, 3).options[LZ4].zip_s / 1e-9 - 1.0).abs() < 0.1);
    let untimed = Seen { timed_bytes: 0, zip_s: 0.0, ..seen(0.2, 0.0) };
    (0..50).for_each(|_| knowledge.learn(3, LZ4, &untimed));
    let lz4 = class(&knowledge, 3).options[LZ4];
    assert!((lz4.share / 0.2 - 1.0).abs() < 0.1 && (lz4.zip_s / 1e-9 - 1.0).abs() < 0.1);
}

#[test]
fn what_comes_beside_the_codec_counts_for_all() {
    let mut knowledge = Knowledge::new();
    knowledge.learn(3, LZ4, &seen(0.4, 1.0));
    knowledge.beside(1e-3, 1_000_000);
    let options = class(&knowledge, 3).options;
    assert!(near(options[0].zip_s, 1e-9) && near(options[LZ4].zip_s, 2e-9));
}

#[test]
fn weights_follow_the_data() {
    let mut knowledge = Knowledge::new();
    (0..1000).for_each(|_| knowledge.learn(1, LZ4, &seen(0.4, 1.0)));
    (0..1000).for_each(|_| knowledge.noise(1 << 17));
    let classes = knowledge.classes();
    assert!(classes.last().is_some_and(|noise| noise.at == CLASSES && noise.weight > 0.99));
    assert!(classes.len() == 1, "the other does not come any more");
    let sum: f64 = classes.iter().map(|class| class.weight).sum();
    assert!((sum - 1.0).abs() < 1e-2);
}

#[test]
fn in_bytes_that_are_only_skewed_lz4_finds_nothing() {
    let mut knowledge = Knowledge::new();
    knowledge.learn(SKEWED, ZSTD, &seen(0.5, 3.0));
    let skewed = class(&knowledge, SKEWED);
    assert_eq!(skewed.options[LZ4].share, 1.0);
    assert!(near(skewed.options[ZSTD].share, 0.5));
    assert!(skewed.options[3].share < 0.5);
}

#[test]
fn every_sample_has_a_class() {
    for filter in FilterKind::ALL {
        for share in [0.0, 0.3, 0.97, 1.0, 7.0] {
            let sampled = Sampled { filter: *filter, share, only_skewed: false };
            assert!(class_of(&sampled) < SKEWED);
        }
    }
}
