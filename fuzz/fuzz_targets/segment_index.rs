#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("segment_index"), |data: &[u8]| {
    standfast_fuzz::segment_index(data);
});
