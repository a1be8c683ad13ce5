use super::*;

#[test]
fn columns_line_up() {
    let text = table(
        &["name", "x"],
        &[vec!["a".to_owned(), "1".to_owned()], vec!["longer".to_owned(), "100".to_owned()]],
    );
    assert_eq!(text, "name      x\na         1\nlonger  100\n");
}

#[test]
fn units_are_the_usual_ones() {
    assert_eq!(duration(0.25), "250 ms");
    assert_eq!(duration(150.0), "2.5 min");
    assert_eq!(bytes(1536.0), "1.5 KiB");
}

#[test]
fn json_lines_have_a_type() {
    let line: Value = serde_json::from_str(&json_line("x", &json!({"a": 1}))).unwrap();
    assert_eq!(line, json!({"type": "x", "a": 1}));
    assert_eq!(json_line("x", &1), r#"{"type":"x","value":1}"#);
}
