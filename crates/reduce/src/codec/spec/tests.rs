use super::*;

#[test]
fn what_is_written_is_what_is_read() {
    for text in ["none", "lz4", "zstd:3", "zstd:-5", "zstd:22", "deflate:1", "deflate:12"] {
        let spec: CodecSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), text);
    }
    assert_eq!("zstd".parse::<CodecSpec>().unwrap().to_string(), "zstd:1");
    assert_eq!("deflate".parse::<CodecSpec>().unwrap().to_string(), "deflate:1");
}

#[test]
fn a_choice_is_auto_or_a_codec() {
    for text in ["auto", "none", "lz4", "zstd:3"] {
        assert_eq!(text.parse::<CodecChoice>().unwrap().to_string(), text);
    }
    let error = "automatic".parse::<CodecChoice>().unwrap_err().to_string();
    assert!(error.contains("auto, none, lz4"), "{error}");
}

#[test]
fn anything_else_is_refused_with_the_list_of_what_is_allowed() {
    for text in [
        "",
        "LZ4",
        "float",
        "lz4:1",
        "none:0",
        "zstd:",
        "zstd:0",
        "zstd:23",
        "zstd:-8",
        "zstd:3:1",
        "deflate:0",
        "deflate:13",
        "gzip",
        " zstd",
    ] {
        let error = text.parse::<CodecSpec>().unwrap_err();
        assert_eq!(error.kind(), standfast_format::Kind::Invalid, "{text}");
        let words = error.to_string();
        assert!(words.contains("deflate:LEVEL (1 to 12)"), "{words}");
    }
}

#[test]
fn levels_set_by_hand_are_moved_into_the_range() {
    assert_eq!(CodecSpec { kind: CodecKind::Zstd, level: 99 }.level_clamped(), 22);
    assert_eq!(CodecSpec { kind: CodecKind::Deflate, level: 0 }.level_clamped(), 1);
    assert_eq!(CodecSpec { kind: CodecKind::Lz4, level: 5 }.level_clamped(), 0);
}
