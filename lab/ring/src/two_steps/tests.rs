use standfast_format::{AttemptId, JobId, Version};
use standfast_testkit::run_threads;

use super::*;

/// What a shard holds, and where; its header names another group.
fn bodies(store: &Memory) -> Vec<(Piece, Vec<u8>)> {
    let pieces = store.pieces().into_iter();
    let shards = pieces.filter_map(|piece| Some((piece, store.shard(piece).ok()?)));
    let body = |(piece, shard): (Piece, standfast_ring::Shard)| {
        let file = store.get(piece).expect("it is there");
        let bytes = shard.header.body_bytes() as usize;
        (piece, file[shard.body_at as usize..][..bytes].to_vec())
    };
    shards.map(body).collect()
}

#[test]
fn both_forms_leave_the_same_shards_at_the_same_ranks() {
    let stamp = Stamp { job: JobId([1; 16]), version: Version(1), attempt: AttemptId([2; 8]) };
    let topology = Topology::of_nodes(12, Shape::full(4)).unwrap();
    let options = Options { block_bytes: 4096, ..Options::default() };
    run_threads(12, |comm| {
        let (group, place) = topology.group_of(comm.rank());
        let member: Vec<u8> = (0..50_000).map(|i| (i * 7 + comm.rank() * 31) as u8).collect();
        let [folded, two] = [(); 2].map(|()| Memory::default());
        for store in [&folded, &two] {
            store.put(Piece { group, index: place as u32 }, member.clone());
        }
        let (mut source, mut sink) = (folded.clone(), folded.clone());
        encode(&comm, &topology, stamp, 50_000, options, &mut source, &mut sink).unwrap();
        encode_in_two_steps(&comm, &topology, stamp, 50_000, options, &two).unwrap();
        let expected = bodies(&folded);
        assert_eq!(expected.len(), 1);
        assert!(bodies(&two) == expected);
    });
}
