//! Known answers of the page hashes, shared with every other implementation, and their sameness
//! for one page and for many.

use standfast_format::HashKind;
use standfast_reduce::PageHasher;

const VECTORS: &str = include_str!("../vectors/hash.txt");

fn key() -> [u8; 32] {
    std::array::from_fn(|index| index as u8)
}

/// The input that the vectors' head describes.
fn input(len: usize) -> Vec<u8> {
    (0..len as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(hasher: &PageHasher, page: &[u8]) -> Vec<u8> {
    let mut out = vec![0; hasher.bytes()];
    hasher.hash(page, &mut out);
    out
}

#[test]
fn known_answers() {
    let mut counts = [0; 4];
    for line in VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [name, len, expected] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a line of three words, not {line:?}");
        };
        let Some(kind) = HashKind::from_name(name) else { continue };
        let found = digest(&PageHasher::new(kind, &key()), &input(len.parse().unwrap()));
        assert_eq!(format!("{name} {len} {}", hex(&found)), line, "expected {expected}");
        counts[kind as usize] += 1;
    }
    assert!(counts[1..].iter().all(|count| *count >= 15), "{counts:?}");
}

#[test]
fn the_vectors_secret_is_the_one_derived() {
    let mut secret = [0; 192];
    let mut hasher = blake3::Hasher::new_derive_key(standfast_reduce::SECRET_CONTEXT);
    hasher.update(&key()).finalize_xof().fill(&mut secret);
    let line = format!("secret 192 {}", hex(&secret));
    assert!(VECTORS.lines().any(|known| known == line), "{line}");
}

#[test]
fn many_pages_hash_as_each_of_them_does() {
    let bytes = crate::data::random(64 << 10);
    for kind in HashKind::ALL {
        let hasher = PageHasher::new(*kind, &key());
        for page_bytes in [1, 64, 1000, 1024, 4096, 8192, 16384] {
            for pages in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31] {
                let Some(bytes) = bytes.get(..pages * page_bytes) else { continue };
                let mut together = vec![0; pages * hasher.bytes()];
                hasher.hash_pages(bytes, page_bytes, &mut together);
                let apart: Vec<u8> =
                    bytes.chunks(page_bytes).flat_map(|page| digest(&hasher, page)).collect();
                assert!(together == apart, "{kind}: {pages} pages of {page_bytes}");
            }
        }
    }
}

#[test]
fn alignment_does_not_matter_and_the_key_does() {
    let bytes = crate::data::random(4096 + 64);
    for kind in HashKind::ALL {
        let hasher = PageHasher::new(*kind, &key());
        let clone = hasher.clone();
        for offset in 0..64 {
            let page = &bytes[offset..offset + 4096];
            let moved = page.to_vec();
            assert_eq!(digest(&hasher, page), digest(&clone, &moved), "{kind} {offset}");
        }
        let other = PageHasher::new(*kind, &[9; 32]);
        assert_ne!(digest(&hasher, &bytes), digest(&other, &bytes), "{kind}");
        assert!(!format!("{hasher:?}").contains("31"), "the key stays out of logs");
    }
}

#[test]
#[should_panic(expected = "room for one digest")]
fn a_digest_of_another_length_is_the_callers_mistake() {
    PageHasher::new(HashKind::Sha1, &key()).hash(&[0; 10], &mut [0; 16]);
}
