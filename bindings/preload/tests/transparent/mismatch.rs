//! A checkpoint of another program is refused, whatever makes it another one.

use std::io::Read;
use std::process::{Command, Stdio};

use standfast::Kind;

use crate::program::{Program, compile};

fn with_checkpoint() -> Program {
    let program = Program::build("list.c", &["400"]).unwrap();
    let mut running = program.start();
    running.hear("step 5");
    running.checkpoint_before("step 7");
    program.wait_for_checkpoints(1);
    running.kill();
    program
}

#[test]
fn a_program_that_was_built_anew_is_refused() {
    let program = with_checkpoint();
    compile("list.c", &program.path, &["-DANEW", "-g"]).unwrap();
    let error = program.prepare().err().unwrap();
    assert_eq!(error.kind(), Kind::Invalid);
    let text = error.to_string();
    assert!(text.contains("does not match") && text.contains("program"), "{text}");
}

#[test]
fn another_layout_of_memory_is_refused_before_anything_is_overwritten() {
    let program = with_checkpoint();
    let prepared = program.prepare().unwrap().unwrap();
    let mut other = Command::new("/bin/true");
    other.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.launch().spawn(other, Some(&prepared)).unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(18), "{text}");
    assert!(text.contains("cannot be resumed"), "{text}");
}

#[test]
fn a_checkpoint_of_protected_regions_is_no_program() {
    let program = Program::build("list.c", &["1"]).unwrap();
    let job = standfast::Job::open_loaded(program.loaded()).unwrap();
    let _field = job.alloc::<f64>("field", 100).unwrap();
    job.checkpoint(None).unwrap();
    job.close().unwrap();
    let error = program.prepare().err().unwrap();
    assert!(error.to_string().contains("not taken by"), "{error}");
}

#[test]
fn without_a_checkpoint_there_is_nothing_to_resume() {
    let program = Program::build("list.c", &["1"]).unwrap();
    assert!(program.prepare().unwrap().is_none());
}
