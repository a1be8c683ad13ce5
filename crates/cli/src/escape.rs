//! Making foreign text harmless on a terminal.
//!
//! Region names, messages of other machines and object names come from stores that anybody may
//! have written. A terminal obeys control characters, and bidirectional marks reorder what a
//! reader sees, so both are shown as escapes.

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

#[cfg(test)]
mod tests;
