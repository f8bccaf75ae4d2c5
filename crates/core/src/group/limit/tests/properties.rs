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
    Move {
        group: usize,
        parent: usize,
    },
    Reweigh {
        group: usize,
        weight: u32,
    },
    /// The group's waiters go to its parent; an empty one takes its slot.
    Remove {
        group: usize,
    },
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
        1 => (1..GROUPS, group()).prop_map(|(group, parent)| Step::Move { group, parent }),
        1 => (1..GROUPS, 1u32..1000).prop_map(|(group, weight)| Step::Reweigh { group, weight }),
        1 => (1..GROUPS).prop_map(|group| Step::Remove { group }),
        8 => prop_oneof![Just(1), 1u64..2_000_000, 1u64..3 * SECOND].prop_map(|ns| Step::Pass { ns }),
    ]
}

/// A limit as its promise has it: everything that was charged since it was set.
#[derive(Clone, Default)]
struct Ledger {
    rate: u64,
    /// When, how much, and whether it waited its turn (what may not wait is charged, but not bounded).
    charged: Vec<(u64, u64, bool)>,
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
            let window = u128::from(end - start + BURST_NS);
            let allowed = u128::from(self.rate) * window / u128::from(SECOND) + 1 + 2 * largest;
            assert!(sum <= allowed, "{sum} in {window} ns at {}, allowed {allowed}", self.rate);
        }
    }
}

/// The promise, kept naively.
struct World {
    table: Groups,
    limits: Limits,
    parent: [usize; GROUPS],
    ledgers: [[[Ledger; 2]; 2]; GROUPS],
    /// Who waits where, in order: (name, bytes).
    lines: [[VecDeque<(WaiterId, u64)>; 2]; GROUPS],
    now: u64,
}

impl World {
    fn new(parents: &[usize]) -> World {
        let parent = core::array::from_fn(|g| if g == 0 { 0 } else { parents[g - 1] % g });
        let groups: Vec<_> = parent[1..].iter().map(|parent| (*parent, 100)).collect();
        let table = table(&groups);
        World {
            limits: on(&table, ROOM),
            table,
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
        match step {
            Step::Ask { group: g, write, bytes } => {
                let at = usize::from(write);
                match self.limits.ask(group(g), direction(write), bytes, now) {
                    Answer::Go => {
                        assert!(self.lines[g][at].is_empty(), "nobody passes those who wait");
                        self.charged(g, at, bytes, true);
                    }
                    Answer::Wait(name) => self.lines[g][at].push_back((name, bytes)),
                    Answer::Full => assert!(self.waiting() >= ROOM),
                }
            }
            Step::Charge { group: g, write, bytes } => {
                self.limits.charge(group(g), direction(write), bytes, now);
                self.charged(g, usize::from(write), bytes, false);
            }
            Step::Set { group: g, write, rates } => {
                self.limits.set(group(g), direction(write), rates, now);
                self.ledgers[g][usize::from(write)] =
                    [rates.bytes_per_s, rates.ios_per_s].map(|rate| Ledger { rate, charged: Vec::new() });
            }
            Step::Move { group: g, parent } if !self.way(parent).contains(&g) => {
                self.table.reparent(group(g), group(parent)).expect("no circle");
                self.limits.follow(&self.table, now);
                self.parent[g] = parent;
            }
            Step::Reweigh { group: g, weight } => {
                self.table.set_params(group(g), GroupParams::weight(weight)).expect("it is there");
                self.limits.follow(&self.table, now);
            }
            Step::Remove { group: g } => {
                let parent = self.parent[g];
                self.table.remove(group(g)).expect("it is there");
                self.limits.follow(&self.table, now);
                // The slot is free: the next one created takes it.
                assert_eq!(self.table.create(group(parent), GroupParams::default()), Ok(group(g)));
                self.limits.follow(&self.table, now);
                (1..GROUPS).filter(|c| self.parent[*c] == g).collect::<Vec<_>>().into_iter().for_each(|c| {
                    self.parent[c] = parent;
                });
                for at in 0..2 {
                    let line = core::mem::take(&mut self.lines[g][at]);
                    self.lines[parent][at].extend(line);
                    self.ledgers[g][at] = Default::default();
                }
            }
            Step::Pass { ns } => self.now += ns,
            Step::Move { .. } => {}
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
        }
        next
    }

    fn heads(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..GROUPS).flat_map(|g| [(g, 0), (g, 1)]).filter(|(g, at)| !self.lines[*g][*at].is_empty())
    }

    fn open_at(&self, g: usize, at: usize) -> u64 {
        let gates = &self.limits.sides[at].gates;
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
                Next::Wait { until } => world.now = until,
                Next::Empty => break,
                Next::Go(_) => {}
            }
            world.drain();
        }
        prop_assert_eq!(world.waiting(), 0);
    }
}
