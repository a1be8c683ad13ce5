#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("drains"), |data: &[u8]| {
    standfast_fuzz::drains(data);
});
