//! An MPI job over hosts that are namespaces of this machine: one is lost with its disk, and the job
//! goes on with the survivors and a replacement.

use std::process::Command;

#[test]
fn a_job_survives_the_loss_of_a_host_and_its_disk() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_experiments"));
    command.args(["hosts", "--losses", "2", "--hosts", "4", "--ranks", "1", "--json"]);
    let output = command.output().unwrap();
    let (said, remarks) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_str(said.lines().last().unwrap_or("{}"))
        .unwrap_or_else(|error| panic!("{error}: {said} {remarks}"));
    if told["type"] == "skipped" {
        return standfast_testkit::must::leave_out("hosts", &told["why"]);
    }
    assert!(output.status.success(), "{said} {remarks}");
    let number = |name: &str| told[name].as_u64().unwrap();
    assert_eq!((number("lost"), number("restarts"), number("wrong")), (2, 2, 0), "{said}");
    assert!(number("steps") > 0, "{said}");
}
