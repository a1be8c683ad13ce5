//! Sound envelopes around arbitrary bodies, as docs/FORMAT.md describes them.

use standfast_format::{Digest, FORMAT_VERSION, SEGMENT_FOOTER_BYTES};

/// The first byte of an input that is to be taken as it is.
pub(crate) const AS_IT_IS: u8 = 0;
/// The first byte of an input whose rest is a body.
pub(crate) const BODY: u8 = 1;

const HEAD_BYTES: usize = 24;
const DIGEST_BYTES: usize = 32;
const FOOTER_MARK: &[u8; 8] = b"SFSEGEND";
const FOOTER_CHECK_BYTES: usize = 16;

/// The sorts of framed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Store,
    Drains,
    Manifest,
    Pledge,
    Image,
    SegmentHeader,
    SegmentIndex,
    Identity,
    Topology,
    ShardHeader,
    ShardTable,
}

impl Sort {
    fn mark(self) -> &'static [u8; 8] {
        match self {
            Sort::Store => b"SFSTORE\0",
            Sort::Drains => b"SFDRAIN\0",
            Sort::Manifest => b"SFMANIF\0",
            Sort::Pledge => b"SFPLEDG\0",
            Sort::Image => b"SFIMAGE\0",
            Sort::SegmentHeader => b"SFSEGMT\0",
            Sort::SegmentIndex => b"SFINDEX\0",
            Sort::Identity => b"SFIDENT\0",
            Sort::Topology => b"SFRING\0\0",
            Sort::ShardHeader => b"SFSHARD\0",
            Sort::ShardTable => b"SFSHSUM\0",
        }
    }

    fn version(self) -> u16 {
        match self {
            Sort::Topology | Sort::ShardHeader | Sort::ShardTable => 1,
            _ => FORMAT_VERSION,
        }
    }
}

/// The bytes that an input stands for.
pub(crate) fn open(sort: Sort, data: &[u8]) -> Option<Vec<u8>> {
    let (how, rest) = data.split_first()?;
    Some(if *how == AS_IT_IS { rest.to_vec() } else { seal(sort, rest) })
}

/// The same for a footer, which has an envelope of its own.
pub(crate) fn open_footer(data: &[u8]) -> Option<Vec<u8>> {
    let (how, rest) = data.split_first()?;
    let mut bytes = rest.to_vec();
    if *how != AS_IT_IS {
        bytes.splice(0..0, *FOOTER_MARK);
        bytes.resize(SEGMENT_FOOTER_BYTES, 0);
        reseal_footer(&mut bytes);
    }
    Some(bytes)
}

/// A body in a sound frame.
pub(crate) fn seal(sort: Sort, body: &[u8]) -> Vec<u8> {
    let mut bytes = sort.mark().to_vec();
    bytes.extend_from_slice(&sort.version().to_le_bytes());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(body);
    let digest = Digest::of(&bytes);
    bytes.extend_from_slice(&digest.0);
    bytes
}

/// The body of a sound frame at the start of some bytes.
pub(crate) fn body(frame: &[u8]) -> &[u8] {
    &frame[HEAD_BYTES..frame_bytes(frame).expect("a sound frame") - DIGEST_BYTES]
}

/// Makes the digest of a frame fit its damaged contents; false if it is no frame any more.
pub(crate) fn reseal(bytes: &mut [u8]) -> bool {
    let Some(total) = frame_bytes(bytes) else { return false };
    let covered = total - DIGEST_BYTES;
    let digest = Digest::of(&bytes[..covered]);
    bytes[covered..total].copy_from_slice(&digest.0);
    true
}

/// Makes every checksum of a damaged segment file fit: header, footer, and the index that the
/// footer leads to.
pub(crate) fn reseal_segment(bytes: &mut [u8]) {
    reseal(bytes);
    let Some(footer_at) = bytes.len().checked_sub(SEGMENT_FOOTER_BYTES) else { return };
    let (rest, footer) = bytes.split_at_mut(footer_at);
    reseal_footer(footer);
    let offset = u64::from_le_bytes(footer[24..32].try_into().expect("8 bytes"));
    if let Some(index) = usize::try_from(offset).ok().and_then(|at| rest.get_mut(at..)) {
        reseal(index);
    }
}

fn reseal_footer(footer: &mut [u8]) {
    let covered = SEGMENT_FOOTER_BYTES - FOOTER_CHECK_BYTES;
    let check = Digest::of(&footer[..covered]);
    footer[covered..].copy_from_slice(&check.0[..FOOTER_CHECK_BYTES]);
}

/// Length of the frame at the start of some bytes, as far as its own length makes sense.
fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(16..HEAD_BYTES)?.try_into().expect("8 bytes");
    let body = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let total = body.checked_add(HEAD_BYTES + DIGEST_BYTES)?;
    (total <= bytes.len()).then_some(total)
}
