#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("config"), |data: &[u8]| {
    standfast_fuzz::config(data);
});
