//! The stages of a job, and how its processes show which one they are at.
//!
//! ```text
//! a rank says that it begins a checkpoint -> capture
//! a process is about to make, name or remove a file, or to ask that of global storage -> the others
//! ```
//! Pure. What a process does before the job has come back is recovery, whatever it is.

/// What a job is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Stores are opened, lost files made again, pages read.
    Recovery,
    /// The program's own work between checkpoints.
    Computation,
    /// Pages are scanned, shared and copied.
    Capture,
    /// Blocks are compressed and written to segments.
    Pack,
    /// Shards are made and written on the ring.
    Encode,
    /// Segments, images and manifests get their names.
    Commit,
    /// Something goes to global storage.
    Drain,
    /// Something is removed, on a node or in global storage.
    Prune,
}

impl Stage {
    pub(super) const ALL: [Stage; 8] = [
        Stage::Recovery,
        Stage::Computation,
        Stage::Capture,
        Stage::Pack,
        Stage::Encode,
        Stage::Commit,
        Stage::Drain,
        Stage::Prune,
    ];

    /// Its name in tallies.
    pub(super) fn name(self) -> &'static str {
        match self {
            Stage::Recovery => "recovery",
            Stage::Computation => "computation",
            Stage::Capture => "capture",
            Stage::Pack => "pack",
            Stage::Encode => "encode",
            Stage::Commit => "commit",
            Stage::Drain => "drain",
            Stage::Prune => "prune",
        }
    }
}

/// What a process is about to do with a file or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Read,
    Make,
    /// Gives it its final name.
    Name,
    Remove,
}

/// Whether a file belongs to a store of the job.
pub(super) fn is_of_job(path: &str) -> bool {
    object(path).is_some()
}

/// The stage that an act on a file shows, if any, in a job that has come back.
pub(super) fn of_file(act: Act, path: &str) -> Option<Stage> {
    let (root, object) = object(path)?;
    let is_global = root.rsplit('/').next().is_some_and(|name| name.starts_with("global-"));
    if is_global { of_global(act, object) } else { of_local(act, object) }
}

/// The same for a request to an S3 server.
pub(super) fn of_request(act: Act, path: &str) -> Option<Stage> {
    of_global(act, object(path)?.1)
}

/// The act that the first bytes of a request ask for, and on what.
pub(super) fn request(bytes: &[u8]) -> Option<(Act, &str)> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    let mut words = std::str::from_utf8(&bytes[..end]).ok()?.split(' ');
    let act = match words.next()? {
        "GET" | "HEAD" => Act::Read,
        "PUT" | "POST" => Act::Make,
        "DELETE" => Act::Remove,
        _ => return None,
    };
    let path = words.next()?;
    words.next()?.starts_with("HTTP/").then_some((act, path))
}

/// A path as the root of a store and a name in it.
fn object(path: &str) -> Option<(&str, &str)> {
    path.split_once("/job/")
}

fn sort_of(object: &str) -> &str {
    object.split(['/', '?']).next().unwrap_or(object)
}

fn of_global(act: Act, object: &str) -> Option<Stage> {
    match (sort_of(object), act) {
        (_, Act::Read) => None,
        ("segments" | "images" | "manifests", Act::Remove) => Some(Stage::Prune),
        ("segments" | "images" | "manifests" | "parts" | "store", _) => Some(Stage::Drain),
        _ => None,
    }
}

fn of_local(act: Act, object: &str) -> Option<Stage> {
    // A file in the making that is given up.
    if act == Act::Remove && object.ends_with(".part") {
        return None;
    }
    match (sort_of(object), act) {
        (_, Act::Read) => None,
        ("segments" | "images" | "manifests" | "shards" | "rings", Act::Remove) => {
            Some(Stage::Prune)
        }
        ("segments", Act::Make) => Some(Stage::Pack),
        ("shards" | "rings", _) => Some(Stage::Encode),
        ("segments" | "images" | "manifests" | "pledges", _) => Some(Stage::Commit),
        ("drains", _) => Some(Stage::Drain),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
