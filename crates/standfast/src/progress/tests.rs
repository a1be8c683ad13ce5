use super::*;
use std::sync::Arc;

#[test]
fn waiting_ends_with_the_level_the_failure_or_the_end() {
    let board = Arc::new(Board::default());
    board.set(Version(1), Progress::Reached(Level::Memory));
    board.wait(Version(1), Level::Memory).unwrap();
    let waiter = std::thread::spawn({
        let board = Arc::clone(&board);
        move || board.wait(Version(1), Level::Local)
    });
    board.set(Version(1), Progress::Done(Level::Local));
    waiter.join().unwrap().unwrap();
    let beyond = board.wait(Version(1), Level::Global).unwrap_err();
    assert!(matches!(beyond.cause(), Cause::Unreachable { .. }));
    board.set(Version(2), Progress::Failed(Cause::VersionZero.into()));
    let failed = board.wait(Version(2), Level::Local).unwrap_err();
    assert!(matches!(failed.cause(), Cause::VersionZero));
    let unknown = board.wait(Version(3), Level::Local).unwrap_err();
    assert!(matches!(unknown.cause(), Cause::UnknownVersion { .. }));
}

#[test]
fn a_failure_is_told_once() {
    let board = Board::default();
    board.set(Version(1), Progress::Failed(Cause::VersionZero.into()));
    board.set(Version(2), Progress::Failed(Cause::VersionZero.into()));
    assert!(board.wait(Version(2), Level::Local).is_err());
    let first = board.untold().unwrap();
    assert!(matches!(first.cause(), Cause::Earlier { version: Version(1), .. }));
    assert!(board.untold().is_none());
}

#[test]
fn memory_of_old_checkpoints_is_bounded() {
    let board = Board::default();
    for version in 1..=1000 {
        board.set(Version(version), Progress::Done(Level::Local));
    }
    assert_eq!(board.lock().len(), REMEMBERED);
    assert!(board.get(Version(1000)).is_some());
}
