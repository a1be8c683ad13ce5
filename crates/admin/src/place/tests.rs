use super::*;

#[test]
fn directories_and_urls_are_told_apart() {
    assert_eq!(directory("/a/b:c").unwrap(), Some("/a/b:c".into()));
    assert_eq!(directory("file:///a").unwrap(), Some("/a".into()));
    assert_eq!(directory("object-file:///a").unwrap(), Some("/a".into()));
    assert_eq!(directory("s3://bucket/x").unwrap(), None);
    assert!(directory("memory:").is_err());
}
