//! Who holds a lock: one line of text that a message can quote.

/// Longest text worth reading back from somebody else's lock.
pub(crate) const HOLDER_BYTES_MAX: usize = 256;

/// This process as a holder: `pid 4711 on node12 (heat)`.
pub(crate) fn this_process() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let program = std::env::current_exe()
        .ok()
        .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "unknown program".to_owned());
    format!("pid {} on {host} ({program})", std::process::id())
}

/// A holder's line as read back: anything printable, shortened; `None` if nothing is there.
pub(crate) fn read_back(bytes: &[u8]) -> Option<String> {
    let bytes = &bytes[..bytes.len().min(HOLDER_BYTES_MAX)];
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.lines().next()?.chars().filter(|c| !c.is_control()).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests;
