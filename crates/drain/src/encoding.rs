//! How blocks are compressed on their way: always alike, or by what sending takes now.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use standfast_reduce::{Adaptive, BlockEncoder, CodecChoice, FilterChoice};

/// How fast a target takes bytes is told after so many.
const TELL_BYTES: u64 = 1 << 20;

/// How blocks are encoded on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Codec and level, or the one that suits each block and the target's speed; a block stays as it is
    /// where that is smaller.
    pub codec: CodecChoice,
    /// Threads that read, verify and compress beside the one that sends; 0: the caller's does all of
    /// it in turn.
    pub threads: usize,
}

/// The encoders of a drain.
pub(crate) struct Codecs {
    encoding: Encoding,
    adaptive: Option<Arc<Adaptive>>,
    /// Bytes sent, and how long that took, since it was last told.
    untold: Mutex<(u64, Duration)>,
}

impl Codecs {
    pub(crate) fn new(encoding: Encoding) -> Self {
        let adaptive = || Arc::new(Adaptive::new(encoding.threads, encoding.threads == 0));
        let adaptive = (encoding.codec == CodecChoice::Auto).then(adaptive);
        Self { encoding, adaptive, untold: Mutex::default() }
    }

    pub(crate) fn threads(&self) -> usize {
        self.encoding.threads
    }

    pub(crate) fn encoder(&self, block_bytes: usize) -> BlockEncoder {
        let filter = FilterChoice::Auto;
        match (&self.adaptive, self.encoding.codec) {
            (Some(adaptive), _) => {
                BlockEncoder::adaptive(Arc::clone(adaptive), filter, block_bytes)
            }
            (None, CodecChoice::Fixed(codec)) => BlockEncoder::new(codec, filter, block_bytes),
            (None, CodecChoice::Auto) => unreachable!("made above"),
        }
    }

    /// Takes in how long some bytes took, waiting included.
    pub(crate) fn sent(&self, bytes: u64, time: Duration) {
        let Some(adaptive) = &self.adaptive else { return };
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.0 += bytes;
        untold.1 += time;
        if untold.0 >= TELL_BYTES {
            let (bytes, time) = std::mem::take(&mut *untold);
            adaptive.storing(time.as_secs_f64() / bytes as f64);
        }
    }
}
