use super::super::super::Fate;
use super::*;

/// What rank 0 of 4 makes of an answer about the candidates 10 to 13, out of 20.
fn read_one(numbers: &[u32]) -> Result<(Assignment, Pairs)> {
    let answer: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let solo = standfast_comm::Solo::default();
    let mut assignment = Assignment::all_mine(0, 20);
    let mut pairs = Pairs::new(4);
    read(&solo, &[answer], &[vec![10, 11, 12, 13]], &mut assignment, &mut pairs)?;
    Ok((assignment, pairs))
}

#[test]
fn an_answer_says_one_thing_of_each_page() {
    // Page 11 goes to rank 2; ranks 1 and 3 want page 12 (as bits); page 13 is old.
    let mut bytes = Vec::new();
    for number in [1, 1, 2, 1, 2, 1 << 31 | 2] {
        put(&mut bytes, number);
    }
    bytes.push(0b1010);
    put_ids(&mut bytes, &[SegmentId([7; 16])]);
    for number in [1, 3, 0, 99] {
        put(&mut bytes, number);
    }
    let solo = standfast_comm::Solo::default();
    let mut assignment = Assignment::all_mine(0, 20);
    let mut pairs = Pairs::new(4);
    read(&solo, &[bytes], &[vec![10, 11, 12, 13]], &mut assignment, &mut pairs).unwrap();
    assert_eq!(assignment.fate(10), Fate::Mine);
    assert_eq!(assignment.fate(11), Fate::Theirs { owner: 2 });
    assert_eq!(assignment.fate(13), Fate::Old { segment: SegmentId([7; 16]), slot: 99 });
    assert_eq!((&pairs.wanted[1], &pairs.wanted[3]), (&vec![12], &vec![12]));
    assert_eq!(pairs.expected[2], [11]);
}

#[test]
fn answers_that_cannot_be_are_refused() {
    assert!(read_one(&[1, 1, 2, 0, 0, 0]).is_ok());
    for wrong in [
        &[1, 4, 2, 0, 0, 0][..],
        &[1, 1, 4, 0, 0, 0],
        &[1, 1, 0, 0, 0, 0],
        &[2, 1, 2, 1, 3, 0, 0, 0],
        &[1, 1, 2, 1, 1, 1, 2, 0, 0],
        &[0, 1, 1, 0, 0, 0],
        &[0, 0, 0, 1, 1, 0, 9],
        &[0, 0, u32::MAX, 0],
        &[u32::MAX, 1, 2],
        &[1, 1, 2, 0, 0, 0, 0],
        &[1, 1],
    ] {
        assert!(read_one(wrong).is_err(), "{wrong:?}");
    }
}
