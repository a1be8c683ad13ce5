#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("topology"), |data: &[u8]| {
    standfast_fuzz::topology(data);
});
