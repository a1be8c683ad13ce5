use super::*;

#[test]
fn a_holder_survives_the_round_trip() {
    let me = this_process();
    assert!(me.contains(&std::process::id().to_string()));
    assert_eq!(read_back(format!("{me}\n").as_bytes()).as_deref(), Some(&*me));
}

#[test]
fn hostile_lock_files_give_short_printable_text() {
    assert_eq!(read_back(b""), None);
    assert_eq!(read_back(b"\n\n"), None);
    let line = read_back(&[0x1b; 4096].map(|b| b ^ 0xff)).unwrap();
    assert!(line.chars().count() <= HOLDER_BYTES_MAX);
    assert_eq!(read_back(b"a\x1b[31mb").as_deref(), Some("a[31mb"));
}
