//! Commands that only look: golden output, JSON, exit codes, and no trace where nothing is.

use insta::assert_snapshot;

use crate::fixture::{Fixture, NASTY, open, run, steady};

#[test]
fn ls_show_diff_and_verify_print_what_they_always_printed() {
    let fixture = Fixture::new();
    let golden = |args: &[&str]| {
        let ran = fixture.run(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        assert!(!ran.out.contains('\u{202e}') && !ran.out.contains('\u{1b}'), "{args:?}");
        steady(&ran.out, fixture.dir.path())
    };
    assert_snapshot!("ls", golden(&["ls"]));
    assert_snapshot!("show", golden(&["show"]));
    assert_snapshot!("show_1", golden(&["show", "1"]));
    assert_snapshot!("diff", golden(&["diff", "1", "2", "--ranges"]));
    assert_snapshot!("diff_regions", golden(&["diff", "1", "3"]));
    assert_snapshot!("verify", golden(&["verify"]));
    assert_snapshot!("verify_quick", golden(&["verify", "2", "--quick"]));
}

#[test]
fn diff_names_exactly_the_pages_that_changed() {
    let fixture = Fixture::new();
    let ran = fixture.run(&["diff", "1", "2", "--ranges", "--json"]);
    let ranges = ran.of("range");
    assert_eq!(ranges.len(), 1);
    assert_eq!((&ranges[0]["start"], &ranges[0]["end"]), (&(8 * 4096).into(), &(12 * 4096).into()));
    let ran = fixture.run(&["diff", "2", "3", "--json"]);
    let state = |name: &str| {
        let region = ran.of("region").into_iter().find(|line| line["region"] == name).unwrap();
        region["state"].as_str().unwrap().to_owned()
    };
    assert_eq!([state("field"), state("late"), state(NASTY)], ["changed", "removed", "same"]);
    assert_eq!(fixture.run(&["diff", "2", "2", "--json"]).of("summary")[0]["pages_changed"], 0);
}

#[test]
fn json_lines_have_the_documented_fields() {
    let fixture = Fixture::new();
    let help = |command: &str| fixture.run(&[command, "--help"]).out;
    for args in [
        &["ls"] as &[&str],
        &["show"],
        &["show", "--writes"],
        &["verify"],
        &["diff", "1", "3"],
        &["config"],
        &["plan"],
    ] {
        let help = help(args[0]);
        let ran = fixture.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, 0);
        assert!(!ran.lines().is_empty());
        for line in ran.lines() {
            let kind = line["type"].as_str().unwrap();
            let documented = help.lines().skip_while(|text| !text.starts_with("JSON lines"));
            let documented = documented.collect::<Vec<_>>().join(" ");
            assert!(documented.contains(&format!("{kind}: ")), "{kind} of {args:?}");
            for field in line.as_object().unwrap().keys().filter(|field| *field != "type") {
                assert!(documented.contains(field.as_str()), "{field} of {kind} of {args:?}");
            }
        }
    }
}

#[test]
fn looking_leaves_no_trace_in_a_place_that_is_no_store() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let nowhere = dir.path().join("nowhere");
    for command in [&["ls"] as &[&str], &["show"], &["verify"], &["diff", "1", "2"]] {
        for (store, job) in [(dir.path(), "none"), (dir.path(), "other"), (&*nowhere, "none")] {
            let args = [command, &["--job", job, "--store", store.to_str().unwrap()]].concat();
            let mut command = assert_cmd::Command::cargo_bin("standfast").unwrap();
            let output = command.current_dir(dir.path()).args(&args).output().unwrap();
            assert_eq!(output.status.code(), Some(11), "{args:?}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [dir.path().join("other")]);
    assert_eq!(std::fs::read_dir(&left[0]).unwrap().count(), 0);
}

#[test]
fn the_only_job_needs_no_name_and_several_are_listed() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run(&["show"]).code, 0);
    let settings = [("store", fixture.dir.path().to_str().unwrap()), ("job", "second")];
    standfast::Job::open(&settings).unwrap().close().unwrap();
    let ran = fixture.run(&["show"]);
    assert_eq!(ran.code, 18);
    assert!(ran.err.contains("heat, second") && ran.err.contains("--job"), "{}", ran.err);
    assert_eq!(fixture.run(&["ls", "--json"]).of("job").len(), 2);
    let inside = run(&fixture.store(), &["ls"]);
    assert!(inside.err.contains("--job heat"), "{}", inside.err);
}

#[test]
fn a_running_job_does_not_keep_anybody_from_looking() {
    let fixture = Fixture::new();
    let _job = open(fixture.dir.path());
    for command in ["ls", "show", "verify"] {
        assert_eq!(fixture.run(&[command]).code, 0, "{command}");
    }
}

#[cfg(feature = "object")]
#[test]
fn stores_behind_a_url_are_listed_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("object-file://{}", dir.path().display());
    let job = standfast::Job::open(&[("store", &url), ("job", "far")]).unwrap();
    let field = job.alloc::<u64>("field", 5000).unwrap();
    field.write().fill(3);
    let version = job.checkpoint(None).unwrap();
    job.wait(version, standfast::Level::Local).unwrap();
    job.close().unwrap();
    let listed = run(dir.path(), &["ls", "--json", "--store", &url]);
    assert_eq!(listed.of("job")[0]["job"], "far");
    assert_eq!(run(dir.path(), &["verify", "--store", &url]).code, 0);
    let demo = run(dir.path(), &["demo", "--store", &url]);
    assert_eq!(demo.code, 17, "{}", demo.err);
}

#[test]
fn errors_say_what_next_and_keep_their_codes() {
    let fixture = Fixture::new();
    for (args, code) in [
        (&["show", "99"] as &[&str], 11),
        (&["verify", "99"], 11),
        (&["export", "1", "--to", "out", "--region", "none"], 11),
        (&["show", "--store", "memory:"], 18),
        (&["show", "--job", "../x"], 18),
        (&["show", "--store", "gopher://x", "--job", "y"], 18),
        (&["frobnicate"], 2),
        (&["show", "x"], 2),
    ] {
        let ran = run(fixture.dir.path(), args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(code == 2 || ran.err.contains("next:"), "{args:?}: {}", ran.err);
    }
    let ran = fixture.run(&["show", "99", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((&line["type"], &line["kind"]), (&"error".into(), &"missing".into()));
    assert!(line["advice"].is_string() && line["message"].is_string());
}

#[test]
fn config_tells_values_and_where_they_came_from() {
    let dir = tempfile::tempdir().unwrap();
    let template = run(dir.path(), &["config", "--toml"]).out;
    let text = template.replace("#codec = \"fast\"", "codec = \"zstd:3\"");
    std::fs::write(dir.path().join("standfast.toml"), text).unwrap();
    let ran = run(dir.path(), &["config", "--json"]);
    let setting =
        |name: &str| ran.of("setting").into_iter().find(|line| line["name"] == name).unwrap();
    assert_eq!(setting("codec")["value"], "zstd:3");
    let origin = setting("codec")["origin"].as_str().unwrap().to_owned();
    assert!(origin.starts_with("standfast.toml:"), "{origin}");
    assert_eq!(setting("store")["origin"], "option --store");
    assert_eq!(setting("keep")["origin"], "default");
    let all = template.replace("\n#", "\n").replace("# ", "").replace("#", "");
    assert!(all.contains("codec = \"fast\""));
    let reference = run(dir.path(), &["config", "--reference"]).out;
    assert!(reference.contains("| `fast` | `STANDFAST_CODEC` |"), "{reference}");
    let page = include_str!("../../../../docs/SETTINGS.md");
    assert!(page.contains(&reference), "docs/SETTINGS.md: 'standfast config --reference'");
    let lab = run(dir.path(), &["config", "--lab", "--json"]).of("setting");
    assert!(lab.iter().any(|line| line["name"] == "page" && line["value"] == "4KiB"));
    assert!(lab.iter().all(|line| line["name"] != "codec"));
}

#[test]
fn every_line_of_the_template_is_valid_when_uncommented() {
    let dir = tempfile::tempdir().unwrap();
    let template = run(dir.path(), &["config", "--toml"]).out;
    let active: String = template
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(dir.path().join("standfast.toml"), active).unwrap();
    let ran = run(dir.path(), &["config", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let from_file =
        |line: &&serde_json::Value| line["origin"].as_str().unwrap().starts_with("standfast.toml:");
    let settings = ran.of("setting");
    assert_eq!(settings.iter().filter(from_file).count(), settings.len() - 1, "all but --store");
}

#[test]
fn help_man_and_completions_come_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let help = run(dir.path(), &["--help"]).out;
    for (code, kind) in [("10", "corrupt"), ("12", "busy"), ("130", "interrupted")] {
        assert!(help.contains(&format!("{code}  {kind}")), "{help}");
    }
    let pages = run(dir.path(), &["man", "--dir", "pages", "--json"]).of("file");
    assert!(pages.len() > 9);
    for page in pages {
        let text =
            std::fs::read_to_string(dir.path().join(page["file"].as_str().unwrap())).unwrap();
        assert!(text.contains("JSON LINES") && text.contains(".SH NAME"), "{page}");
    }
    let agent = std::fs::read_to_string(dir.path().join("pages/standfast-agent.1")).unwrap();
    assert!(agent.contains("idle") && agent.contains("OPTIONS OF RUN"), "{agent}");
    for shell in ["bash", "zsh", "fish"] {
        let script = run(dir.path(), &["completions", shell]).out;
        assert!(script.contains("keep-version") && !script.contains("unreachable"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::{Command, Stdio};
    let fixture = Fixture::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("standfast"))
        .args(["--store", fixture.dir.path().to_str().unwrap(), "ls"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}
