use super::*;
use crate::pool::Pool;
use standfast_format::{CodecKind, FilterKind, HashKind};
use std::sync::{Arc, Mutex};

const PAGE: usize = 1024;
const SEGMENT: SegmentId = SegmentId([1; 16]);

/// Notes the pages of the blocks it is handed.
struct Noting {
    pool: Pool,
    blocks: Arc<Mutex<Vec<u32>>>,
}

impl SegmentSink for Noting {
    fn unit(&mut self) -> Result<Unit> {
        Ok(self.pool.take())
    }

    fn put(&mut self, block: Filled, _: bool) -> Result<()> {
        assert_eq!(block.head.hashes.len(), 16 * block.head.pages as usize);
        self.blocks.lock().unwrap().push(block.head.pages);
        Ok(())
    }

    fn end_stream(&mut self) -> Result<()> {
        Ok(())
    }

    fn hand_over(self: Box<Self>) -> Box<dyn Unsealed> {
        unreachable!("no test hands anything over")
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        assert_eq!(self.pool.empty(), self.pool.buffers(), "units come back first");
    }
}

fn start() -> (Batch, Arc<Mutex<Vec<u32>>>) {
    let (pool, blocks) = (Pool::new(2, 4 * PAGE), Arc::<Mutex<Vec<u32>>>::default());
    let sink = Noting { pool, blocks: Arc::clone(&blocks) };
    let hasher = PageHasher::new(HashKind::Xxh3, &[7; 32]);
    (Batch::new(Box::new(sink), Rank(0), hasher, PAGE), blocks)
}

#[test]
fn a_sink_sees_blocks_and_a_batch_that_is_dropped_gives_its_unit_back() {
    let (mut batch, blocks) = start();
    let mut hash = [0; 16];
    batch.open_segment(SEGMENT, None);
    for elem in [8, 8, 8, 8, 8, 4, 4] {
        batch.stage(&[elem; PAGE], elem, &mut hash).unwrap();
        batch.keep_staged().unwrap();
    }
    assert_eq!(*blocks.lock().unwrap(), [4, 1]);
    assert_eq!(batch.slots(), Some(7));
    drop(batch);
}

#[test]
fn what_changed_or_is_out_of_turn_is_an_error() {
    let (mut batch, _) = start();
    assert!(matches!(batch.keep_staged(), Err(Error::Misused { .. })));
    batch.open_segment(SEGMENT, None);
    assert!(matches!(batch.push(&[1; PAGE], &[0; 16], 0), Err(Error::MemoryChanged)));
    assert_eq!(batch.slots(), Some(0));
    let (codec, filter) = (CodecKind::Lz4, FilterKind::None);
    let encoded = Encoded { codec, filter, bytes: &[1] };
    assert!(!batch.takes_blocks());
    let refused = batch.push_block(1, encoded, vec![0; 16]);
    assert!(matches!(refused, Err(Error::Misused { .. })));
}
