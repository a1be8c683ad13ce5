//! Every order of events of a commit, against what must hold at each of them.
//!
//! A simulated job: ranks on nodes, each with its [`Publishing`]. A run is a list of choices: who goes
//! next, what fails, who dies, who loses the others in which talk. [`every`] tries all lists.

use super::*;

/// Answers questions from a list; asked beyond its end it takes the first answer.
#[derive(Default)]
struct Choices {
    /// The answer, and how many there are.
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn of(&mut self, answers: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, answers));
        }
        self.at += 1;
        self.taken[self.at - 1].0
    }

    fn happens(&mut self) -> bool {
        self.of(2) == 1
    }

    /// The next list; false after the last.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((answer, answers)) = self.taken.pop() {
            if answer + 1 < answers {
                self.taken.push((answer + 1, answers));
                return true;
            }
        }
        false
    }
}

/// Runs a job with every list of choices; returns how many there are.
fn every(run: impl Fn(&mut Choices)) -> usize {
    let mut choices = Choices::default();
    let mut runs = 0;
    loop {
        run(&mut choices);
        runs += 1;
        if !choices.advance() {
            return runs;
        }
    }
}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Own(usize),
    Lost,
    Doubt,
}

struct Member {
    publishing: Publishing<Why>,
    node: usize,
    next: Option<Do<Why>>,
    end: Option<Result<(), Why>>,
    /// Its segments and its image, or those of all ranks that an agent writes for.
    segments: bool,
    image: bool,
    /// Whether it cannot reach the others any more.
    lost: bool,
    /// Whether it or another has lost the others: then ends may differ.
    is_out: bool,
}

/// A job and its stores.
struct World<'c> {
    choices: &'c mut Choices,
    members: Vec<Member>,
    /// By node.
    pledges: Vec<bool>,
    /// Nodes where a pledge could not be removed.
    stayed: Vec<bool>,
    /// Whether the first store has the manifest.
    manifest: bool,
    in_doubt: bool,
    /// Choices of things that end a member: so many are left.
    deaths: usize,
}

fn rank(first: bool, leads: bool, one_store: bool, pledged: bool) -> Role {
    Role::Rank { first, leads, one_store, pledged }
}

impl<'c> World<'c> {
    /// `pledged`: what all nodes have pledged before anything else happens.
    fn new(choices: &'c mut Choices, roles: &[(usize, Role)], pledged: bool) -> Self {
        let nodes = roles.iter().map(|(node, _)| node + 1).max().unwrap_or(0);
        let members = roles.iter().map(|(node, role)| {
            let (publishing, segments) = (Publishing::new(*role), pledged || !choices.happens());
            let (node, next, end, image) = (*node, None, None, false);
            let (lost, is_out) = (false, false);
            Member { publishing, node, next, end, segments, image, lost, is_out }
        });
        let members = members.collect();
        let (pledges, stayed, deaths) = (vec![pledged; nodes], vec![false; nodes], 1);
        let (manifest, in_doubt) = (false, false);
        let mut world = Self { choices, members, pledges, stayed, manifest, in_doubt, deaths };
        for at in 0..roles.len() {
            // The agent may have pledged, and be gone before it could say so.
            let unheard = world.members[at].publishing.is_pledged() && world.choices.happens();
            let is_well = world.members[at].segments && !unheard;
            world.go_on(at, Happened::Begun(if is_well { Ok(()) } else { Err(Why::Own(at)) }));
        }
        world
    }

    /// Takes steps until nobody can take one.
    fn run(&mut self) {
        loop {
            let is_local = |member: &Member| {
                member.next.as_ref().is_some_and(|next| !matches!(next, Do::Talk(_)))
            };
            let local: Vec<usize> =
                (0..self.members.len()).filter(|at| is_local(&self.members[*at])).collect();
            match local.as_slice() {
                [] if self.members.iter().all(|member| member.next.is_none()) => return,
                [] => self.talk(),
                // Only the order of removals and images matters; all of them are tried.
                local => {
                    let at = local[self.choices.of(local.len())];
                    self.step(at);
                }
            }
        }
    }

    fn may_die(&mut self) -> bool {
        let dies = self.deaths > 0 && self.choices.happens();
        self.deaths -= usize::from(dies);
        dies
    }

    /// One member does what needs nobody else.
    fn step(&mut self, at: usize) {
        if self.may_die() {
            self.members[at].next = None;
            self.members.iter_mut().for_each(|member| member.is_out = true);
            return;
        }
        let Some(next) = self.members[at].next.take() else { return };
        let happened = match next {
            Do::Talk(_) => unreachable!("the others are needed"),
            Do::StoreImages => self.store(at),
            Do::WriteManifest => self.write_manifest(),
            Do::Prune => {
                assert!(self.manifest);
                Happened::Pruned(Aftermath::default())
            }
            Do::Remove(files) => Happened::Removed(self.remove(at, files)),
            Do::Done(_) => unreachable!("it has ended"),
        };
        self.go_on(at, happened);
    }

    fn go_on(&mut self, at: usize, happened: Happened<Why>) {
        match self.members[at].publishing.next(happened) {
            Do::Done(end) => {
                assert!(end.is_err() || self.manifest || self.is_pledger(at));
                self.members[at].end = Some(end.map(drop));
            }
            next => self.members[at].next = Some(next),
        }
    }

    fn is_pledger(&self, at: usize) -> bool {
        self.members[at].publishing.role == Role::Pledger
    }

    fn is_redeemer(&self, at: usize) -> bool {
        matches!(self.members[at].publishing.role, Role::Redeemer { .. })
    }

    fn store(&mut self, at: usize) -> Happened<Why> {
        let all = self.members.iter().all(|member| member.segments);
        // Who has lost the others takes back what they may refer to: there will be no manifest.
        let excused = self.is_pledger(at) || self.members[at].is_out;
        assert!(all || excused, "an image refers to segments of all ranks");
        let fails = self.choices.happens();
        if fails {
            return Happened::Stored(Err(Why::Own(at)));
        }
        if self.is_pledger(at) {
            self.pledges[self.members[at].node] = true;
        } else {
            self.members[at].image = true;
        }
        Happened::Stored(Ok(()))
    }

    fn write_manifest(&mut self) -> Happened<Why> {
        let durable = |member: &Member| member.segments && member.image;
        assert!(self.members.iter().all(durable), "a manifest before what it names");
        let how = self.choices.of(4);
        self.manifest = how == 0 || how == 2;
        self.in_doubt = how >= 2;
        Happened::Manifest(match how {
            0 => Verdict::Committed(Aftermath::default()),
            1 => Verdict::Failed(Why::Own(0)),
            _ => Verdict::InDoubt(Why::Doubt),
        })
    }

    fn remove(&mut self, at: usize, files: Files) -> bool {
        let node = self.members[at].node;
        match files {
            Files::Pledge => {
                assert!(!self.members[at].lost, "the others may have pledged too");
                let stays = self.choices.happens();
                self.pledges[node] &= stays;
                self.stayed[node] |= stays;
                !stays
            }
            Files::Data => {
                assert!(!self.manifest, "files of a checkpoint that exists");
                assert!(!self.in_doubt, "files of a checkpoint that may exist");
                assert!(!self.pledges[node], "what a pledge names");
                (self.members[at].segments, self.members[at].image) = (false, false);
                true
            }
        }
    }

    /// All members do something together. One may lose the others, after it has done its part or
    /// before; who has ended is lost to all.
    fn talk(&mut self) {
        let gone = self.members.iter().any(|member| member.next.is_none());
        let own: Vec<Option<Talk<Why>>> = self
            .members
            .iter_mut()
            .map(|member| match member.next.take() {
                Some(Do::Talk(talk)) => Some(talk),
                _ => None,
            })
            .collect();
        let kinds: Vec<_> = own.iter().flatten().map(std::mem::discriminant).collect();
        assert!(kinds.iter().all(|kind| *kind == kinds[0]), "ranks at different steps: {own:?}");
        let lost = match gone {
            true => (0..own.len()).collect(),
            false if self.may_die() => {
                let at = self.choices.of(own.len() + 1);
                if at == own.len() { (0..own.len()).collect() } else { vec![at] }
            }
            false => vec![],
        };
        if !lost.is_empty() {
            self.members.iter_mut().for_each(|member| member.is_out = true);
        }
        let failed = own.iter().flatten().find_map(|talk| match talk {
            Talk::Parts(Err(why)) | Talk::Images(Err(why)) => Some(*why),
            _ => None,
        });
        let verdict = own.iter().flatten().find_map(|talk| match talk {
            Talk::Verdict(verdict) => verdict.clone(),
            _ => None,
        });
        let notes = matches!(own[0], Some(Talk::Spread)) && self.choices.happens();
        for (at, talk) in own.into_iter().enumerate() {
            let Some(talk) = talk else { continue };
            self.members[at].lost |= lost.contains(&at);
            let happened = match talk {
                _ if lost.contains(&at) => Happened::Lost(Why::Lost),
                Talk::Parts(own) => Happened::Told(own.and(failed.map_or(Ok(()), Err))),
                Talk::Images(own) if at == 0 || self.is_redeemer(at) => {
                    Happened::Images(own.and(failed.map_or(Ok(()), Err)))
                }
                Talk::Images(_) => Happened::Images(Ok(())),
                Talk::Verdict(_) => Happened::Heard(verdict.clone().unwrap()),
                Talk::Spread => Happened::Spread(notes.then(String::new).into_iter().collect()),
                Talk::Prune => {
                    assert!(self.manifest && !notes);
                    Happened::Pruned(Aftermath::default())
                }
            };
            self.go_on(at, happened);
        }
    }

    /// What must hold when nobody does anything any more.
    fn check(&self) {
        for member in &self.members {
            if self.manifest || self.in_doubt {
                assert!(member.segments && member.image, "a checkpoint lacks files");
            }
            if self.pledges[member.node] {
                assert!(member.segments, "a pledge names what is gone");
            }
            if member.is_out {
                continue;
            }
            let end = member.end.expect("nobody was lost");
            let others = self.members.iter().map(|other| other.end.map(|end| end.is_ok()));
            assert!(others.eq(vec![Some(end.is_ok()); self.members.len()]), "ranks disagree");
            if let Role::Rank { .. } | Role::Agent = member.publishing.role {
                assert_eq!(end.is_ok(), self.manifest && !self.in_doubt);
                if self.stayed[member.node] {
                    continue;
                }
                let kept = self.manifest || self.in_doubt;
                assert_eq!(member.segments || member.image, kept, "a failed one leaves nothing");
                let pledged = self.pledges[member.node];
                assert!(!pledged || self.in_doubt, "a pledge outlives its attempt");
            }
        }
    }
}

fn try_every(roles: &[(usize, Role)], pledged: bool) -> usize {
    every(|choices| {
        let mut world = World::new(choices, roles, pledged);
        world.run();
        world.check();
    })
}

#[test]
fn ranks_of_one_store() {
    let roles = [(0, rank(true, true, true, false)), (0, rank(false, false, true, false))];
    assert!(try_every(&roles, false) > 100);
    assert!(try_every(&roles[..1], false) > 10, "a rank alone");
}

#[test]
fn ranks_of_two_stores() {
    let roles = [(0, rank(true, true, false, false)), (1, rank(false, true, false, false))];
    assert!(try_every(&roles, false) > 100);
}

#[test]
fn ranks_whose_nodes_have_pledged() {
    let roles = [(0, rank(true, true, false, true)), (1, rank(false, true, false, true))];
    assert!(try_every(&roles, true) > 100);
    let three = [roles[0], roles[1], (1, rank(false, false, false, true))];
    assert!(try_every(&three, true) > 1000, "two ranks of one node");
}

#[test]
fn agents() {
    assert!(try_every(&[(0, Role::Agent)], false) >= 6);
    assert!(try_every(&[(0, Role::Pledger)], false) >= 3);
}

#[test]
fn who_redeems_leaves_what_fails_to_the_opening() {
    let roles = [(0, Role::Redeemer { first: true }), (1, Role::Redeemer { first: false })];
    let runs = every(|choices| {
        let mut world = World::new(choices, &roles, true);
        world.run();
        world.check();
        assert!(world.pledges.iter().all(|pledge| *pledge));
        assert!(world.members.iter().all(|member| member.segments));
    });
    assert!(runs > 50);
}

/// An attempt with a pledge: the last thing that is known decides what becomes of it.
#[test]
fn lost_keeps_a_pledge_and_failed_takes_it_back() {
    let pledged = rank(true, true, false, true);
    let mut publishing = Publishing::new(pledged);
    assert!(matches!(publishing.next(Happened::Begun(Ok(()))), Do::Talk(Talk::Parts(Ok(())))));
    assert!(matches!(publishing.next(Happened::Lost(Why::Lost)), Do::Done(Err(Why::Lost))));
    let mut publishing = Publishing::new(pledged);
    let next = publishing.next(Happened::Told(Err(Why::Own(1))));
    assert!(matches!(next, Do::Remove(Files::Pledge)));
    assert!(matches!(publishing.next(Happened::Removed(true)), Do::Remove(Files::Data)));
    assert!(matches!(publishing.next(Happened::Removed(true)), Do::Done(Err(Why::Own(1)))));
    // Nobody has pledged: nobody else can commit it.
    let mut publishing = Publishing::new(rank(true, true, true, false));
    let next = publishing.next(Happened::Lost(Why::Lost));
    assert!(matches!(next, Do::Remove(Files::Data)));
}
