use super::*;
use std::io::{Read, Seek, Write};

#[test]
fn messages_and_descriptors_arrive() {
    let (one, other) = UnixStream::pair().unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"shared").unwrap();
    let long: Vec<u8> = (0..3_000_000u32).map(|at| at as u8).collect();
    let sender = std::thread::spawn(move || {
        send(&one, &"first", Some(file.as_fd())).unwrap();
        send(&one, &serde_bytes(&long), None).unwrap();
        long
    });
    let mut inbox = Inbox::new(Arc::new(other), MESSAGE_BYTES_MAX);
    assert_eq!(inbox.receive::<String>().unwrap().unwrap(), "first");
    let mut file = std::fs::File::from(inbox.take_fd().expect("it came along"));
    let got = inbox.receive::<Vec<u8>>().unwrap().unwrap();
    assert!(inbox.take_fd().is_none());
    assert_eq!(got, sender.join().unwrap());
    assert!(inbox.receive::<String>().unwrap().is_none(), "the other end has closed");
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "shared");
}

fn serde_bytes(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

#[test]
fn hostile_bytes_are_errors() {
    for bytes in [&[0xff; 16][..], &[3, 0, 0, 0, 0xff, 0xff, 0xff], &[9, 0, 0, 0, 1], &[1, 0]] {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(bytes).unwrap();
        drop(one);
        assert!(
            Inbox::new(Arc::new(other), MESSAGE_BYTES_MAX).receive::<String>().is_err(),
            "{bytes:?}"
        );
    }
}
