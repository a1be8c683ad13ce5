#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("names"), |data: &[u8]| {
    standfast_fuzz::names(data);
});
