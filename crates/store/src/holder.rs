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
mod tests {
    use super::*;

    #[test]
    fn a_holder_survives_the_round_trip() {
        let me = this_process();
        assert!(me.contains(&std::process::id().to_string()));
        assert_eq!(read_back(format!("{me}\n").as_bytes()).as_deref(), Some(&*me));
    }

    #[test]
    fn hostile_lock_files_give_short_printable_text() {
        assert_eq!(read_back(b""), None);
        assert_eq!(read_back(b"\n\n"), None);
        let line = read_back(&[0x1b; 4096].map(|b| b ^ 0xff)).unwrap();
        assert!(line.chars().count() <= HOLDER_BYTES_MAX);
        assert_eq!(read_back(b"a\x1b[31mb").as_deref(), Some("a[31mb"));
    }
}
