//! Object names: the one gate through which every caller's text reaches a backend.
//!
//! Why so narrow: a name must mean the same on a file system, in a URL and in a message, and no
//! name may leave the store's directory. With these rules neither `..`, nor an absolute path,
//! nor a hidden file, nor a backend's own files can be expressed at all.

use crate::error::{Error, Result};

/// Longest name of an object, in bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// First part of the names that backends keep for their own locks.
const RESERVED: &str = "lock.";

/// Checks that `name` may name an object; `store` is only for the message.
///
/// ```
/// use standfast_store::check_name;
/// assert!(check_name("segments/0001-a.seg", "here").is_ok());
/// assert!(check_name("../etc/passwd", "here").is_err());
/// ```
pub fn check_name(name: &str, store: &str) -> Result<()> {
    broken_rule(name).map_or(Ok(()), |why| {
        Err(Error::Name { object: shortened(name), store: store.to_owned(), why })
    })
}

/// Checks that `prefix` may name a "directory" of objects: empty, or a name.
pub fn check_prefix(prefix: &str, store: &str) -> Result<()> {
    if prefix.is_empty() { Ok(()) } else { check_name(prefix, store) }
}

/// Whether one `/`-free part of a name keeps the rules.
pub(crate) fn part_is_valid(part: &str) -> bool {
    broken_rule_of_part(part).is_none()
}

/// Whether `name` as a whole keeps the rules.
pub(crate) fn is_valid(name: &str) -> bool {
    broken_rule(name).is_none()
}

fn broken_rule(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return Some("it is longer than 200 bytes");
    }
    if name.starts_with(RESERVED) {
        return Some("names that start with 'lock.' are the store's own");
    }
    name.split('/').find_map(broken_rule_of_part)
}

fn broken_rule_of_part(part: &str) -> Option<&'static str> {
    if part.is_empty() {
        return Some("it has an empty part between slashes");
    }
    if part.starts_with('.') {
        return Some("a part of it starts with '.'");
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if !part.bytes().all(allowed) {
        return Some("only A-Z, a-z, 0-9, '.', '_' and '-' are allowed between slashes");
    }
    None
}

/// Keeps messages readable when somebody passes a megabyte as a name.
fn shortened(name: &str) -> String {
    const SHOWN: usize = 64;
    match name.char_indices().nth(SHOWN) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}...", &name[..end]),
    }
}

#[cfg(test)]
mod tests;
