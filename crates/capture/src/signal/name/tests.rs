use super::*;

#[test]
fn signals_are_known_by_name_and_number() {
    let number = |text: &str| text.parse().map(Signal::number);
    assert_eq!(number("USR1"), Ok(libc::SIGUSR1));
    assert_eq!(number("sigusr2"), Ok(libc::SIGUSR2));
    assert_eq!(number("40"), Ok(40));
    for bad in ["KILL", "9", "11", "TERM", "", "64", "-3"] {
        assert!(number(bad).unwrap_err().contains("USR1"), "{bad}");
    }
}

#[test]
fn what_is_shown_can_be_read_again() {
    for text in ["USR1", "XCPU", "40"] {
        assert_eq!(text.parse::<Signal>().unwrap().to_string(), text);
    }
}
