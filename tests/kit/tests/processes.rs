//! The communicator of processes against the one suite. Its ranks are threads here: between two
//! sockets that makes no difference.

use standfast_conformance::comm as conformance;
use standfast_testkit::Processes;

fn ranks<T: Send>(size: usize, body: impl Fn(Processes) -> T + Sync) -> Vec<T> {
    let dir = tempfile::tempdir().unwrap();
    let (dir, body) = (dir.path(), &body);
    std::thread::scope(|scope| {
        let start = |rank| scope.spawn(move || body(Processes::meet(dir, rank, size).unwrap()));
        let running: Vec<_> = (0..size).map(start).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn conforms() {
    for size in [1, 2, 3, 5] {
        ranks(size, |comm| conformance::run(&comm));
    }
}
