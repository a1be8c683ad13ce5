#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("identity"), |data: &[u8]| {
    standfast_fuzz::identity(data);
});
