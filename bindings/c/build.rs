//! Gives the shared library the name that programs ask the loader for: `libstandfast.so.MAJOR`.
//!
//! The major version rises when programs would have to be compiled again.

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstandfast.so.{major}");
}
