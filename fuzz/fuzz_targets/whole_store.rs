#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("whole_store"), |data: &[u8]| {
    standfast_fuzz::whole_store(data);
});
