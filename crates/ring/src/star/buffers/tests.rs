use super::*;

#[test]
fn buffers_come_back_empty_and_are_counted_once() {
    let buffers = Buffers::default();
    let mut first = buffers.take(100);
    first.resize(100, 7);
    buffers.give(first);
    let again = buffers.take(50);
    assert!(again.is_empty() && again.capacity() >= 100);
    assert_eq!(buffers.most(), again.capacity() as u64);
    buffers.recount(again.capacity(), 10);
    let second = buffers.take(20);
    assert_eq!(buffers.most(), again.capacity().max(10 + second.capacity()) as u64);
}
