use super::*;

const LEN: usize = 64 * NUMBERS;

fn filled(pattern: Pattern, rank: usize) -> Vec<f64> {
    let mut memory = vec![0.0; LEN];
    pattern.fill(&mut memory, rank);
    memory
}

#[test]
fn ranks_share_what_the_pattern_says() {
    assert_eq!(filled(Pattern::Same, 0), filled(Pattern::Same, 3));
    for pattern in [Pattern::Unique, Pattern::Field] {
        let (one, other) = (filled(pattern, 0), filled(pattern, 3));
        let alike = one.chunks(NUMBERS).zip(other.chunks(NUMBERS)).any(|(a, b)| a == b);
        assert!(!alike, "{pattern}");
    }
}

#[test]
fn a_tenth_of_the_field_changes() {
    let before = filled(Pattern::Field, 1);
    let mut after = before.clone();
    Pattern::Field.change(&mut after, 1);
    let pages = before.chunks(NUMBERS).zip(after.chunks(NUMBERS));
    let changed = pages.filter(|(a, b)| a != b).count();
    assert_eq!(changed, (LEN / NUMBERS - 1).div_ceil(CHANGED), "from the second page on");
}
