//! Checkpoints that the program asks for by a call, with and without libstandfast beside it.

use std::path::Path;
use std::process::Command;

use crate::program::{CODE, Program, compile, library};

#[test]
fn a_program_that_asks_itself_gets_1_after_a_restart() {
    let program = Program::build("call.c", &["40", "23"]).unwrap();
    let undisturbed = Program::build("call.c", &["40"]).unwrap();
    let (_, code) = program.start().finish();
    assert_eq!(code, None, "it has aborted");
    assert_eq!(program.checkpoints(), 5);
    let (said, code) = program.resume().finish();
    assert_eq!((said.last(), code), (Some(&undisturbed.answer()), Some(CODE)));
}

#[test]
fn the_name_alone_will_do() {
    let program = Program::build("bare.c", &[]).unwrap();
    assert_eq!(program.answer(), "answer 0");
    let (said, code) = program.start().finish();
    assert_eq!((said.last().map(String::as_str), code), (Some("answer 1"), Some(CODE)));
    program.wait_for_checkpoints(1);
}

#[test]
fn a_program_that_was_not_launched_is_told_that_there_is_none() {
    let program = Program::build("bare.c", &[]).unwrap();
    let status = Command::new(&program.path).env("LD_PRELOAD", library()).status().unwrap();
    assert_eq!(status.code(), Some(3));
}

/// libstandfast of the present sources, under the names by which it is linked and loaded.
fn libstandfast(into: &Path) -> [String; 3] {
    let built = standfast_testkit::built::library("standfast-c");
    for name in ["libstandfast.so", "libstandfast.so.0"] {
        std::os::unix::fs::symlink(&built, into.join(name)).unwrap();
    }
    // Cargo's LD_LIBRARY_PATH may have an older copy of the library: this path comes before it.
    let options = format!("-Wl,--disable-new-dtags,-rpath,{}", into.display());
    let headers = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../c/include");
    [headers.into(), format!("-L{}", into.display()), options]
}

#[test]
fn calls_with_a_job_reach_libstandfast() {
    for linked in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let library = libstandfast(dir.path());
        let mut options: Vec<&str> = library.iter().map(String::as_str).collect();
        let path = dir.path().join("program");
        if linked {
            options.push("-Wl,--no-as-needed,-lstandfast");
            compile("both.c", &path, &options).unwrap();
        } else {
            options.extend(["-DPLUGIN", "-shared", "-fPIC", "-Wl,--no-as-needed,-lstandfast"]);
            compile("both.c", &dir.path().join("part.so"), &options).unwrap();
            compile("plugin.c", &path, &["-Wl,--no-as-needed,-ldl"]).unwrap();
        }
        let mut program = Program { dir, path, args: vec!["inner-alone".into(), "1".into()] };
        assert_eq!(program.answer(), "done", "without the preload library");
        program.args = vec!["inner".into(), "0".into()];
        let (said, code) = program.start().finish();
        assert_eq!((said, code), (vec!["done".to_owned()], Some(CODE)), "linked: {linked}");
        assert_eq!(program.checkpoints(), 1);
    }
}
