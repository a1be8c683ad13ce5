#[test]
fn every_source_has_the_kernels_that_are_asked_of_it() {
    let kernels = [
        crate::hash::KERNELS,
        crate::pages::KERNELS,
        crate::erasure::KERNELS,
        crate::float::KERNELS,
        crate::deflate::KERNELS,
    ];
    for kernel in kernels.concat() {
        let start = format!("\n{}(", kernel.name);
        assert!(kernel.source.text.contains(&start), "{}", kernel.name);
    }
}
