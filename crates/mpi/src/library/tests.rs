use super::*;

#[test]
fn what_is_no_adapter_is_told() {
    let why = |path: &str| Library::start(Path::new(path)).err().unwrap().to_string();
    assert!(why("/not/there.so").contains("/not/there.so"));
    assert!(why("libc.so.6").contains("sf_mpi_start"));
}
