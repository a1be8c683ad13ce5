//! The regions of a job, protected.

use anyhow::{Result, ensure};
use standfast::{Job, Protected};
use standfast_gpu::memory::{DeviceMemory, Settings};
use standfast_stand_in::{Faults, StandIn};
use zerocopy::IntoBytes;

use crate::contents::Contents;

/// Protected regions of the shape of [`Contents`], and one without any byte.
pub(crate) struct Memory {
    /// `None` where the field lies on a device.
    field: Option<Protected<f64>>,
    counts: Protected<u32>,
    noise: Protected<u8>,
    twins: Protected<u8>,
    zeros: Protected<u8>,
    _empty: Protected<u8>,
}

impl Memory {
    /// Everything in the memory of this process, where readers want it wherever it lay before.
    pub(crate) fn alloc(job: &Job, shape: &Contents) -> Result<Self> {
        let field = job.alloc("field", shape.field.len())?;
        Ok(Self { field: Some(field), ..Self::beside_device(job, shape)? })
    }

    /// All but the field.
    pub(crate) fn beside_device(job: &Job, shape: &Contents) -> Result<Self> {
        Ok(Self {
            field: None,
            counts: job.alloc("counts", shape.counts.len())?,
            noise: job.alloc("noise", shape.noise.len())?,
            twins: job.alloc("twins", shape.twins.len())?,
            zeros: job.alloc("zeros", shape.zeros.len())?,
            _empty: job.alloc("empty", 0)?,
        })
    }

    pub(crate) fn set(&self, contents: &Contents) {
        if let Some(field) = &self.field {
            field.write().copy_from_slice(&contents.field);
        }
        self.counts.write().copy_from_slice(&contents.counts);
        self.noise.write().copy_from_slice(&contents.noise);
        self.twins.write().copy_from_slice(&contents.twins);
        self.zeros.write().copy_from_slice(&contents.zeros);
    }

    /// Overwrites everything, so that nothing that a restart leaves out is right by chance.
    pub(crate) fn scribble(&self) {
        if let Some(field) = &self.field {
            field.write().fill(f64::NAN);
        }
        self.counts.write().fill(0xdead_beef);
        for region in [&self.noise, &self.twins, &self.zeros] {
            region.write().fill(0xa5);
        }
    }

    /// Fails at the first byte that is not what it was.
    pub(crate) fn compare(&self, contents: &Contents) -> Result<()> {
        if let Some(field) = &self.field {
            equal("field", field.read().as_bytes(), contents.field.as_bytes())?;
        }
        equal("counts", self.counts.read().as_bytes(), contents.counts.as_bytes())?;
        equal("noise", &self.noise.read(), &contents.noise)?;
        equal("twins", &self.twins.read(), &contents.twins)?;
        equal("zeros", &self.zeros.read(), &contents.zeros)
    }
}

fn equal(region: &str, found: &[u8], expected: &[u8]) -> Result<()> {
    let other = found.iter().zip(expected).position(|(found, expected)| found != expected);
    ensure!(found.len() == expected.len() && other.is_none(), "{region}: byte {other:?} is wrong");
    Ok(())
}

/// Protects a field as if it lay on a device, which no machine of ours needs to have.
///
/// # Safety
/// The field must stay where it is until the job has ended, and nobody may write to it during calls.
pub(crate) unsafe fn protect_on_stand_in(job: &Job, field: &mut [f64]) -> Result<()> {
    let stand_in = |settings: Settings| {
        let stand_in = StandIn::new(&settings.key, Faults::default());
        Box::new(DeviceMemory::new(stand_in, settings, None)) as Box<_>
    };
    let at = field.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: as the caller vouches.
    unsafe { job.protect_on(stand_in, "field", at, size_of_val(field), 8)? };
    Ok(())
}
