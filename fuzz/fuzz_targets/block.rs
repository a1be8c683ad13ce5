#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("block"), |data: &[u8]| {
    standfast_fuzz::block(data);
});
