use standfast_comm::{Comm, Tag};
use standfast_testkit::run_threads;

use crate::encode::{Order, encode, encode_with};
use crate::error::{Error, Outside};
use crate::field::multiply;
use crate::memory::Memory;
use crate::recover::{Recovery, recover_with};
use crate::star::{Arithmetic, Block, FACTORS_MAX, Factors, Means, Sink, Source};
use crate::tests::job::{BLOCK_BYTES, Lab, options, stamp};
use crate::topology::{Piece, Shape, Spread, Topology};

const BLOCK: usize = BLOCK_BYTES as usize;

/// Lengths around blocks' ends, some of them nothing.
fn uneven(rank: usize) -> usize {
    [BLOCK + 1, 0, 3 * BLOCK, 700, BLOCK, 1, 2 * BLOCK - 1][rank % 7]
}

#[test]
fn any_number_of_nodes_encodes() {
    for nodes in 1..=17 {
        for (k, m) in [(2, 1), (3, 3), (4, 2), (8, 8)] {
            let topology = Topology::of_nodes(nodes, Shape::new(k, m.min(k))).unwrap();
            Lab::encoded(topology, uneven).check();
        }
    }
}

#[test]
fn unequal_ranks_spreads_and_orders_give_the_same_shards() {
    let nodes = [3usize, 1, 2, 1, 4, 1, 1, 2, 3];
    let node_of: Vec<u32> = nodes
        .iter()
        .enumerate()
        .flat_map(|(node, &ranks)| std::iter::repeat_n(node as u32, ranks))
        .collect();
    for spread in [Spread::First, Spread::Rotated] {
        for order in [Order::Star, Order::Together] {
            let shape = Shape { spread, ..Shape::new(3, 2) };
            let lab = Lab::new(Topology::new(&node_of, shape).unwrap(), uneven);
            lab.encode(order).into_iter().for_each(|report| _ = report.unwrap());
            lab.check();
        }
    }
}

#[test]
fn ranks_in_any_order_on_their_nodes_encode() {
    let node_of = [0, 1, 0, 2, 1, 3, 2, 2, 3, 0, 4];
    let topology = Topology::new(&node_of, Shape::full(2)).unwrap();
    Lab::encoded(topology, |rank| rank * 333).check();
}

#[test]
fn nothing_beyond_a_members_end_is_sent_and_memory_stays_bounded() {
    let topology = Topology::of_nodes(8, Shape::full(4)).unwrap();
    let lab = Lab::new(topology, |rank| if rank == 0 { 200 * BLOCK } else { 10 });
    for (rank, report) in lab.encode(Order::Star).into_iter().enumerate() {
        let report = report.unwrap();
        let blocks = lab.bytes_of(rank).len().div_ceil(BLOCK) as u64;
        assert_eq!(report.messages, 4 * blocks);
        assert_eq!(report.bytes_sent, 4 * (lab.bytes_of(rank).len() as u64 + 8 * blocks));
        // One block read and one sum, four sent and four received, with checksums; buffers of
        // messages in both directions change hands.
        let bound = 12 * (BLOCK as u64 + 8);
        assert!(report.buffer_bytes_max <= bound, "{} of {bound}", report.buffer_bytes_max);
    }
    lab.check();
}

/// A source that fails at some offset.
struct Failing(Memory, u64);

impl Source for Failing {
    fn read(&mut self, piece: Piece, at: u64, into: &mut [u8]) -> Result<(), Outside> {
        if at >= self.1 { Err("the disk is gone".into()) } else { self.0.read(piece, at, into) }
    }
}

#[test]
fn a_failed_source_is_told_and_nobody_waits() {
    let lab = Lab::new(Topology::of_nodes(6, Shape::full(3)).unwrap(), |_| 5 * BLOCK);
    let ended = run_threads(6, |comm| {
        let store = &lab.stores[comm.rank()];
        let limit = if comm.rank() == 1 { 2 * BLOCK as u64 } else { u64::MAX };
        let mut source = Failing(store.clone(), limit);
        let bytes = 5 * BLOCK as u64;
        let options = options(Order::Star);
        encode(&comm, &lab.topology, stamp(1), bytes, options, &mut source, &mut store.clone())
    });
    for (rank, ended) in ended.into_iter().enumerate() {
        match (rank, ended) {
            (1, Err(Error::Source { .. })) | (3..6, Err(Error::Peer { rank: 1, .. })) => {}
            (0 | 2, Ok(_)) => {}
            (_, other) => panic!("rank {rank}: {other:?}"),
        }
        // What the failed rank had a part in was not completed.
        let shards = lab.stores[rank].pieces().len() - 1;
        assert_eq!(shards, usize::from(rank < 3));
    }
}

/// A source that lends what it has.
struct Lending(Vec<u8>);

impl Source for Lending {
    fn read(&mut self, _: Piece, _: u64, _: &mut [u8]) -> Result<(), Outside> {
        Err("it lends".into())
    }
    fn lend(&self, _: Piece, at: u64, bytes: usize) -> Option<&[u8]> {
        self.0.get(at as usize..)?.get(..bytes)
    }
}

#[test]
fn what_is_lent_is_encoded_like_what_is_read() {
    let lab = Lab::new(Topology::of_nodes(6, Shape::full(3)).unwrap(), uneven);
    run_threads(6, |comm| {
        let bytes = lab.bytes_of(comm.rank()).to_vec();
        let (length, mut sink) = (bytes.len() as u64, lab.stores[comm.rank()].clone());
        let options = options(Order::Star);
        let mut source = Lending(bytes);
        encode(&comm, &lab.topology, stamp(1), length, options, &mut source, &mut sink).unwrap();
    });
    lab.check();
}

/// A sink that is full.
struct Full(Memory);

impl Sink for Full {
    fn begin(&mut self, piece: Piece, bytes: u64, head: &[u8]) -> Result<(), Outside> {
        self.0.begin(piece, bytes, head)
    }
    fn append(&mut self, _: Piece, _: &[u8]) -> Result<(), Outside> {
        Err("no space is left".into())
    }
    fn end(&mut self, piece: Piece, tail: &[u8]) -> Result<(), Outside> {
        self.0.end(piece, tail)
    }
    fn abandon(&mut self, piece: Piece) {
        self.0.abandon(piece);
    }
}

#[test]
fn a_full_sink_harms_nobody_else() {
    let lab = Lab::new(Topology::of_nodes(4, Shape::full(2)).unwrap(), |_| 5 * BLOCK);
    let ended = run_threads(4, |comm| {
        let store = &lab.stores[comm.rank()];
        let bytes = 5 * BLOCK as u64;
        let (topology, options) = (&lab.topology, options(Order::Star));
        let mut full = Full(store.clone());
        let sink: &mut dyn Sink = if comm.rank() == 2 { &mut full } else { &mut store.clone() };
        encode(&comm, topology, stamp(1), bytes, options, &mut store.clone(), sink).map(drop)
    });
    assert!(matches!(ended[2], Err(Error::Sink { .. })));
    assert!(ended.iter().enumerate().all(|(rank, ended)| rank == 2 || ended.is_ok()));
    assert_eq!(lab.stores[2].pieces().len(), 1);
}

#[test]
fn different_checkpoints_are_refused_by_all() {
    let lab = Lab::new(Topology::of_nodes(5, Shape::full(2)).unwrap(), |_| 100);
    let ended = run_threads(5, |comm| {
        let version = if comm.rank() == 3 { 2 } else { 1 };
        let store = &lab.stores[comm.rank()];
        let (mut source, mut sink) = (store.clone(), store.clone());
        let options = options(Order::Star);
        encode(&comm, &lab.topology, stamp(version), 100, options, &mut source, &mut sink).err()
    });
    assert!(ended.iter().all(Option::is_some));
    assert!(ended.iter().any(|error| matches!(error, Some(Error::Message { .. }))));
    assert!(lab.stores.iter().all(|store| store.pieces().len() == 1), "nothing was begun");
}

/// A rank that plays by the rules up to the products, then sends what it likes.
#[test]
fn hostile_products_are_typed_errors() {
    for hostile in [vec![], vec![1], vec![2], vec![0; 3], vec![7; 99], vec![0; 5 * BLOCK]] {
        let lab = Lab::new(Topology::of_nodes(2, Shape::full(1)).unwrap(), |_| 100);
        let ended = run_threads(2, |comm| {
            let store = &lab.stores[comm.rank()];
            let (mut source, mut sink) = (store.clone(), store.clone());
            let options = options(Order::Star);
            if comm.rank() == 0 {
                let (topology, options) = (&lab.topology, options);
                return encode(&comm, topology, stamp(1), 100, options, &mut source, &mut sink)
                    .map(drop);
            }
            // The announcement and the agreement as they should be.
            let told = comm.receive(0, Tag(0x0600)).unwrap();
            comm.send(0, Tag(0x0600), &told).unwrap();
            standfast_comm::collective::all_min(&comm, 1).unwrap();
            comm.send(0, Tag(0x0601), &hostile).unwrap();
            comm.receive(0, Tag(0x0601)).unwrap();
            Ok(())
        });
        let error = ended[0].as_ref().unwrap_err();
        assert!(matches!(error, Error::Message { from: 1, .. } | Error::Peer { rank: 1, .. }));
        assert_eq!(lab.stores[0].pieces().len(), 1, "no shard was made of it");
    }
}

#[test]
fn hostile_announcements_are_typed_errors() {
    let huge = {
        let mut bytes = [&[1; 16][..], &1u64.to_le_bytes(), &[2; 8]].concat();
        bytes.extend_from_slice(&BLOCK_BYTES.to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&u64::MAX.to_le_bytes());
        bytes
    };
    for hostile in [vec![], vec![0; 7], vec![0; 46], vec![9; 1 << 16], huge] {
        let lab = Lab::new(Topology::of_nodes(2, Shape::full(1)).unwrap(), |_| 100);
        let ended = run_threads(2, |comm| {
            let store = &lab.stores[comm.rank()];
            let (mut source, mut sink) = (store.clone(), store.clone());
            if comm.rank() == 0 {
                let (topology, options) = (&lab.topology, options(Order::Star));
                return encode(&comm, topology, stamp(1), 100, options, &mut source, &mut sink)
                    .map(drop);
            }
            comm.send(0, Tag(0x0600), &hostile).unwrap();
            standfast_comm::collective::all_min(&comm, 1).unwrap();
            Ok(())
        });
        assert!(matches!(ended[0], Err(Error::Message { from: 1, .. })), "{:?}", ended[0]);
    }
}

#[test]
fn a_wrong_job_or_block_is_refused() {
    let lab = Lab::new(Topology::of_nodes(2, Shape::full(1)).unwrap(), |_| 100);
    run_threads(1, |comm| {
        let store = &lab.stores[0];
        let (mut source, mut sink) = (store.clone(), store.clone());
        let options = options(Order::Star);
        let ended = encode(&comm, &lab.topology, stamp(1), 1, options, &mut source, &mut sink);
        assert!(matches!(ended, Err(Error::Invalid { .. })));
    });
    run_threads(2, |comm| {
        let store = &lab.stores[comm.rank()];
        let (mut source, mut sink) = (store.clone(), store.clone());
        let options = crate::Options { block_bytes: 17, order: Order::Star };
        let ended = encode(&comm, &lab.topology, stamp(1), 1, options, &mut source, &mut sink);
        assert!(matches!(ended, Err(Error::Invalid { .. })));
    });
}

/// Multiplies byte by byte, and counts.
#[derive(Default)]
struct Slow {
    calls: usize,
}

impl Arithmetic for Slow {
    fn multiply(&mut self, factors: &Factors, block: Block<'_>, products: &mut [&mut [u8]]) {
        assert!(factors.values().len() <= FACTORS_MAX && factors.values().len() == products.len());
        self.calls += 1;
        for (factor, product) in factors.values().iter().zip(products) {
            let bytes = product.iter_mut().zip(block.bytes);
            bytes.for_each(|(to, byte)| *to = multiply(*factor, *byte));
        }
    }
}

#[test]
fn another_arithmetic_makes_all_products() {
    for (nodes, k, m) in [(4, 2, 2), (6, 3, 2), (20, 10, 10)] {
        let topology = Topology::of_nodes(nodes, Shape::new(k, m)).unwrap();
        let lab = Lab::new(topology, |rank| 1 + rank * 1777 % 5000);
        let calls = run_threads(nodes, |comm| {
            let store = &lab.stores[comm.rank()];
            let (source, sink) = (&mut store.clone(), &mut store.clone());
            let mut own = Slow::default();
            let bytes = lab.bytes_of(comm.rank()).len() as u64;
            let mut means = Means { source, sink, arithmetic: &mut own };
            let options = options(Order::Star);
            encode_with(&comm, &lab.topology, stamp(1), bytes, options, &mut means).unwrap();
            (own.calls, bytes.div_ceil(BLOCK as u64) as usize * m.div_ceil(FACTORS_MAX))
        });
        lab.check();
        assert!(calls.iter().all(|(calls, blocks)| calls >= blocks), "{calls:?}");
        (0..m).for_each(|node| lab.wipe(node));
        let heirs: Vec<usize> = (0..nodes).collect();
        let calls = run_threads(nodes, |comm| {
            let store = &lab.stores[comm.rank()];
            let (source, sink) = (&mut store.clone(), &mut store.clone());
            let mut own = Slow::default();
            let mut means = Means { source, sink, arithmetic: &mut own };
            let (topology, stamp, block_bytes) = (&lab.topology, stamp(1), BLOCK_BYTES);
            let recovery = Recovery { topology, stamp, heirs: &heirs, block_bytes };
            recover_with(&comm, recovery, &lab.holding(comm.rank()), &mut means).unwrap();
            own.calls
        });
        lab.check();
        assert!(calls.iter().sum::<usize>() > 0);
    }
}
