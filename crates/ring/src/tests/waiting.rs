//! On a communicator whose sends wait for their receiver, as MPI's may, nothing locks up.

use standfast_comm::{Comm, Concurrency, Result, Tag};
use standfast_testkit::{Threads, run_threads};

use crate::encode::encode;
use crate::recover::{Recovery, recover};
use crate::tests::job::{BLOCK_BYTES, Lab, options, stamp};
use crate::topology::{Shape, Spread, Topology};
use crate::{Memory, Order};

/// Every message is acknowledged before its sender goes on.
struct Waiting(Threads);

fn answer(tag: Tag) -> Tag {
    Tag(tag.0 | 0x8000)
}

impl Comm for Waiting {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::CallerOnly
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        assert_ne!(to, self.rank(), "a send to itself would wait for ever");
        self.0.send(to, tag, bytes)?;
        self.0.receive(to, answer(tag)).map(drop)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        let message = self.0.receive(from, tag)?;
        self.0.send(from, answer(tag), &[])?;
        Ok(message)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.0.send(to, tag, bytes)?;
        let message = self.receive(from, tag)?;
        self.0.receive(to, answer(tag))?;
        Ok(message)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        self.0.all_to_all(outgoing)
    }

    fn barrier(&self) -> Result<()> {
        self.0.barrier()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        self.0.split(colour, key)
    }
}

fn run(lab: &Lab, order: Order, failed: &[usize]) {
    let ranks = lab.topology.ranks();
    run_threads(ranks, |comm| {
        let comm = Waiting(comm);
        let store = lab.stores[comm.rank()].clone();
        let (mut source, mut sink): (Memory, Memory) = (store.clone(), store);
        let (topology, bytes) = (&lab.topology, lab.bytes_of(comm.rank()).len() as u64);
        encode(&comm, topology, stamp(1), bytes, options(order), &mut source, &mut sink).unwrap();
    });
    lab.check();
    failed.iter().for_each(|node| lab.wipe(*node));
    let heirs: Vec<usize> = (0..ranks).collect();
    run_threads(ranks, |comm| {
        let comm = Waiting(comm);
        let store = lab.stores[comm.rank()].clone();
        let (mut source, mut sink): (Memory, Memory) = (store.clone(), store);
        let (topology, stamp, block_bytes) = (&lab.topology, stamp(1), BLOCK_BYTES);
        let recovery = Recovery { topology, stamp, heirs: &heirs, block_bytes };
        recover(&comm, recovery, &lab.holding(comm.rank()), &mut source, &mut sink).unwrap();
    });
    lab.check();
}

#[test]
fn waiting_sends_lock_up_nowhere() {
    for nodes in 2..=17 {
        for (k, m) in [(2, 2), (4, 3), (5, 1)] {
            // Every third rank shares a node with the one before.
            let node_of: Vec<u32> =
                (0..nodes).flat_map(|n| vec![n; 1 + (n % 3 == 1) as usize]).collect();
            let spread = if nodes % 2 == 0 { Spread::First } else { Spread::Rotated };
            let shape = Shape { spread, ..Shape::new(k, m) };
            let topology = Topology::new(&node_of, shape).unwrap();
            let worst = topology.worst_case();
            // As many neighbours as are always survived, somewhere on the ring.
            let failed: Vec<usize> =
                (0..worst).map(|i| (nodes as usize * 2 / 3 + i) % nodes as usize).collect();
            let lab = Lab::new(topology, |rank| 1 + rank * 777 % 4000);
            let order = if k == 4 { Order::Together } else { Order::Star };
            run(&lab, order, &failed);
        }
    }
}
