//! Parts of device memory: an address and a length.

use std::marker::PhantomData;

/// A part of device memory: ours, or the program's.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice<'a> {
    at: u64,
    bytes: usize,
    life: PhantomData<&'a ()>,
}

impl<'a> DeviceSlice<'a> {
    /// Memory that the program allocated.
    ///
    /// # Safety
    /// `bytes` bytes at `at` stay allocated on the device for `'a`, and `at` is a multiple of 16.
    pub unsafe fn from_raw(at: u64, bytes: usize) -> Self {
        DeviceSlice { at, bytes, life: PhantomData }
    }

    /// Address on the device.
    pub fn address(self) -> u64 {
        self.at
    }

    /// Length.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// `bytes` bytes from `offset` on. Panics if they are not all in it.
    pub fn part(self, offset: usize, bytes: usize) -> Self {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            "{bytes} bytes at {offset} of {}",
            self.bytes
        );
        DeviceSlice { at: self.at + offset as u64, bytes, life: self.life }
    }
}
