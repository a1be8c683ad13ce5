//! What names a store: its identity among the stores of a job, and the header that all of them have.
//!
//! ```text
//! identity   read, or made where there is none -> told to all -> damaged ones taken away, made anew
//! header     read -> told to all -> the one that any store has, or global storage, or a new one
//!            -> written where it is missing or damaged
//! ```
//! Why damage heals here: both files say nothing of any checkpoint, and a store without them would
//! keep a whole job from opening, though its other stores, its shards or global storage have all it
//! needs. A job that made a new header over a damaged one would lose the key that its pages are
//! hashed with; so where nobody has the header, that is an error.
//!
//! Invariants:
//! - An identity is taken away only after every rank has looked at its own: nobody removes what
//!   another rank has just made.
//! - Whatever a newer version has written stays as it is, and is an error.

use standfast_comm::{Agreed, Collective, Failure, Fault, Step};
use standfast_format::{IDENTITY_BYTES_MAX, JobId, Kind, StoreHeader, StoreIdentity, name};
use standfast_restart::{Unreadable, read_header};
use standfast_store::Store;

use crate::error::{Error, Phase, Result};
use crate::identity;

/// The identities of all ranks' stores, by rank.
pub(crate) fn identities(team: &Collective, store: &dyn Store) -> Phase<Vec<StoreIdentity>> {
    let own = identify(store);
    let is_damaged = matches!(&own, Err(error) if error.kind() == Kind::Corrupt);
    let told = match own {
        Ok(identity) => Ok(Some(identity)),
        Err(_) if is_damaged => Ok(None),
        Err(error) => Err(error),
    };
    let all = team.gather(Step("identities"), told)?;
    if let Some(all) = all.into_inner().into_iter().collect::<Option<Vec<_>>>() {
        return Ok(all);
    }
    let removed = if is_damaged { take_away(store) } else { Ok(()) };
    team.agree(Step("identities: damaged"), removed)?;
    Ok(team.gather(Step("identities: new"), identify(store))?.into_inner())
}

/// The identity of a store, which it gets when it has none.
fn identify(store: &dyn Store) -> Result<StoreIdentity> {
    let read = |bytes: Vec<u8>| {
        let object = name::IDENTITY.into();
        StoreIdentity::decode(&bytes).map_err(|source| Unreadable::Object { object, source }.into())
    };
    match store.get(name::IDENTITY, IDENTITY_BYTES_MAX) {
        Ok(bytes) => return read(bytes),
        Err(error) if error.kind() == Kind::Missing => {}
        Err(error) => return Err(error.into()),
    }
    let own = StoreIdentity(identity::bytes()?);
    match store.put_new(name::IDENTITY, &own.encode()) {
        Ok(()) => Ok(own),
        // Another rank of this node was faster.
        Err(error) if error.kind() == Kind::Busy => {
            read(store.get(name::IDENTITY, IDENTITY_BYTES_MAX)?)
        }
        Err(error) => Err(error.into()),
    }
}

fn take_away(store: &dyn Store) -> Result<()> {
    match store.remove(name::IDENTITY) {
        // Another rank of this node was faster.
        Err(error) if error.kind() != Kind::Missing => Err(error.into()),
        _ => Ok(()),
    }
}

/// What a store has for a header.
pub(crate) enum Header {
    Whole(StoreHeader),
    Missing,
    Damaged(Error),
}

/// The same on its way to other ranks.
pub(crate) type ToldHeader = std::result::Result<Option<Vec<u8>>, Failure>;

impl Header {
    pub(crate) fn read(store: &dyn Store) -> Result<Self> {
        match read_header(store) {
            Ok(header) => Ok(Header::Whole(header)),
            Err(Unreadable::NoStore(_)) => Ok(Header::Missing),
            Err(error) if error.kind() == Kind::Corrupt => Ok(Header::Damaged(error.into())),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn told(&self, team: &Collective) -> ToldHeader {
        match self {
            Header::Whole(header) => Ok(Some(header.encode())),
            Header::Missing => Ok(None),
            Header::Damaged(error) => Err(Failure::of(team.rank().0, error)),
        }
    }
}

/// The header that all stores have or shall have.
/// `own`: what this rank has found, if it leads a store; `told`: what all leaders have;
/// `elsewhere`: the header that the job has in global storage, asked for where no store has one.
pub(crate) fn common_header(
    team: &Collective,
    own: Option<&Header>,
    told: Agreed<Vec<Option<ToldHeader>>>,
    job: &str,
    elsewhere: impl FnOnce() -> Result<Option<StoreHeader>>,
) -> Phase<StoreHeader> {
    let (known, damaged) = told.map(known_header).decide()?.into_inner();
    if let Some(header) = known {
        return Ok(header);
    }
    let make = || {
        if let Some(header) = elsewhere()? {
            return Ok(header);
        }
        match (own, damaged) {
            (Some(Header::Damaged(error)), _) => Err(error.clone()),
            (_, Some(failure)) => Err(Error::of_other(failure)),
            (_, None) => new_header(job),
        }
    };
    Ok(team.tell(Step("header: new"), make)?.into_inner())
}

/// The header that any store has, and what is wrong with a damaged one.
fn known_header(told: Vec<Option<ToldHeader>>) -> Result<(Option<StoreHeader>, Option<Failure>)> {
    let mut known: Option<(usize, StoreHeader)> = None;
    let mut damaged = None;
    for (rank, told) in told.into_iter().enumerate() {
        let bytes = match told {
            Some(Ok(Some(bytes))) => bytes,
            Some(Err(failure)) => {
                damaged.get_or_insert(failure);
                continue;
            }
            Some(Ok(None)) | None => continue,
        };
        let object = name::STORE.into();
        let header =
            StoreHeader::decode(&bytes).map_err(|source| Unreadable::Object { object, source })?;
        match &known {
            Some((first, other)) if other.id != header.id => {
                return Err(Error::disagree(format!(
                    "the store of rank {rank} and that of rank {first} were made by different runs; move one of them away"
                )));
            }
            Some(_) => {}
            None => known = Some((rank, header)),
        }
    }
    Ok((known.map(|(_, header)| header), damaged))
}

fn new_header(job: &str) -> Result<StoreHeader> {
    Ok(StoreHeader {
        id: JobId(identity::bytes()?),
        job: job.into(),
        key: identity::bytes()?,
        created_ns: identity::now_ns(),
    })
}
