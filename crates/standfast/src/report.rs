//! The report of a checkpoint: what each stage saved and what it cost, for people.

use std::fmt;

use standfast_format::{Level, Manifest, Stats, Version, human_bytes, human_ns};

/// What a checkpoint did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Which checkpoint.
    pub version: Version,
    /// The level it has reached.
    pub level: Level,
    /// Ranks of the job.
    pub ranks: u32,
    /// The figures.
    pub stats: Stats,
    /// Size of a page.
    pub page_bytes: u32,
    /// How long writers of this rank were held up after the call; `None`: nobody knows any more.
    pub slowed_ns: Option<u64>,
    /// What else its reader should know.
    pub notes: Vec<String>,
}

impl Report {
    /// The report kept in a manifest.
    #[doc(hidden)]
    pub fn of(manifest: &Manifest, page_bytes: u32) -> Self {
        Self {
            version: manifest.version,
            level: manifest.level,
            ranks: manifest.ranks,
            stats: manifest.stats,
            page_bytes,
            slowed_ns: None,
            notes: Vec::new(),
        }
    }

    /// Bytes that this checkpoint added to the store.
    pub fn stored_bytes(&self) -> u64 {
        self.stats.segment_bytes.saturating_add(self.stats.image_bytes)
    }

    /// What a rank has stored on the average.
    pub fn rank_bytes_average(&self) -> u64 {
        self.stored_bytes() / u64::from(self.ranks.max(1))
    }

    /// Bytes of those that are not page contents.
    pub fn metadata_bytes(&self) -> u64 {
        self.stored_bytes().saturating_sub(self.stats.compressed_bytes)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = &self.stats;
        // Figures come from a file: they may be nonsense, the report must not fail on them.
        let bytes = |pages: u64| pages.saturating_mul(u64::from(self.page_bytes));
        let mut line = |word: &str, bytes: u64, rest: String| {
            writeln!(f, "  {word:<11}{:>12}  {rest}", human_bytes(bytes))
        };
        let share = |pages: u64| format!("{:>5.1} %", percent(pages, stats.pages));
        line("captured", stats.captured_bytes, format!("{} pages", stats.pages))?;
        line("zero", bytes(stats.zero_pages), share(stats.zero_pages))?;
        line("duplicate", bytes(stats.duplicate_pages), share(stats.duplicate_pages))?;
        if self.ranks > 1 {
            line("remote", bytes(stats.remote_pages), share(stats.remote_pages))?;
        }
        line("old", bytes(stats.old_pages), share(stats.old_pages))?;
        line("new", bytes(stats.new_pages), share(stats.new_pages))?;
        let ratio = ratio(bytes(stats.new_pages), stats.compressed_bytes);
        line("compressed", stats.compressed_bytes, format!("{ratio:>5.2} x smaller than new"))?;
        let metadata = percent(self.metadata_bytes(), stats.captured_bytes);
        line("stored", self.stored_bytes(), format!("metadata {metadata:.2} % of captured"))?;
        if self.ranks > 1 {
            let most = human_bytes(stats.rank_bytes_max);
            let rest = format!("by a rank on the average, at most {most}");
            line("", self.rank_bytes_average(), rest)?;
            let [scan, agree, copy] = [stats.scan_ns, stats.agree_ns, stats.copy_ns].map(human_ns);
            writeln!(f, "  {:<11}{scan:>12}  then agreed {agree}, copied {copy}", "scanned")?;
        }
        writeln!(
            f,
            "  {:<11}{:>12}  of {} until durable",
            "blocked",
            human_ns(stats.blocked_ns),
            human_ns(stats.total_ns)
        )?;
        if let Some(slowed_ns) = self.slowed_ns {
            let [stopped, slowed] = [stats.blocked_ns, slowed_ns].map(human_ns);
            writeln!(f, "  {:<11}{stopped:>12}  stopped, {slowed} slowed", "cost")?;
        }
        write!(f, "  {:<11}{:>12}  survives {}", "level", self.level, self.level.survives())?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  note: {note}"))
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn ratio(before: u64, after: u64) -> f64 {
    if after == 0 { 1.0 } else { before as f64 / after as f64 }
}

#[cfg(test)]
mod tests;
