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
fn a_table_of_words_is_serialized_and_read() {
    let text = "keep = \"3, every 5\"\ncodec = \"small\"\nring = 2\ninterval = \"auto:12h\"";
    let settings: Settings = toml::from_str(text).unwrap();
    let again: Settings = toml::from_str(&toml::to_string(&settings).unwrap()).unwrap();
    assert_eq!(again, settings);
    assert_eq!((key("ring").unwrap().show)(&settings), "2");
    let error = toml::from_str::<Settings>("codek = \"x\"").unwrap_err().to_string();
    assert!(error.contains("did you mean \"codec\"?"), "{error}");
}
