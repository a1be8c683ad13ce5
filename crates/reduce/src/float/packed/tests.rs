use super::*;

#[test]
fn chunks_follow_each_other_at_multiples_of_16() {
    let packed = Packed::new(vec![1, 16, 17, 0, 5]);
    let ranges: Vec<_> = packed.ranges().collect();
    assert_eq!(ranges, [0..1, 16..32, 32..49, 64..64, 64..69]);
    assert_eq!(packed.bytes(), 80);
}
