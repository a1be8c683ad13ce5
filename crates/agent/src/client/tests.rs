//! A rank against agents that hang or beat and do nothing else.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use standfast_format::HashKind;
use standfast_reduce::PageHasher;

use super::{Link, Member};
use crate::error::Error;
use crate::memory::Memory;
use crate::message::{Nonce, PROTOCOL, Reply, Request, Token};
use crate::place::Place;
use crate::wire::{self, Inbox, MESSAGE_BYTES_MAX};

/// Lets a rank join, and then says nothing but that it lives, as long as `lives`.
fn hang(place: &Place, listener: &UnixListener, lives: &AtomicBool, over: &AtomicBool) {
    let (stream, _) = listener.accept().unwrap();
    let stream = Arc::new(stream);
    let mut inbox = Inbox::new(Arc::clone(&stream), MESSAGE_BYTES_MAX);
    assert!(matches!(inbox.receive(), Ok(Some(Request::Hello { .. }))), "{place:?}");
    wire::send(&stream, &Reply::Welcome { protocol: PROTOCOL }, None).unwrap();
    assert!(matches!(inbox.receive(), Ok(Some(Request::Join { .. }))));
    let (_memory, fd) = Memory::create(4, 8192).unwrap();
    let joined = Reply::Joined { units: 4, unit_bytes: 8192, nonce: Nonce([2; 16]) };
    wire::send(&stream, &joined, Some(fd.as_fd())).unwrap();
    while !over.load(Ordering::SeqCst) {
        if lives.load(Ordering::SeqCst) {
            wire::send_if_room(&stream, &Reply::Beat);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_rank_waits_for_an_agent_that_beats_and_gives_up_one_that_is_silent() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let (lives, over) = (AtomicBool::new(true), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| hang(&place, &listener, &lives, &over));
        let hasher = PageHasher::new(HashKind::Xxh3, &[0; 32]);
        let member = Member { rank: 0, hasher, page_bytes: 4096 };
        let link = Arc::new(Link::join(&place, Token([1; 16]), member).unwrap());
        let for_waiter = Arc::clone(&link);
        let waited = scope.spawn(move || for_waiter.take_unit());
        // Longer than silence may last.
        std::thread::sleep(super::SILENCE_MAX + Duration::from_secs(2));
        assert!(!waited.is_finished() && link.lost().is_none(), "it beats");
        lives.store(false, Ordering::SeqCst);
        let error = waited.join().unwrap().err().unwrap();
        assert!(error.to_string().contains("silent"), "{error}");
        assert!(link.lost().is_some());
        over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn an_agent_that_welcomes_nobody_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::open(Some(&dir.path().join("agent"))).unwrap();
    // Calls are taken by the kernel, and nobody looks at them.
    let _listener = UnixListener::bind(place.socket()).unwrap();
    let (stream, _) = super::call(&place, Duration::from_millis(20)).unwrap();
    assert!(matches!(super::greet(&stream), Err(Error::Silent)));
}
