//! Memory beyond the program's own, watched while something runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Often enough to see a buffer, seldom enough not to disturb.
const PAUSE: Duration = Duration::from_millis(3);

/// Runs something and tells the most memory that this process held meanwhile beyond what it held
/// before; and, if `agent` finds one, all that the agent held.
pub(super) fn watched<R>(
    agent: impl Fn() -> Option<i32> + Sync,
    work: impl FnOnce() -> R,
) -> (R, u64) {
    let before = private_bytes("self").unwrap_or(0);
    let (most, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let own = private_bytes("self").unwrap_or(0).saturating_sub(before);
                let of_agent = agent().map_or(0, |pid| all_bytes(&pid.to_string()).unwrap_or(0));
                most.fetch_max(own + of_agent, Ordering::SeqCst);
                std::thread::sleep(PAUSE);
            }
        });
        let result = work();
        done.store(true, Ordering::SeqCst);
        result
    });
    (result, most.into_inner())
}

/// What the process shares with nobody.
fn private_bytes(process: &str) -> Option<u64> {
    field(&status(process)?, "RssAnon:")
}

/// That, and what it shares: an agent's pool is counted where it lives, not at each rank.
fn all_bytes(process: &str) -> Option<u64> {
    let status = status(process)?;
    Some(field(&status, "RssAnon:")? + field(&status, "RssShmem:")?)
}

fn status(process: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{process}/status")).ok()
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_seen() {
        let (_, most) = watched(
            || None,
            || {
                let buffer = vec![1u8; 64 << 20];
                std::thread::sleep(8 * PAUSE);
                std::hint::black_box(buffer.len())
            },
        );
        assert!(most >= 60 << 20, "{most}");
    }
}
