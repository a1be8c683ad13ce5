//! Remembers where the sources of mimalloc are that the preload library is built from.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let include = std::env::var("DEP_MIMALLOC_INCLUDE_DIR").expect("libmimalloc-sys tells it");
    println!("cargo::rustc-env=MIMALLOC_INCLUDE={include}");
}
