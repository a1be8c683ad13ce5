//! The committed header and the reference are those of the code.

use std::collections::BTreeSet;
use std::path::Path;

const BLESS: &str = "STANDFAST_TEST_BLESS";

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn committed() -> String {
    std::fs::read_to_string(crate_dir().join("include/standfast.h")).expect("the header is there")
}

fn generated() -> String {
    let config = cbindgen::Config::from_root_or_default(crate_dir());
    let mut builder = cbindgen::Builder::new().with_config(config);
    for module in ["init", "handle", "region", "alloc", "checkpoint", "restart", "ranks", "error"] {
        builder = builder.with_src(crate_dir().join(format!("src/{module}.rs")));
    }
    builder = builder.with_src(crate_dir().join("../../crates/mpi/src/table.rs"));
    let mut header = Vec::new();
    builder.generate().expect("the sources can be read").write(&mut header);
    without_safety(&String::from_utf8(header).expect("sources are UTF-8"))
}

/// The header without what only Rust asks for: the sections on safety, the last of each comment. What
/// C has to know of pointers is said where parameters are.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "* # Safety" {
            kept.pop_if(|blank| blank.trim() == "*");
            kept.extend(lines.by_ref().find(|line| line.trim() == "*/"));
        } else {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

#[test]
fn the_committed_header_is_the_generated_one() {
    let generated = generated();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(crate_dir().join("include/standfast.h"), &generated).expect("written");
    }
    assert!(
        committed() == generated,
        "include/standfast.h is stale: {BLESS}=1 cargo test -p standfast-c --test header"
    );
}

/// Words of a text that look like names of this library.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("sf_") || word.starts_with("SF_"))
        // How functions are declared, which no program writes.
        .filter(|word| !matches!(*word, "SF_API" | "SF_CHECKED"))
        .collect()
}

fn read(path: &str) -> String {
    let path = crate_dir().join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_reference_has_every_name_of_the_headers_and_no_other() {
    let headers = committed() + &read("bindings/mpi/standfast_mpi.h");
    let reference = read("docs/API-C.md");
    let (headers, reference) = (names(&headers), names(&reference));
    let missing: Vec<_> = headers.difference(&reference).collect();
    let unknown: Vec<_> = reference.difference(&headers).collect();
    assert!(missing.is_empty(), "docs/API-C.md does not have {missing:?}");
    assert!(unknown.is_empty(), "docs/API-C.md has names that do not exist: {unknown:?}");
}
