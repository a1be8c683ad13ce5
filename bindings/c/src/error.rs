//! Return codes, and the text of a thread's last failure.
//!
//! Every exported function runs inside `call`, which catches panics, keeps the text for
//! `sf_last_error` and turns the failure into its code.

#![allow(non_camel_case_types)]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use standfast::{Error, Kind};

/// What functions return: `SF_OK`, or a negative code that says what sort of failure it was.
/// `sf_last_error` has the text.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_error {
    /// Success.
    SF_OK = 0,
    /// Stored bytes are damaged: they do not match their checksum, hash or layout.
    SF_CORRUPT = -10,
    /// The checkpoint, region or file does not exist. From `sf_restart`: a fresh start.
    SF_MISSING = -11,
    /// Somebody else holds it, such as another process that has the job open.
    SF_BUSY = -12,
    /// It may work when tried again.
    SF_TRANSIENT = -13,
    /// No space is left.
    SF_FULL = -14,
    /// The operating system refuses access.
    SF_DENIED = -15,
    /// The device failed to read or write.
    SF_IO = -16,
    /// This build, machine, configuration or format version cannot do it.
    SF_UNSUPPORTED = -17,
    /// An argument, a setting or the order of calls is wrong.
    SF_INVALID = -18,
    /// Standfast's own logic is broken: please report it with the text.
    SF_BUG = -19,
    /// The process or the machine is out of memory, threads or file descriptors.
    SF_EXHAUSTED = -20,
}

/// Why an exported function fails.
#[derive(Debug)]
pub(crate) struct Failure {
    code: c_int,
    text: String,
}

/// What the bodies of exported functions return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { code: kind.c_code(), text: text.into() }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, text)
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no reason was given");
        Self::new(Kind::Bug, format!("Standfast is broken here, please report it: {text}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        text.extend(error.skipped().iter().map(|(object, why)| format!("\n  {object}: {why}")));
        Self::new(error.kind(), text)
    }
}

/// Runs the body of an exported function.
pub(crate) fn call(function: &str, body: impl FnOnce() -> Outcome) -> c_int {
    // What a panic leaves behind is the engine's own, and the engine expects it.
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)));
    match outcome {
        Ok(()) => sf_error::SF_OK as c_int,
        Err(failure) => {
            remember(&format!("{function}: {}", failure.text));
            failure.code
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(text: &str) {
    let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    // A thread that is ending has nobody left who could ask.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// The text of the last failure in this thread: which function, what and why, in English and
/// UTF-8. Empty if nothing has failed in this thread.
///
/// Only meaningful right after a function of this library has returned a negative code: success
/// leaves the text of an earlier failure as it is.
///
/// @return A text that ends with 0, never NULL. It belongs to the library and stays valid until
///         the next failure in this thread.
///
/// Thread-safe: every thread has its own text.
#[unsafe(no_mangle)]
pub extern "C" fn sf_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The word for a code, such as "missing" for `SF_MISSING`.
///
/// @param code What a function of this library has returned.
/// @return A constant text, never NULL; "unknown" for a number that is no code.
///
/// Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn sf_error_name(code: c_int) -> *const c_char {
    let name = match Kind::all().find(|kind| kind.c_code() == code) {
        Some(Kind::Corrupt) => c"corrupt",
        Some(Kind::Missing) => c"missing",
        Some(Kind::Busy) => c"busy",
        Some(Kind::Transient) => c"transient",
        Some(Kind::Full) => c"full",
        Some(Kind::Denied) => c"denied",
        Some(Kind::Io) => c"io",
        Some(Kind::Unsupported) => c"unsupported",
        Some(Kind::Invalid) => c"invalid",
        Some(Kind::Bug) => c"bug",
        Some(Kind::Exhausted) => c"exhausted",
        None if code == sf_error::SF_OK as c_int => c"ok",
        _ => c"unknown",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests;
