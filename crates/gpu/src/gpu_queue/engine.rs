//! What a device must be able to do to compress blocks.

use crate::error::Result;
use crate::memory::Encoding;
use crate::packed::Packed;

/// Two lanes through a device.
pub trait Engine: Send {
    /// Memory of the host for a block, such as the device reads best.
    type Slot: std::ops::DerefMut<Target = [u8]> + Send + 'static;

    /// A slot.
    fn slot(&self) -> Result<Self::Slot>;

    /// Queues encoding these blocks on a lane. The slots are left alone until it has finished.
    fn start(
        &mut self,
        lane: usize,
        encoding: Encoding,
        blocks: &mut [&mut Self::Slot],
    ) -> Result<()>;

    /// Waits for a lane: lengths of its chunks, and the chunks, equally many for each block. Those
    /// of Deflate are parts of a stream.
    fn finish(&mut self, lane: usize) -> Result<(Packed, &[u8])>;
}
