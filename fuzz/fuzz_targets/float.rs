#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("float"), |data: &[u8]| {
    standfast_fuzz::float(data);
});
