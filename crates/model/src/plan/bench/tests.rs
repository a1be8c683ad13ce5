use super::*;
use proptest::prelude::*;

const LINES: &str = r#"
{"type":"bench","name":"memcpy","value":8.0,"unit":"GB/s"}
{"type":"bench","name":"disk write+fsync","value":900,"unit":"MB/s","note":"O_DIRECT"}
{"type":"bench","name":"compress lz4, smooth","value":2.0,"unit":"GB/s","note":"2.00 x smaller"}
{"type":"bench","name":"decompress lz4, smooth","value":4.0,"unit":"GB/s"}
{"type":"bench","name":"compress lz4, noise","value":2.0,"unit":"GB/s","note":"1.00 x smaller"}
{"type":"bench","name":"decompress lz4, noise","value":4.0,"unit":"GB/s"}
{"type":"summary","text":"done"}
"#;

#[test]
fn measured_rates_replace_the_defaults() {
    let mut inputs = Inputs::example();
    let bench = parse(LINES).unwrap();
    let used = bench.apply(&mut inputs);
    assert_eq!(inputs.rates.capture_bps, 8e9);
    assert_eq!(inputs.rates.local_write_bps, 9e8);
    assert_eq!(inputs.codecs.len(), 1);
    assert!((inputs.codecs[0].factor - 0.25).abs() < 1e-12);
    assert!((inputs.codecs[0].compress_bps - 2e9).abs() < 1.0);
    let fields: Vec<&str> = used.iter().map(|(field, _)| *field).collect();
    assert_eq!(fields, ["capture_bps", "local_write_bps", "codecs"]);
    assert_eq!(used[1].1, "disk write+fsync");
    inputs.check().unwrap();
}

#[test]
fn nonsense_is_named_by_line() {
    let text = parse("{\"type\":\"bench\"}\n{oops").unwrap_err().to_string();
    assert!(text.contains("line 2"), "{text}");
    let text = parse(r#"{"type":"bench","name":"memcpy","value":0,"unit":"GB/s"}"#)
        .unwrap_err()
        .to_string();
    assert!(text.contains("value") && text.contains("memcpy"), "{text}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = parse(&text);
    }
}
