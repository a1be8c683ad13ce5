//! Ways to save memory.

/// One way, by what it is called in the table.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(super) means: Means,
}

/// What it does.
pub(super) enum Means {
    /// A file for each rank, by this program.
    File(Coat),
    /// A job with these settings, beside the defaults.
    Job(&'static [(&'static str, &'static str)]),
}

/// What a plain file is wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coat {
    Bare,
    /// The system's `gzip -1`.
    Gzip,
    /// Zstandard's level 3, in this process.
    Zstd,
}

/// What everything is compared with.
pub(crate) const PLAIN: &str = "write+fsync";
/// Default settings without compression: pages stored by anybody, ever, are not stored again.
pub(crate) const ALL_PAGES: &str = "mode all";

/// All of them, in the order of the table.
pub(crate) const ALL: &[Way] = &[
    Way { name: PLAIN, means: Means::File(Coat::Bare) },
    Way { name: "gzip -1", means: Means::File(Coat::Gzip) },
    Way { name: "zstd -3", means: Means::File(Coat::Zstd) },
    Way { name: "mode full", means: Means::Job(&[("lab.mode", "full"), NONE]) },
    Way { name: "mode incremental", means: Means::Job(&[("lab.mode", "incremental"), NONE]) },
    Way { name: "mode local", means: Means::Job(&[("lab.mode", "local"), NONE]) },
    Way { name: "mode collective", means: Means::Job(&[("lab.mode", "collective"), NONE]) },
    Way { name: ALL_PAGES, means: Means::Job(&[NONE]) },
    Way { name: "defaults (all, lz4)", means: Means::Job(&[]) },
    Way { name: "all, zstd", means: Means::Job(&[("codec", "zstd")]) },
    Way { name: "all, auto", means: Means::Job(&[("codec", "auto")]) },
    Way { name: "all, cow", means: Means::Job(&[("capture", "cow"), NONE]) },
    Way { name: "all, agent", means: Means::Job(&[("lab.write", "wag-dbi"), NONE]) },
];

const NONE: (&str, &str) = ("codec", "none");

/// The way of this name.
pub(crate) fn find(name: &str) -> Option<&'static Way> {
    ALL.iter().find(|way| way.name == name)
}
