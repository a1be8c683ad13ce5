//! Tracking by the kernel: userfaultfd write protection in its asynchronous mode, and the
//! `PAGEMAP_SCAN` call that reads and resets it.
//!
//! The first write to a protected page is resolved inside the kernel, without a signal or a
//! handler; the page then counts as written. Needs Linux 6.7; works without privileges.
//!
//! What is refused (answered with *all*): anything but private anonymous memory, since another
//! mapping could write unseen; and everything, while the process has pinned memory (`VmPin`),
//! since devices write there past the page tables.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use linux_raw_sys::general::{
    PAGE_IS_WRITTEN, PM_SCAN_CHECK_WPASYNC, PM_SCAN_WP_MATCHING, UFFD_API, UFFD_FEATURE_WP_ASYNC,
    UFFD_FEATURE_WP_UNPOPULATED, UFFD_USER_MODE_ONLY, UFFDIO_REGISTER_MODE_WP, page_region,
    pm_scan_arg, uffdio_api, uffdio_range, uffdio_register, uffdio_writeprotect,
};
use linux_raw_sys::ioctl::{UFFDIO_API, UFFDIO_REGISTER, UFFDIO_UNREGISTER, UFFDIO_WRITEPROTECT};

use super::{Dirty, Span, Tracker};

/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// `UFFDIO_WRITEPROTECT_MODE_WP` of the kernel's header.
const WRITEPROTECT_MODE_WP: u64 = 1;
/// Stretches of written pages fetched by one call.
const BATCH: usize = 4096;
/// Protected in steps: other threads' page faults wait no longer than one step takes.
const ARM_STEP: usize = 64 << 20;

/// Tracks by userfaultfd.
pub struct Uffd {
    handle: OwnedFd,
    pagemap: File,
    system_page: usize,
}

impl Uffd {
    /// Asks the kernel for it; `None` where it is missing or forbidden.
    pub fn new() -> Option<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY as i32;
        // SAFETY: takes a flag word and returns a new descriptor or an error.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the descriptor was just returned and belongs to nobody else.
        let handle = unsafe { OwnedFd::from_raw_fd(fd) };
        let features = u64::from(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED);
        let mut api = uffdio_api { api: u64::from(UFFD_API), features, ioctls: 0 };
        // SAFETY: the structure is the one this call reads and writes.
        unsafe { control(&handle, UFFDIO_API, &mut api) }.ok()?;
        let pagemap = File::open("/proc/self/pagemap").ok()?;
        let tracker = Self { handle, pagemap, system_page: rustix::param::page_size() };
        tracker.works().then_some(tracker)
    }

    /// Tries it on a page: an old or restricted kernel may refuse only here.
    fn works(&self) -> bool {
        let bytes = self.system_page;
        let Some(page) = Scratch::new(bytes) else { return false };
        let span = Span { start: page.0 as usize, bytes };
        let clean = self.arm(span) && self.collect(&[span], bytes)[0].count() == Some(0);
        // SAFETY: the page is ours and writable.
        unsafe { page.0.write_volatile(1) };
        let seen = self.collect(&[span], bytes)[0].count() == Some(1);
        self.disarm(span);
        clean && seen
    }

    /// The whole system pages that a span touches.
    fn outer(&self, span: Span) -> Range<usize> {
        let page = self.system_page;
        span.start / page * page..span.end().next_multiple_of(page)
    }

    /// Reads and resets what was written in a range of whole pages; false if it is not watched.
    fn scan(&self, range: Range<usize>, mut written: impl FnMut(Range<usize>)) -> bool {
        let mut found = vec![page_region { start: 0, end: 0, categories: 0 }; BATCH];
        let mut from = range.start;
        while from < range.end {
            let mut call = pm_scan_arg {
                size: size_of::<pm_scan_arg>() as u64,
                flags: u64::from(PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC),
                start: from as u64,
                end: range.end as u64,
                walk_end: 0,
                vec: found.as_mut_ptr() as u64,
                vec_len: found.len() as u64,
                max_pages: 0,
                category_inverted: 0,
                category_mask: u64::from(PAGE_IS_WRITTEN),
                category_anyof_mask: 0,
                return_mask: u64::from(PAGE_IS_WRITTEN),
            };
            // SAFETY: the structure is the one this call uses; `vec` has `vec_len` entries.
            let count =
                unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut call) };
            let Ok(count) = usize::try_from(count) else { return false };
            for region in &found[..count.min(BATCH)] {
                written(region.start as usize..region.end as usize);
            }
            let next = call.walk_end as usize;
            if next <= from {
                return false;
            }
            from = next;
        }
        true
    }
}

impl Tracker for Uffd {
    fn name(&self) -> &'static str {
        "uffd"
    }

    fn arm(&self, span: Span) -> bool {
        let range = self.outer(span);
        if range.is_empty() || !is_private_anonymous(&range) {
            return false;
        }
        let mut register = uffdio_register {
            range: kernel_range(&range),
            mode: u64::from(UFFDIO_REGISTER_MODE_WP),
            ioctls: 0,
        };
        // SAFETY: the structure is the one this call reads and writes.
        if unsafe { control(&self.handle, UFFDIO_REGISTER, &mut register) }.is_err() {
            return false;
        }
        range.clone().step_by(ARM_STEP).all(|from| {
            let step = from..(from + ARM_STEP).min(range.end);
            let mut protect =
                uffdio_writeprotect { range: kernel_range(&step), mode: WRITEPROTECT_MODE_WP };
            // SAFETY: the structure is the one this call reads.
            unsafe { control(&self.handle, UFFDIO_WRITEPROTECT, &mut protect) }.is_ok()
        })
    }

    fn disarm(&self, span: Span) {
        let mut range = kernel_range(&self.outer(span));
        // Memory that is gone is not watched any more; nothing else can fail here.
        // SAFETY: the structure is the one this call reads.
        let _ = unsafe { control(&self.handle, UFFDIO_UNREGISTER, &mut range) };
    }

    fn collect(&self, spans: &[Span], page_bytes: usize) -> Vec<Dirty> {
        let mut dirty: Vec<Dirty> =
            spans.iter().map(|span| Dirty::none(*span, page_bytes)).collect();
        // Read before the scan: pinning during it would need another thread at work.
        let pinned = has_pinned_memory();
        for range in merged(spans.iter().map(|span| self.outer(*span)).collect()) {
            let inside: Vec<usize> = (0..spans.len())
                .filter(|at| spans[*at].start < range.end && range.start < spans[*at].end())
                .collect();
            let watched = self.scan(range, |written| {
                for at in &inside {
                    dirty[*at].mark(spans[*at], page_bytes, written.clone());
                }
            });
            if !watched || pinned {
                inside.iter().for_each(|at| dirty[*at] = Dirty::All);
            }
        }
        dirty
    }
}

/// Joins ranges that touch or overlap.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn kernel_range(range: &Range<usize>) -> uffdio_range {
    uffdio_range { start: range.start as u64, len: range.len() as u64 }
}

/// # Safety
/// `argument` must be what the request expects.
unsafe fn control<T>(fd: &OwnedFd, request: u32, argument: &mut T) -> std::io::Result<()> {
    // SAFETY: the caller vouches for the argument's type.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::c_ulong::from(request), argument) } {
        0.. => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether every page of the range is in private memory without a file behind it.
fn is_private_anonymous(range: &Range<usize>) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let mut next = range.start;
    for line in maps.lines() {
        let Some((mapped, private)) = parse_map(line) else { return false };
        if mapped.end <= next {
            continue;
        }
        if mapped.start > next || !private {
            return false;
        }
        next = mapped.end;
        if next >= range.end {
            return true;
        }
    }
    false
}

/// Address range of a line of `/proc/self/maps`, and whether it is private and without a file.
fn parse_map(line: &str) -> Option<(Range<usize>, bool)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let flags = fields.next()?;
    let inode = fields.nth(2)?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?..address(end)?, flags.ends_with('p') && inode == "0"))
}

/// Whether a device may write to memory of this process; assumed when nobody can tell.
fn has_pinned_memory() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let line = status.lines().find_map(|line| line.strip_prefix("VmPin:"));
    line.and_then(|line| line.split_whitespace().next()).is_none_or(|kib| kib != "0")
}

/// A page to try things on.
struct Scratch(*mut u8, usize);

impl Scratch {
    fn new(bytes: usize) -> Option<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        let page = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, prot, MapFlags::PRIVATE) };
        page.ok().map(|page| Self(page.cast(), bytes))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody refers to it.
        let _ = unsafe { rustix::mm::munmap(self.0.cast(), self.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_overlap() {
        assert_eq!(merged(vec![5..9, 0..3, 2..4, 9..10]), [0..4, 5..9, 9..10]);
    }

    #[test]
    fn lines_of_maps_are_understood() {
        let heap = parse_map("55d0-55f1 rw-p 00000000 00:00 0      [heap]").unwrap();
        assert_eq!(heap, (0x55d0..0x55f1, true));
        let file = parse_map("7f00-7f10 rw-s 00000000 fd:01 42 /tmp/x y").unwrap();
        assert_eq!(file, (0x7f00..0x7f10, false));
        assert!(parse_map("nonsense").is_none());
    }
}
