//! Against a model that keeps both orders in plain vectors, with several queues in the same links.

use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

crate::collections::define_id! {
    /// A test element.
    Element
}

type Queue = SortedFifo<Element>;
type Links = SortedFifoLinks<Element>;

impl Queue {
    /// Check every rule.
    fn check(&self, links: &Links) {
        self.marks.check(&links.marks);
        let marks: Vec<Element> = self.iter(links).filter(|id| links.node(raw(*id)).run > 0).collect();
        assert!(
            marks.iter().copied().eq(self.marks.iter(&links.marks)),
            "the tree holds the marks, in order"
        );
        let mut run = 0;
        for id in self.iter(links) {
            let node = links.node(raw(id));
            assert!(node.run == 0 || links.marks.key(id) == node.sector, "a mark is known by its sector");
            run += 1;
            if node.run > 0 {
                assert!(run <= node.run && node.run <= RUN_MAX, "a run of {run} counted as {}", node.run);
                run = 0;
            }
        }
        assert!(run <= self.run && self.run <= RUN_MAX, "an open run of {run} counted as {}", self.run);
        for id in self.iter(links) {
            assert!(
                self.next(links, id).map_or(self.last() == Some(id), |n| self.prev(links, n) == Some(id))
            );
        }
        let newest = self.arrivals(links).last();
        assert_eq!(newest, option(self.newest));
        for (older, newer) in self.arrivals(links).zip(self.arrivals(links).skip(1)) {
            assert_eq!(links.node(raw(newer)).older, raw(older), "the way back by arrival");
        }
    }
}

/// One queue as it should be.
#[derive(Default)]
struct Model {
    sorted: Vec<(u64, Element)>,
    arrived: Vec<(Element, u64)>,
}

impl Model {
    fn at(&self, id: Element) -> usize {
        self.sorted.iter().position(|(_, other)| *other == id).expect("it is here")
    }

    fn arrival(&self, id: Element) -> usize {
        self.arrived.iter().position(|(other, _)| *other == id).expect("it is here")
    }

    fn element(&self, at: usize) -> Option<Element> {
        self.sorted.get(at).map(|(_, id)| *id)
    }

    /// The last one of this sector, other than `but`.
    fn equal(&self, sector: u64, but: Option<Element>) -> Option<Element> {
        let same = |(other, id): &&(u64, Element)| *other == sector && Some(*id) != but;
        self.sorted.iter().rfind(same).map(|(_, id)| *id)
    }

    fn sort_in(&mut self, id: Element, sector: u64) {
        let at = self.sorted.partition_point(|(other, _)| *other <= sector);
        self.sorted.insert(at, (sector, id));
    }

    fn remove(&mut self, id: Element) -> Option<Element> {
        let at = self.at(id);
        self.sorted.remove(at);
        self.arrived.remove(self.arrival(id));
        self.element(at)
    }

    /// As the text of `SortedFifo::absorb` has it.
    fn absorb(&mut self, kept: Element, gone: Element) -> Option<Element> {
        let (of_kept, of_gone) = (self.arrival(kept), self.arrival(gone));
        let deadline = self.arrived[of_gone].1;
        if deadline < self.arrived[of_kept].1 {
            self.arrived[of_gone] = (kept, deadline);
            self.arrived[of_kept] = (gone, deadline);
        }
        self.remove(gone)
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The element arrives if it is in no queue, else it leaves.
    Toggle,
    /// The same, but only to a sector of its own.
    ToggleUnique,
    Resort,
    ResortUnique,
    /// Another element of its queue, so many places on by sector, becomes a part of it.
    Absorb(usize),
    /// The one with the lowest sector leaves, so many times.
    Sweep(usize),
}

const QUEUES: usize = 3;

struct Pair {
    queues: [Queue; QUEUES],
    links: Links,
    models: [Model; QUEUES],
    /// Where each element is.
    holder: Vec<Option<usize>>,
}

impl Pair {
    fn new(capacity: usize) -> Pair {
        Pair {
            queues: Default::default(),
            links: Links::new(capacity),
            models: Default::default(),
            holder: vec![None; capacity],
        }
    }

    fn remove(&mut self, at: usize, id: Element) {
        let behind = self.models[at].remove(id);
        assert_eq!(self.queues[at].remove(&mut self.links, id), behind, "the one behind {id:?}");
        self.holder[id.index()] = None;
    }

    fn insert(&mut self, at: usize, id: Element, sector: u64, deadline: u64, unique: bool) {
        let (queue, model, links) = (&mut self.queues[at], &mut self.models[at], &mut self.links);
        if unique {
            let equal = model.equal(sector, None);
            assert_eq!(queue.insert_unique(links, id, sector, deadline), equal.map_or(Ok(()), Err));
            if equal.is_some() {
                return;
            }
        } else {
            queue.insert(links, id, sector, deadline);
        }
        model.sort_in(id, sector);
        model.arrived.push((id, deadline));
        self.holder[id.index()] = Some(at);
    }

    fn resort(&mut self, at: usize, id: Element, sector: u64, unique: bool) {
        let (queue, model, links) = (&mut self.queues[at], &mut self.models[at], &mut self.links);
        if unique {
            let equal = model.equal(sector, Some(id));
            let answer = queue.resort_unique(links, id, sector);
            assert_eq!(answer.is_err(), equal.is_some());
            if let Err(equal) = answer {
                assert!(equal != id && links.sector(equal) == sector);
                return;
            }
        } else {
            queue.resort(links, id, sector);
        }
        model.sorted.remove(model.at(id));
        model.sort_in(id, sector);
    }

    fn step(&mut self, step: Step, at: usize, id: Element, sector: u64, deadline: u64) {
        match (step, self.holder[id.index()]) {
            (Step::Toggle, None) => self.insert(at, id, sector, deadline, false),
            (Step::ToggleUnique, None) => self.insert(at, id, sector, deadline, true),
            (Step::Toggle | Step::ToggleUnique, Some(at)) => self.remove(at, id),
            (Step::Resort, Some(at)) => self.resort(at, id, sector, false),
            (Step::ResortUnique, Some(at)) => self.resort(at, id, sector, true),
            (Step::Absorb(ahead), Some(at)) => {
                let model = &mut self.models[at];
                if let Some(gone) = model.element(model.at(id) + ahead).filter(|gone| *gone != id) {
                    let behind = model.absorb(id, gone);
                    assert_eq!(self.queues[at].absorb(&mut self.links, id, gone), behind);
                    self.holder[gone.index()] = None;
                }
            }
            (Step::Sweep(count), _) => {
                for _ in 0..count {
                    let Some(first) = self.queues[at].first() else { break };
                    self.remove(at, first);
                }
            }
            (_, None) => {}
        }
    }

    /// Everything that can be asked of the queues, with questions about `sector`.
    fn compare(&self, sector: u64) {
        let links = &self.links;
        for (queue, model) in self.queues.iter().zip(&self.models) {
            queue.check(links);
            assert!(queue.iter(links).map(|id| (links.sector(id), id)).eq(model.sorted.iter().copied()));
            assert!(
                queue.arrivals(links).map(|id| (id, links.deadline(id))).eq(model.arrived.iter().copied())
            );
            assert_eq!((queue.len(), queue.is_empty()), (model.sorted.len(), model.sorted.is_empty()));
            assert_eq!(
                (queue.first(), queue.last()),
                (model.element(0), model.sorted.last().map(|last| last.1))
            );
            assert_eq!(queue.oldest(), model.arrived.first().map(|first| first.0));
            assert_eq!(queue.oldest_deadline(links), model.arrived.first().map(|first| first.1));
            let at = model.sorted.partition_point(|(other, _)| *other < sector);
            assert_eq!(queue.at_or_above(links, sector), model.element(at), "at or above {sector}");
            let exact = model.sorted.get(at).filter(|(other, _)| *other == sector).map(|(_, id)| *id);
            assert_eq!(queue.find(links, sector), exact, "find {sector}");
        }
        for (at, holder) in self.holder.iter().enumerate() {
            assert_eq!(links.is_queued(Element::from_index(at)), holder.is_some());
        }
    }
}

/// Few sectors, so that there are many equal ones; many; and both ends.
fn sector() -> impl Strategy<Value = u64> {
    prop_oneof![0..12u64, 0..4000u64, 0..4000u64, u64::MAX - 3..=u64::MAX, any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Toggle),
        6 => Just(Step::ToggleUnique),
        1 => Just(Step::Resort),
        1 => Just(Step::ResortUnique),
        1 => (1..5usize).prop_map(Step::Absorb),
        1 => (1..9usize).prop_map(Step::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// All operations in any order. With few elements the capacity is reached all the time.
    #[test]
    fn agrees_with_the_model(
        capacity in prop_oneof![1..8usize, 100..400usize],
        steps in prop::collection::vec((step(), 0..QUEUES + 3, any::<usize>(), sector(), 0..50u64), 1..900),
    ) {
        let mut pair = Pair::new(capacity);
        for (step, queue, element, sector, deadline) in steps {
            // One queue gets most, so that it has several runs.
            let queue = if queue < QUEUES { queue } else { 0 };
            pair.step(step, queue, Element::from_index(element % capacity), sector, deadline);
            pair.compare(sector);
        }
    }
}

/// Runs keep to their bounds whatever the order of arrival: ascending, descending, all equal, always into the same gap.
#[test]
fn runs_are_bounded_whatever_arrives() {
    const N: usize = 700;
    let orders: [fn(u64) -> u64; 5] = [
        |at| at,
        |at| N as u64 - at,
        |_| u64::MAX,
        |at| if at < 9 { 1000 * at } else { 4000 + at },
        |at| if at % 2 == 0 { 4000 + at } else { 6000 - at },
    ];
    for order in orders {
        let mut pair = Pair::new(N);
        for at in 0..N {
            pair.insert(0, Element::from_index(at), order(at as u64), 0, false);
            pair.queues[0].check(&pair.links);
        }
        // As many join where others have left: nobody's count may run away.
        for at in (0..4 * N).map(|at| at % N) {
            pair.remove(0, Element::from_index(at));
            pair.insert(0, Element::from_index(at), order(at as u64), 0, false);
            pair.queues[0].check(&pair.links);
        }
        pair.compare(4000);
        // The same without leaving: into each other order.
        for (at, sector) in orders.iter().flat_map(|order| (0..N).map(move |at| (at, order(at as u64)))) {
            pair.resort(0, Element::from_index(at * 3 % N), sector, false);
            pair.queues[0].check(&pair.links);
        }
        pair.compare(5000);
        // Taking out every second one, then the rest from the middle on, leaves no mark behind.
        (0..N).step_by(2).for_each(|at| pair.remove(0, Element::from_index(at)));
        (0..N)
            .map(|at| (at + N / 2) % N)
            .filter(|at| at % 2 == 1)
            .for_each(|at| pair.remove(0, Element::from_index(at)));
        pair.compare(4000);
        assert!(pair.queues[0].marks.is_empty());
    }
}

/// An element moves from either end to any place, in particular where it is the middle of a run that is cut for it.
#[test]
fn an_element_moves_to_any_place() {
    for length in 2..4 * RUN_MAX as usize {
        let mut full = Pair::new(length);
        (0..length).for_each(|at| {
            full.queues[0].insert(&mut full.links, Element::from_index(at), 10 * at as u64, 0);
        });
        for (moved, to) in
            [0, length - 1].into_iter().flat_map(|moved| (0..length).map(move |to| (moved, to)))
        {
            let (mut queue, mut links) = (full.queues[0], full.links.clone());
            queue.resort(&mut links, Element::from_index(moved), 10 * to as u64 + 1);
            queue.check(&links);
            assert!(queue.iter(&links).map(|id| links.sector(id)).is_sorted());
        }
    }
}

/// Heads are small: a host may have 3 x 4,000 of them.
#[test]
fn a_head_is_small() {
    assert_eq!(size_of::<Queue>(), 40);
    assert_eq!(size_of::<Node>(), 40);
}
