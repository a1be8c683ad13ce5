//! Names that are no settings: what they were called before, or what was probably meant.

use super::lab::{self, LAB_KEYS, lab_key};
use super::settings::KEYS;

/// Names of earlier versions, and the word that took their place.
const FORMER: &[(&str, &str)] = &[
    ("pool", r#""memory", for the whole node"#),
    ("cow_pool", r#""memory", for the whole node"#),
    ("write", r#""agent": agent = on for wag-dbi"#),
    ("agent_dir", r#""agent": agent = DIR"#),
    ("agent_idle", r#"an option: 'standfast agent start --idle'"#),
    ("local_bytes", r#""keep": keep = "8, SIZE""#),
    ("keep_every", r#""keep": keep = "8, every K""#),
    ("keep_global", r#""global_keep""#),
    ("drain_every", r#""global_keep": global_keep = "every K""#),
    ("drain_rate", r#""global_rate""#),
    ("drain_codec", r#""codec", for the store and for global storage"#),
    ("drain_nice", r#"an option: 'standfast drain --nice'"#),
    ("drain_ionice", r#"an option: 'standfast drain --ionice'"#),
    ("drain_cpus", r#"an option: 'standfast drain --cpus'"#),
    ("ring_group", r#""ring": ring = N survives N lost nodes"#),
    ("ring_shards", r#""ring": ring = N survives N lost nodes"#),
    ("ring_arithmetic", r#""gpu": gpu = on"#),
    ("device_codec", r#""gpu": gpu = off compresses on the CPU"#),
    ("pipeline", r#""gpu": gpu = on for pipeline = gpu"#),
    ("mtti", r#""interval": interval = auto:MTTI"#),
];

/// Farthest that a name may be from the one that was meant.
const EDITS_MAX: usize = 2;

/// Why a name is refused that no setting has.
pub(super) fn unknown(name: &str) -> String {
    if let Some((_, now)) = FORMER.iter().find(|(former, _)| *former == name) {
        return format!("\"{name}\" is now {now}");
    }
    let (prefix, bare) = match name.strip_prefix(lab::PREFIX) {
        Some(bare) => (lab::PREFIX, bare),
        None => ("", name),
    };
    if prefix.is_empty() && lab_key(name).is_some() {
        return format!(
            "{name:?} is for experiments only: \"lab.{name}\" in the call, or STANDFAST_LAB_{}",
            name.to_ascii_uppercase()
        );
    }
    if name == "ask" {
        return "\"ask\" is gone: 'standfast run' passes its requests by itself".into();
    }
    let words: Vec<&str> = match prefix {
        "" => KEYS.iter().map(|key| key.name).collect(),
        _ => LAB_KEYS.iter().map(|key| key.name).collect(),
    };
    let nearest = words.into_iter().map(|word| (edits(bare, word), word)).min();
    match nearest.filter(|(edits, _)| *edits <= EDITS_MAX) {
        Some((_, word)) => format!("no setting {name:?}; did you mean \"{prefix}{word}\"?"),
        None => format!("no setting {name:?}; 'standfast config' shows all"),
    }
}

/// How many letters must be inserted, removed or replaced to make one word the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, char) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in b.iter().enumerate() {
            let replaced = corner + usize::from(char != *other);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
