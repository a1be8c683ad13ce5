//! The cases: what each store is, how it is written, and what its reader must find.
//!
//! An archive that is committed has exactly these cases. So a case stays here for ever: when a setting
//! goes, the case is written with another one, and `name`, ranks and versions remain what they were.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result};
use standfast_format::{CodecKind, FilterKind, HashKind, name};

use crate::traces::Trace::{self, Below, Codec, Filter, Hash, Page, References, Segments};

/// One job with its store or stores.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its directory in the archive. The contents of memory follow from it too.
    pub name: &'static str,
    /// Settings of the writer, beyond the usual ones. Readers do without.
    pub settings: &'static [(&'static str, &'static str)],
    /// The node of every rank.
    pub node_of: &'static [usize],
    /// Whether each node has a store of its own.
    pub apart: bool,
    /// How many times larger than usual the fields are.
    pub scale: usize,
    /// Versions in the order in which they are taken.
    pub taken: &'static [u64],
    /// Versions that the store lists, newest first.
    pub listed: &'static [u64],
    /// What else happens to the job.
    pub life: Life,
    /// What the files must show, or the case is not what its name says.
    pub traces: &'static [Trace],
}

/// What happens to a job besides taking checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Nothing.
    Plain,
    /// Its field lies on a device, or on what stands in for one.
    Device,
    /// Agents write for the ranks, one on each node.
    Agents,
    /// The same, and the ranks end before they commit the last version: only pledges tell of it.
    Pledged,
    /// All nodes are drained to global storage, which then has these versions, newest first.
    Drained(&'static [u64]),
    /// Only the first node is drained: images of the newest version wait for the other nodes.
    HalfDrained,
    /// The newest version is damaged, and marked.
    Marked,
    /// A node can be lost: shards are on the ring.
    Ring,
}

impl Case {
    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.node_of.len()
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.node_of.iter().max().map_or(0, |last| last + 1)
    }

    /// The version that must not be readable.
    pub fn damaged(&self) -> Option<u64> {
        self.listed.first().copied().filter(|_| self.life == Life::Marked)
    }

    /// Whether there is global storage.
    pub fn has_global(&self) -> bool {
        matches!(self.life, Life::Drained(_) | Life::HalfDrained)
    }
}

/// The case of this name.
pub fn case(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// Cases that are worked on at a time: mostly they wait for disks.
const AT_A_TIME: usize = 4;

/// Does something with every case; an error says which.
pub fn each(work: impl Fn(&Case) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(case) = CASES.get(next.fetch_add(1, Relaxed)) {
            work(case).with_context(|| format!("case {}", case.name))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(worker)).collect();
        let panicked = |_| anyhow::anyhow!("a worker has panicked");
        workers.into_iter().try_for_each(|one| one.join().map_err(panicked)?)
    })
}

type Settings = &'static [(&'static str, &'static str)];

/// One rank with one store: what most cases are.
const fn solo(name: &'static str, settings: Settings, traces: &'static [Trace]) -> Case {
    let (taken, listed): (&[u64], &[u64]) = (&[1, 2, 3], &[3, 2, 1]);
    let (node_of, life): (&[usize], _) = (&[0], Life::Plain);
    Case { name, settings, node_of, apart: false, scale: 1, taken, listed, life, traces }
}

/// Three ranks that share a store.
const fn trio(name: &'static str, settings: Settings, traces: &'static [Trace]) -> Case {
    Case { node_of: &[0, 0, 0], ..solo(name, settings, traces) }
}

/// Four ranks on as many nodes as the list says, each node with a store of its own.
const fn apart(
    name: &'static str,
    node_of: &'static [usize],
    settings: Settings,
    traces: &'static [Trace],
) -> Case {
    Case { node_of, apart: true, ..solo(name, settings, traces) }
}

const RAW: Trace = Codec(CodecKind::None);
const LZ4: Trace = Codec(CodecKind::Lz4);
const ZSTD: Trace = Codec(CodecKind::Zstd);
const DEFLATE: Trace = Codec(CodecKind::Deflate);
const PAIRS: &[usize] = &[0, 0, 1, 1];

/// All cases.
pub const CASES: &[Case] = &[
    solo("mode-full", &[("lab.mode", "full")], &[LZ4, RAW, Page(4096), Hash(HashKind::Xxh3)]),
    solo("mode-incremental", &[("lab.mode", "incremental")], &[LZ4]),
    solo("mode-local", &[("lab.mode", "local")], &[LZ4]),
    solo("mode-collective", &[("lab.mode", "collective")], &[LZ4]),
    solo("mode-all", &[("lab.mode", "all")], &[LZ4]),
    solo("codec-none", &[("codec", "none")], &[RAW]),
    solo("codec-lz4", &[("codec", "lz4")], &[LZ4]),
    solo("codec-zstd", &[("codec", "zstd")], &[ZSTD]),
    solo("codec-zstd-negative", &[("codec", "zstd:-5")], &[ZSTD]),
    solo("codec-zstd-high", &[("codec", "zstd:19")], &[ZSTD]),
    solo("codec-deflate", &[("codec", "deflate")], &[DEFLATE]),
    solo("codec-auto", &[("codec", "auto")], &[]),
    Case {
        life: Life::Device,
        ..solo("device-float", &[("lab.device_codec", "float")], &[Codec(CodecKind::Float), LZ4])
    },
    Case {
        life: Life::Device,
        ..solo("device-deflate", &[("lab.device_codec", "deflate")], &[DEFLATE, LZ4])
    },
    solo("filter-none", &[("lab.filter", "none")], &[Filter(FilterKind::None)]),
    solo("filter-shuffle4", &[("lab.filter", "shuffle4")], &[Filter(FilterKind::Shuffle4)]),
    solo("filter-shuffle8", &[("lab.filter", "shuffle8")], &[Filter(FilterKind::Shuffle8)]),
    solo("filter-delta4", &[("lab.filter", "delta4")], &[Filter(FilterKind::Delta4)]),
    solo("filter-delta8", &[("lab.filter", "delta8")], &[Filter(FilterKind::Delta8)]),
    solo("filter-auto", &[("lab.filter", "auto"), ("codec", "zstd")], &[ZSTD]),
    solo("hash-blake3", &[("lab.hash", "blake3")], &[Hash(HashKind::Blake3)]),
    solo("hash-sha1", &[("lab.hash", "sha1")], &[Hash(HashKind::Sha1)]),
    solo("page-1k", &[("lab.page", "1KiB")], &[Page(1024)]),
    Case {
        scale: 8,
        ..solo("page-64k", &[("lab.page", "64KiB"), ("lab.block", "128KiB")], &[Page(65536)])
    },
    // Every region is shorter than its one page.
    solo(
        "page-1m",
        &[
            ("lab.page", "1MiB"),
            ("lab.block", "1MiB"),
            ("lab.pool", "8MiB"),
            ("lab.mode", "incremental"),
        ],
        &[Page(1 << 20)],
    ),
    solo("block-usual", &[("lab.block", "128KiB")], &[LZ4]),
    solo("segments-small", &[("lab.segment", "8KiB")], &[LZ4]),
    solo("capture-cow", &[("capture", "cow")], &[LZ4]),
    solo("write-wag", &[("lab.write", "wag")], &[RAW]),
    // What is pruned leaves segments that later checkpoints refer to.
    Case { taken: &[1, 2, 3, 4], listed: &[4, 3], ..solo("keep-two", &[("keep", "2")], &[LZ4]) },
    // Newest is what was committed last, whatever its number.
    Case { taken: &[1, 2, 3, 2], listed: &[2, 3, 1], ..solo("version-again", &[], &[LZ4]) },
    Case { life: Life::Marked, ..solo("marked", &[("lab.mode", "full")], &[Below(name::MARKS)]) },
    trio("ranks-exact", &[("lab.strategy", "exact")], &[LZ4, Segments(9)]),
    trio("ranks-topk", &[("lab.strategy", "topk")], &[References]),
    trio("ranks-local", &[("lab.mode", "local")], &[LZ4]),
    Case {
        taken: &[1, 2, 3, 4],
        listed: &[4, 3],
        ..trio("ranks-keep-two", &[("keep", "2"), ("lab.segment", "8KiB")], &[LZ4])
    },
    apart("nodes", PAIRS, &[], &[Below(name::IDENTITY)]),
    Case {
        taken: &[1, 2],
        listed: &[2, 1],
        life: Life::Ring,
        ..apart(
            "nodes-ring",
            &[0, 1, 2, 3],
            &[("ring", "auto"), ("lab.ring_group", "2"), ("lab.strategy", "topk")],
            &[Below(name::SHARDS), Below(name::RINGS), References],
        )
    },
    Case { life: Life::Agents, ..trio("agent", &[], &[Segments(3)]) },
    Case {
        life: Life::Agents,
        ..apart("agent-nodes", PAIRS, &[("lab.strategy", "topk")], &[References, Segments(6)])
    },
    Case {
        life: Life::Pledged,
        ..apart("pledged", PAIRS, &[("lab.strategy", "topk")], &[Below(name::PLEDGES), Segments(6)])
    },
    Case { life: Life::Drained(&[3, 2, 1]), ..solo("drained", &[], &[ZSTD, Below(name::DRAINS)]) },
    Case { life: Life::Drained(&[3, 2, 1]), ..apart("drained-nodes", PAIRS, &[], &[ZSTD]) },
    Case { life: Life::HalfDrained, ..apart("drained-half", PAIRS, &[], &[Below(name::PARTS)]) },
];
