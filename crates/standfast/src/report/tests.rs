use super::*;

#[test]
fn an_empty_checkpoint_has_a_report_without_nonsense() {
    let report = Report {
        version: Version(1),
        level: Level::Local,
        ranks: 1,
        stats: Stats::default(),
        page_bytes: 4096,
        slowed_ns: None,
        notes: Vec::new(),
    };
    let text = report.to_string();
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert_eq!(text.lines().count(), 9);
    let many = Report { ranks: 3, ..report };
    let text = many.to_string();
    assert!(!text.contains("NaN") && text.contains("remote"), "{text}");
    assert_eq!(text.lines().count(), 12);
}
