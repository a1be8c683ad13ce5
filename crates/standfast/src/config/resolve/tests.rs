use super::*;
use crate::config::Write;

fn resolved(words: &[(&str, &str)], ranks: usize) -> Result<Config, String> {
    let mut settings = Settings::default();
    for (name, text) in words {
        settings.set(name, text)?;
    }
    resolve(&settings, &Lab::default(), Machine { ranks, free_bytes: 32 << 30 })
}

#[test]
fn memory_is_for_all_ranks_of_a_node() {
    let parts = |words: &[(&str, &str)], ranks| {
        let config = resolved(words, ranks).unwrap();
        let memory = config.memory;
        assert_eq!(memory.rank.0, memory.pool.0 + memory.copies.0);
        (memory.pool.0 >> 20, memory.copies.0 >> 20)
    };
    assert_eq!(parts(&[("memory", "64MiB"), ("capture", "stop")], 8), (8, 0));
    for capture in ["auto", "cow", "staged"] {
        assert_eq!(parts(&[("memory", "64MiB"), ("capture", capture)], 8), (2, 6));
        assert_eq!(parts(&[("memory", "16GiB"), ("capture", capture)], 1), (256, 16128));
    }
    let why = resolved(&[("memory", "8MiB")], 8).unwrap_err();
    assert_eq!(why, "memory = 8MiB is too small for 8 ranks: at least 16MiB");
    assert!(resolved(&[("memory", "2MiB"), ("capture", "cow")], 1).is_ok());
}

#[test]
fn memory_is_a_quarter_of_what_is_free_shared_by_the_ranks_of_the_node() {
    let settings = Settings::default();
    let own = |free_bytes, ranks| {
        let config = resolve(&settings, &Lab::default(), Machine { ranks, free_bytes });
        config.unwrap().memory.rank.0 >> 20
    };
    assert_eq!(own(32 << 30, 1), 8 << 10);
    assert_eq!(own(32 << 30, 16), 512);
    assert_eq!(own(32 << 30, 1000), 64, "each has some");
    assert_eq!(own(0, 1), 64);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_sentence() {
    for (words, sentence) in [
        (&[("global_rate", "200MB/s")][..], "global_rate has no effect without global"),
        (&[("global_keep", "4")], "global_keep has no effect without global"),
        (
            &[("global", "/a/{node}")],
            "global: it must be one location for all nodes: remove {node}",
        ),
        (
            &[("store", "s3://b/x"), ("agent", "on")],
            "agent = on needs a directory store; s3://b/x is written by the ranks",
        ),
        (
            &[("store", "s3://b/x"), ("share", "group")],
            "share applies to directories; use the bucket's policy",
        ),
    ] {
        assert_eq!(resolved(words, 1).unwrap_err(), sentence);
    }
}

#[test]
fn words_become_choices() {
    let config = resolved(
        &[
            ("keep", "3, 10GiB, every 5"),
            ("codec", "small"),
            ("gpu", "on"),
            ("agent", "/run/x"),
            ("interval", "auto:2h"),
            ("ring", "2"),
        ],
        1,
    )
    .unwrap();
    assert_eq!((config.place.keep.newest, config.keep_every()), (Some(3), 5));
    assert_eq!(config.pack.codec, config.drain.codec);
    assert_eq!(config.pack.pipeline, standfast_write::Pipeline::Gpu);
    assert_eq!((config.pack.write, config.agent.dir.as_str()), (Write::WagDbi, "/run/x"));
    assert!(config.levels.has_ring());
    assert_eq!((config.ring.shards, config.ring.group), (2, Choice::Auto));
    let config = resolved(&[("global", "/g"), ("global_keep", "every 7")], 1).unwrap();
    assert_eq!((config.levels.global_keep.newest, config.levels.drain_every()), (None, 7));
}

#[test]
fn commands_may_look_into_global_storage_and_jobs_may_not_be_there() {
    let words = [("store", "/a/"), ("global", "file:///a")].map(|(a, b)| (a.into(), b.into()));
    let loaded = crate::config::Loaded::load(&words).unwrap();
    let error = loaded.check_job().unwrap_err().to_string();
    assert!(error.contains("store and global are the same location"), "{error}");
}
