use super::*;

#[test]
fn requests_are_answered_once_and_by_their_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("request");
    let request = RunRequest::create(&path).unwrap();
    assert!(!request.is_heard() && request.answer().is_none());
    let asked = RequestWatch::open(path.to_str().unwrap()).unwrap();
    assert!(request.is_heard() && !asked.is_pending());
    asked.answer(6);
    assert!(request.answer().is_none(), "nobody had asked");

    request.ask().unwrap();
    assert!(asked.is_pending() && request.answer().is_none());
    asked.answer(7);
    assert!(!asked.is_pending());
    assert_eq!(request.answer(), Some(7));

    request.reset(RestartFrom::Auto).unwrap();
    let next = RequestWatch::open(path.to_str().unwrap()).unwrap();
    assert!(!next.is_pending() && request.answer().is_none());
}

#[test]
fn files_that_are_absent_or_cut_ask_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("request");
    let text = path.to_str().unwrap();
    assert!(RequestWatch::open(text).is_none());
    RunRequest::create(&path).unwrap().ask().unwrap();
    let asked = RequestWatch::open(text).unwrap();
    assert!(asked.is_pending());
    std::fs::write(&path, b"cut").unwrap();
    assert!(!asked.is_pending());
    asked.answer(1);
    assert!(RequestWatch::open(text).is_none(), "too short to be one");
}
