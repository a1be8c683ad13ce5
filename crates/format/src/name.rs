//! Names: what jobs and regions may be called, and where each object of a store lies.
//!
//! Object names are made here and nowhere else, so the tree in docs/FORMAT.md is this file.
//!
//! Invariants:
//! - No job name leads out of its directory: it is one path component without tricks.
//! - Parsing an object name gives back exactly what made it, or nothing.

use crate::error::{Error, Result};
use crate::id::{AttemptId, Rank, SegmentId, Version};
use crate::manifest::{Level, Manifest};

/// Longest name of a job, in bytes.
pub const JOB_NAME_BYTES_MAX: usize = 64;
/// Longest name of a region, in bytes.
pub const REGION_NAME_BYTES_MAX: usize = 255;

/// Name of the object that makes a directory a store.
pub const STORE: &str = "store";
/// Where a copy of the header lies that goes with no other directory.
pub const COPIES: &str = "copies";
/// The header and its copies, each in another directory, in the order in which they are looked for.
pub const HEADERS: [&str; 3] = [STORE, "manifests/header", "copies/header"];
/// Name of the object that tells one store of a job from the others.
pub const IDENTITY: &str = "identity";
/// Name of the object in which drains tell what they did.
pub const DRAINS: &str = "drains";
/// Name of the object that tells when the job began and whether it has finished.
pub const HISTORY: &str = "history";
/// Where manifests lie.
pub const MANIFESTS: &str = "manifests";
/// Where images lie.
pub const IMAGES: &str = "images";
/// Where images wait in a global store until all nodes have brought their part.
pub const PARTS: &str = "parts";
/// Where segments lie.
pub const SEGMENTS: &str = "segments";
/// Where shards lie.
pub const SHARDS: &str = "shards";
/// Where the records of level ring lie.
pub const RINGS: &str = "rings";
/// Where pledges lie.
pub const PLEDGES: &str = "pledges";
/// Where the marks of checkpoints that a lazy restart found damaged lie.
pub const MARKS: &str = "marks";

/// Checks a job's name: letters, digits, `.`, `_`, `-`; not starting with a dot or dash.
pub fn check_job(name: &str) -> Result<()> {
    let refuse = |why| Err(Error::Name { what: "job", name: shortened(name), why });
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > JOB_NAME_BYTES_MAX {
        return refuse("it is longer than 64 bytes");
    }
    if name.starts_with(['.', '-']) {
        return refuse("it starts with a dot or a dash");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return refuse("only letters, digits, '.', '_' and '-' are allowed");
    }
    Ok(())
}

/// Checks a region's name: any text of 1 to 255 bytes without control characters.
pub fn check_region(name: &str) -> Result<()> {
    let refuse = |why| Err(Error::Name { what: "region", name: shortened(name), why });
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > REGION_NAME_BYTES_MAX {
        return refuse("it is longer than 255 bytes");
    }
    if name.chars().any(char::is_control) {
        return refuse("control characters are not allowed");
    }
    Ok(())
}

fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

/// `manifests/v0000000012.local`
pub fn manifest(version: Version, level: Level) -> String {
    format!("{MANIFESTS}/v{:010}.{}", version.0, level.name())
}

/// `manifests/v0000000012-0123456789abcdef.local`: where the name without attempt is another line's.
pub fn manifest_of(version: Version, attempt: AttemptId, level: Level) -> String {
    format!("{MANIFESTS}/v{:010}-{attempt}.{}", version.0, level.name())
}

/// What the name of a manifest tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestName {
    /// The checkpoint.
    pub version: Version,
    /// The attempt at it, where the name has one.
    pub attempt: Option<AttemptId>,
    /// The level.
    pub level: Level,
}

impl ManifestName {
    /// The name.
    pub fn object(&self) -> String {
        match self.attempt {
            Some(attempt) => manifest_of(self.version, attempt, self.level),
            None => manifest(self.version, self.level),
        }
    }

    /// Whether a manifest may have it.
    pub fn is_of(&self, own: &Manifest) -> bool {
        let attempt = self.attempt.unwrap_or(own.attempt);
        (own.version, own.attempt, own.level) == (self.version, attempt, self.level)
    }
}

/// Reads the name of a manifest.
pub fn parse_manifest(name: &str) -> Option<ManifestName> {
    let (checkpoint, level) = name.strip_prefix("manifests/v")?.split_once('.')?;
    let level = Level::from_name(level)?;
    let (version, attempt) = match checkpoint.split_once('-') {
        Some((version, attempt)) => (version, Some(AttemptId::from_hex(attempt)?)),
        None => (checkpoint, None),
    };
    let parsed = ManifestName { version: Version(version.parse().ok()?), attempt, level };
    (parsed.object() == name).then_some(parsed)
}

/// `images/v0000000012-0123456789abcdef/rank-000003`
pub fn image(version: Version, attempt: AttemptId, rank: Rank) -> String {
    format!("{IMAGES}/v{:010}-{attempt}/rank-{:06}", version.0, rank.0)
}

/// The version, attempt and rank of an image's name.
pub fn parse_image(name: &str) -> Option<(Version, AttemptId, Rank)> {
    let (checkpoint, rank) = name.strip_prefix("images/v")?.split_once("/rank-")?;
    let (version, attempt) = checkpoint.split_once('-')?;
    let parsed =
        (Version(version.parse().ok()?), AttemptId::from_hex(attempt)?, Rank(rank.parse().ok()?));
    (image(parsed.0, parsed.1, parsed.2) == name).then_some(parsed)
}

/// `parts/v0000000012-0123456789abcdef/rank-000003`
pub fn part(version: Version, attempt: AttemptId, rank: Rank) -> String {
    format!("{PARTS}/v{:010}-{attempt}/rank-{:06}", version.0, rank.0)
}

/// The version, attempt and rank of the name of an image that waits.
pub fn parse_part(name: &str) -> Option<(Version, AttemptId, Rank)> {
    let image = format!("{IMAGES}{}", name.strip_prefix(PARTS)?);
    let (version, attempt, rank) = parse_image(&image)?;
    (part(version, attempt, rank) == name).then_some((version, attempt, rank))
}

/// `segments/<32 hexadecimal digits>`
pub fn segment(id: SegmentId) -> String {
    format!("{SEGMENTS}/{id}")
}

/// The id in a segment's name.
pub fn parse_segment(name: &str) -> Option<SegmentId> {
    SegmentId::from_hex(name.strip_prefix("segments/")?)
}

/// `rings/v0000000012-0123456789abcdef`
pub fn ring(version: Version, attempt: AttemptId) -> String {
    format!("{RINGS}/v{:010}-{attempt}", version.0)
}

/// The version and attempt of a record's name.
pub fn parse_ring(name: &str) -> Option<(Version, AttemptId)> {
    let (version, attempt) = name.strip_prefix("rings/v")?.split_once('-')?;
    let parsed = (Version(version.parse().ok()?), AttemptId::from_hex(attempt)?);
    (ring(parsed.0, parsed.1) == name).then_some(parsed)
}

/// `pledges/v0000000012-0123456789abcdef`
pub fn pledge(version: Version, attempt: AttemptId) -> String {
    format!("{PLEDGES}/v{:010}-{attempt}", version.0)
}

/// The version and attempt of a pledge's name.
pub fn parse_pledge(name: &str) -> Option<(Version, AttemptId)> {
    let (version, attempt) = name.strip_prefix("pledges/v")?.split_once('-')?;
    let parsed = (Version(version.parse().ok()?), AttemptId::from_hex(attempt)?);
    (pledge(parsed.0, parsed.1) == name).then_some(parsed)
}

/// `marks/v0000000012-0123456789abcdef`
pub fn mark(version: Version, attempt: AttemptId) -> String {
    format!("{MARKS}/v{:010}-{attempt}", version.0)
}

/// The version and attempt of a mark's name.
pub fn parse_mark(name: &str) -> Option<(Version, AttemptId)> {
    let (version, attempt) = name.strip_prefix("marks/v")?.split_once('-')?;
    let parsed = (Version(version.parse().ok()?), AttemptId::from_hex(attempt)?);
    (mark(parsed.0, parsed.1) == name).then_some(parsed)
}

/// `shards/v0000000012-0123456789abcdef/000001-000000-000003`: sector, level and row
pub fn shard(version: Version, attempt: AttemptId, place: (u32, u32, u32)) -> String {
    let (sector, level, row) = place;
    format!("{SHARDS}/v{:010}-{attempt}/{sector:06}-{level:06}-{row:06}", version.0)
}

/// The version, attempt and place of a shard's name.
pub fn parse_shard(name: &str) -> Option<(Version, AttemptId, (u32, u32, u32))> {
    let (checkpoint, place) = name.strip_prefix("shards/v")?.split_once('/')?;
    let (version, attempt) = checkpoint.split_once('-')?;
    let (version, attempt) = (Version(version.parse().ok()?), AttemptId::from_hex(attempt)?);
    let mut numbers = place.splitn(3, '-').map(str::parse);
    let mut next = || numbers.next()?.ok();
    let place = (next()?, next()?, next()?);
    (shard(version, attempt, place) == name).then_some((version, attempt, place))
}

#[cfg(test)]
mod tests;
