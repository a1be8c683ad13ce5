use super::*;

#[test]
fn typing_errors_lead_to_the_word() {
    assert_eq!(unknown("codek"), "no setting \"codek\"; did you mean \"codec\"?");
    assert_eq!(unknown("lab.pge"), "no setting \"lab.pge\"; did you mean \"lab.page\"?");
    assert_eq!(unknown("sorte"), "no setting \"sorte\"; did you mean \"store\"?");
    assert_eq!(unknown("colour"), "no setting \"colour\"; 'standfast config' shows all");
    assert_eq!(edits("", "abc"), 3);
    assert_eq!(edits("kitten", "sitting"), 3);
}

#[test]
fn every_former_name_is_told_its_new_one() {
    assert_eq!(unknown("pool"), "\"pool\" is now \"memory\", for the whole node");
    assert_eq!(unknown("local_bytes"), "\"local_bytes\" is now \"keep\": keep = \"8, SIZE\"");
    let former = [
        "node",
        "page",
        "hash",
        "mode",
        "strategy",
        "threshold",
        "track",
        "cow_pool",
        "pipeline",
        "filter",
        "block",
        "pool",
        "write",
        "wag_threshold",
        "agent_dir",
        "agent_command",
        "agent_idle",
        "segment",
        "threads",
        "io",
        "io_threads",
        "keep_global",
        "keep_every",
        "local_bytes",
        "when_full",
        "drain_codec",
        "drain_rate",
        "drain_every",
        "drain_nice",
        "drain_ionice",
        "drain_cpus",
        "ring_group",
        "ring_shards",
        "ring_arithmetic",
        "mtti",
        "device_staging",
        "device_codec",
        "ask",
    ];
    for name in former {
        let told = unknown(name);
        let useful = [" is now ", " is for experiments only", " is gone"];
        assert!(useful.iter().any(|words| told.contains(words)), "{told}");
    }
}
