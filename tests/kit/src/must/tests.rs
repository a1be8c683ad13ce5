use super::*;

#[test]
fn what_must_be_there_is_named_exactly() {
    assert_eq!(names("mpi, s3,").collect::<Vec<_>>(), ["mpi", "s3"]);
    assert_eq!(names("").count(), 0);
    assert!(
        std::panic::catch_unwind(|| names("mpi,s4").count()).is_err(),
        "a word that means nothing"
    );
}

#[test]
fn a_test_that_must_run_fails_where_it_is_left_out() {
    let run = |must: &str| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "must::tests::left_out", "--ignored"]).env(MUST, must);
        child.output().unwrap().status.success()
    };
    assert!(run("") && run("s3"), "it is left out");
    assert!(!run("s3,mpi"), "it may not be");
}

#[test]
#[ignore = "the other test runs it"]
fn left_out() {
    leave_out("mpi", "there is no mpicc");
}
