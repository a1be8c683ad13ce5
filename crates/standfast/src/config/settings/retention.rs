//! Which checkpoints stay: `all`, or any of `8`, `200GiB`, `every 10`.

use std::fmt;
use std::str::FromStr;

use crate::config::size::ByteSize;
use crate::config::text::number;

/// Which checkpoints stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest; `None`: all.
    pub newest: Option<u32>,
    /// As many as fit into so much space.
    pub bytes: Option<ByteSize>,
    /// Of so many checkpoints one stays permanently.
    pub every: Option<u64>,
}

impl Retention {
    /// Nothing is removed.
    pub const ALL: Self = Self { newest: None, bytes: None, every: None };
}

impl From<u32> for Retention {
    /// So many of the newest; 0 is refused when the job opens.
    fn from(newest: u32) -> Self {
        Self { newest: Some(newest), ..Self::ALL }
    }
}

impl FromStr for Retention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut read = Self::ALL;
        let mut counts = 0;
        for part in text.split(',').map(str::trim) {
            let twice = match part.strip_prefix("every ") {
                Some(every) => read.every.replace(number(every.trim(), 1, u64::MAX)?).is_some(),
                None if part == "all" || part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    counts += 1;
                    read.newest = if part == "all" { None } else { Some(count(part)?) };
                    counts > 1
                }
                None => read.bytes.replace(size(part)?).is_some(),
            };
            if twice {
                return Err(format!("{text:?} says the same twice"));
            }
        }
        Ok(read)
    }
}

fn count(text: &str) -> Result<u32, String> {
    number(text, 1, u32::MAX).map_err(|why| format!("{why}, or all"))
}

fn size(text: &str) -> Result<ByteSize, String> {
    let size: Option<ByteSize> = text.parse().ok().filter(|size: &ByteSize| size.0 > 0);
    size.ok_or_else(|| {
        format!("{text:?} is none of all, a number, a size such as 200GiB, or every K; with commas between them")
    })
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.newest.map(|newest| newest.to_string()),
            self.bytes.map(|bytes| bytes.to_string()),
            self.every.map(|every| format!("every {every}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "all" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests;
