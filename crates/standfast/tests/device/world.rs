//! A job on a directory whose device is the stand-in.

use standfast::config::Loaded;
use standfast::{Job, Level, Result, Version};
use standfast_gpu::memory::DeviceMemory;
use standfast_stand_in::{Faults, StandIn};
use zerocopy::{Immutable, IntoBytes};

pub(crate) struct World {
    dir: tempfile::TempDir,
    settings: Vec<(String, String)>,
    pub(crate) faults: Faults,
}

impl World {
    pub(crate) fn new(settings: &[(&str, &str)]) -> Self {
        let base = [("job", "device"), ("lab.pool", "4MiB"), ("lab.device_staging", "4MiB")];
        let all = base.iter().chain(settings);
        let settings = standfast_testkit::last_of_each(
            all.map(|(name, text)| ((*name).into(), (*text).into())),
        );
        Self { dir: tempfile::tempdir().unwrap(), settings, faults: Faults::default() }
    }

    pub(crate) fn loaded(&self) -> Loaded {
        let store = self.dir.path().to_str().unwrap().to_owned();
        let mut all = self.settings.clone();
        all.push(("store".into(), store));
        Loaded::load(&all).unwrap()
    }

    pub(crate) fn open(&self) -> Job {
        Job::open_loaded(self.loaded()).unwrap()
    }

    /// Protects memory as if it lay on a device. Tests keep it until the job is closed.
    pub(crate) fn protect(&self, job: &Job, name: &str, memory: &mut [u8], elem: u8) -> Result<()> {
        let faults = self.faults.clone();
        let stand_in = |settings: standfast_gpu::memory::Settings| {
            let stand_in = StandIn::new(&settings.key, faults);
            Box::new(DeviceMemory::new(stand_in, settings, None)) as Box<_>
        };
        let at = match memory.len() {
            0 => 16,
            _ => memory.as_mut_ptr().expose_provenance() as u64,
        };
        // SAFETY: as promised, and nobody touches it during calls.
        unsafe { job.protect_on(stand_in, name, at, memory.len(), elem) }
    }

    pub(crate) fn durable(&self, job: &Job) -> Version {
        let version = job.checkpoint(None).unwrap();
        job.wait(version, Level::Local).unwrap();
        version
    }
}

/// Different for every seed and place, and not compressible.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len).map(|_| next()).collect()
}

pub(crate) fn bytes_of<T: IntoBytes + Immutable>(numbers: &[T]) -> Vec<u8> {
    numbers.as_bytes().to_vec()
}
