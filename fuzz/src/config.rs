//! Configuration: the file, the options of a call, and each setting on its own.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use standfast::config::{KEYS, Loaded, Settings, parse_options};

/// The configuration file: in memory, under a name that the library can open.
static FILE: LazyLock<File> = LazyLock::new(|| {
    let fd = rustix::fs::memfd_create("standfast.toml", rustix::fs::MemfdFlags::empty());
    let file = File::from(fd.expect("memory for a file"));
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: a fuzz target has one thread when it meets its first input.
    unsafe { std::env::set_var("STANDFAST_CONFIG", path) };
    file
});

/// Text as a file, as options, and as the value of every setting.
pub fn config(data: &[u8]) {
    write(data);
    if let Ok(loaded) = Loaded::load(&[]) {
        assert_reads_back(&loaded.settings);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(options) = parse_options(text) {
        write(b"");
        if let Ok(loaded) = Loaded::load(&options) {
            assert_reads_back(&loaded.settings);
        }
    }
    for key in KEYS {
        let mut settings = Settings::default();
        if settings.set(key.name, text).is_ok() {
            assert_reads_back(&settings);
        }
    }
}

fn write(data: &[u8]) {
    FILE.set_len(0).and_then(|()| FILE.write_all_at(data, 0)).expect("memory for a file");
}

/// What is shown can be read again and means the same.
fn assert_reads_back(settings: &Settings) {
    for key in KEYS {
        let mut again = settings.clone();
        again.set(key.name, &(key.show)(settings)).expect("shown values can be read");
        assert!(again == *settings, "{} changes when it is shown and read", key.name);
    }
}
