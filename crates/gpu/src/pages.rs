//! Pages picked by their marks: lists of them, copied from a region to dense staging memory.
//!
//! Data: marks -> [`PageList`] (indices in the region's order) -> [`gather`] into staging.

use crate::device::{Args, DeviceBuffer, DeviceSlice, Gpu, Shape, Stream};
use crate::error::Result;
use crate::kernels::{Kernel, PAGES};

const LIST_COUNT: Kernel = Kernel::new(&PAGES, "list_count");
const LIST_FILL: Kernel = Kernel::new(&PAGES, "list_fill");
const SCAN: Kernel = Kernel::new(&PAGES, "scan");
const GATHER: Kernel = Kernel::new(&PAGES, "gather");
const PACK_SLOTS: Kernel = Kernel::new(&PAGES, "pack_slots");
#[cfg(test)]
pub(crate) const KERNELS: &[Kernel] = &[LIST_COUNT, LIST_FILL, SCAN, GATHER, PACK_SLOTS];

/// Pages that one block of the listing kernels takes; as in the source.
const LIST_SPAN: u64 = 4096;
const THREADS: u32 = 256;
const WARPS: u64 = THREADS as u64 / 32;
/// Threads of the one block that sums up.
const SCAN_THREADS: u32 = 1024;

/// Indices of the pages whose marks match, ascending, in device memory.
pub struct PageList {
    indices: DeviceBuffer,
    totals: DeviceBuffer,
    starts: DeviceBuffer,
    pages_max: u64,
}

impl PageList {
    /// A list for regions of up to `pages_max` pages: 8 bytes each, and a little.
    pub fn new(gpu: &Gpu, pages_max: u64) -> Result<Self> {
        let spans = pages_max.div_ceil(LIST_SPAN) as usize;
        Ok(PageList {
            indices: gpu.allocate("a list of pages", pages_max as usize * 8)?,
            totals: gpu.allocate("a list of pages", spans * 8)?,
            starts: gpu.allocate("a list of pages", (spans + 1) * 8)?,
            pages_max,
        })
    }

    /// Lists the pages with `mark & mask == want`, waits, and returns how many there are.
    pub fn fill(&self, stream: &Stream, marks: DeviceSlice<'_>, mask: u8, want: u8) -> Result<u64> {
        let count = marks.bytes() as u64;
        assert!(count <= self.pages_max, "{count} pages in a list of {}", self.pages_max);
        let spans = count.div_ceil(LIST_SPAN);
        let marked =
            || Args::new().slice(marks).word(count).half(u32::from(mask)).half(u32::from(want));
        let shape = Shape::blocks(spans, THREADS);
        // SAFETY: the kernels' arguments in order; `totals`, `starts` and `indices` hold as many
        // entries as `pages_max` needs.
        unsafe {
            stream.launch(LIST_COUNT, shape, marked().slice(self.totals.slice()))?;
            queue_scan(stream, self.totals.slice(), self.starts.slice(), spans, 1)?;
            let fill = marked().slice(self.starts.slice()).slice(self.indices.slice());
            stream.launch(LIST_FILL, shape, fill)?;
        }
        let mut total = [0; 8];
        stream.download(self.starts.slice().part(spans as usize * 8, 8), &mut total)?;
        Ok(u64::from_le_bytes(total))
    }

    /// Entries `first..first + count`, 8 bytes each.
    pub fn part(&self, first: u64, count: u64) -> DeviceSlice<'_> {
        self.indices.slice().part(first as usize * 8, count as usize * 8)
    }
}

/// Queues copying the listed units of `unit_bytes` (a multiple of 16) one after the other.
pub fn gather(
    stream: &Stream,
    region: DeviceSlice<'_>,
    list: DeviceSlice<'_>,
    unit_bytes: usize,
    staging: DeviceSlice<'_>,
) -> Result<()> {
    let count = list.bytes() as u64 / 8;
    assert!(staging.bytes() as u64 >= count * unit_bytes as u64, "room for the pages");
    let args =
        Args::new().slice(region).slice(list).word(count).half(unit_bytes as u32).slice(staging);
    let blocks_max = u64::from(stream.gpu().multiprocessors()) * 32;
    let shape = Shape::blocks(count.div_ceil(WARPS).min(blocks_max), THREADS);
    // SAFETY: the kernel's arguments in order; the list names pages of the region.
    unsafe { stream.launch(GATHER, shape, args) }
}

/// Queues running sums: `starts[i]` = sum of the sizes before `i`, each rounded up to `align`;
/// `starts[count]` = the sum of all.
///
/// # Safety
/// `sizes` holds `count` words, `starts` one more.
pub(crate) unsafe fn queue_scan(
    stream: &Stream,
    sizes: DeviceSlice<'_>,
    starts: DeviceSlice<'_>,
    count: u64,
    align: u64,
) -> Result<()> {
    let args = Args::new().slice(sizes).slice(starts).word(count).word(align);
    // SAFETY: passed on to the caller.
    unsafe { stream.launch(SCAN, Shape::blocks(1, SCAN_THREADS), args) }
}

/// Queues bringing `count` pieces from their slots together at `starts`.
///
/// # Safety
/// `slots` holds `count` slots, `sizes` and `starts` as many words, and `out` ends after the last
/// piece.
pub(crate) unsafe fn queue_pack(
    stream: &Stream,
    slots: DeviceSlice<'_>,
    slot_bytes: u64,
    sizes: DeviceSlice<'_>,
    starts: DeviceSlice<'_>,
    count: u64,
    out: DeviceSlice<'_>,
) -> Result<()> {
    let args = Args::new().slice(slots).word(slot_bytes).slice(sizes).slice(starts).slice(out);
    // SAFETY: passed on to the caller.
    unsafe { stream.launch(PACK_SLOTS, Shape::blocks(count, THREADS), args) }
}
