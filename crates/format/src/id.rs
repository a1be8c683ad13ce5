//! Distinct types for distinct identities, so that a rank is never taken for a version.
//!
//! Random ids come from the caller: this crate does no I/O, and drawing randomness is I/O.

use std::fmt;

/// One consistent checkpoint over all ranks of a job; the number a user sees. Starts at 1.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Version(pub u64);

/// One process of a parallel job, numbered from 0.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Rank(pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! random_id {
    ($(#[$doc:meta])* $id:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $id(pub [u8; $bytes]);

        impl $id {
            /// The id with this lower-case hexadecimal text.
            pub fn from_hex(text: &str) -> Option<Self> {
                let mut bytes = [0; $bytes];
                parse_hex(text, &mut bytes)?;
                Some(Self(bytes))
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, f)
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, f)
            }
        }
    };
}

random_id!(
    /// One segment; never used twice, so a sealed segment never changes under its name.
    SegmentId,
    16
);
random_id!(
    /// One job's store; every file of the store carries it, so a file from another store is found.
    JobId,
    16
);
random_id!(
    /// One attempt to make a checkpoint; keeps the files of a failed attempt apart from a later
    /// one with the same version.
    AttemptId,
    8
);
random_id!(
    /// Tells the keys of encrypted stores apart, and nothing else about them.
    Fingerprint,
    8
);
random_id!(
    /// BLAKE3 digest of metadata: the links of the chain manifest -> image -> index -> page.
    Digest,
    32
);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn parse_hex(text: &str, bytes: &mut [u8]) -> Option<()> {
    let digits = text.as_bytes();
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (nibble(pair[0])? << 4) | nibble(pair[1])?;
    }
    Some(())
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
