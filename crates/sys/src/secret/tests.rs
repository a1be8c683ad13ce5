use super::*;

#[test]
fn a_secret_is_not_dumped_and_not_shown() {
    let mut secret = Secret::new();
    secret[..5].copy_from_slice(b"12345");
    assert_eq!(format!("{secret:?}"), "Secret");
    let address = format!("{:x}-", secret.as_ptr() as usize);
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let own = smaps.split_once(&address).expect("a mapping of its own").1;
    let flags = own.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
    assert!(flags.split_whitespace().any(|flag| flag == "dd"), "{flags}");
    secret.wipe(2);
    assert_eq!(secret[..5], *b"12\0\0\0");
}
