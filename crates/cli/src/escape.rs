//! Making foreign text harmless: on a terminal, and as the name of a file.
//!
//! Region names, messages of other machines and object names come from stores that anybody may
//! have written. A terminal obeys control characters, and bidirectional marks reorder what a
//! reader sees, so both are shown as escapes.

use standfast_format::Digest;

/// Longest file name made from a region's name, before its suffix.
const FILE_NAME_BYTES_MAX: usize = 200;

/// Text that a terminal shows as it is. Line ends stay where `lines` is set.
fn escaped(text: &str, lines: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if (lines && c == '\n') || !acts(c) {
            plain.push(c);
        } else {
            plain.extend(c.escape_unicode());
        }
    }
    plain
}

/// Whether a terminal or a reader's eye is misled by this character.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A name or a piece of text in one line.
pub(crate) fn name(text: &str) -> String {
    escaped(text, false)
}

/// A message that may have several lines.
pub(crate) fn message(text: &str) -> String {
    escaped(text, true)
}

/// A file name that is safe everywhere and different for different regions: letters, digits,
/// `.`, `_` and `-` stay, everything else is percent-encoded; long names end in a digest.
pub(crate) fn file_name(region: &str) -> String {
    let mut encoded = String::new();
    for (at, byte) in region.bytes().enumerate() {
        let first_is_special = at == 0 && matches!(byte, b'.' | b'-');
        if (byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && !first_is_special {
            encoded.push(byte as char);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    if encoded.len() > FILE_NAME_BYTES_MAX {
        // '~' is in no encoded name, so a shortened one meets no other.
        let digest = Digest::of(region.as_bytes()).to_string();
        encoded.truncate(FILE_NAME_BYTES_MAX - 33);
        encoded = format!("{encoded}~{}", &digest[..32]);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_told_nothing() {
        assert_eq!(name("a\x1b[31mb\nc"), "a\\u{1b}[31mb\\u{a}c");
        assert_eq!(name("\u{9b}31m\u{202e}x"), "\\u{9b}31m\\u{202e}x");
        assert_eq!(message("two\nlines\r"), "two\nlines\\u{d}");
        assert_eq!(name("température/0"), "température/0");
    }

    #[test]
    fn file_names_are_safe_and_distinct() {
        assert_eq!(file_name("temperature"), "temperature");
        assert_eq!(file_name("a/b c%"), "a%2Fb%20c%25");
        assert_eq!(file_name(".."), "%2E.");
        assert_eq!(file_name("-rf"), "%2Drf");
        assert_eq!(file_name("é"), "%C3%A9");
        let (long, other) = ("é".repeat(120), format!("{}f", "é".repeat(119)));
        assert!(file_name(&long).len() <= FILE_NAME_BYTES_MAX);
        assert_ne!(file_name(&long), file_name(&other));
    }
}
