use super::*;
use crate::config::Settings;

#[test]
fn defaults_can_be_read_again() {
    assert!(KEYS.len() <= 18);
    let default = Settings::default();
    for key in KEYS {
        let mut again = default.clone();
        again.set(key.name, &key.default()).unwrap();
        assert_eq!(again, default, "{}", key.name);
    }
}

#[test]
fn a_misspelt_word_leads_to_the_right_one() {
    let error = Settings::default().set("codek", "x").unwrap_err();
    assert!(error.contains("did you mean \"codec\"?"), "{error}");
}
