use super::*;

#[test]
fn lab_values_that_are_shown_can_be_read_again() {
    let config = Config::default();
    for key in LAB_KEYS {
        let mut again = config.clone();
        (key.set)(&mut again, &(key.show)(&config)).unwrap();
        assert_eq!(again, config, "{}", key.name);
    }
}

#[test]
fn ranks_must_agree_on_words_that_exist() {
    let common = Loaded::empty().common().unwrap();
    assert_eq!(common.len(), COMMON.len() + COMMON_LAB.len() + 1);
}
