use super::*;

#[test]
fn terminals_are_told_nothing() {
    assert_eq!(name("a\x1b[31mb\nc"), "a\\u{1b}[31mb\\u{a}c");
    assert_eq!(name("\u{9b}31m\u{202e}x"), "\\u{9b}31m\\u{202e}x");
    assert_eq!(message("two\nlines\r"), "two\nlines\\u{d}");
    assert_eq!(name("température/0"), "température/0");
}
