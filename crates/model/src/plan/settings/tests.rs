use super::*;
use crate::plan::{Inputs, plan};

#[test]
fn the_file_is_toml_and_only_known_keys_count() {
    let plan = plan(&Inputs::example()).unwrap();
    let known = ["interval", "codec", "memory"];
    let text = toml(&plan, &known);
    let parsed: toml::Table = text.parse().unwrap();
    assert_eq!(parsed.len(), known.len(), "{text}");
    assert_eq!(parsed["codec"].as_str(), Some(plan.codec.as_str()));
    assert!(text.contains("# ring = "));
    let all = toml(&plan, &["interval", "codec", "memory", "ring"]);
    let parsed: toml::Table = all.parse().unwrap();
    assert_eq!(parsed["ring"].as_integer(), Some(plan.group_m as i64));
}

#[test]
fn the_ranks_of_a_node_share_its_memory() {
    let alone = plan(&Inputs::example()).unwrap();
    let mut inputs = Inputs::example();
    inputs.job.ranks_per_node = 4;
    let shared = plan(&inputs).unwrap();
    assert_eq!(shared.rank_pool_mib(), alone.rank_pool_mib().div_ceil(4));
    assert!(toml(&shared, &["memory"]).contains("4 ranks share it"));
}

#[test]
fn a_host_that_waits_for_global_storage_is_told_how_often() {
    let inputs = Inputs { background: false, ..Inputs::example() };
    let plan = plan(&inputs).unwrap();
    let text = toml(&plan, &[]);
    assert!(text.contains(&format!("--every {}", plan.local_per_global())), "{text}");
}
