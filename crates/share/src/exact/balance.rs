//! Balancing: how many pages of each holder set every holder stores.
//!
//! Data: what each rank must store anyway, and [`Classes`] -> pages for each holder of each class,
//! such that the most loaded rank has as little as the holder sets allow. Pure.
//!
//! Each class is poured over its holders like water: into the least loaded first. Classes that
//! share holders see each other's water, so they are poured again until nothing gets more level.
//! What is uneven by a few pages then is levelled along chains of classes, page by page: a rank
//! hands pages to a holder of the same class, that one hands others on. Where no chain leads from
//! the most loaded rank to one with two pages less, no assignment is better.
//!
//! The work is bounded: with very many classes it ends earlier, and the law of large numbers has
//! to do the rest.

use super::holders::Classes;

/// Holders that may be visited while pouring, and again while levelling.
const VISITS_MAX: usize = 1 << 18;
const SWEEPS_MAX: usize = 32;

/// Divides each class among its holders. `loads` is what each rank has already; ties go to
/// `first`, then to the ranks after it. Returns pages for each entry of `classes.holders`.
pub(super) fn balance(loads: Vec<f64>, classes: &Classes, first: usize) -> Vec<u64> {
    let given = vec![0; classes.holders.len()];
    let mut state = State { loads, given, classes, first };
    let mut order: Vec<usize> = (0..classes.len()).collect();
    // Who has least choice goes first.
    order.sort_by_key(|class| classes.range(*class).len());
    let visits = classes.holders.len().max(1);
    let mut unevenness = f64::INFINITY;
    for _ in 0..(VISITS_MAX / visits).clamp(1, SWEEPS_MAX) {
        order.iter().for_each(|class| state.pour(*class));
        let now: f64 = state.loads.iter().map(|load| load * load).sum();
        if now >= unevenness * (1.0 - 1e-9) {
            break;
        }
        unevenness = now;
    }
    let holdings = Holdings::new(classes, state.loads.len());
    for _ in 0..VISITS_MAX / visits {
        if !state.level(&holdings) {
            break;
        }
    }
    state.given
}

struct State<'a> {
    loads: Vec<f64>,
    given: Vec<u64>,
    classes: &'a Classes,
    first: usize,
}

impl State<'_> {
    /// Takes a class back from its holders and pours it again.
    fn pour(&mut self, class: usize) {
        let range = self.classes.range(class);
        let pages = self.classes.counts[class];
        let ranks = self.loads.len();
        let mut holders: Vec<(f64, usize, usize)> = range
            .map(|at| {
                let rank = self.classes.holders[at] as usize;
                self.loads[rank] -= self.given[at] as f64;
                self.given[at] = 0;
                (self.loads[rank], (rank + ranks - self.first) % ranks, at)
            })
            .collect();
        holders.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (level, under) = water_level(&holders, pages);
        let mut rest = pages;
        for (load, _, at) in &holders[..under] {
            // Rounding must not let a page more flow than there is.
            self.given[*at] = ((level - load + 1e-9).max(0.0) as u64).min(rest);
            rest -= self.given[*at];
        }
        let mut lowest = holders[..under].to_vec();
        lowest.sort_by(|a, b| {
            let filled = |holder: &(f64, usize, usize)| holder.0 + self.given[holder.2] as f64;
            filled(a).total_cmp(&filled(b)).then(a.1.cmp(&b.1))
        });
        // Less than a page for each holder, unless loads are too large for exact numbers.
        let (each, over) = (rest / under as u64, (rest % under as u64) as usize);
        for (place, (_, _, at)) in lowest.iter().enumerate() {
            self.given[*at] += each + u64::from(place < over);
        }
        for (_, _, at) in &holders {
            self.loads[self.classes.holders[*at] as usize] += self.given[*at] as f64;
        }
    }

    /// Moves pages away from the most loaded rank, along a chain of classes, to the least loaded
    /// one that can be reached; false if no chain makes it better.
    fn level(&mut self, holdings: &Holdings) -> bool {
        let top = (0..self.loads.len()).max_by(|a, b| self.loads[*a].total_cmp(&self.loads[*b]));
        let Some(top) = top else { return false };
        let came = self.reach(top, holdings);
        let reached = (0..self.loads.len()).filter(|rank| came[*rank].is_some());
        let lowest = reached.min_by(|a, b| self.loads[*a].total_cmp(&self.loads[*b]));
        let Some(lowest) = lowest else { return false };
        let gap = self.loads[top] - self.loads[lowest];
        if gap <= 1.0 + 1e-6 {
            return false;
        }
        let mut chain = Vec::new();
        let mut rank = lowest;
        while let Some((from, to)) = came[rank] {
            chain.push((from, to));
            rank = self.classes.holders[from] as usize;
        }
        let can = chain.iter().map(|(from, _)| self.given[*from]).min().unwrap_or(0);
        let pages = can.min(((gap / 2.0) as u64).max(1));
        for (from, to) in chain {
            self.given[from] -= pages;
            self.given[to] += pages;
        }
        self.loads[top] -= pages as f64;
        self.loads[lowest] += pages as f64;
        true
    }

    /// From `top`, every rank that pages can be handed on to, and from which holding to which of
    /// a class the last step goes; breadth first.
    fn reach(&self, top: usize, holdings: &Holdings) -> Vec<Option<(usize, usize)>> {
        let mut came = vec![None; self.loads.len()];
        let mut seen = vec![false; self.classes.len()];
        let mut queue = std::collections::VecDeque::from([top]);
        while let Some(rank) = queue.pop_front() {
            for (class, from) in &holdings.of[rank] {
                if self.given[*from] == 0 || std::mem::replace(&mut seen[*class], true) {
                    continue;
                }
                for to in self.classes.range(*class) {
                    let next = self.classes.holders[to] as usize;
                    if next != top && came[next].is_none() {
                        came[next] = Some((*from, to));
                        queue.push_back(next);
                    }
                }
            }
        }
        came
    }
}

/// How high the water stands when the pages are poured over holders in ascending order of load,
/// and how many holders are under it.
fn water_level(holders: &[(f64, usize, usize)], pages: u64) -> (f64, usize) {
    let mut below = 0.0;
    for (under, (load, _, _)) in holders.iter().enumerate() {
        let level = (pages as f64 + below) / under.max(1) as f64;
        if under > 0 && level <= *load {
            return (level, under);
        }
        below += load;
    }
    ((pages as f64 + below) / holders.len().max(1) as f64, holders.len())
}

/// The classes that each rank holds pages of, with its place among their holders.
struct Holdings {
    of: Vec<Vec<(usize, usize)>>,
}

impl Holdings {
    fn new(classes: &Classes, ranks: usize) -> Self {
        let mut of = vec![Vec::new(); ranks];
        for class in 0..classes.len() {
            for at in classes.range(class) {
                of[classes.holders[at] as usize].push((class, at));
            }
        }
        Self { of }
    }
}

#[cfg(test)]
mod tests;
