use super::*;

const NOTHING: StoredHashes<'_> = StoredHashes { hashes: &[], hash_bytes: 16 };

/// What a rank makes of a message about its candidates 3 and 1, out of 5.
fn read_one(segments: u32, numbers: &[u32]) -> Result<Places> {
    let mut message = Vec::new();
    put_ids(&mut message, &vec![SegmentId([9; 16]); segments as usize]);
    numbers.iter().for_each(|number| put(&mut message, *number));
    let pairs = Pairs { expected: vec![vec![3, 1]], ..Pairs::new(1) };
    let mut places = Places::new(5);
    read(0, &[message], &pairs, NOTHING, &mut places)?;
    Ok(places)
}

#[test]
fn places_come_in_the_order_that_both_know() {
    let places = read_one(2, &[2, 1, 40, 0, 50]).unwrap();
    assert_eq!(places.get(3), Some(Location { segment: 1, slot: 40 }));
    assert_eq!(places.page(1), Some((SegmentId([9; 16]), 50)));
    assert_eq!(places.get(0), None);
}

#[test]
fn messages_about_other_pages_are_refused() {
    assert!(read_one(2, &[1, 1, 40]).is_err(), "one page too few");
    assert!(read_one(2, &[3, 1, 40, 0, 50, 0, 60]).is_err(), "one too many");
    assert!(read_one(2, &[2, 2, 40, 0, 50]).is_err(), "a segment without an id");
    assert!(read_one(2, &[2, 1, 40, 0]).is_err(), "cut off");
    assert!(read_one(2, &[2, 1, 40, 0, 50, 0, 60]).is_err(), "an index that this rank lacks");
    let pairs = Pairs { expected: vec![vec![3]], ..Pairs::new(1) };
    assert!(read(0, &[Vec::new()], &pairs, NOTHING, &mut Places::new(5)).is_err(), "nothing");
}
