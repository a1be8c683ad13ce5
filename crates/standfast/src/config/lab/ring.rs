//! Shards of checkpoints on other nodes.

use super::LabKey;
use crate::config::text::{Words, word, word_of};

/// Who multiplies for the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingArithmetic {
    /// The processor.
    Cpu,
    /// A GPU, where there is one.
    Gpu,
}

const RING_ARITHMETICS: Words<RingArithmetic> =
    &[("cpu", RingArithmetic::Cpu), ("gpu", RingArithmetic::Gpu)];

pub(super) const RING_GROUP: LabKey = LabKey {
    name: "ring_group",
    values: "auto, N",
    help: "Members of a group on the ring, or auto: by the number of nodes, 4 for most jobs",
    default: "auto",
    set: |config, text| {
        config.ring_group = if text == "auto" { 0 } else { member_count(text, 1)? };
        Ok(())
    },
    show: |config| match config.ring_group {
        0 => "auto".into(),
        members => members.to_string(),
    },
};

pub(super) const RING_SHARDS: LabKey = LabKey {
    name: "ring_shards",
    values: "N",
    help: "Shards of a group, at most its members; 0: as many. Fewer are kept where disks are too full",
    default: "0",
    set: |config, text| {
        config.ring_shards = member_count(text, 0)?;
        Ok(())
    },
    show: |config| config.ring_shards.to_string(),
};

pub(super) const RING_ARITHMETIC: LabKey = LabKey {
    name: "ring_arithmetic",
    values: "cpu, gpu",
    help: "Who multiplies for the ring, to make shards and to bring back what is lost: cpu, gpu (where there is one; blocks of 4 MiB)",
    default: "cpu",
    set: |config, text| word(&mut config.ring_arithmetic, RING_ARITHMETICS, text),
    show: |config| word_of(config.ring_arithmetic, RING_ARITHMETICS).into(),
};

/// A number of members or shards.
fn member_count(text: &str, least: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=128).contains(number));
    number.ok_or_else(|| format!("it is a number from {least} to 128"))
}
