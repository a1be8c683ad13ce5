use proptest::prelude::*;
use standfast_format::{AttemptId, JobId, Version};

use super::*;
use crate::code::Family;
use crate::topology::GroupId;

fn header(member_bytes: Vec<u64>, block_bytes: u32) -> Header {
    Header {
        stamp: Stamp { job: JobId([7; 16]), version: Version(3), attempt: AttemptId([9; 8]) },
        group: GroupId { sector: 2, level: 1 },
        row: 1,
        m: 2,
        family: Family::Cauchy,
        block_bytes,
        member_bytes,
    }
}

/// A file of a shard whose body is all ones.
fn file(header: &Header) -> Vec<u8> {
    let mut table = Table::new(header.k());
    for block in 0..header.blocks() {
        table.push(block + 1, &vec![block; header.k()]);
    }
    let mut bytes = header.encode();
    bytes.resize(bytes.len() + header.body_bytes() as usize, 1);
    bytes.extend(table.encode());
    bytes
}

fn open(bytes: &[u8]) -> Result<Shard> {
    Shard::open(bytes.len() as u64, |at, into| {
        let from = bytes.get(at as usize..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(from.ok_or("beyond the end")?);
        Ok(())
    })
}

#[test]
fn a_header_that_no_code_can_have_is_refused() {
    let good = header(vec![10, 20], 1024);
    assert_eq!(Header::decode(&good.encode()).unwrap(), good);
    for bad in [
        Header { row: 2, ..good.clone() },
        Header { m: 0, row: 0, ..good.clone() },
        Header { m: 200, ..good.clone() },
        Header { block_bytes: 1023, ..good.clone() },
        Header { block_bytes: BLOCK_BYTES_MAX + 1, ..good.clone() },
        Header { member_bytes: vec![], ..good.clone() },
        Header { member_bytes: vec![1; 129], ..good.clone() },
        Header { member_bytes: vec![u64::MAX], ..good.clone() },
    ] {
        assert!(matches!(Header::decode(&bad.encode()), Err(Error::Corrupt { .. })), "{bad:?}");
    }
}

#[test]
fn a_huge_promise_allocates_nothing() {
    // The file is small, whatever its header says.
    let promise = header(vec![i64::MAX as u64, 5], 1024).encode();
    assert!(matches!(open(&promise), Err(Error::Corrupt { .. })));
    let mut long = promise.clone();
    long[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(open(&long), Err(Error::Corrupt { .. })));
}

#[test]
fn a_newer_header_is_named_as_such() {
    let mut bytes = header(vec![1], 1024).encode();
    bytes[8] = 2;
    let end = bytes.len() - 32;
    let digest = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(digest.as_bytes());
    assert!(matches!(Header::decode(&bytes), Err(Error::Version { found: 2, .. })));
}

#[test]
fn blocks_in_another_order_do_not_match() {
    assert_ne!(checksum(0, b"block"), checksum(1, b"block"));
}

proptest! {
    #[test]
    fn files_lead_back(lengths in proptest::collection::vec(0u64..5000, 1..9)) {
        let header = header(lengths, 1024);
        let bytes = file(&header);
        let shard = open(&bytes).unwrap();
        prop_assert_eq!(&shard.header, &header);
        prop_assert_eq!(shard.table.blocks() as u64, header.blocks());
        for block in 0..shard.table.blocks() {
            prop_assert_eq!(shard.table.shard(block), block as u64 + 1);
            prop_assert_eq!(shard.table.member(block, 0), block as u64);
        }
        prop_assert_eq!(shard.piece().index as usize, header.k() + 1);
    }

    #[test]
    fn a_changed_bit_outside_the_body_is_found(
        lengths in proptest::collection::vec(0u64..3000, 1..5), at: proptest::sample::Index,
        bit in 0u8..8,
    ) {
        let header = header(lengths, 1024);
        let mut bytes = file(&header);
        let body = header.encode().len()..header.encode().len() + header.body_bytes() as usize;
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(open(&bytes).is_ok(), body.contains(&at));
    }

    #[test]
    fn a_cut_is_found(lengths in proptest::collection::vec(0u64..3000, 1..5), at: proptest::sample::Index) {
        let bytes = file(&header(lengths, 1024));
        prop_assert!(open(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn garbage_never_panics(bytes: Vec<u8>) {
        prop_assert!(open(&bytes).is_err());
        prop_assert!(Header::decode(&bytes).is_err());
    }

    /// Fields that a digest covers may still be nonsense.
    #[test]
    fn sealed_garbage_never_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let sort = crate::frame::Sort { mark: *b"SFSHARD\0", what: "x", body_bytes_max: 1 << 20 };
        let bytes = sort.seal(&body);
        if let Ok(header) = Header::decode(&bytes) {
            prop_assert!(header.k() <= 128 && header.row < header.m);
            prop_assert!(open(&bytes).is_err() || header.body_bytes() == 0);
        }
    }
}

#[test]
fn checksums_are_xxh3_of_64_bits() {
    let bytes: Vec<u8> =
        (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for length in [0, 1, 8, 16, 17, 128, 129, 240, 241, 1024, 4096, 70_000] {
        for block in [0, 1, 1 << 40] {
            let expected = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[..length], block);
            assert_eq!(super::checksum(block, &bytes[..length]), expected, "{length} bytes");
        }
    }
}
