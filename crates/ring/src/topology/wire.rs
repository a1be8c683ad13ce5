//! A topology as bytes: stored with a checkpoint and on every node.

use super::{NODE_NAME_BYTES_MAX, RANKS_MAX, Shape, Topology};
use crate::error::Result;
use crate::frame::{FRAME_BYTES, Sort};

/// A number for every rank, and a name for every node.
const BODY_BYTES_MAX: usize = (5 + NODE_NAME_BYTES_MAX + 2) * RANKS_MAX + 64;

/// Longest encoded topology.
pub const TOPOLOGY_BYTES_MAX: usize = BODY_BYTES_MAX + FRAME_BYTES;

const TOPOLOGY: Sort =
    Sort { mark: *b"SFRING\0\0", what: "topology", body_bytes_max: BODY_BYTES_MAX };

#[derive(serde::Serialize, serde::Deserialize)]
struct Fields {
    shape: Shape,
    node_of: Vec<u32>,
    /// Of every node, or none.
    names: Vec<String>,
}

impl Topology {
    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        let node_of = self.seats.iter().map(|seat| seat.node as u32).collect();
        TOPOLOGY.seal_fields(&Fields { shape: self.shape, node_of, names: self.names.clone() })
    }

    /// Reads stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let fields: Fields = TOPOLOGY.open_fields(bytes)?;
        Self::new(&fields.node_of, fields.shape)
            .and_then(|topology| topology.with_names(fields.names))
            .map_err(|_| TOPOLOGY.corrupt("no job has such nodes"))
    }
}
