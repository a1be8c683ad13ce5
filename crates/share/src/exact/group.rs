//! Grouping: which of the hashes that a home received are equal.
//!
//! Data: one message of hashes from each rank -> [`Groups`] -> [`Shared`]: the groups of several
//! holders, each with its members.
//!
//! The table has a tag of 32 bits beside each group's number: hashes are compared only where they
//! are almost surely equal, and a hash that nobody else has costs one look at the table.
//!
//! Invariants:
//! - Groups are numbered in the order in which they are first seen; every list made from them is
//!   in that order. Two ranks that are told of the same groups see them in the same order.
//! - The members of a group are in order of rank, each rank at most once.

use standfast_comm::{Error, Result};

/// Equal hashes.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Who came first, and where the hash is in that message.
    pub(super) source: u32,
    pub(super) position: u32,
    /// Who came last.
    last: u32,
    pub(super) holders: u32,
}

/// Which hash of which message belongs to which group.
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    /// Group of each hash, message by message.
    of: Vec<u32>,
    /// Where each message starts in it; one more at the end.
    starts: Vec<usize>,
}

impl Groups {
    /// Groups the hashes that `rank` received.
    pub(super) fn find(messages: &[Vec<u8>], hash_bytes: usize, rank: usize) -> Result<Self> {
        match hash_bytes {
            16 => Self::find_by::<16>(messages, rank),
            20 => Self::find_by::<20>(messages, rank),
            32 => Self::find_by::<32>(messages, rank),
            other => unreachable!("no hash has {other} bytes"),
        }
    }

    fn find_by<const N: usize>(messages: &[Vec<u8>], rank: usize) -> Result<Self> {
        let refuse = |from, why| Error::Message { rank, from, why };
        let mut lists: Vec<&[[u8; N]]> = Vec::with_capacity(messages.len());
        for (from, message) in messages.iter().enumerate() {
            let (hashes, rest) = message.as_chunks::<N>();
            if !rest.is_empty() {
                return Err(refuse(from, "its hashes have another length"));
            }
            lists.push(hashes);
        }
        let total: usize = lists.iter().map(|hashes| hashes.len()).sum();
        if u32::try_from(total).is_err() {
            return Err(refuse(rank, "more hashes than a home can number"));
        }
        let mut table = Table::new(total);
        let mut found = Self {
            groups: Vec::with_capacity(total),
            of: Vec::with_capacity(total),
            starts: Vec::with_capacity(messages.len() + 1),
        };
        for (source, hashes) in lists.iter().enumerate() {
            found.starts.push(found.of.len());
            for (position, hash) in hashes.iter().enumerate() {
                let next = found.groups.len() as u32;
                let number = table.find_or_insert(hash, next, |group| {
                    let group = found.groups[group as usize];
                    lists[group.source as usize][group.position as usize] == *hash
                });
                found.of.push(number);
                let source = source as u32;
                if number == next {
                    let position = position as u32;
                    found.groups.push(Group { source, position, last: source, holders: 1 });
                    continue;
                }
                let group = &mut found.groups[number as usize];
                if group.last == source {
                    return Err(refuse(source as usize, "it has a hash twice"));
                }
                group.last = source;
                group.holders += 1;
            }
        }
        found.starts.push(found.of.len());
        Ok(found)
    }

    /// Groups of the hashes of one message, in its order.
    pub(super) fn of(&self, source: usize) -> &[u32] {
        &self.of[self.starts[source]..self.starts[source + 1]]
    }

    /// How many messages there were.
    pub(super) fn sources(&self) -> usize {
        self.starts.len() - 1
    }
}

/// Group numbers by hash; open addressing, at most half full.
struct Table {
    /// Tag above, number + 1 below; 0 is free.
    slots: Vec<u64>,
    shift: u32,
}

impl Table {
    fn new(entries: usize) -> Self {
        let slots = (2 * entries).next_power_of_two().max(2);
        Self { slots: vec![0; slots], shift: 64 - slots.trailing_zeros() }
    }

    fn find_or_insert(&mut self, hash: &[u8], next: u32, same: impl Fn(u32) -> bool) -> u32 {
        let key = u64::from_le_bytes(hash[..8].try_into().expect("eight bytes"));
        let tag = key << 32;
        let mut at = (key >> self.shift) as usize;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.slots[at] = tag | u64::from(next + 1);
                return next;
            }
            if slot & !0xffff_ffff == tag && same(slot as u32 - 1) {
                return slot as u32 - 1;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

/// Where a hash stood in which message.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) rank: u32,
    pub(super) position: u32,
}

/// Groups of several holders.
#[derive(Default)]
pub(super) struct Shared {
    /// Where the members of each group start; one more at the end.
    starts: Vec<usize>,
    members: Vec<Member>,
}

impl Shared {
    /// Collects the groups that have several holders and are `wanted`.
    pub(super) fn collect(groups: &Groups, wanted: impl Fn(u32) -> bool) -> Self {
        const NOT: u32 = u32::MAX;
        let mut number_of = vec![NOT; groups.groups.len()];
        let mut starts = vec![0];
        let mut end = 0;
        for (group, number) in groups.groups.iter().zip(0u32..) {
            if group.holders > 1 && wanted(number) {
                number_of[number as usize] = starts.len() as u32 - 1;
                end += group.holders as usize;
                starts.push(end);
            }
        }
        if end == 0 {
            return Self { starts, members: Vec::new() };
        }
        let mut next = starts.clone();
        let mut members = vec![Member { rank: 0, position: 0 }; end];
        for source in 0..groups.sources() {
            for (group, position) in groups.of(source).iter().zip(0u32..) {
                let number = number_of[*group as usize];
                if number != NOT {
                    let at = &mut next[number as usize];
                    members[*at] = Member { rank: source as u32, position };
                    *at += 1;
                }
            }
        }
        Self { starts, members }
    }

    /// How many groups.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Members of each group, in order of rank.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Member]> {
        self.starts.windows(2).map(|ends| &self.members[ends[0]..ends[1]])
    }
}

#[cfg(test)]
mod tests;
