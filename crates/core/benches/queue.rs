//! Nanoseconds per request, 32 queued: dispatch, completion and the next arrival, on the elevator queue alone and on the
//! whole request queue.

mod harness;

use divan::Bencher;
use harness::{Bare, Tree, Whole};

/// The elevators measured.
const ELEVATORS: [&str; 5] = ["noop", "deadline", "cfq:2.6.31", "cfq:2.6.34", "fair"];
/// Numbers of io contexts.
const CONTEXTS: [usize; 3] = [1, 16, 1000];

fn main() {
    divan::main();
}

fn cases() -> impl Iterator<Item = (&'static str, usize)> {
    ELEVATORS.into_iter().flat_map(|elevator| CONTEXTS.map(|contexts| (elevator, contexts)))
}

/// Cycles measured at a time, so that the clock's own cost does not count.
const CYCLES: u32 = 1_000;

#[divan::bench(args = cases().map(Case::from), counters = [divan::counter::ItemsCount::new(CYCLES)])]
fn elevator_queue(bencher: Bencher, case: &Case) {
    let mut q = Bare::new(case.elevator, case.contexts, false, Tree::Flat);
    bencher.bench_local(|| (0..CYCLES).for_each(|_| q.cycle()));
}

#[divan::bench(args = cases().map(Case::from), counters = [divan::counter::ItemsCount::new(CYCLES)])]
fn request_queue_merging(bencher: Bencher, case: &Case) {
    let mut q = Whole::new(case.elevator, case.contexts, true);
    bencher.bench_local(|| (0..CYCLES).for_each(|_| q.cycle()));
}

#[divan::bench(args = cases().map(Case::from), counters = [divan::counter::ItemsCount::new(CYCLES)])]
fn request_queue_without_merging(bencher: Bencher, case: &Case) {
    let mut q = Whole::new(case.elevator, case.contexts, false);
    bencher.bench_local(|| (0..CYCLES).for_each(|_| q.cycle()));
}

/// One line of the table.
struct Case {
    elevator: &'static str,
    contexts: usize,
}

impl From<(&'static str, usize)> for Case {
    fn from((elevator, contexts): (&'static str, usize)) -> Case {
        Case { elevator, contexts }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {}", self.elevator, self.contexts)
    }
}
