//! A topology as bytes: stored with a checkpoint and on every node.

use super::{RANKS_MAX, Shape, Topology};
use crate::error::Result;
use crate::frame::{FRAME_BYTES, Sort};

const BODY_BYTES_MAX: usize = 5 * RANKS_MAX + 64;

/// Longest encoded topology.
pub const TOPOLOGY_BYTES_MAX: usize = BODY_BYTES_MAX + FRAME_BYTES;

const TOPOLOGY: Sort =
    Sort { mark: *b"SFRING\0\0", what: "topology", body_bytes_max: BODY_BYTES_MAX };

#[derive(serde::Serialize, serde::Deserialize)]
struct Fields {
    shape: Shape,
    node_of: Vec<u32>,
}

impl Topology {
    /// The bytes to store.
    pub fn encode(&self) -> Vec<u8> {
        let node_of = self.seats.iter().map(|seat| seat.node as u32).collect();
        TOPOLOGY.seal_fields(&Fields { shape: self.shape, node_of })
    }

    /// Reads stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let fields: Fields = TOPOLOGY.open_fields(bytes)?;
        Self::new(&fields.node_of, fields.shape)
            .map_err(|_| TOPOLOGY.corrupt("no job has such nodes"))
    }
}
