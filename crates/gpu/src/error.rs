//! What can go wrong on the device, and why there may be none.

use standfast_format::Kind;

/// Result of work on the device.
pub type Result<T> = std::result::Result<T, Error>;

/// Why work on the device failed. After any of these the CPU can do the same work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device has not enough free memory.
    #[error("out of device memory: {bytes} bytes for {what}")]
    OutOfMemory {
        /// What the memory was for.
        what: &'static str,
        /// Bytes asked for.
        bytes: usize,
    },
    /// The device is gone, or a fault made its context useless.
    #[error("the device was lost while {what}: {code}")]
    Lost {
        /// What was being done.
        what: &'static str,
        /// The driver's name of the failure.
        code: String,
    },
    /// The driver refused.
    #[error("{what} failed: {code}")]
    Driver {
        /// What was being done.
        what: &'static str,
        /// The driver's name of the failure.
        code: String,
    },
    /// A kernel did not compile on this machine.
    #[error("kernel {name} does not compile here: {log}")]
    Compile {
        /// The source's name.
        name: &'static str,
        /// What the compiler said.
        log: String,
    },
    /// The program wrote to a region while it was captured.
    #[error(
        "{pages} pages changed while they were captured: the program's work on the device goes on during the call"
    )]
    Changed {
        /// How many.
        pages: u64,
    },
    /// Compressed bytes are not what the encoder writes.
    #[error("{codec} data are damaged: {why}")]
    Damaged {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Stored bytes are damaged.
    #[error(transparent)]
    Stored(#[from] standfast_reduce::Error),
    /// The caller asked for something that cannot be.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    /// The kind of this failure.
    pub fn kind(&self) -> Kind {
        match self {
            Error::OutOfMemory { .. } => Kind::Full,
            Error::Lost { .. } | Error::Driver { .. } => Kind::Io,
            Error::Compile { .. } => Kind::Unsupported,
            Error::Damaged { .. } => Kind::Corrupt,
            Error::Stored(source) => source.kind(),
            Error::Invalid { .. } | Error::Changed { .. } => Kind::Invalid,
        }
    }

    /// Whether the device, not the data or the caller, is at fault: the CPU would succeed.
    pub fn is_device_fault(&self) -> bool {
        !matches!(
            self,
            Error::Damaged { .. }
                | Error::Stored(_)
                | Error::Changed { .. }
                | Error::Invalid { .. }
        )
    }

    /// Whether the processor can do the same from copies of the device's memory.
    pub(crate) fn is_made_good(&self) -> bool {
        self.is_device_fault() && !matches!(self, Error::Lost { .. })
    }

    pub(crate) fn damaged(codec: &'static str, why: impl Into<String>) -> Error {
        Error::Damaged { codec, why: why.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Error {
        Error::Invalid { what: what.into() }
    }
}

/// Why no GPU is used. Everything works without one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// This program was built without the feature for GPUs.
    #[error("this program was built without support for GPUs (feature \"gpu\")")]
    NotBuilt,
    /// No CUDA driver is installed.
    #[error("no NVIDIA driver (libcuda) on this machine")]
    NoDriver,
    /// The driver is older than what the kernels are compiled for.
    #[error("the NVIDIA driver supports CUDA {found}, {needed} is needed")]
    DriverTooOld {
        /// The CUDA version of the driver.
        found: Version,
        /// The oldest that will do.
        needed: Version,
    },
    /// The run-time compiler is not installed.
    #[error("no NVRTC library on this machine (part of the CUDA toolkit)")]
    NoCompiler,
    /// A driver, but no device; or devices hidden from this process.
    #[error("no CUDA device")]
    NoDevice,
    /// The device lacks instructions that the kernels use.
    #[error("{name} has compute capability {found}, {needed} is needed")]
    DeviceTooOld {
        /// The device.
        name: String,
        /// What it can.
        found: Version,
        /// The least that will do.
        needed: Version,
    },
    /// Not even a context fits on the device.
    #[error("the device has no memory left for a context")]
    OutOfMemory,
    /// The driver failed in another way.
    #[error("the driver failed: {code}")]
    Failed {
        /// The driver's name of the failure.
        code: String,
    },
}

/// A version of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the point.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests;
