#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("manifest"), |data: &[u8]| {
    standfast_fuzz::manifest(data);
});
