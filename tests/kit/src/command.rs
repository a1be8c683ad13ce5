//! Processes that a test or an experiment starts and kills.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, kill_process, set_parent_process_death_signal, test_kill_process,
};

/// Settings of whoever runs it must not reach the program under test.
pub fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["STANDFAST_", "AWS_"].iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// The kernel kills the process when this one is gone, however it ends.
pub fn die_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: one system call between fork and exec.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) }
}

/// Kills a process, which may be gone already.
pub fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

/// Kills a process and waits until it is gone. It must not be a child that nobody waits for.
pub fn kill_and_wait(pid: Pid) {
    kill(pid);
    while test_kill_process(pid).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Asks again and again, until the answer is yes or the patience is at its end; the last answer.
pub fn until(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Numbers below a bound, the same ones for the same seed.
pub fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    move |below| random.next_u64() % below
}

/// Words without pattern, the same ones for the same seed, on every machine and for ever: results name
/// their seeds.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next word (xorshift64).
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Bytes that no codec and no deduplication makes fewer.
    pub fn noise(&mut self, bytes: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next_u64().to_le_bytes());
        words.take(bytes.div_ceil(8)).flatten().take(bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_is_gone() {
        let child = clean(die_with_us(Command::new("sleep").arg("60"))).spawn();
        let mut child = child.expect("sleep starts");
        kill(Pid::from_child(&child));
        assert!(!child.wait().expect("it can be waited for").success());
    }

    #[test]
    fn a_seed_names_its_numbers() {
        let take = |seed| {
            let mut draw = draws(seed);
            (0..8).map(|_| draw(1000)).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        assert_eq!(Random::new(1).noise(20).len(), 20);
    }

    #[test]
    fn patience_has_an_end() {
        assert!(!until(Duration::from_millis(5), || false));
        let mut left = 3;
        assert!(until(Duration::from_secs(60), || {
            left -= 1;
            left == 0
        }));
    }
}
