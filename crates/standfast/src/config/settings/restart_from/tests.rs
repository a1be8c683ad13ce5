use super::*;
use crate::config::Settings;

#[test]
fn how_to_load_and_where_from_are_one_setting() {
    for (text, restart, from) in [
        ("auto", Choice::Auto, RestartFrom::Auto),
        ("lazy", Choice::Set(Restart::Lazy), RestartFrom::Auto),
        ("never", Choice::Auto, RestartFrom::Never),
        ("force", Choice::Auto, RestartFrom::Force),
        ("lazy, 12", Choice::Set(Restart::Lazy), RestartFrom::Version(12)),
    ] {
        let mut settings = Settings::default();
        settings.set("restart", text).unwrap();
        assert_eq!((settings.timing.restart, settings.timing.from), (restart, from), "{text}");
        assert_eq!(settings.timing.show_restart(), text);
    }
    for bad in ["", "0", "-1", "newest", "lazy, eager", "never, 3"] {
        assert!(Settings::default().set("restart", bad).is_err(), "{bad}");
    }
}
