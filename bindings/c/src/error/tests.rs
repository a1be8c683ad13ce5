use super::*;
use std::ffi::CStr;

fn last() -> String {
    // SAFETY: the text is not replaced while it is being copied.
    unsafe { CStr::from_ptr(sf_last_error()) }.to_str().unwrap().to_owned()
}

#[test]
fn codes_and_words_are_those_of_the_one_table() {
    use sf_error::*;
    let codes = [
        (SF_CORRUPT, Kind::Corrupt),
        (SF_MISSING, Kind::Missing),
        (SF_BUSY, Kind::Busy),
        (SF_TRANSIENT, Kind::Transient),
        (SF_FULL, Kind::Full),
        (SF_DENIED, Kind::Denied),
        (SF_IO, Kind::Io),
        (SF_UNSUPPORTED, Kind::Unsupported),
        (SF_INVALID, Kind::Invalid),
        (SF_BUG, Kind::Bug),
        (SF_EXHAUSTED, Kind::Exhausted),
    ];
    assert_eq!(codes.len(), Kind::all().count());
    for (code, kind) in codes {
        assert_eq!(code as c_int, kind.c_code(), "{kind}");
        // SAFETY: the name is a constant.
        let name = unsafe { CStr::from_ptr(sf_error_name(code as c_int)) };
        assert_eq!(name.to_str().unwrap(), kind.name());
    }
}

#[test]
fn a_panic_becomes_a_code_and_a_text() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let code = call("sf_test", || panic!("a plank is loose"));
    std::panic::set_hook(hook);
    assert_eq!(code, sf_error::SF_BUG as c_int);
    assert!(last().starts_with("sf_test: ") && last().ends_with("a plank is loose"));
}

#[test]
fn every_reason_reaches_the_text() {
    let reasons = vec![("checkpoint 2".to_owned(), "torn".to_owned()), ("x".into(), "gone".into())];
    let error = Error::none_restorable("j".into(), reasons);
    let code = call("sf_restart", || Err(error.into()));
    assert_eq!(code, sf_error::SF_CORRUPT as c_int);
    assert!(last().ends_with("\n  checkpoint 2: torn\n  x: gone"), "{}", last());
}

#[test]
fn threads_do_not_see_each_others_failures() {
    call("sf_test", || Err(Failure::invalid("mine\0still mine")));
    std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
    assert_eq!(last(), "sf_test: mine\\0still mine");
}
