#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("pledge"), |data: &[u8]| {
    standfast_fuzz::pledge(data);
});
