//! The policy: what a dependency may be. Each exception says why.

/// Licences that may be linked into a program of any licence.
pub(crate) const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages with another licence, and why they may stay.
pub(crate) const LICENCE_EXCEPTIONS: &[(&str, &str, &str)] =
    &[("cbindgen", "MPL-2.0", "writes the C header when we build; nothing of it is linked")];

/// The only registry.
pub(crate) const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages that must not come in, and why.
pub(crate) const BANNED: &[(&str, &str)] = &[
    ("bincode", "unmaintained; the format is ours and postcard's"),
    ("openssl", "TLS is rustls with ring: no system library"),
    ("openssl-sys", "TLS is rustls with ring: no system library"),
    ("native-tls", "TLS is rustls with ring: no system library"),
    ("aws-lc-sys", "TLS is rustls with ring: another crypto library takes minutes to build"),
    ("rayon", "no global thread pool inside the application's process"),
    ("reed-solomon-erasure", "unmaintained"),
    ("lazy_static", "the standard library has LazyLock"),
    ("memmap", "unmaintained"),
];

/// Packages that may exist in several incompatible versions, and whose fault it is.
pub(crate) const DUPLICATES: &[(&str, &str)] = &[
    ("crypto-common", "with digest"),
    ("digest", "object_store's md-5 is a version behind sha1"),
    ("embedded-io", "postcard names both; neither is built"),
    ("getrandom", "fail's rand is old; tests only"),
    ("miniz_oxide", "png for plots, flate2 elsewhere"),
    ("rand", "fail's rand is old; tests only"),
    ("rand_core", "with rand"),
    ("syn", "derive macros are half-way to version 3; build time only"),
    ("toml", "cbindgen reads its settings with an older one; build time only"),
    ("toml_datetime", "with toml"),
    ("winnow", "with toml"),
];
