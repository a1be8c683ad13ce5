use super::*;

#[test]
fn the_header_has_the_version_of_the_package() {
    let header = [SF_VERSION_MAJOR, SF_VERSION_MINOR, SF_VERSION_PATCH];
    assert_eq!(header.map(|part| part.to_string()).join("."), env!("CARGO_PKG_VERSION"));
}
