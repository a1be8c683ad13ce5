use super::*;
use std::time::Duration;

#[test]
fn buffers_are_apart_and_come_back() {
    let pool = Pool::new(3, 4096);
    let mut all: Vec<Unit> = (0..3).map(|_| pool.take()).collect();
    for (at, buffer) in all.iter_mut().enumerate() {
        buffer.fill(at as u8 + 1);
    }
    for (at, buffer) in all.iter().enumerate() {
        assert!(buffer.iter().all(|byte| *byte == at as u8 + 1));
    }
    assert_eq!(pool.empty(), 0);
    drop(all);
    assert_eq!(pool.empty(), 3);
}

#[test]
fn warming_up_leaves_what_is_in_buffers() {
    let pool = Pool::new(3, 2 << 20);
    let mut first = pool.take();
    first[7] = 7;
    pool.warm(usize::MAX, &AtomicBool::new(false));
    pool.warm(usize::MAX, &AtomicBool::new(true));
    assert_eq!((first[7], first[8]), (7, 0));
}

#[test]
fn an_empty_pool_makes_its_taker_wait() {
    let pool = Pool::new(1, 4096);
    let held = pool.take();
    let (done, seen) = std::sync::mpsc::channel();
    let other = pool.clone();
    let thread = std::thread::spawn(move || {
        drop(other.take());
        done.send(()).unwrap();
    });
    assert!(seen.recv_timeout(Duration::from_millis(50)).is_err(), "it must wait");
    drop(held);
    seen.recv_timeout(Duration::from_secs(20)).expect("it goes on when one is free");
    thread.join().unwrap();
}
