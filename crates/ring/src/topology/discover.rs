//! Which ranks share a node, asked from the job itself.

use std::collections::HashMap;

use standfast_comm::{Comm, collective};

use crate::error::{Error, Result};

/// Longest name of a node.
pub const NODE_NAME_BYTES_MAX: usize = 255;

/// The nodes of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// The node of every rank, numbered in the order of their first ranks.
    pub of: Vec<u32>,
    /// Their names.
    pub names: Vec<String>,
}

/// Asks all ranks for their nodes. Collective; `name` is the host, or whatever else fails as one.
pub fn discover(comm: &dyn Comm, name: &str) -> Result<Nodes> {
    // Told even if it is too long: the others wait for it, and all refuse it together.
    let told = &name.as_bytes()[..name.len().min(NODE_NAME_BYTES_MAX + 1)];
    let names = collective::all_gather(comm, told)?;
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let mut nodes = Nodes::default();
    for (from, name) in names.iter().enumerate() {
        if name.is_empty() || name.len() > NODE_NAME_BYTES_MAX {
            return Err(Error::Message { from, why: "a node's name has 1 to 255 bytes" });
        }
        let next = numbers.len() as u32;
        let number = *numbers.entry(name).or_insert(next);
        if number == next {
            let text = String::from_utf8(name.clone());
            let why = "a node's name is no text";
            nodes.names.push(text.map_err(|_| Error::Message { from, why })?);
        }
        nodes.of.push(number);
    }
    Ok(nodes)
}
