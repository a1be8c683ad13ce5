//! Names: what jobs and regions may be called, and where each object of a store lies.
//!
//! Object names are made here and nowhere else, so the tree in docs/FORMAT.md is this file.
//!
//! Invariants:
//! - No job name leads out of its directory: it is one path component without tricks.
//! - Parsing an object name gives back exactly what made it, or nothing.

use crate::error::{Error, Result};
use crate::id::{AttemptId, Rank, SegmentId, Version};
use crate::manifest::Level;

/// Longest name of a job, in bytes.
pub const JOB_NAME_BYTES_MAX: usize = 64;
/// Longest name of a region, in bytes.
pub const REGION_NAME_BYTES_MAX: usize = 255;

/// Name of the object that makes a directory a store.
pub const STORE: &str = "store";
/// Name of the object that tells one store of a job from the others.
pub const IDENTITY: &str = "identity";
/// Name of the object in which drains tell what they did.
pub const DRAINS: &str = "drains";
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

/// The version and level of a manifest's name.
pub fn parse_manifest(name: &str) -> Option<(Version, Level)> {
    let (version, level) = name.strip_prefix("manifests/v")?.split_once('.')?;
    let parsed = (Version(version.parse().ok()?), Level::from_name(level)?);
    (manifest(parsed.0, parsed.1) == name).then_some(parsed)
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn job_names_stay_one_plain_component() {
        for good in ["heat", "CM1.hurricane_3-b", "0"] {
            check_job(good).unwrap();
        }
        let long = "x".repeat(65);
        for bad in ["", ".", "..", "../x", "a/b", "-rf", "a b", "naïve", "a\0b", long.as_str()] {
            assert!(check_job(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn region_names_may_be_any_printable_text() {
        for good in ["T", "température/0", "a b"] {
            check_region(good).unwrap();
        }
        let long = "x".repeat(256);
        for bad in ["", "a\nb", "\0", long.as_str()] {
            assert!(check_region(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn object_names_lead_back(version: u64, attempt: [u8; 8], rank: u32, id: [u8; 16]) {
            let (version, attempt, rank) = (Version(version), AttemptId(attempt), Rank(rank));
            for level in Level::ALL {
                prop_assert_eq!(parse_manifest(&manifest(version, *level)), Some((version, *level)));
            }
            let name = image(version, attempt, rank);
            prop_assert_eq!(parse_image(&name), Some((version, attempt, rank)));
            let name = part(version, attempt, rank);
            prop_assert_eq!(parse_part(&name), Some((version, attempt, rank)));
            prop_assert_eq!(parse_image(&name), None);
            prop_assert_eq!(parse_segment(&segment(SegmentId(id))), Some(SegmentId(id)));
            prop_assert_eq!(parse_ring(&ring(version, attempt)), Some((version, attempt)));
            prop_assert_eq!(parse_pledge(&pledge(version, attempt)), Some((version, attempt)));
            prop_assert_eq!(parse_mark(&mark(version, attempt)), Some((version, attempt)));
            let place = (rank.0, rank.0 / 2, 3);
            let name = shard(version, attempt, place);
            prop_assert_eq!(parse_shard(&name), Some((version, attempt, place)));
        }

        #[test]
        fn any_other_name_is_refused_or_canonical(name in "\\PC{0,60}") {
            if let Some((version, level)) = parse_manifest(&name) {
                prop_assert_eq!(manifest(version, level), name);
            }
        }
    }
}
