//! Random trees, limits, bios and changes at any moment, against what the limits promise.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const GROUPS: usize = 7;
/// Bios of a group that may wait.
const ROOM: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Ask {
        group: usize,
        write: bool,
        bytes: u64,
    },
    Charge {
        group: usize,
        write: bool,
        bytes: u64,
    },
    Set {
        group: usize,
        write: bool,
        rates: Rates,
    },
    SetBurst {
        group: usize,
        write: bool,
        ns: u64,
    },
    Reweigh {
        group: usize,
        weight: u32,
    },
    /// The group goes and takes its limits with it; another takes its slot, if it is free.
    Remove {
        group: usize,
    },
    /// Whose turn it is finds no slot.
    NoSlot,
    Pass {
        ns: u64,
    },
}

fn rates() -> impl Strategy<Value = Rates> {
    let rate = |max: u64| prop_oneof![2 => Just(0), 1 => Just(1), 3 => 1..=max];
    (rate(100_000_000), rate(1_000_000)).prop_map(|(bytes_per_s, ios_per_s)| Rates { bytes_per_s, ios_per_s })
}

fn step() -> impl Strategy<Value = Step> {
    let group = || 0..GROUPS;
    let bytes = || prop_oneof![Just(512), Just(4096), 1u64..1 << 25];
    prop_oneof![
        12 => (group(), any::<bool>(), bytes()).prop_map(|(group, write, bytes)| Step::Ask { group, write, bytes }),
        1 => (group(), any::<bool>(), bytes()).prop_map(|(group, write, bytes)| Step::Charge { group, write, bytes }),
        3 => (group(), any::<bool>(), rates()).prop_map(|(group, write, rates)| Step::Set { group, write, rates }),
        1 => (group(), any::<bool>(), 0u64..3 * SECOND).prop_map(|(group, write, ns)| Step::SetBurst { group, write, ns }),
        1 => Just(Step::NoSlot),
        1 => (1..GROUPS, 1u32..1000).prop_map(|(group, weight)| Step::Reweigh { group, weight }),
        1 => (1..GROUPS).prop_map(|group| Step::Remove { group }),
        8 => prop_oneof![Just(1), 1u64..2_000_000, 1u64..3 * SECOND].prop_map(|ns| Step::Pass { ns }),
    ]
}

/// A limit as its promise has it: everything that was charged since it or its burst was set.
#[derive(Clone)]
struct Ledger {
    rate: u64,
    burst_ns: u64,
    /// When, how much, and whether it waited its turn (what may not wait is charged, but not bounded).
    charged: Vec<(u64, u64, bool)>,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger { rate: 0, burst_ns: BURST_NS, charged: Vec::new() }
    }
}

impl Ledger {
    /// In every window that ends with a bio which asked: rate x (window + burst) and two bios, plus what never asked.
    fn check(&self) {
        let Some(&(end, last, true)) = self.charged.last() else { return };
        if self.rate == 0 {
            return;
        }
        let (mut sum, mut largest) = (0u128, u128::from(last));
        for &(start, units, asked) in self.charged.iter().rev() {
            if asked {
                sum += u128::from(units);
                largest = largest.max(u128::from(units));
            }
            let window = u128::from(end - start + self.burst_ns);
            let allowed = u128::from(self.rate) * window / u128::from(SECOND) + 1 + 2 * largest;
            assert!(sum <= allowed, "{sum} in {window} ns at {}, allowed {allowed}", self.rate);
        }
    }
}

/// The promise, kept naively.
struct World {
    limits: Limits,
    removed: [bool; GROUPS],
    parent: [usize; GROUPS],
    ledgers: [[[Ledger; 2]; 2]; GROUPS],
    /// Who waits where, in order: (name, bytes).
    lines: [[VecDeque<(u64, u64)>; 2]; GROUPS],
    now: u64,
}

impl World {
    fn new(parents: &[usize]) -> World {
        let parent = core::array::from_fn(|g| if g == 0 { 0 } else { parents[g - 1] % g });
        let groups: Vec<_> = parent[1..].iter().map(|parent| (*parent, 100)).collect();
        World {
            limits: on(table(&groups), ROOM),
            removed: [false; GROUPS],
            parent,
            ledgers: Default::default(),
            lines: Default::default(),
            now: 0,
        }
    }

    fn way(&self, group: usize) -> Vec<usize> {
        let mut way = std::vec![group];
        while let Some(&at) = way.last().filter(|g| **g != 0) {
            way.push(self.parent[at]);
        }
        way
    }

    fn charged(&mut self, group: usize, at: usize, bytes: u64, asked: bool) {
        for above in self.way(group) {
            for (ledger, units) in self.ledgers[above][at].iter_mut().zip([bytes, 1]) {
                ledger.charged.push((self.now, units, asked));
                ledger.check();
            }
        }
    }

    fn apply(&mut self, step: Step) {
        let now = self.now;
        let of = match step {
            Step::Ask { group, .. } | Step::Charge { group, .. } | Step::Set { group, .. } => group,
            Step::SetBurst { group, .. } => group,
            Step::Reweigh { group, .. } | Step::Remove { group } => group,
            Step::NoSlot | Step::Pass { .. } => 0,
        };
        if self.removed[of] {
            return self.drain();
        }
        match step {
            Step::Ask { group: g, write, bytes } => {
                let at = usize::from(write);
                match self.limits.ask(group(g), direction(write), bytes, now) {
                    Asked::Go => {
                        assert!(self.lines[g][at].is_empty(), "nobody passes those who wait");
                        self.charged(g, at, bytes, true);
                    }
                    Asked::Wait(name) => {
                        self.lines[g][at].push_back((name, bytes));
                        self.limits.groups.hold(group(g));
                    }
                    Asked::Full => assert!(self.waiting() >= ROOM),
                }
            }
            Step::Charge { group: g, write, bytes } => {
                self.limits.charge(group(g), direction(write), bytes, now);
                self.charged(g, usize::from(write), bytes, false);
            }
            Step::Set { group: g, write, rates } => {
                self.limits.set(group(g), direction(write), rates, now);
                let ledgers = &mut self.ledgers[g][usize::from(write)];
                for (ledger, rate) in ledgers.iter_mut().zip([rates.bytes_per_s, rates.ios_per_s]) {
                    (ledger.rate, ledger.charged) = (rate, Vec::new());
                }
            }
            Step::SetBurst { group: g, write, ns } => {
                let Limits { groups, limiter, .. } = &mut self.limits;
                limiter.set_burst(groups, group(g), direction(write), ns);
                for ledger in &mut self.ledgers[g][usize::from(write)] {
                    (ledger.burst_ns, ledger.charged) = (ns, Vec::new());
                }
            }
            Step::Reweigh { group: g, weight } => {
                self.limits.groups.set_params(group(g), GroupParams::weight(weight)).expect("it is there");
            }
            Step::Remove { group: g } => {
                self.limits.remove(group(g), now);
                self.removed[g] = true;
                self.ledgers[g] = Default::default();
                // Once nothing is left of one that was removed, its slot is that of a new group elsewhere.
                let parent = self.limits.groups.known(group(now as usize % GROUPS));
                if let Ok(new) = self.limits.groups.create(parent, GroupParams::default()) {
                    let g = new.index();
                    if g >= GROUPS {
                        // One of the reserve, as none of the others is free: no part of this world.
                        self.limits.groups.remove(new).expect("it is there");
                        return self.drain();
                    }
                    assert!(self.removed[g] && self.lines[g].iter().all(VecDeque::is_empty));
                    (self.removed[g], self.parent[g]) = (false, parent.index());
                    self.ledgers[g] = Default::default();
                }
            }
            Step::NoSlot => {
                let mut round = self.limits.limiter.begin(&self.limits.groups, now);
                if self.limits.limiter.next(&self.limits.groups, &mut round).is_some() {
                    self.limits.limiter.settle(&self.limits.groups, &mut round, Entered::NoSlot);
                }
            }
            Step::Pass { ns } => self.now += ns,
        }
        self.drain();
    }

    /// Take what may go; whatever is left has a reason, and a time.
    fn drain(&mut self) {
        loop {
            match self.next() {
                Next::Go(_) => {}
                Next::Wait { until } => {
                    let first = self.heads().map(|(g, at)| self.open_at(g, at)).min();
                    assert!(until > self.now, "asked again at a time to come");
                    assert!(
                        first.is_some_and(|first| until <= first && first > self.now),
                        "nobody waits in vain"
                    );
                    return;
                }
                Next::Empty => {
                    assert_eq!(self.waiting(), 0, "nobody is forgotten");
                    return;
                }
            }
        }
    }

    /// Ask who goes, and see that they may.
    fn next(&mut self) -> Next {
        let allowed: Vec<_> = self.heads().filter(|(g, at)| self.open_at(*g, *at) <= self.now).collect();
        let next = next(&mut self.limits, self.now);
        if let Next::Go(name) = next {
            let is_first =
                |(g, at): &&(usize, usize)| self.lines[*g][*at].front().is_some_and(|w| w.0 == name);
            let &(g, at) =
                allowed.iter().find(is_first).expect("the first of a line that every limit allows");
            let (_, bytes) = self.lines[g][at].pop_front().expect("it is there");
            self.charged(g, at, bytes, true);
            if g != 0 {
                self.limits.groups.drop_hold(group(g));
            }
        }
        next
    }

    fn heads(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..GROUPS).flat_map(|g| [(g, 0), (g, 1)]).filter(|(g, at)| !self.lines[*g][*at].is_empty())
    }

    fn open_at(&self, g: usize, at: usize) -> u64 {
        let gates = &self.limits.limiter.sides[at].gates;
        self.way(g).iter().map(|g| gates[*g].open_at()).max().unwrap_or(0)
    }

    fn waiting(&self) -> usize {
        self.lines.iter().flatten().map(VecDeque::len).sum()
    }
}

fn direction(write: bool) -> Direction {
    if write { WRITE } else { READ }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Never above a rate beyond the burst, in order, each exactly once, never stuck - with changes at any moment.
    #[test]
    fn limits_keep_their_promises(
        parents in prop::collection::vec(0usize..GROUPS, GROUPS - 1),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        let mut world = World::new(&parents);
        for step in steps {
            world.apply(step);
            for g in 0..GROUPS {
                let below = (0..GROUPS).filter(|d| world.way(*d).contains(&g));
                let waiting: usize = below.flat_map(|d| &world.lines[d]).map(VecDeque::len).sum();
                prop_assert_eq!(world.limits.waiting(group(g)), waiting);
            }
        }
        // Everybody goes in the end: no more than one wait for each limit on the way of each bio.
        for _ in 0..GROUPS * ROOM * 2 * GROUPS {
            match world.next() {
                // The limiter wants to be asked every hour; what it owes may take years.
                Next::Wait { until } => {
                    let opens = world.heads().map(|(g, at)| world.open_at(g, at)).min();
                    world.now = opens.unwrap_or(0).max(until);
                }
                Next::Empty => break,
                Next::Go(_) => {}
            }
            world.drain();
        }
        prop_assert_eq!(world.waiting(), 0);
    }
}
