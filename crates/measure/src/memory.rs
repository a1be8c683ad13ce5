//! How much memory this process uses, from the kernel's own count.

/// Resident bytes now and at their peak since the last reset.
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

/// Reads the counts.
pub(crate) fn resident() -> Option<Resident> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024)
    };
    Some(Resident { now: field("VmRSS:")?, peak: field("VmHWM:")? })
}

/// Sets the peak back to now; where the kernel refuses, the peak counts from the start.
pub(crate) fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
