//! Where the pages of a restart go: memory of the process, or of a device.

use standfast_capture::{DeviceError, DeviceFill, DeviceRegion, DeviceResult, Excluded, Regions};
use standfast_format::{Image, RegionImage, Version};

use crate::error::{Error, Result};
use crate::rebuild::Rebuild;
use crate::sink::{MemorySink, Sink};

/// Memory that a restart fills.
#[derive(Clone, Copy)]
pub struct Destinations<'a> {
    regions: &'a Regions,
    owns_pages: &'a dyn Fn(&str) -> bool,
    device: &'a dyn Fn() -> DeviceResult<Option<Box<dyn DeviceFill>>>,
}

impl<'a> Destinations<'a> {
    /// The regions of a program. `owns_pages`: whether a region shares no page with other memory;
    /// `device`: begins to fill the regions that lie on a device.
    ///
    /// # Safety
    /// Nobody uses the memory of the regions as long as this lives. It stays mapped until then, and
    /// where pages are loaded later, until [`crate::Lazy::finish`] has returned.
    pub unsafe fn new(
        regions: &'a Regions,
        owns_pages: &'a dyn Fn(&str) -> bool,
        device: &'a dyn Fn() -> DeviceResult<Option<Box<dyn DeviceFill>>>,
    ) -> Self {
        Self { regions, owns_pages, device }
    }

    /// The protected regions.
    pub(crate) fn regions(&self) -> &'a Regions {
        self.regions
    }

    /// What a restart leaves as it is in a region.
    pub(crate) fn excluded(&self, name: &str) -> Excluded {
        let region = self.regions.get(name);
        region.map_or_else(Excluded::default, |region| self.regions.excluded(region))
    }

    /// Whether a region shares no page with other memory.
    pub(crate) fn owns_pages(&self, name: &str) -> bool {
        (self.owns_pages)(name)
    }

    /// Whether a region lies on a device.
    pub(crate) fn has_device_regions(&self) -> bool {
        self.regions.iter().any(|region| region.device().is_some())
    }

    /// Memory for those regions of an image that are protected and `wanted`.
    pub(crate) fn memory(
        &self,
        images: &[RegionImage],
        wanted: impl Fn(usize) -> bool,
    ) -> MemorySink<'a> {
        let destination = |(at, region): (usize, &RegionImage)| {
            let own = self.regions.get(&region.name).filter(|_| wanted(at))?;
            // SAFETY: whoever made this vouches for the memory.
            Some(unsafe { own.memory_mut() })
        };
        let left = images.iter().map(|region| self.excluded(&region.name)).collect();
        MemorySink::new(images.iter().enumerate().map(destination).collect()).leaving(left)
    }

    /// Every protected region must be in the image, with its size.
    pub(crate) fn check_fit(&self, image: &Image) -> Result<()> {
        let unfit = |why| Err(Error::Unfit { version: image.version, why });
        for region in self.regions.iter() {
            let (name, here) = (region.name(), region.bytes());
            match image.region(name).map(|found| found.bytes) {
                None => return unfit(format!("it has no region {name:?}")),
                Some(there) if there != here as u64 => {
                    return unfit(format!(
                        "region {name:?} has {there} bytes there and {here} here"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The regions of an image that the program has not protected.
    pub(crate) fn unclaimed(&self, rebuild: &Rebuild) -> Vec<String> {
        let regions = rebuild.image().regions.iter();
        let left = regions.filter(|region| self.regions.get(&region.name).is_none());
        left.map(|region| region.name.clone()).collect()
    }
}

/// A restart brings every rank back to its own image.
pub(crate) fn check_ranks(version: Version, then: u32, size: usize) -> Result<()> {
    if then as usize == size {
        return Ok(());
    }
    let why = format!("{then} ranks then, {size} now: redistribute with sf_read_region_of");
    Err(Error::Unfit { version, why })
}

/// Puts regions back, wherever they lie.
pub(crate) struct RegionSink<'a> {
    memory: MemorySink<'a>,
    filling: Option<Box<dyn DeviceFill>>,
    /// By region of the image: the region on the device, and its length.
    there: Vec<Option<(DeviceRegion, u64)>>,
}

impl<'a> RegionSink<'a> {
    pub(crate) fn new(to: Destinations<'a>, images: &[RegionImage]) -> Result<Self> {
        let there = images.iter().map(|region| {
            let own = to.regions.get(&region.name)?;
            Some((own.device()?, own.bytes() as u64))
        });
        let there: Vec<_> = there.collect();
        let filling = match there.iter().any(Option::is_some) {
            true => (to.device)()?,
            false => None,
        };
        Ok(Self { memory: to.memory(images, |_| true), filling, there })
    }

    /// Waits until everything is where it belongs.
    pub(crate) fn finish(&self) -> Result<()> {
        Ok(self.filling.as_ref().map_or(Ok(()), |filling| filling.finish())?)
    }

    /// The device's region, and as many bytes as lie in it.
    fn there(
        &self,
        region: usize,
        offset: u64,
        bytes: u64,
    ) -> Option<(&dyn DeviceFill, DeviceRegion, u64)> {
        let (region, all) = self.there[region]?;
        let filling = self.filling.as_deref().expect("a region lies there");
        Some((filling, region, bytes.min(all.saturating_sub(offset))))
    }
}

impl Sink for RegionSink<'_> {
    type Error = DeviceError;

    fn pages(&self, region: usize, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        match self.there(region, offset, bytes.len() as u64) {
            Some((filling, region, count)) => {
                filling.pages(region, offset, &bytes[..count as usize])
            }
            None => {
                let Ok(()) = self.memory.pages(region, offset, bytes);
                Ok(())
            }
        }
    }

    fn zeros(&self, region: usize, offset: u64, bytes: u64) -> DeviceResult<()> {
        match self.there(region, offset, bytes) {
            Some((filling, region, count)) => filling.zeros(region, offset, count),
            None => {
                let Ok(()) = self.memory.zeros(region, offset, bytes);
                Ok(())
            }
        }
    }
}
