//! Which ranks share a node, asked from the job itself.

use std::collections::HashMap;

use standfast_comm::{Comm, collective};

use crate::error::{Error, Result};

/// Longest name of a node.
pub const NODE_NAME_BYTES_MAX: usize = 255;

/// The node of every rank, numbered in the order of their first ranks. Collective; `name` is the
/// host, or whatever else fails as one.
pub fn discover(comm: &dyn Comm, name: &str) -> Result<Vec<u32>> {
    // Told even if it is too long: the others wait for it, and all refuse it together.
    let told = &name.as_bytes()[..name.len().min(NODE_NAME_BYTES_MAX + 1)];
    let names = collective::all_gather(comm, told)?;
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let mut node_of = Vec::with_capacity(names.len());
    for (from, name) in names.iter().enumerate() {
        if name.is_empty() || name.len() > NODE_NAME_BYTES_MAX {
            return Err(Error::Message { from, why: "a node's name has 1 to 255 bytes" });
        }
        let next = numbers.len() as u32;
        node_of.push(*numbers.entry(name).or_insert(next));
    }
    Ok(node_of)
}
