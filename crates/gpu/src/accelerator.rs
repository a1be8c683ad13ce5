//! The device if there is one and as long as it works; else the CPU, said once.
//!
//! Why once for all: after a fault the driver answers every call of this process with the same
//! error, so trying again costs time and changes nothing. Running out of memory is different: the
//! program may free some before the next checkpoint.

use std::sync::{Mutex, PoisonError};

use crate::device::Gpu;
use crate::error::{Error, Result, Unavailable};

/// Decides call by call whether the device does the work.
pub struct Accelerator {
    state: Mutex<State>,
    say: Box<dyn Fn(&str) + Send + Sync>,
}

struct State {
    gpu: Option<Gpu>,
    /// Whether a shortage of memory was reported since the last success.
    short: bool,
}

impl Accelerator {
    /// Looks for a device. `say` gets each message; there are few.
    pub fn open(say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Accelerator::with(Gpu::open(), say)
    }

    /// With a device that was looked for elsewhere.
    pub fn with(
        gpu: std::result::Result<Gpu, Unavailable>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let gpu = match gpu {
            Ok(gpu) => Some(gpu),
            Err(why) => {
                say(&format!("no GPU is used: {why}"));
                None
            }
        };
        Accelerator { state: Mutex::new(State { gpu, short: false }), say: Box::new(say) }
    }

    /// The device, while it is used.
    pub fn gpu(&self) -> Option<Gpu> {
        self.lock().gpu.clone()
    }

    /// Runs `on_device`; where there is no device, or it fails, `on_cpu`. Damaged data and wrong
    /// arguments are the caller's to hear of: the CPU would find the same.
    pub fn run<T>(
        &self,
        on_device: impl FnOnce(&Gpu) -> Result<T>,
        on_cpu: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(gpu) = self.gpu() else { return on_cpu() };
        match on_device(&gpu) {
            Err(fault) if fault.is_device_fault() => {
                self.note(&fault);
                on_cpu()
            }
            outcome => {
                self.lock().short = false;
                outcome
            }
        }
    }

    /// Remembers a fault and says so, once.
    fn note(&self, fault: &Error) {
        let mut state = self.lock();
        let news = match fault {
            Error::OutOfMemory { .. } => !std::mem::replace(&mut state.short, true),
            _ => state.gpu.take().is_some(),
        };
        drop(state);
        if news {
            (self.say)(&format!("the CPU takes over from the GPU: {fault}"));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
