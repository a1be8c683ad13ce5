#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("store_header"), |data: &[u8]| {
    standfast_fuzz::store_header(data);
});
