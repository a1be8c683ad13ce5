use super::*;

#[test]
fn lines_of_maps_are_understood() {
    let heap = parse("55d0-55f1 rw-p 00000000 00:00 0      [heap]").unwrap();
    assert_eq!(heap, Mapping { range: 0x55d0..0x55f1, writable: true, private_anonymous: true });
    let file = parse("7f00-7f10 r--s 00000000 fd:01 42 /tmp/x y").unwrap();
    assert_eq!(file, Mapping { range: 0x7f00..0x7f10, writable: false, private_anonymous: false });
    assert!(parse("nonsense").is_none());
}

#[test]
fn the_stack_is_mapped_and_the_first_page_is_not() {
    let here = 0u8;
    let at = &raw const here as usize;
    let maps = Maps::read();
    assert!(maps.covering(&(at..at + 1)).is_some_and(|all| all[0].writable));
    assert!(maps.covering(&(0..1)).is_none());
}

#[test]
fn holes_are_found() {
    let mapping = |range| Mapping { range, writable: true, private_anonymous: true };
    let maps = Maps(vec![mapping(10..20), mapping(20..30), mapping(40..50)]);
    assert!(maps.is_private_anonymous(&(12..28)));
    assert!(!maps.is_private_anonymous(&(25..45)));
    assert!(!maps.is_private_anonymous(&(5..15)));
    assert_eq!(maps.overlapping(&(29..41)).len(), 2);
    assert!(maps.overlapping(&(30..40)).is_empty());
}
