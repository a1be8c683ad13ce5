use super::*;

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
        assert_eq!(config.memory.0, config.pool.0 + config.copies.0);
        (config.pool.0 >> 20, config.copies.0 >> 20)
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
        config.unwrap().memory.0 >> 20
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
    assert_eq!((config.keep, config.local_bytes.0, config.keep_every), (3, 10 << 30, 5));
    assert_eq!(config.codec, config.drain_codec);
    assert_eq!(config.pipeline, standfast_write::Pipeline::Gpu);
    assert_eq!((config.write, config.agent_dir.as_str()), (Write::WagDbi, "/run/x"));
    assert_eq!(config.mtti.to_string(), "2h");
    assert_eq!((config.ring, config.ring_shards, config.ring_group), (Ring::Auto, 2, 0));
    let config = resolved(&[("global", "/g"), ("global_keep", "every 7")], 1).unwrap();
    assert_eq!((config.keep_global, config.drain_every), (0, 7));
}

#[test]
fn commands_may_look_into_global_storage_and_jobs_may_not_be_there() {
    let words = [("store", "/a/"), ("global", "file:///a")].map(|(a, b)| (a.into(), b.into()));
    let loaded = crate::config::Loaded::load(&words).unwrap();
    let error = loaded.check_job().unwrap_err().to_string();
    assert!(error.contains("store and global are the same location"), "{error}");
}
