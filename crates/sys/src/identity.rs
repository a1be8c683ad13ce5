//! What makes one thing different from every other: random numbers and the time.

/// So many random bytes.
pub fn bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    #[cfg(feature = "simulation")]
    if simulation::ask(|source| source.fill(&mut bytes)).is_some() {
        return Ok(bytes);
    }
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Nanoseconds since 1970; 0 for a clock set before that.
pub fn now_ns() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(now) = simulation::ask(|source| source.now_ns()) {
        return now;
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Random numbers and the time as a simulator wants them, for the jobs of one thread. They commit in
/// the calls of their programs, not beside them.
#[cfg(feature = "simulation")]
pub mod simulation {
    use std::cell::RefCell;

    thread_local! {
        static SOURCE: RefCell<Option<Box<dyn Source>>> = const { RefCell::new(None) };
    }

    /// Where random numbers and the time come from.
    pub trait Source {
        /// Random bytes.
        fn fill(&mut self, bytes: &mut [u8]);

        /// Nanoseconds since 1970.
        fn now_ns(&mut self) -> u64;
    }

    /// From now on this thread's jobs ask this source; `None`: the operating system.
    pub fn install(source: Option<Box<dyn Source>>) {
        SOURCE.set(source);
    }

    /// Whether this thread has a source of its own.
    pub fn is_installed() -> bool {
        SOURCE.with_borrow(Option::is_some)
    }

    pub(crate) fn ask<T>(question: impl FnOnce(&mut dyn Source) -> T) -> Option<T> {
        SOURCE.with_borrow_mut(|source| source.as_mut().map(|source| question(&mut **source)))
    }
}
