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
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_understood() {
        let heap = parse("55d0-55f1 rw-p 00000000 00:00 0      [heap]").unwrap();
        assert_eq!(
            heap,
            Mapping { range: 0x55d0..0x55f1, writable: true, private_anonymous: true }
        );
        let file = parse("7f00-7f10 r--s 00000000 fd:01 42 /tmp/x y").unwrap();
        assert_eq!(
            file,
            Mapping { range: 0x7f00..0x7f10, writable: false, private_anonymous: false }
        );
        assert!(parse("nonsense").is_none());
    }

    #[test]
    fn the_stack_is_mapped_and_the_first_page_is_not() {
        let here = 0u8;
        let at = &raw const here as usize;
        let maps = Maps::read();
        assert!(maps.covering(&(at..at + 1)).is_some_and(|all| all[0].writable));
        assert!(maps.covering(&(0..1)).is_none());
    }

    #[test]
    fn holes_are_found() {
        let mapping = |range| Mapping { range, writable: true, private_anonymous: true };
        let maps = Maps(vec![mapping(10..20), mapping(20..30), mapping(40..50)]);
        assert!(maps.is_private_anonymous(&(12..28)));
        assert!(!maps.is_private_anonymous(&(25..45)));
        assert!(!maps.is_private_anonymous(&(5..15)));
        assert_eq!(maps.overlapping(&(29..41)).len(), 2);
        assert!(maps.overlapping(&(30..40)).is_empty());
    }
}
