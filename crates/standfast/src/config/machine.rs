//! What the machine has to say to the settings: ranks of the node, and memory that is free.
//!
//! Data: `/proc/meminfo`, and the limits of the control groups of this process (versions 1 and 2) ->
//! [`Machine`]. What cannot be read does not count.

use std::path::{Path, PathBuf};

const GROUPS: &str = "/sys/fs/cgroup";
/// What version 1 calls unlimited is beyond this.
const UNLIMITED: u64 = 1 << 60;

/// What the machine has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Ranks of the job on this node.
    pub ranks: usize,
    /// Memory that is free on it, for this process's control group too.
    pub free_bytes: u64,
}

impl Machine {
    /// This node, with so many ranks of the job.
    pub fn here(ranks: usize) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let free = available(&read("/proc/meminfo")).unwrap_or(0);
        let limits =
            group_dirs(&read("/proc/self/cgroup")).into_iter().filter_map(|dir| left(&dir));
        Self { ranks, free_bytes: limits.fold(free, u64::min) }
    }
}

/// `MemAvailable`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The control groups whose limits count: those of this process, and all above.
fn group_dirs(groups: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let root = match controllers {
            "" => PathBuf::from(GROUPS),
            _ if controllers.split(',').any(|one| one == "memory") => {
                Path::new(GROUPS).join("memory")
            }
            _ => return None,
        };
        let is_plain = !path.split('/').any(|part| part == "..");
        let own = if is_plain { root.join(path) } else { root };
        let above = own.ancestors().take_while(|dir| dir.starts_with(GROUPS));
        Some(above.map(Path::to_owned).collect::<Vec<_>>())
    };
    groups.lines().filter_map(of_line).flatten().collect()
}

/// What a control group may still take. Its page cache goes when memory is short.
fn left(dir: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let number =
        |names: [&str; 2]| -> Option<u64> { names.into_iter().find_map(read)?.trim().parse().ok() };
    let limit =
        number(["memory.max", "memory.limit_in_bytes"]).filter(|limit| *limit < UNLIMITED)?;
    let used = number(["memory.current", "memory.usage_in_bytes"])?;
    let stat = read("memory.stat").unwrap_or_default();
    let cache = stat.lines().find_map(|line| {
        let line = line.strip_prefix("total_").unwrap_or(line);
        line.strip_prefix("inactive_file ")?.parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
}

#[cfg(test)]
mod tests;
