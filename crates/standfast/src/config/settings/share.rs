//! Who else may read the store, and whose files are read: `private`, `group` or a group's name, and
//! `from USER` as often as needed.

use std::fmt;
use std::str::FromStr;

use standfast_sys::trust::{self, Trust};

const PRIVATE: &str = "private";
const GROUP: &str = "group";

/// Who else may read the store, and whose files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// The group that may read it: its name, its number, or `group` for this user's own.
    pub group: Option<String>,
    /// Users whose files are read, by name or number.
    pub from: Vec<String>,
}

impl Share {
    /// What it means on this machine.
    #[doc(hidden)]
    pub fn trust(&self) -> Result<Trust, String> {
        let group = self.group.as_deref().map(find_group).transpose()?;
        let user = |name: &String| {
            trust::uid_of(name).ok_or_else(|| format!("share: there is no user {name:?} here"))
        };
        Ok(Trust { group, users: self.from.iter().map(user).collect::<Result<_, _>>()? })
    }
}

fn find_group(name: &str) -> Result<u32, String> {
    if name == GROUP {
        return Ok(rustix::process::getegid().as_raw());
    }
    let gid = trust::gid_of(name).ok_or_else(|| {
        format!("share: there is no group {name:?} here; use private, group or a group's name")
    })?;
    match trust::is_in_group(gid) {
        true => Ok(gid),
        false => Err(format!("share = {name}: this user is not in that group")),
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is none of private, group or a group's name, with any number of \", from USER\""
            )
        };
        let is_name = |name: &str| {
            !name.is_empty() && !name.chars().any(|one| one.is_whitespace() || one.is_control())
        };
        let (mut share, mut groups) = (Self::default(), 0);
        for part in text.split(',').map(str::trim) {
            match part.strip_prefix("from ").map(str::trim) {
                Some(user) if is_name(user) => share.from.push(user.into()),
                None if is_name(part) && part != "from" => {
                    groups += 1;
                    share.group = Some(part.to_owned()).filter(|group| group != PRIVATE);
                }
                _ => return Err(wrong()),
            }
        }
        if groups > 1 { Err(format!("{text:?} names two groups")) } else { Ok(share) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.group.as_deref().unwrap_or(PRIVATE))?;
        self.from.iter().try_for_each(|user| write!(f, ", from {user}"))
    }
}

#[cfg(test)]
mod tests;
