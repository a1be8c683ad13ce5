//! Checks what C passes, before anything is done with it.
//!
//! What cannot be seen from here (a dangling pointer, a text without its end, a buffer smaller
//! than its stated capacity) is the caller's promise.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::{align_of, size_of};
use std::ptr;

use standfast::Version;

use crate::error::{Failure, Outcome};

/// A text: not null, UTF-8.
///
/// # Safety
/// `text` is null or ends with 0 and is not changed while the result lives.
pub(crate) unsafe fn text<'a>(argument: &str, text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(Failure::invalid(format!("{argument} is NULL")));
    }
    // SAFETY: not null; the caller vouches for the rest.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| {
        Failure::invalid(format!("{argument} {:?} is not UTF-8", bytes.to_string_lossy()))
    })
}

/// A version that names one checkpoint.
pub(crate) fn version(number: u64) -> Outcome<Version> {
    match number {
        0 => Err(Failure::invalid("version 0 names no checkpoint: they start at 1")),
        number => Ok(Version(number)),
    }
}

/// A place for one result.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// The caller may pass NULL when not interested.
    ///
    /// # Safety
    /// `place` is null or may be written to until the result is dropped.
    pub(crate) unsafe fn optional(argument: &str, place: *mut T) -> Outcome<Self> {
        check_aligned(argument, place)?;
        Ok(Self(place))
    }

    /// Without a place for it the result would be lost.
    ///
    /// # Safety
    /// As for `optional`.
    pub(crate) unsafe fn required(argument: &str, place: *mut T) -> Outcome<Self> {
        if place.is_null() {
            return Err(Failure::invalid(format!("{argument} is NULL")));
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { Self::optional(argument, place) }
    }

    pub(crate) fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: aligned, not null, and whoever made this vouched for it.
            unsafe { self.0.write(value) }
        }
    }
}

/// Room for several results.
pub(crate) struct Buffer<T> {
    start: *mut T,
    capacity: usize,
}

impl<T> Buffer<T> {
    /// NULL is allowed with capacity 0: that only asks how much room is needed.
    ///
    /// # Safety
    /// `capacity` values may be written to `start` until the result is dropped.
    pub(crate) unsafe fn new(argument: &str, start: *mut T, capacity: usize) -> Outcome<Self> {
        check_aligned(argument, start)?;
        if start.is_null() && capacity > 0 {
            let why = format!("{argument} is NULL, yet its capacity is {capacity}");
            return Err(Failure::invalid(why));
        }
        if capacity > isize::MAX as usize / size_of::<T>() {
            let why = format!("{argument}: capacity {capacity} is more than any memory holds");
            return Err(Failure::invalid(why));
        }
        Ok(Self { start, capacity })
    }

    /// Writes as many values as fit.
    pub(crate) fn fill(&self, values: impl IntoIterator<Item = T>) {
        for (at, value) in values.into_iter().take(self.capacity).enumerate() {
            // SAFETY: `at` is below the capacity that whoever made this vouched for.
            unsafe { self.start.add(at).write(value) }
        }
    }
}

/// A struct that the library fills, in an array of the caller's. It begins with its own size, so
/// that programs and libraries of different versions understand each other.
///
/// # Safety
/// `repr(C)`, without padding, valid for any bytes, and its first field is the size, a `usize`.
pub(crate) unsafe trait Entry: Copy {
    /// The size of the first version that had the field.
    const BYTES_MIN: usize;
}

/// Room for several structs, as long each as the caller has said in the first one.
pub(crate) struct Entries<T> {
    start: *mut T,
    capacity: usize,
    stride: usize,
    of: PhantomData<T>,
}

impl<T: Entry> Entries<T> {
    /// # Safety
    /// If `capacity` is not 0 the first struct's size may be read, and so many structs of that size
    /// may be written to `start` until the result is dropped.
    pub(crate) unsafe fn new(argument: &str, start: *mut T, capacity: usize) -> Outcome<Self> {
        // SAFETY: the caller vouches for the first one at least.
        unsafe { Buffer::new(argument, start, capacity.min(1)) }?;
        if capacity == 0 {
            return Ok(Self { start, capacity, stride: size_of::<T>(), of: PhantomData });
        }
        // SAFETY: every entry begins with its size, and the caller vouches for the first.
        let stride = unsafe { start.cast::<usize>().read() };
        if stride < T::BYTES_MIN || !stride.is_multiple_of(align_of::<T>()) {
            let why =
                format!("{argument}[0].struct_bytes is {stride}: set it to sizeof {argument}[0]");
            return Err(Failure::invalid(why));
        }
        if capacity > isize::MAX as usize / stride {
            let why = format!("{argument}: capacity {capacity} is more than any memory holds");
            return Err(Failure::invalid(why));
        }
        Ok(Self { start, capacity, stride, of: PhantomData })
    }

    /// Writes as many structs as fit; of each what the caller knows, and zeros beyond what we know.
    pub(crate) fn fill(&self, values: impl IntoIterator<Item = T>) {
        let known = self.stride.min(size_of::<T>());
        for (at, value) in values.into_iter().take(self.capacity).enumerate() {
            // SAFETY: the entry lies within the room that whoever made this vouched for; `known` is
            // at most its length and that of the value; it begins with a `usize`.
            unsafe {
                let entry = self.start.cast::<u8>().add(at * self.stride);
                ptr::copy_nonoverlapping((&raw const value).cast(), entry, known);
                entry.add(known).write_bytes(0, self.stride - known);
                entry.cast::<usize>().write(self.stride);
            }
        }
    }
}

impl Buffer<c_char> {
    /// Writes as much of a text as fits, whole characters and always the 0 at its end; returns
    /// the room that all of it needs.
    pub(crate) fn fill_text(&self, text: &str) -> usize {
        if self.capacity > 0 {
            let room = (self.capacity - 1).min(text.len());
            let fits = (0..=room).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
            self.fill(text.as_bytes()[..fits].iter().chain(&[0]).map(|byte| *byte as c_char));
        }
        text.len() + 1
    }
}

fn check_aligned<T>(argument: &str, place: *mut T) -> Outcome {
    if place.is_aligned() {
        return Ok(());
    }
    let align = align_of::<T>();
    Err(Failure::invalid(format!("{argument} is not aligned to {align} bytes: {place:p}")))
}

#[cfg(test)]
mod tests;
