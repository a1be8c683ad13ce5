//! The process's own mappings, as the kernel lists them.

use std::ops::Range;

/// One line of `/proc/self/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<usize>,
    pub(crate) writable: bool,
    /// Private, and without a file behind it.
    pub(crate) private_anonymous: bool,
}

/// All mappings of this process, by address.
pub(crate) struct Maps(Vec<Mapping>);

impl Maps {
    /// Reads them; none where the kernel does not tell.
    pub(crate) fn read() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(parse).collect())
    }

    /// The mappings that a range touches.
    pub(crate) fn overlapping(&self, range: &Range<usize>) -> &[Mapping] {
        let first = self.0.partition_point(|mapping| mapping.range.end <= range.start);
        let end = self.0.partition_point(|mapping| mapping.range.start < range.end);
        &self.0[first..end.max(first)]
    }

    /// The mappings that a range lies in; `None` if part of it is not mapped.
    pub(crate) fn covering(&self, range: &Range<usize>) -> Option<&[Mapping]> {
        let found = self.overlapping(range);
        let whole = found.first().is_some_and(|first| first.range.start <= range.start)
            && found.last().is_some_and(|last| last.range.end >= range.end)
            && found.windows(2).all(|two| two[0].range.end == two[1].range.start);
        whole.then_some(found)
    }

    /// Whether every page of the range is in private memory without a file behind it.
    pub(crate) fn is_private_anonymous(&self, range: &Range<usize>) -> bool {
        let found = self.covering(range);
        found.is_some_and(|all| all.iter().all(|mapping| mapping.private_anonymous))
    }
}

fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let flags = fields.next()?;
    let inode = fields.nth(2)?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: address(start)?..address(end)?,
        writable: flags.as_bytes().get(1) == Some(&b'w'),
        private_anonymous: flags.ends_with('p') && inode == "0",
    })
}

/// Whether a device may write to memory of this process; assumed when nobody can tell.
pub(crate) fn has_pinned_memory() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let line = status.lines().find_map(|line| line.strip_prefix("VmPin:"));
    line.and_then(|line| line.split_whitespace().next()).is_none_or(|kib| kib != "0")
}

#[cfg(test)]
mod tests;
