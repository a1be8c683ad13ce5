use super::*;

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn in_file(text: &str) -> Result<Loaded> {
    let mut loaded = Loaded::empty();
    loaded.apply_file(Path::new("x.toml"), text).map(|()| loaded)
}

fn refused(text: &str) -> String {
    in_file(text).unwrap_err().to_string()
}

#[test]
fn later_sources_win_and_origins_are_known() {
    let mut loaded = in_file("job = \"a\"\n\nmemory = \"8MiB\"\nkeep = 3").unwrap();
    let given = variables(&[("STANDFAST_JOB", "b"), ("HOME", "/"), ("STANDFAST_LAB_IO", "direct")]);
    loaded.apply_environment(&given).unwrap();
    assert_eq!(loaded.settings.place.job, "b");
    assert_eq!(loaded.settings.place.keep.newest, Some(3));
    assert_eq!(loaded.lab.iter().collect::<Vec<_>>(), [("io", "direct")]);
    assert_eq!(loaded.origin("job").to_string(), "environment STANDFAST_JOB");
    assert_eq!(loaded.origin("memory").to_string(), "x.toml:3");
    assert_eq!(loaded.origin("codec"), &Origin::Default);
}

#[test]
fn misspelt_settings_are_errors_everywhere() {
    let told = "no setting \"codek\"; did you mean \"codec\"?";
    assert!(refused("\n\n\ncodek = \"lz4\"").ends_with(&format!("x.toml:4: {told}")));
    let environment = variables(&[("STANDFAST_CODEK", "lz4")]);
    let error = Loaded::empty().apply_environment(&environment).unwrap_err().to_string();
    assert!(error.ends_with(&format!("environment STANDFAST_CODEK: {told}")), "{error}");
    assert!(parse_options("codek").unwrap_err().to_string().contains("codek"));
    assert!(
        refused("pool = 5").ends_with("x.toml:1: \"pool\" is now \"memory\", for the whole node")
    );
}

#[test]
fn a_source_says_everything_once() {
    assert!(refused("job = \"a\"\njob = \"b\"").contains("x.toml:2: "));
    let mut loaded = Loaded::empty();
    loaded.set("keep", "3", Origin::Call).unwrap();
    let error = loaded.set("keep", "4", Origin::Call).unwrap_err().to_string();
    assert!(error.ends_with("call: \"keep\" is set twice"), "{error}");
}

#[test]
fn experiments_set_nothing_in_files() {
    let told = "lab settings come from the call or STANDFAST_LAB_NAME";
    assert!(refused("job = \"a\"\nlab.page = \"4KiB\"").ends_with(told));
    assert!(refused("[lab]\npage = \"4KiB\"").ends_with(told));
}

#[test]
fn variables_of_other_parts_are_let_alone() {
    assert!(["CONFIG", "CORPUS", "PRELOAD_SIGNAL", "TEST_SEED"].iter().all(|it| is_no_setting(it)));
    assert!(!is_no_setting("CORPUSES") && !is_no_setting("STORE"));
}

#[test]
fn bad_values_name_setting_and_source() {
    for (text, name) in [
        ("codec = \"zip\"", "codec"),
        ("keep = -1", "keep"),
        ("memory = \"many\"", "memory"),
        ("job = \"../x\"", "job"),
        ("capture = [1]", "capture"),
        ("interval = \"sometimes\"", "interval"),
        ("interval = \"0s\"", "interval"),
        ("interval = \"auto:-4h\"", "interval"),
        ("signal = \"KILL\"", "signal"),
        ("agent = \"onn\"", "agent"),
    ] {
        let error = refused(text);
        assert!(error.contains("x.toml:1: ") && error.contains(name), "{error}");
    }
    for (name, text) in [("lab.page", "5KiB"), ("lab.threads", "many")] {
        let error = Loaded::empty().set(name, text, Origin::Call).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let load = |text: &str| Loaded::load(&[("lab.block".into(), text.into())]);
    assert!(load("6KiB").is_err() && load("64KiB").is_ok());
}

#[test]
fn options_of_a_call_are_split() {
    let options = parse_options("job=heat; store = /a b/c\n keep=2;").unwrap();
    assert_eq!(options, variables(&[("job", "heat"), ("store", "/a b/c"), ("keep", "2")]));
}
