//! How much a drain steps back: behind other processes, behind other users of the disk, onto cores
//! that the program does not need.
//!
//! Data: settings or flags -> [`Priority::take`] on the thread that will drain; threads that it
//! starts afterwards inherit all of it.
//!
//! Why it may not matter: schedulers of disks that know no priorities (`none`, usual for NVMe)
//! ignore that part, and so do network file systems.

use std::fmt;
use std::io;
use std::str::FromStr;

/// Highest number of a core that can be named.
const CORES_MAX: usize = 1024;
/// Lowest priority of the usual class for reads and writes.
const IO_LOWEST: u8 = 7;

/// What a drain yields to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    /// How nice it is to other processes, 0 to 19.
    pub nice: i32,
    /// When its reads and writes of disks come.
    pub io: IoPriority,
    /// Where it runs.
    pub cores: Cores,
}

impl Default for Priority {
    fn default() -> Self {
        Self { nice: 19, io: IoPriority::default(), cores: Cores::default() }
    }
}

impl Priority {
    /// Gives the calling thread this priority, or leaves it a lower one. What is refused does not
    /// keep the rest from being taken; the first refusal is returned.
    pub fn take(&self) -> io::Result<()> {
        self.take_nice().and(self.take_turns()).and(self.io.take()).and(self.cores.take())
    }

    fn take_nice(&self) -> io::Result<()> {
        // Nobody may become less nice than it was started.
        match rustix::process::getpriority_process(None)? {
            now if now >= self.nice => Ok(()),
            _ => Ok(rustix::process::setpriority_process(None, self.nice)?),
        }
    }

    /// A drain wakes for every piece that a disk or link is done with. The usual class lets it run
    /// then at once, in the middle of what somebody else does; this one lets it wait for its turn.
    fn take_turns(&self) -> io::Result<()> {
        // SAFETY: the kernel reads the struct, and the calling thread alone is meant.
        let done = unsafe {
            match libc::sched_getscheduler(0) {
                libc::SCHED_OTHER if self.nice > 0 => {
                    let parameters: libc::sched_param = std::mem::zeroed();
                    libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters)
                }
                _ => 0,
            }
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// When reads and writes of disks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoPriority {
    /// Only when nobody else reads or writes.
    Idle,
    /// Among others, from 0 (first) to 7 (last).
    Among(u8),
}

impl Default for IoPriority {
    fn default() -> Self {
        IoPriority::Among(IO_LOWEST)
    }
}

impl IoPriority {
    /// As the kernel has it: a class and a level.
    fn number(self) -> libc::c_int {
        const CLASS_SHIFT: u32 = 13;
        match self {
            IoPriority::Among(level) => 2 << CLASS_SHIFT | libc::c_int::from(level.min(IO_LOWEST)),
            IoPriority::Idle => 3 << CLASS_SHIFT,
        }
    }

    fn take(self) -> io::Result<()> {
        const WHO_PROCESS: libc::c_int = 1;
        // SAFETY: three numbers; 0 is the calling thread.
        match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, self.number()) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                // All are alike there.
                error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
                error => Err(error),
            },
        }
    }
}

impl FromStr for IoPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = || text.parse().ok().filter(|level| *level <= IO_LOWEST);
        match text {
            "idle" => Ok(IoPriority::Idle),
            _ => level().map(IoPriority::Among).ok_or_else(|| {
                format!("{text:?} is neither idle nor a number from 0 (first) to 7 (last)")
            }),
        }
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoPriority::Idle => f.write_str("idle"),
            IoPriority::Among(level) => level.fmt(f),
        }
    }
}

/// A set of cores; empty: any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

impl Cores {
    fn take(&self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut set = rustix::thread::CpuSet::new();
        self.0.iter().for_each(|core| set.set(*core));
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} is not a list of cores such as 0,2-3");
        let number = |text: &str| text.parse::<usize>().ok().filter(|core| *core < CORES_MAX);
        let mut cores = Vec::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => cores.extend(first..=last),
                _ => return Err(refuse()),
            }
        }
        cores.sort_unstable();
        cores.dedup();
        Ok(Self(cores))
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, run) in self.0.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                _ => write!(f, "{comma}{}-{}", run[0], run[run.len() - 1])?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
