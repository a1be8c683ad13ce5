//! Messages that are damaged on their way: refused or harmless, never a panic.

use std::sync::atomic::{AtomicUsize, Ordering};

use standfast_comm::{Concurrency, Result, Tag};

use super::*;

/// How a message is damaged on its way.
#[derive(Clone, Debug)]
struct Damage {
    /// Which exchange with all, of those that the rank takes part in.
    call: usize,
    from: prop::sample::Index,
    at: prop::sample::Index,
    what: Harm,
}

#[derive(Clone, Debug)]
enum Harm {
    Flip(u8),
    Cut,
    Insert(Vec<u8>),
}

fn damages() -> impl proptest::strategy::Strategy<Value = Damage> {
    let harm = prop_oneof![
        (1u8..).prop_map(Harm::Flip),
        Just(Harm::Cut),
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(Harm::Insert),
    ];
    (0usize..3, any::<prop::sample::Index>(), any::<prop::sample::Index>(), harm)
        .prop_map(|(call, from, at, what)| Damage { call, from, at, what })
}

/// A rank that receives one damaged message.
struct Damaged {
    comm: Threads,
    calls: AtomicUsize,
    damage: Damage,
}

impl Damage {
    fn apply(&self, received: &mut [Vec<u8>]) {
        let message = &mut received[self.from.index(received.len())];
        let at = self.at.index(message.len() + 1);
        match &self.what {
            Harm::Flip(bits) => {
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Harm::Cut => message.truncate(at),
            Harm::Insert(bytes) => drop(message.splice(at..at, bytes.iter().copied())),
        }
    }
}

impl Comm for Damaged {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn concurrency(&self) -> Concurrency {
        self.comm.concurrency()
    }

    fn send(&self, to: usize, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.comm.send(to, tag, bytes)
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.comm.receive(from, tag)
    }

    fn exchange(&self, to: usize, bytes: &[u8], from: usize, tag: Tag) -> Result<Vec<u8>> {
        self.comm.exchange(to, bytes, from, tag)
    }

    fn all_to_all(&self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let mut received = self.comm.all_to_all(outgoing)?;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.rank() == 0 && call == self.damage.call {
            self.damage.apply(&mut received);
        }
        Ok(received)
    }

    fn barrier(&self) -> Result<()> {
        self.comm.barrier()
    }

    fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Box<dyn Comm>>> {
        self.comm.split(colour, key)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_messages_are_refused_or_harmless(damage in damages(), way in 0usize..3) {
        let pages = regular(5, |rank| rank * 3, 7, 12);
        let attempt = |comm: &Damaged| -> Result<()> {
            let mut strategy: Box<dyn Strategy> = match way {
                0 => exact(),
                1 => top_k(40),
                _ => Box::new(Exact::with_index(HashKind::Xxh3, 1 << 20)),
            };
            let hashes = hashes(HashKind::Xxh3, &pages[comm.rank()]);
            let assignment = strategy.assign(comm, &hashes)?;
            let place = |slot: u32| Location { segment: 0, slot };
            let places = strategy.locate(comm, &assignment, &[SegmentId([7; 16])], &place)?;
            strategy.commit();
            for candidate in 0..assignment.len() as u32 {
                let is_theirs = matches!(assignment.fate(candidate), Fate::Theirs { .. });
                assert_eq!(places.page(candidate).is_some(), is_theirs);
            }
            Ok(())
        };
        // Nobody panics, and nobody waits for ever.
        run_threads(pages.len(), |comm| {
            let _ = attempt(&Damaged { comm, calls: 0.into(), damage: damage.clone() });
        });
    }
}
