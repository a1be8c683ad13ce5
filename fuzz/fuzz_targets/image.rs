#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("image"), |data: &[u8]| {
    standfast_fuzz::image(data);
});
