use super::*;
use proptest::prelude::*;

fn some_index(pages: Vec<u32>) -> SegmentIndex {
    let mut offset = SEGMENT_HEADER_BYTES as u64;
    let mut blocks = Vec::new();
    for pages in pages {
        let block = Block {
            offset,
            stored_bytes: pages * 4096,
            pages,
            codec: CodecKind::None,
            filter: FilterKind::None,
        };
        offset += u64::from(block.stored_bytes);
        blocks.push(block);
    }
    let slots: u32 = blocks.iter().map(|block| block.pages).sum();
    SegmentIndex {
        id: SegmentId([7; 16]),
        page_bytes: 4096,
        hash: HashKind::Xxh3,
        blocks,
        hashes: (0..slots * 16).map(|at| at as u8).collect(),
    }
}

fn end_of(index: &SegmentIndex) -> u64 {
    index.blocks.iter().map(|b| b.offset + u64::from(b.stored_bytes)).max().unwrap_or(4096)
}

#[test]
fn blocks_outside_of_the_file_are_refused() {
    let index = some_index(vec![4, 4]);
    let (bytes, _) = index.encode();
    SegmentIndex::decode(&bytes, end_of(&index)).unwrap();
    let error = SegmentIndex::decode(&bytes, end_of(&index) - 1).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[test]
fn a_block_larger_than_its_pages_is_refused() {
    let mut index = some_index(vec![1]);
    index.blocks[0].stored_bytes = 4097;
    let (bytes, _) = index.encode();
    assert!(SegmentIndex::decode(&bytes, 1 << 40).is_err());
}

proptest! {
    #[test]
    fn headers_lead_back(id: [u8; 16], job: [u8; 16], created_ns: u64, shift in 10u32..=20) {
        let header = SegmentHeader {
            id: SegmentId(id),
            job: JobId(job),
            hash: HashKind::Blake3,
            page_bytes: 1 << shift,
            created_ns,
        };
        let bytes = header.encode();
        prop_assert_eq!(bytes.len(), SEGMENT_HEADER_BYTES);
        prop_assert_eq!(SegmentHeader::decode(&bytes).unwrap(), header);
    }

    #[test]
    fn indexes_lead_back(pages in proptest::collection::vec(1u32..40, 0..20)) {
        let index = some_index(pages);
        let (bytes, digest) = index.encode();
        let (decoded, found) = SegmentIndex::decode(&bytes, end_of(&index)).unwrap();
        prop_assert_eq!(decoded, index);
        prop_assert_eq!(found, digest);
    }

    #[test]
    fn footers_lead_back(id: [u8; 16], offset in 4096u64..1 << 40, index_bytes in 0u64..1 << 30) {
        let footer = SegmentFooter { id: SegmentId(id), index_offset: offset, index_bytes };
        let file_bytes = offset + index_bytes + SEGMENT_FOOTER_BYTES as u64;
        prop_assert_eq!(SegmentFooter::decode(&footer.encode(), file_bytes).unwrap(), footer);
        prop_assert!(SegmentFooter::decode(&footer.encode(), file_bytes + 1).is_err());
    }

    #[test]
    fn flipped_footers_are_found(at in 0usize..SEGMENT_FOOTER_BYTES, bit in 0u8..8) {
        let footer = SegmentFooter { id: SegmentId([3; 16]), index_offset: 4096, index_bytes: 100 };
        let mut bytes = footer.encode();
        bytes[at] ^= 1 << bit;
        prop_assert!(SegmentFooter::decode(&bytes, 4096 + 100 + 64).is_err());
    }

    #[test]
    fn sealed_garbage_never_panics(body: Vec<u8>) {
        let _ = SegmentIndex::decode(&frame::seal(INDEX, &body), 1 << 30);
        let _ = SegmentHeader::decode(&frame::seal(HEADER, &body));
    }
}
