#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("segment_header"), |data: &[u8]| {
    standfast_fuzz::segment_header(data);
});
