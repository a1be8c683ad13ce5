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
//! - A record is written after all shards are durable, so a record means that all were. The manifest
//!   is in every store then: a node that is left must know what it has shards of.
//! - Encoding and rebuilding change nothing that a manifest names.

mod files;
mod look;
mod multiply;
mod pieces;

use std::sync::Arc;

use standfast_checkpoint::failpoint;
use standfast_comm::{Collective, Step};
use standfast_format::{Level, Manifest, StoreHeader, name};
use standfast_restart::{Ring, RingRebuilt};
use standfast_ring::topology::{Piece, TOPOLOGY_BYTES_MAX, discover};
use standfast_ring::{Holding, Means, Recovery, Shape, Stamp, encode_with, recover_with};
use standfast_store::Store;

use crate::config::{Choice, Config};
use crate::error::{Error, Phase, Result};
use crate::location;
use crate::stores::Stores;
use pieces::Pieces;

pub(crate) use look::newest;
pub use look::{Survey, Unusable, level, members_bytes, missing_ranks, read, survey};
pub(crate) use multiply::Multiplier;
pub use standfast_ring::Topology;
pub use standfast_ring::recover::{GroupLoss, GroupPlan, Place, Plan};
pub use standfast_ring::topology::{Chance, GroupId, Outlook};

/// Whether checkpoints of a job go to the ring.
#[derive(Clone, Debug)]
pub(crate) enum Protection {
    /// Nobody wants it.
    Off,
    /// It is wanted and cannot be, for this reason.
    Unable(&'static str),
    On(Arc<Topology>),
}

/// Groups the nodes of a job, where that is wanted and possible.
pub(crate) fn protection(team: &Collective, config: &Config, stores: &Stores) -> Phase<Protection> {
    if !config.levels.has_ring() {
        return Ok(Protection::Off);
    }
    if stores.are_one() {
        return Ok(Protection::Unable(
            "all ranks share one store; a store for each node has {node} in its place",
        ));
    }
    let topology = || {
        let nodes = discover(team.raw(), &location::node(config))?;
        let members = match config.ring.group {
            Choice::Auto => standfast_model::ring::usual_group(nodes.names.len() as u64) as usize,
            Choice::Set(members) => members,
        };
        let shape = match config.ring.shards {
            0 => Shape::full(members),
            shards => Shape::new(members, shards.min(members)),
        };
        Ok::<_, Error>(Topology::of_job(nodes, shape)?)
    };
    let topology = team.agree(Step("ring: topology"), topology())?;
    match topology.nodes() {
        1 => Ok(Protection::Unable("all ranks are on one node, and the ring needs a second one")),
        _ => Ok(Protection::On(Arc::new(topology))),
    }
}

fn stamp(manifest: &Manifest) -> Stamp {
    Stamp { job: manifest.job, version: manifest.version, attempt: manifest.attempt }
}

/// Brings a committed checkpoint to level ring; what it survives then, in words.
pub(crate) fn protect(
    team: &Collective,
    store: &dyn Store,
    stores: &Stores,
    topology: &Topology,
    manifest: &Manifest,
    multiplier: &mut Multiplier,
) -> Phase<String> {
    let shards = fitting_shards(team, store, stores, topology, manifest)?;
    let fewer = shards < topology.shape().m;
    let topology = &topology.with_shards(shards);
    failpoint::pass("ring.before_shards");
    let rank = team.rank().0 as usize;
    let bytes = files::member_bytes(manifest, rank);
    let options = multiplier.options();
    let pieces = || Pieces::new(store, manifest, topology);
    let mut means = Means { source: &mut pieces(), sink: &mut pieces(), arithmetic: multiplier };
    let encoded = encode_with(team.raw(), topology, stamp(manifest), bytes, options, &mut means);
    team.agree(Step("ring: shards"), encoded.map_err(Error::from))?;
    failpoint::pass("ring.before_record");
    let object = name::ring(manifest.version, manifest.attempt);
    let recorded = stores.lead(|| {
        ensure_manifest(store, manifest)?;
        Ok(store.put(&object, &topology.encode())?)
    });
    team.agree(Step("ring: record"), recorded)?;
    let why = if fewer {
        format!(", for no more than {shards} shards fit on the disks")
    } else {
        String::new()
    };
    Ok(format!("it survives {}{why}", topology.promise()))
}

/// How many shards a group can have, so that every node's disk takes what it shall keep.
fn fitting_shards(
    team: &Collective,
    store: &dyn Store,
    stores: &Stores,
    topology: &Topology,
    manifest: &Manifest,
) -> Phase<usize> {
    let wanted = topology.shape().m;
    let fitting = stores.lead(|| {
        let Some(free) = store.free_bytes()? else { return Ok(wanted) };
        let here: Vec<usize> = (0..topology.ranks()).filter(|rank| stores.is_here(*rank)).collect();
        let fits = |m: &usize| kept_bytes(topology, manifest, &here, *m) <= free;
        // With none that fits the attempt fails where the space ends, and says so.
        Ok((1..=wanted).rev().find(fits).unwrap_or(1))
    });
    let fitting = team.gather(Step("ring: space"), fitting)?.into_inner();
    Ok(fitting.into_iter().flatten().min().unwrap_or(wanted))
}

/// Bytes of the shards that some ranks would keep with `m` shards a group.
fn kept_bytes(topology: &Topology, manifest: &Manifest, ranks: &[usize], m: usize) -> u64 {
    let topology = topology.with_shards(m);
    let bytes = members_bytes(manifest);
    let longest = |group| {
        let members = topology.members(group).into_iter().flatten();
        members.map(|rank| bytes[rank]).max().unwrap_or(0)
    };
    let kept = ranks.iter().flat_map(|rank| topology.kept_by(*rank));
    kept.fold(0, |sum: u64, piece| sum.saturating_add(longest(piece.group)))
}

/// The ring of a job, for a restart: makes again what the groups of a checkpoint have lost, if it has
/// reached level ring.
pub(crate) struct RestartRing<'a> {
    pub(crate) ranks: &'a Collective,
    pub(crate) store: &'a dyn Store,
    pub(crate) stores: &'a Stores,
    pub(crate) header: &'a StoreHeader,
    pub(crate) multiplier: &'a Multiplier,
}

impl Ring for RestartRing<'_> {
    fn rebuild(&self, manifest: &Manifest) -> standfast_restart::Phase<RingRebuilt> {
        self.rebuild_all_but(manifest, |_| None).map_err(provided)
    }

    fn mend(&self, manifest: &Manifest) -> standfast_restart::Phase<RingRebuilt> {
        let damage = |rank| files::damage(self.store, self.header, manifest, rank);
        self.rebuild_all_but(manifest, damage).map_err(provided)
    }
}

fn provided(stop: crate::error::Stop) -> standfast_restart::Stop {
    stop.map(Error::into_restart)
}

impl RestartRing<'_> {
    /// `damage`: what is wrong with the member of a rank that is there.
    fn rebuild_all_but(
        &self,
        manifest: &Manifest,
        damage: impl Fn(usize) -> Option<Unusable>,
    ) -> Phase<RingRebuilt> {
        let Self { ranks: team, store, stores, .. } = *self;
        let mut multiplier = self.multiplier.clone();
        if stores.are_one() {
            return Ok(RingRebuilt::default());
        }
        let object = name::ring(manifest.version, manifest.attempt);
        let own = stores.lead(|| read_record(store, &object));
        let records = team.gather(Step("ring: records"), own)?;
        let record = records.map(|all| all.into_iter().flatten().flatten().next());
        let topology = record.clone().map(|record| {
            record.map(|record| Topology::decode(&record)).transpose().map_err(Error::from)
        });
        let (Some(record), Some(topology)) = (record.into_inner(), topology.decide()?.into_inner())
        else {
            return Ok(RingRebuilt::default());
        };
        // Another number of ranks reads region by region; nobody takes anybody's place.
        if topology.ranks() != team.size() || manifest.ranks as usize != team.size() {
            return Ok(RingRebuilt::default());
        }
        let mut found = team.agree(
            Step("ring: holding"),
            holding(store, |rank| stores.answers_for(rank), &topology, manifest),
        )?;
        let RingFiles { holding, unusable } = &mut found;
        holding.members.retain(|(rank, _)| {
            let damage = damage(*rank);
            unusable.extend(damage.clone());
            damage.is_none()
        });
        let heirs: Vec<usize> = (0..team.size()).collect();
        let block_bytes = multiplier.options().block_bytes;
        let recovery =
            Recovery { topology: &topology, stamp: stamp(manifest), heirs: &heirs, block_bytes };
        let pieces = || Pieces::new(store, manifest, &topology);
        let mut means =
            Means { source: &mut pieces(), sink: &mut pieces(), arithmetic: &mut multiplier };
        failpoint::pass("ring.before_rebuild");
        let recovered = recover_with(team.raw(), recovery, &found.holding, &mut means);
        let made = recovered.map(|recovered| recovered.made.len()).map_err(Error::from);
        let made = team.agree(Step("ring: rebuilt"), made)?;
        let unusable: Vec<String> = found.unusable.iter().map(Unusable::to_string).collect();
        let all = team.collect(Step("ring: made"), (made, unusable))?;
        failpoint::pass("ring.before_record");
        let recorded = stores.lead(|| match read_record(store, &object)? {
            Some(_) => Ok(()),
            None => Ok(store.put(&object, &record)?),
        });
        team.agree(Step("ring: record again"), recorded)?;
        let (made, unusable): (Vec<usize>, Vec<Vec<String>>) = all.into_inner().into_iter().unzip();
        let pieces: usize = made.into_iter().sum();
        let note =
            (pieces > 0).then(|| format!("rebuilt from the ring: {pieces} members and shards"));
        Ok(RingRebuilt { pieces, notes: note.into_iter().chain(unusable.concat()).collect() })
    }
}

/// Writes the manifest to a store that could not be told of the checkpoint when it was committed.
fn ensure_manifest(store: &dyn Store, manifest: &Manifest) -> Result<()> {
    let (object, bytes) = (name::manifest(manifest.version, Level::Local), manifest.encode());
    match store.get(&object, bytes.len() as u64) {
        Ok(there) if there == bytes => Ok(()),
        _ => Ok(store.put(&object, &bytes)?),
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

/// What a store has of a checkpoint.
struct RingFiles {
    holding: Holding,
    unusable: Vec<Unusable>,
}

/// What a rank may claim of its store: the pieces of the ranks it answers for, that is its own,
/// and, as the leader, those of ranks that are elsewhere now.
fn holding(
    store: &dyn Store,
    answers_for: impl Fn(usize) -> bool,
    topology: &Topology,
    manifest: &Manifest,
) -> Result<RingFiles> {
    let there = files::lengths(store)?;
    let mut found = RingFiles { holding: Holding::default(), unusable: Vec::new() };
    for rank in 0..topology.ranks() {
        if answers_for(rank) && files::has_member(&there, manifest, rank) {
            found.holding.members.push((rank, files::member_bytes(manifest, rank)));
        }
    }
    let pieces = Pieces::new(store, manifest, topology);
    for group in topology.ring() {
        let k = topology.members(group).len();
        for row in 0..topology.shape().m {
            let object = files::shard(manifest, group, row as u32);
            let Some(bytes) =
                there.get(&object).filter(|_| answers_for(topology.keeper(group, row)))
            else {
                continue;
            };
            // One that cannot be used is lost.
            match pieces.shard(Piece { group, index: (k + row) as u32 }, *bytes) {
                Ok(shard) => found.holding.shards.push(shard),
                Err(why) => found.unusable.push(Unusable { object, why }),
            }
        }
    }
    Ok(found)
}
