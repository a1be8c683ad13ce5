//! What drains leave behind in the local store: how much went, how long it took.
//!
//! Data: arrivals -> [`note`] -> the object `drains` -> `read_drains` -> the interval `auto`,
//! the planner.
//!
//! Why in the local store: the program and its planner look there anyway, and the drain may be
//! any process: the agent, a command beside the job, or one that ran before it.

use std::time::{Duration, SystemTime};

use standfast_format::{Arrival, name};
use standfast_restart::read_drains;
use standfast_store::Store;

use crate::carry::Carried;

/// Adds an arrival to the record. Advice: where it cannot be given, nothing but advice is lost.
pub(crate) fn note(local: &dyn Store, carried: &Carried, elapsed: Duration) {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut known = read_drains(local).unwrap_or_default();
    known.push(Arrival {
        version: carried.version,
        from_bytes: carried.from_bytes,
        to_bytes: carried.to_bytes,
        elapsed_ns: nanoseconds(elapsed),
        arrived_ns: nanoseconds(since_1970),
    });
    let _ = local.put(name::DRAINS, &known.encode());
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
