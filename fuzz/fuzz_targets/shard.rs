#![no_main]
libfuzzer_sys::fuzz_target!(init: standfast_fuzz::seed::plant("shard"), |data: &[u8]| {
    standfast_fuzz::shard(data);
});
