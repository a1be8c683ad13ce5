//! Sets of lost nodes: all there are, or drawn.

use standfast_testkit::command::Random;

/// Most sets that are all looked at.
const ALL_MAX: f64 = 200_000.0;

/// Which nodes go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Nodes of the job.
    pub(super) nodes: usize,
    /// Units that are lost: single nodes, or modules.
    pub(super) lost: usize,
    /// Neighbouring nodes of a module.
    pub(super) module: usize,
}

impl Loss {
    fn units(&self) -> usize {
        self.nodes.div_ceil(self.module)
    }

    /// Whether all sets are looked at.
    pub(super) fn is_exhaustive(&self) -> bool {
        let (n, k) = (self.units() as f64, self.lost as f64);
        let count = (0..self.lost).fold(1.0, |count, i| count * (n - i as f64) / (k - i as f64));
        count <= ALL_MAX
    }

    /// Calls with every set, or with `samples` of them drawn from a seed.
    pub(super) fn each(&self, samples: usize, seed: u64, mut call: impl FnMut(&[usize])) {
        if self.lost > self.units() {
            return;
        }
        if self.is_exhaustive() {
            let mut set: Vec<usize> = (0..self.lost).collect();
            loop {
                call(&self.nodes_of(&set));
                if !next(&mut set, self.units()) {
                    return;
                }
            }
        }
        let mut random = Random::new(seed);
        for _ in 0..samples {
            let set = draw(&mut random, self.units(), self.lost);
            call(&self.nodes_of(&set));
        }
    }

    fn nodes_of(&self, units: &[usize]) -> Vec<usize> {
        let of = |unit: &usize| unit * self.module..((unit + 1) * self.module).min(self.nodes);
        units.iter().flat_map(of).collect()
    }
}

/// The next set in order; false after the last.
fn next(set: &mut [usize], n: usize) -> bool {
    let k = set.len();
    let Some(at) = (0..k).rev().find(|at| set[*at] < n - k + at) else { return false };
    set[at] += 1;
    for later in at + 1..k {
        set[later] = set[later - 1] + 1;
    }
    true
}

/// So many different numbers below `n`, in order (Floyd's way).
fn draw(random: &mut Random, n: usize, count: usize) -> Vec<usize> {
    let mut set = std::collections::BTreeSet::new();
    for top in n - count..n {
        let at = (random.next_u64() % (top as u64 + 1)) as usize;
        if !set.insert(at) {
            set.insert(top);
        }
    }
    set.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_comes_once_and_drawn_ones_have_the_right_size() {
        let loss = Loss { nodes: 6, lost: 3, module: 1 };
        let mut all = std::collections::BTreeSet::new();
        loss.each(0, 1, |set| assert!(all.insert(set.to_vec())));
        assert_eq!(all.len(), 20);
        let many = Loss { nodes: 1000, lost: 9, module: 1 };
        assert!(!many.is_exhaustive());
        let mut sets = 0;
        many.each(50, 7, |set| {
            sets += 1;
            assert!(set.len() == 9 && set.windows(2).all(|two| two[0] < two[1]) && set[8] < 1000);
        });
        assert_eq!(sets, 50);
    }

    #[test]
    fn modules_go_as_a_whole() {
        let mut sets = Vec::new();
        Loss { nodes: 8, lost: 1, module: 3 }.each(0, 1, |set| sets.push(set.to_vec()));
        assert_eq!(sets, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]);
    }
}
