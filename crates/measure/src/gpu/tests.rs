use super::*;

#[test]
fn without_a_device_the_reason_is_told() {
    let (found, gpu) = describe(Err(Unavailable::NoDriver));
    assert!(gpu.is_none() && !found.found);
    let line = serde_json::to_string(&found).unwrap();
    let start = r#"{"type":"gpu","found":false,"text":"no NVIDIA driver"#;
    assert!(line.starts_with(start), "{line}");
}
