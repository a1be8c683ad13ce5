use std::os::unix::fs::PermissionsExt;

use standfast_format::Kind;
use standfast_format::encrypted::{CHUNK_BYTES, CHUNK_PLAIN_BYTES, TAIL_BYTES};

use super::*;
use crate::MemoryStore;

const PLAIN: &[u8] = b"the secret of the planted page";

fn key(digit: &str) -> Key {
    Key::read(digit.repeat(64).as_bytes()).unwrap().unwrap()
}

/// A store below, and the encrypted one above it.
fn stores() -> (MemoryStore, EncryptedStore) {
    let below = MemoryStore::new();
    let above = EncryptedStore::new(Arc::new(below.clone()), key("a"));
    (below, above)
}

fn stored(below: &MemoryStore, name: &str) -> Vec<u8> {
    below.get(name, u64::MAX).unwrap()
}

#[test]
fn nothing_plain_is_stored_and_no_two_objects_are_alike() {
    let (below, above) = stores();
    for name in ["a", "b"] {
        let mut writer = above.create(name, None).unwrap();
        writer.append(PLAIN).unwrap();
        assert_eq!(writer.seal().unwrap(), PLAIN.len() as u64);
    }
    let (a, b) = (stored(&below, "a"), stored(&below, "b"));
    assert_eq!(a.len() as u64, encrypted::encrypted_bytes(PLAIN.len() as u64));
    for bytes in [&a, &b] {
        assert!(!bytes.windows(6).any(|part| part == &PLAIN[..6]));
    }
    assert_ne!(a[..PLAIN.len()], b[..PLAIN.len()]);
    above.put("a", PLAIN).unwrap();
    assert_ne!(stored(&below, "a"), a, "the same bytes again have another salt");
    assert_eq!(above.get("a", 100).unwrap(), PLAIN);
}

#[test]
fn every_flipped_bit_is_found() {
    let (below, above) = stores();
    above.put("a", PLAIN).unwrap();
    let sound = stored(&below, "a");
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut broken = sound.clone();
            broken[at] ^= 1 << bit;
            below.put("a", &broken).unwrap();
            assert!(above.get("a", 100).is_err(), "byte {at} of {}", sound.len());
        }
    }
}

#[test]
fn every_other_length_is_found() {
    let (below, above) = stores();
    let plain = vec![3; 2 * CHUNK_PLAIN_BYTES];
    above.put("a", &plain).unwrap();
    let sound = stored(&below, "a");
    let chunk_less = [&sound[..CHUNK_BYTES], &sound[sound.len() - TAIL_BYTES..]].concat();
    let ends = [0, 1, TAIL_BYTES - 1, TAIL_BYTES, CHUNK_BYTES, sound.len() - 1];
    let cut = ends.map(|end| sound[..end].to_vec());
    for broken in cut.iter().chain([&chunk_less, &[&sound[..], b"x"].concat()]) {
        below.put("a", broken).unwrap();
        assert!(above.open("a").is_err(), "{} bytes", broken.len());
    }
}

#[test]
fn bytes_of_another_place_object_or_name_are_found() {
    let (below, above) = stores();
    let plain = vec![3; 3 * CHUNK_PLAIN_BYTES];
    above.put("a", &plain).unwrap();
    above.put("b", &plain).unwrap();
    let (a, b) = (stored(&below, "a"), stored(&below, "b"));
    below.put("a", &b).unwrap();
    assert_eq!(above.open("a").err().unwrap().kind(), Kind::Corrupt, "another name");
    let swapped = [&a[CHUNK_BYTES..2 * CHUNK_BYTES], &a[..CHUNK_BYTES], &a[2 * CHUNK_BYTES..]];
    let mixed = [&a[..CHUNK_BYTES], &b[CHUNK_BYTES..2 * CHUNK_BYTES], &a[2 * CHUNK_BYTES..]];
    for (broken, good) in [(swapped, 2), (mixed, 0)] {
        below.put("a", &broken.concat()).unwrap();
        let reader = above.open("a").unwrap();
        let mut page = [0; 4096];
        let at = |chunk: u64| chunk * CHUNK_PLAIN_BYTES as u64;
        assert_eq!(reader.read_at(at(1), &mut page).unwrap_err().kind(), Kind::Corrupt);
        assert_eq!(reader.read_at(at(good), &mut page).unwrap(), page.len());
        assert_eq!(page, [3; 4096]);
        assert!(above.get("a", u64::MAX).is_err());
    }
}

#[test]
fn other_keys_and_plain_objects_are_told_apart() {
    let (below, above) = stores();
    above.put("a", PLAIN).unwrap();
    let other = EncryptedStore::new(Arc::new(below.clone()), key("b"));
    let error = other.get("a", 100).unwrap_err();
    assert_eq!(error.kind(), Kind::Denied);
    let (found, own) = (key("a").fingerprint(), key("b").fingerprint());
    let text = format!("was encrypted with another key (fingerprint {found}, this is {own})");
    assert!(error.to_string().contains(&text), "{error}");
    below.put("plain", &[7; 500]).unwrap();
    let error = above.get("plain", 1000).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("is not encrypted"), "{error}");
}

#[test]
fn keys_are_digits_and_never_shown() {
    let digits = "0123456789abcdefABCDEF0123456789".repeat(2);
    let one = Key::read(format!(" {digits}\n").as_bytes()).unwrap().unwrap();
    let same = Key::read(digits.to_ascii_lowercase().as_bytes()).unwrap().unwrap();
    assert_eq!(one.fingerprint(), same.fingerprint());
    assert!(!format!("{one:?}").contains(&digits[..8]));
    let long = "0".repeat(5000);
    for bad in ["", "12", &digits[1..], &digits.replace('0', "g"), &format!("{digits}0"), &long] {
        assert!(Key::read(bad.as_bytes()).unwrap().is_none(), "{bad}");
    }
}

#[test]
fn key_files_are_their_owners_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "7".repeat(64)).unwrap();
    let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    let source = || path.to_str().unwrap().parse::<KeySource>().unwrap();
    for open in [0o640, 0o604, 0o620] {
        mode(open);
        let error = source().key().unwrap_err();
        let text = format!("global_key: others can read {}; chmod 600 it", path.display());
        assert_eq!((error.kind(), error.to_string()), (Kind::Denied, text));
    }
    mode(0o600);
    assert_eq!(source().key().unwrap().fingerprint(), key("7").fingerprint());
    std::fs::write(&path, "my secret pass phrase").unwrap();
    let error = source().key().unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(!error.to_string().contains("phrase"), "{error}");
    let missing: KeySource = dir.path().join("none").to_str().unwrap().parse().unwrap();
    assert_eq!(missing.key().unwrap_err().kind(), Kind::Missing);
    let directory: KeySource = dir.path().to_str().unwrap().parse().unwrap();
    assert!(directory.key().is_err());
}

#[test]
fn commands_print_keys_once_for_all_clones() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count").display().to_string();
    let source: KeySource = format!("!echo x >> {count}; printf '%064d' 0").parse().unwrap();
    let clone = source.clone();
    assert_eq!(source.key().unwrap().fingerprint(), key("0").fingerprint());
    assert_eq!(clone.key().unwrap().fingerprint(), key("0").fingerprint());
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
    for (command, why) in [("!exit 3", "failed"), ("!echo my pass phrase", "prints no key")] {
        let error = command.parse::<KeySource>().unwrap().key().unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("phrase"), "{error}");
    }
    assert!("!".parse::<KeySource>().is_err() && "".parse::<KeySource>().is_err());
}
