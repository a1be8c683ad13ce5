//! Twins that have outlived their program and are children of this process now.

use std::ffi::CStr;

/// What a twin calls itself; the kernel keeps 15 letters.
pub const TWIN: &CStr = c"standfast-twin";

/// Process numbers of twins among the children of this process.
pub fn twins() -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| is_own_twin(*pid)).collect()
}

/// A line of `stat` is: number (name) state parent ...
fn is_own_twin(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let Some((start, rest)) = stat.rsplit_once(')') else { return false };
    let parent = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
    start.as_bytes().ends_with(TWIN.to_bytes()) && parent == Some(std::process::id())
}
