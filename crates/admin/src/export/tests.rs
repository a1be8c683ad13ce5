use super::*;

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
