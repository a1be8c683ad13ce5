use super::*;

#[test]
fn a_segment_is_read_by_its_writer_or_by_who_has_it() {
    let stores = StoreGroups::new(2, &["a", "a", "b", "c"]);
    let id = |byte| SegmentId([byte; 16]);
    let segments = BTreeMap::from([(id(1), vec![0]), (id(2), vec![1, 2]), (id(3), vec![2])]);
    let holders = Holders { stores: &stores, segments, images: BTreeMap::new() };
    let reader = |byte, rank, is_shared| {
        let index = standfast_format::Digest([0; 32]);
        let reference =
            SegmentRef { id: id(byte), rank: Rank(rank), slots: 1, file_bytes: 1, index };
        holders.reader_of(&reference, is_shared)
    };
    assert_eq!(reader(1, 1, true), 1, "its writer reaches it");
    assert_eq!(reader(1, 2, true), 0, "written here, found elsewhere");
    assert_eq!(reader(2, 0, true), 2, "this rank has it itself");
    assert_eq!(reader(2, 3, true), 3, "both have it, and its pages are wanted by many");
    assert_eq!(reader(2, 3, false), 2, "both have it, and its pages are wanted once");
    assert_eq!(reader(1, 1, false), 1, "its pages are wanted once, but it is not here");
    assert_eq!(reader(3, 9, true), 3, "its writer is no more");
    assert_eq!(reader(9, 1, true), 2, "nobody has it");
}
