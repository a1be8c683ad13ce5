use super::*;
use crate::paper;

fn charts() -> Vec<Chart> {
    let make = |name| paper::reproduce(name).unwrap().charts;
    ["ndp-figure1", "ndp-figure6", "ndp-figure7"].into_iter().flat_map(make).collect()
}

#[test]
fn every_kind_of_chart_names_its_axes_and_series() {
    for chart in charts() {
        let text = svg(&chart);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
        assert!(text.contains(&chart.x.label) && text.contains(&chart.y.label));
        assert!(!text.contains("NaN") && !text.contains("inf"));
        assert_eq!(text, svg(&chart), "same chart, same bytes");
    }
}

#[test]
fn texts_cannot_break_the_drawing() {
    let mut chart = charts().remove(0);
    chart.title = "a < b & \"c\"".to_owned();
    assert!(svg(&chart).contains("a &lt; b &amp; &quot;c&quot;"));
}

#[test]
fn a_report_stands_alone() {
    let items = [paper::reproduce("ndp-figure1").unwrap(), paper::reproduce("ddc-table1").unwrap()];
    let page = report("title", &items);
    assert_eq!(page.matches("<svg").count(), 1);
    assert_eq!(page.matches("<h2").count(), 2);
    assert!(page.contains("11 of 11 numbers agree") && !page.contains("0 of 0"));
    assert!(!page.contains("<script") && !page.contains("src="));
}

#[test]
fn pictures_have_words_without_any_installed_font() {
    let chart = charts().remove(0);
    let with_words = png(&chart).unwrap();
    assert_eq!(&with_words[..8], b"\x89PNG\r\n\x1a\n");
    let mut silent = chart;
    silent.title.clear();
    silent.x.label.clear();
    silent.y.label.clear();
    assert!(with_words.len() > png(&silent).unwrap().len() + 2000);
}
