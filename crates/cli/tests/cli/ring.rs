//! Stores of nodes from outside: the ring drawn, the recovery planned, several stores looked at as
//! one.

use std::path::Path;

use serde_json::Value;
use standfast::config::Loaded;
use standfast::{Job, Level};
use standfast_comm::Comm;
use standfast_testkit::run_threads;

use crate::fixture::{Ran, command};

/// A job "heat" of four ranks on nodes n0 to n3, with two checkpoints on the ring.
struct Nodes(tempfile::TempDir);

impl Nodes {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("{}/{{node}}", dir.path().display());
        run_threads(4, |comm| {
            let node = format!("n{}", comm.rank());
            let settings = [
                ("store", store.as_str()),
                ("job", "heat"),
                ("lab.node", &node),
                ("ring", "auto"),
                ("lab.ring_group", "2"),
            ];
            let settings: Vec<(String, String)> =
                settings.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
            let job = Job::open_comm(Loaded::load(&settings).unwrap(), &comm).unwrap();
            let field = job.alloc::<u64>("field", 20_000).unwrap();
            for step in 1..=2 {
                let own = comm.rank() as u64 * 1_000_003 + step;
                field.write().iter_mut().zip(0u64..).for_each(|(word, at)| *word = own * (at + 1));
                let version = job.checkpoint(None).unwrap();
                job.wait(version, Level::Ring).unwrap();
            }
        });
        Self(dir)
    }

    fn lose(&self, node: usize) {
        std::fs::remove_dir_all(self.0.path().join(format!("n{node}"))).unwrap();
    }

    /// The command on all stores that are left.
    fn all(&self, args: &[&str]) -> Ran {
        let pattern = format!("{}/{{node}}", self.0.path().display());
        run(self.0.path(), &[&["--stores", &pattern], args].concat(), None)
    }

    /// The command on one node's store.
    fn on(&self, node: usize, args: &[&str]) -> Ran {
        run(self.0.path(), args, Some(&self.0.path().join(format!("n{node}"))))
    }
}

fn run(dir: &Path, args: &[&str], store: Option<&Path>) -> Ran {
    let mut command = match store {
        Some(store) => command(store),
        None => {
            let mut command = assert_cmd::Command::cargo_bin("standfast").unwrap();
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STANDFAST_")) {
                command.env_remove(name);
            }
            command.env("TZ", "UTC");
            command
        }
    };
    let output = command.current_dir(dir).args(args).output().unwrap();
    Ran {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn one(ran: &Ran, kind: &str) -> Value {
    assert_eq!(ran.of(kind).len(), 1, "{kind}: {} {}", ran.out, ran.err);
    ran.of(kind).remove(0)
}

#[test]
fn any_nodes_store_draws_the_ring_and_tells_the_level() {
    let nodes = Nodes::new();
    for node in 0..4 {
        let ran = nodes.on(node, &["show", "--ring", "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let ring = one(&ran, "ring");
        assert_eq!(
            (&ring["nodes"], &ring["sectors"], &ring["m"]),
            (&4.into(), &2.into(), &2.into())
        );
        assert_eq!(ring["worst_case"], 2);
        let names: Vec<Value> = ran.of("node").iter().map(|line| line["name"].clone()).collect();
        assert_eq!(names, ["n0", "n1", "n2", "n3"]);
        assert_eq!(ran.of("group")[0]["keeper_nodes"], serde_json::json!(["n2", "n3"]));
        assert!(ran.of("group").iter().all(|group| group["whole_survived"] == true));
        assert!(ran.of("loss").iter().all(|loss| loss["exact"] == true));
        assert_eq!(ran.of("loss")[1]["survived"], 1.0);
        let level = |args: &[&str]| one(&nodes.on(node, args), "checkpoint")["level"].clone();
        assert_eq!(level(&["show", "--json"]), "ring");
        let listed = nodes.on(node, &["ls", "--json"]).of("checkpoint");
        assert!(listed.iter().all(|line| line["level"] == "ring"), "{listed:?}");
    }
    let text = nodes.on(3, &["show", "--ring"]).out;
    for part in ["4 ranks on 4 nodes", "any 2 of its 4 nodes", "-> 1.0", "always survived"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn several_stores_are_verified_as_one() {
    let nodes = Nodes::new();
    let ran = nodes.all(&["verify", "--json"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert!(ran.of("orphan").is_empty(), "shards, records and identities are ours");
    assert_eq!(nodes.all(&["show"]).code, 0);
    assert_eq!(nodes.all(&["ls", "--json"]).of("checkpoint").len(), 2);
    let to = nodes.0.path().join("out");
    let ran = nodes.all(&["export", "2", "--to", to.to_str().unwrap(), "--json"]);
    assert_eq!(ran.of("file").len(), 4, "{}", ran.err);
    // Alone, a store has a part, and says so.
    let ran = nodes.on(1, &["verify"]);
    assert_eq!(ran.code, 10);
    assert!(ran.err.contains("--stores"), "{}", ran.err);
    // Together they are only looked at.
    let ran = nodes.all(&["prune", "--keep", "1", "--yes"]);
    assert_ne!(ran.code, 0);
    assert_eq!(nodes.all(&["ls", "--json"]).of("checkpoint").len(), 2);
}

#[test]
fn the_plan_is_told_before_it_runs() {
    let nodes = Nodes::new();
    let ran = nodes.all(&["verify", "--restart", "--json"]);
    assert_eq!((ran.code, &one(&ran, "plan")["recovery"]), (0, &"local".into()), "{}", ran.err);
    assert!(ran.of("make").is_empty());
    nodes.lose(1);
    let ran = nodes.all(&["verify", "--restart", "--json"]);
    assert_eq!((ran.code, &one(&ran, "plan")["recovery"]), (0, &"fast".into()));
    let made: Vec<Value> = ran.of("make").iter().map(|line| line["what"].clone()).collect();
    assert_eq!(made, ["files of rank 1", "shard 1"]);
    assert!(ran.of("make").iter().all(|line| line["node"] == "n1"));
    // The third loss is one too many: what is missing, and who could bring it.
    nodes.lose(0);
    assert_eq!(nodes.all(&["verify", "--restart"]).code, 0);
    nodes.lose(2);
    let ran = nodes.all(&["verify", "--restart", "--json"]);
    assert_eq!((ran.code, &one(&ran, "plan")["recovery"]), (10, &"impossible".into()));
    let lost = &ran.of("lost")[0];
    assert_eq!((&lost["ranks"], &lost["wanted"]), (&serde_json::json!([0, 1]), &1.into()));
    assert_eq!(one(&ran, "away")["nodes"], serde_json::json!(["n0", "n1", "n2"]));
    assert_eq!(one(&ran, "away")["needed"].as_array().unwrap().len(), 1);
    assert_eq!(one(&ran, "older")["version"], Value::Null);
    let text = nodes.all(&["verify", "--restart"]).out;
    assert!(text.contains("must come back with their disks"), "{text}");
}

#[test]
fn damaged_shards_count_as_lost_in_the_plan() {
    let nodes = Nodes::new();
    nodes.lose(0);
    let shards = nodes.0.path().join("n2/heat/shards");
    for version in std::fs::read_dir(shards).unwrap() {
        for shard in std::fs::read_dir(version.unwrap().path()).unwrap() {
            let path = shard.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let ran = nodes.all(&["verify", "--restart", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(one(&ran, "unusable")["what"].as_str().unwrap().contains("checksum"));
    assert_eq!(nodes.all(&["verify", "--restart", "--quick", "--json"]).of("unusable").len(), 0);
    nodes.lose(3);
    assert_eq!(nodes.all(&["verify", "--restart"]).code, 10);
}

#[test]
fn json_lines_of_the_ring_have_the_documented_fields() {
    let nodes = Nodes::new();
    nodes.lose(1);
    let plans = |nodes: &Nodes| nodes.all(&["verify", "--restart", "--json"]);
    let mut rans =
        vec![("verify", plans(&nodes)), ("show", nodes.all(&["show", "--ring", "--json"]))];
    nodes.lose(0);
    nodes.lose(2);
    rans.push(("verify", plans(&nodes)));
    for (command, ran) in rans {
        let help = nodes.all(&[command, "--help"]).out;
        let documented: Vec<&str> =
            help.lines().skip_while(|text| !text.starts_with("JSON lines")).collect();
        let documented = documented.join(" ");
        assert!(!ran.lines().is_empty());
        for line in ran.lines() {
            let kind = line["type"].as_str().unwrap();
            assert!(documented.contains(&format!("{kind}: ")), "{kind} of {command}");
            for field in line.as_object().unwrap().keys().filter(|field| *field != "type") {
                assert!(documented.contains(field.as_str()), "{field} of {kind} of {command}");
            }
        }
    }
}

#[test]
fn a_checkpoint_without_shards_says_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let job = crate::fixture::open(dir.path());
    let _field = job.alloc::<u64>("field", 100).unwrap();
    job.wait(job.checkpoint(None).unwrap(), Level::Local).unwrap();
    job.close().unwrap();
    let ran = run(dir.path(), &["show", "--ring"], Some(dir.path()));
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(ran.err.contains("has not reached level ring"), "{}", ran.err);
    let ran = run(dir.path(), &["verify", "--restart"], Some(dir.path()));
    assert!(ran.code == 0 && ran.out.contains("nothing is lost"), "{}", ran.out);
    std::fs::remove_dir_all(dir.path().join("heat/images")).unwrap();
    let ran = run(dir.path(), &["verify", "--restart"], Some(dir.path()));
    assert!(ran.code == 10 && ran.out.contains("files of rank 0"), "{}", ran.out);
}
