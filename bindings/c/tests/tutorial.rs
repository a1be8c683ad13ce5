//! The differences that the tutorial and the page on MPI show are those between the solvers before
//! and after.

use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of differences in a page.
fn blocks(page: &str) -> Vec<String> {
    let page = read(page);
    let blocks = page.split("```diff\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The lines of a block behind a sign.
fn lines(block: &str, sign: char) -> BTreeSet<&str> {
    block.lines().filter_map(|line| line.strip_prefix(sign)).collect()
}

/// The lines of one text that the other does not have.
fn only<'a>(of: &'a str, other: &str) -> BTreeSet<&'a str> {
    let other: BTreeSet<&str> = other.lines().collect();
    of.lines().filter(|line| !other.contains(line)).collect()
}

/// What one set has and the other has not must be nothing.
#[track_caller]
fn nothing(what: &str, set: &BTreeSet<&str>, other: &BTreeSet<&str>) {
    let rest: Vec<_> = set.difference(other).collect();
    assert!(rest.is_empty(), "{what}: {rest:#?}");
}

fn check(block: &str, before: &str, after: &str) {
    let (before, after) = (read(before), read(after));
    let (old, new) = (before.lines().collect(), after.lines().collect());
    let (added, removed, kept) = (lines(block, '+'), lines(block, '-'), lines(block, ' '));
    nothing("not in the solver after", &added, &new);
    nothing("not in the solver before", &removed, &old);
    nothing("not in the solver after", &kept, &new);
    nothing("not in the solver before", &kept, &old);
    nothing("added, but not in the page", &only(&after, &before), &added);
    nothing("removed, but not in the page", &only(&before, &after), &removed);
}

#[test]
fn the_tutorial_shows_the_lines_of_the_solvers() {
    let blocks = blocks("docs/TUTORIAL.md");
    assert_eq!(blocks.len(), 2);
    check(&blocks[0], "examples/heat/c/heat_before.c", "examples/heat/c/heat_after.c");
    let rust = "examples/heat/rust/src/bin";
    check(&blocks[1], &format!("{rust}/heat_before.rs"), &format!("{rust}/heat_after.rs"));
}

#[test]
fn the_page_on_mpi_shows_the_lines_of_the_solvers() {
    let blocks = blocks("docs/MPI.md");
    assert_eq!(blocks.len(), 2);
    check(&blocks[0], "examples/heat/c-mpi/heat_before.c", "examples/heat/c-mpi/heat_after.c");
    let fortran = "examples/heat/fortran";
    check(&blocks[1], &format!("{fortran}/heat_before.f90"), &format!("{fortran}/heat_after.f90"));
}
