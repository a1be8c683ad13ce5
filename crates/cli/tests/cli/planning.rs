//! `plan`: golden output, JSON, files, and errors that name what is wrong.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use crate::fixture::{Fixture, Ran, command, run};

/// Runs `plan` as on a machine without a scheduler.
fn plan(dir: &Path, args: &[&str]) -> Ran {
    run(dir, &[&["plan", "--nodes", "64"], args].concat())
}

fn field(inputs: &Value, name: &str) -> (String, String) {
    let fields = inputs["fields"].as_array().unwrap();
    let found = fields.iter().find(|field| field["name"] == name).unwrap();
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[test]
fn plans_print_what_they_always_printed() {
    let dir = tempfile::tempdir().unwrap();
    let golden = |args: &[&str]| {
        let ran = run(dir.path(), &[args, &["--quiet"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        ran.out
    };
    assert_snapshot!(
        "plan",
        golden(&["plan", "--nodes", "512", "--size", "128GiB", "--mtti", "6h"])
    );
    assert_snapshot!("plan_toml", golden(&["plan", "--nodes", "512", "--mtti", "6h", "--toml"]));
}

#[test]
fn a_planned_file_is_a_valid_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let toml = plan(dir.path(), &["--mtti", "6h", "--toml"]);
    std::fs::write(dir.path().join("standfast.toml"), toml.out).unwrap();
    let ran = run(dir.path(), &["config", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let planned = ["interval", "codec", "memory", "ring"];
    for name in planned {
        let setting = ran.of("setting").into_iter().find(|line| line["name"] == name).unwrap();
        let origin = setting["origin"].as_str().unwrap();
        assert!(origin.starts_with("standfast.toml:"), "{name}: {origin}");
    }
    assert_eq!(plan(dir.path(), &["--toml", "--json"]).code, 2);
}

#[test]
fn json_tells_inputs_sources_and_plan() {
    let dir = tempfile::tempdir().unwrap();
    let ran = plan(dir.path(), &["--mtti", "6h", "--global-write", "40GB/s", "--json"]);
    let inputs = &ran.of("inputs")[0];
    assert_eq!(inputs["values"]["mtti_s"], 21_600.0);
    assert_eq!(field(inputs, "mtti_s"), ("6.0 h".into(), "--mtti".into()));
    assert_eq!(field(inputs, "changed_share").1, "assumed");
    let planned = &ran.of("plan")[0];
    assert_eq!(planned["levels"].as_array().unwrap().len(), 3);
    assert!(planned["efficiency"].as_f64().unwrap() > 0.8);
    let shorter = plan(dir.path(), &["--mtti", "1h", "--json"]);
    let interval = |ran: &Ran| ran.of("plan")[0]["levels"][0]["interval_s"].as_f64().unwrap();
    assert!(interval(&shorter) < interval(&ran));
}

#[test]
fn files_scheduler_and_checkpoints_are_sources() {
    let fixture = Fixture::new();
    let dir = fixture.dir.path();
    let bench = r#"{"type":"bench","name":"disk write+fsync","value":0.9,"unit":"GB/s"}"#;
    std::fs::write(dir.join("bench.json"), bench).unwrap();
    let log = "# node failures\n2026-01-01T00:00Z node7\n2026-01-01T10:00Z\n2026-01-01T20:00Z\n";
    std::fs::write(dir.join("failures.txt"), log).unwrap();
    let mut command = command(dir);
    command.env("SLURM_JOB_NUM_NODES", "48").args(["plan", "--json", "--from-job"]);
    command.args(["--bench", "bench.json", "--failure-log", "failures.txt"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ran = Ran { code: 0, out: String::from_utf8(output.stdout).unwrap(), err: String::new() };
    let inputs = &ran.of("inputs")[0];
    assert_eq!(field(inputs, "nodes"), ("48".into(), "SLURM_JOB_NUM_NODES".into()));
    assert_eq!(field(inputs, "local_write_bps").1, "bench.json: disk write+fsync");
    assert_eq!(field(inputs, "mtti_s"), ("10.0 h".into(), "failures.txt".into()));
    assert_eq!(field(inputs, "bytes_per_node").1, "job heat, 3 checkpoints");
    assert_eq!(inputs["values"]["bytes_per_node"], f64::from(112 * 4096));
    assert_eq!(ran.of("mtti")[0]["failures"], 3);
}

#[test]
fn drains_tell_the_rate_to_global_storage() {
    let fixture = Fixture::new();
    let inputs = |args: &[&str]| {
        let ran = fixture.run(&[&["plan", "--from-job", "--json"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.of("inputs").remove(0)
    };
    assert_eq!(field(&inputs(&[]), "global_write_bps").1, "assumed");
    assert_eq!(fixture.run(&["drain", "--to", "global"]).code, 0);
    let told = inputs(&[]);
    assert_eq!(field(&told, "global_write_bps").1, "job heat, 1 drains");
    assert_ne!(told["values"]["global_write_bps"], 20e9);
    // Nobody says on how many nodes a job ran whose ranks share a store: one.
    let one = "job heat, 1 of its 1 ranks in this store".to_owned();
    assert_eq!(field(&told, "nodes"), ("1".into(), one.clone()));
    assert_eq!(field(&told, "ranks_per_node"), ("1".into(), one));
    let given = inputs(&["--global-write", "5GB/s", "--nodes", "8", "--ranks-per-node", "3"]);
    assert_eq!(given["values"]["global_write_bps"], 5e9);
    assert_eq!(field(&given, "nodes"), ("8".into(), "--nodes".into()));
    assert_eq!(field(&given, "ranks_per_node"), ("3".into(), "--ranks-per-node".into()));
    assert_eq!(fixture.run(&["verify"]).code, 0, "the record is no orphan");
}

#[test]
fn bad_inputs_name_the_field_and_the_option() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("noise"), b"\x7fELF\x00\xff\n").unwrap();
    std::fs::write(dir.path().join("empty"), "").unwrap();
    for (args, code, words) in [
        (&["--mtti", "-5h"] as &[&str], 18, ["mtti_s", "--mtti"]),
        (&["--relaunch", "-1s"], 18, ["relaunch_s", "--relaunch"]),
        (&["--local-write", "0"], 18, ["local_write_bps", "--local-write"]),
        (&["--global-read", "0GB/s"], 18, ["global_read_bps", "--global-read"]),
        (&["--group", "3", "--shards", "5"], 18, ["shards is 5", "--shards"]),
        (&["--group", "65"], 18, ["group is 65", "--group"]),
        (&["--ranks-per-node", "0"], 18, ["ranks_per_node", "--ranks-per-node"]),
        (&["--survival", "150%"], 18, ["survival", "--survival"]),
        (&["--nodes-per-incident", "NaN"], 18, ["nodes_per_incident", "--nodes-per-incident"]),
        (&["--codec", "lz4=100%,1GB/s,1GB/s"], 18, ["codec factor", "--codec"]),
        (&["--nodes-per-incident", "60"], 18, ["no plan", "--survival"]),
        (&["--bench", "noise"], 18, ["noise: bench output line 1", "JSON"]),
        (&["--bench", "empty"], 18, ["empty: bench output", "standfast bench"]),
        (&["--failure-log", "noise"], 18, ["noise: failure log line 1", "ISO 8601"]),
        (&["--failure-log", "empty"], 18, ["empty: failure log", "two failures"]),
        (&["--bench", "nowhere"], 11, ["nowhere", "read"]),
        (&["--from-job", "--job", "none"], 11, ["none", "--store"]),
        (&["--mtti", "soon"], 2, ["--mtti", "10min"]),
        (&["--size", "big"], 2, ["--size", "64GiB"]),
        (&["--codec", "zip=1%,1GB/s,1GB/s"], 2, ["--codec", "zip"]),
        (&["--mtti", "1h", "--failure-log", "empty"], 2, ["--mtti", "--failure-log"]),
    ] {
        let ran = plan(dir.path(), args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(words.iter().all(|word| ran.err.contains(word)), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{args:?}");
    }
    let output = command(dir.path()).env("SLURM_NNODES", "many").arg("plan").output().unwrap();
    assert_eq!(output.status.code(), Some(18));
    assert!(String::from_utf8(output.stderr).unwrap().contains("SLURM_NNODES"));
}
