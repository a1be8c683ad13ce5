//! The ring in a job: shards of a checkpoint on other nodes, and their way back.
//!
//! ```text
//! after the local commit:  own files -> star -> shards sealed on all ranks -> record in every store
//! at a restart:            what each store has -> plan -> lost files and shards made again
//! ```
//! A rank's *member* is its image followed by the segments it wrote that the checkpoint names, as
//! the manifest lists them: so the manifest alone says what a member is. The *record* holds the
//! topology; where it is, the checkpoint has reached level ring.
//!
//! Why a checkpoint encodes all it names and not only what is new: then its shards need nothing but
//! themselves, and go when it goes.
//!
//! Invariants:
//! - A record is written after all shards are durable, so a record means that all were.
//! - Encoding and rebuilding change nothing that a manifest names.
//! - All methods are collective.

mod files;
mod pieces;

use standfast_format::{Level, Manifest, name};
use standfast_protect::topology::{TOPOLOGY_BYTES_MAX, discover};
use standfast_protect::{Holding, Options, Recovery, Shape, Stamp, Topology, encode, recover};
use standfast_store::Store;

use crate::config::{Config, Ring};
use crate::error::{Error, Result};
use crate::location;
use crate::stores::Stores;
use crate::team::Team;
use pieces::Pieces;

/// What a restart has brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rebuilt {
    /// Images and segments' owners, and shards, made again on all ranks.
    pub(crate) pieces: usize,
}

/// The topology of a job that protects its nodes; `None` where it does not, or where all ranks share
/// one store.
pub(crate) fn topology(team: &Team, config: &Config, stores: &Stores) -> Result<Option<Topology>> {
    if config.ring == Ring::Off || stores.are_one() {
        return Ok(None);
    }
    let node_of = discover(team.comm(), &location::node(config))?;
    let shape = match config.ring_shards {
        0 => Shape::full(config.ring_group),
        shards => Shape::new(config.ring_group, shards),
    };
    let topology = Topology::new(&node_of, shape)?;
    Ok((topology.nodes() > 1).then_some(topology))
}

fn stamp(manifest: &Manifest) -> Stamp {
    Stamp { job: manifest.job, version: manifest.version, attempt: manifest.attempt }
}

/// Brings a committed checkpoint to level ring.
pub(crate) fn protect(
    team: &Team,
    store: &dyn Store,
    stores: &Stores,
    topology: &Topology,
    manifest: &Manifest,
) -> Result<()> {
    let rank = team.rank().0 as usize;
    let bytes = files::member_bytes(manifest, rank);
    let (mut source, mut sink) =
        (Pieces::new(store, manifest, topology), Pieces::new(store, manifest, topology));
    let options = Options::default();
    let encoded =
        encode(team.comm(), topology, stamp(manifest), bytes, options, &mut source, &mut sink);
    team.agree(encoded.map(drop).map_err(Error::from))?;
    let object = name::ring(manifest.version, manifest.attempt);
    let recorded = stores.lead(|| Ok(store.put(&object, &topology.encode())?));
    team.agree(recorded).map(drop)
}

/// Makes again what the groups of a checkpoint have lost, if it has reached level ring.
pub(crate) fn rebuild(
    team: &Team,
    store: &dyn Store,
    stores: &Stores,
    manifest: &Manifest,
) -> Result<Rebuilt> {
    if stores.are_one() {
        return Ok(Rebuilt::default());
    }
    let object = name::ring(manifest.version, manifest.attempt);
    let own = stores.lead(|| read_record(store, &object));
    let records = team.gather_all(own)?;
    let Some(record) = records.iter().flatten().flatten().next() else {
        return Ok(Rebuilt::default());
    };
    let topology = Topology::decode(record)?;
    // Another number of ranks reads region by region; nobody takes anybody's place.
    if topology.ranks() != team.size() || manifest.ranks as usize != team.size() {
        return Ok(Rebuilt::default());
    }
    let held = team.agree(holding(store, stores, &topology, manifest))?;
    let heirs: Vec<usize> = (0..team.size()).collect();
    let block_bytes = Options::default().block_bytes;
    let recovery =
        Recovery { topology: &topology, stamp: stamp(manifest), heirs: &heirs, block_bytes };
    let (mut source, mut sink) =
        (Pieces::new(store, manifest, &topology), Pieces::new(store, manifest, &topology));
    let recovered = recover(team.comm(), recovery, &held, &mut source, &mut sink);
    let made = recovered.map(|recovered| recovered.made.len()).map_err(Error::from);
    let made = team.gather_all(made)?;
    let recorded = stores.lead(|| match read_record(store, &object)? {
        Some(_) => Ok(()),
        None => Ok(store.put(&object, record)?),
    });
    team.agree(recorded)?;
    Ok(Rebuilt { pieces: made.into_iter().sum() })
}

/// The level that a checkpoint has reached, by what a store says.
pub(crate) fn level(store: &dyn Store, manifest: &Manifest) -> Level {
    match store.open(&name::ring(manifest.version, manifest.attempt)) {
        Ok(_) => Level::Ring,
        Err(_) => Level::Local,
    }
}

/// A record, if it is there and whole: one that is not is as good as none.
fn read_record(store: &dyn Store, object: &str) -> Result<Option<Vec<u8>>> {
    match store.get(object, TOPOLOGY_BYTES_MAX as u64) {
        Ok(bytes) => Ok(Topology::decode(&bytes).is_ok().then_some(bytes)),
        Err(error) if error.kind() == standfast_format::Kind::Missing => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What this rank claims of its store: its own pieces, and, as the leader, those of ranks that are
/// elsewhere now.
fn holding(
    store: &dyn Store,
    stores: &Stores,
    topology: &Topology,
    manifest: &Manifest,
) -> Result<Holding> {
    let there = files::lengths(store)?;
    let mut holding = Holding::default();
    for rank in 0..topology.ranks() {
        if stores.answers_for(rank) && files::has_member(&there, manifest, rank) {
            holding.members.push((rank, files::member_bytes(manifest, rank)));
        }
    }
    let pieces = Pieces::new(store, manifest, topology);
    for group in topology.ring() {
        let k = topology.members(group).len();
        for row in 0..topology.shape().m {
            let object = files::shard(manifest, group, row as u32);
            if stores.answers_for(topology.keeper(group, row)) && there.contains_key(&object) {
                // One that cannot be opened is lost.
                holding.shards.extend(pieces.shard(group, (k + row) as u32, there[&object]));
            }
        }
    }
    Ok(holding)
}
