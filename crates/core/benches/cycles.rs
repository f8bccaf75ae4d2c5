//! So many cycles of one steady state, for `scripts/instructions` to count: `cycles WHAT ELEVATOR CONTEXTS N`, where WHAT
//! is `bare` (an elevator queue; contexts in turn), `own` (the same; a context sends when its own request is done),
//! `tree` and `tree-own` (as these two, in a tree of groups of three levels), `wide` and `wide-own` (1,000 queued, and a
//! group for each context), `merging` or `nomerges` (a whole request queue), or `load` (what the harness itself costs).
//! `asked` (as `bare`), `asked-own`, `asked-tree` and so on print how often the elevator was asked.
//! For `scripts/nomerges` also a whole request queue by level and number of requests queued: `0,1000`, `1,..`, `2,..`, `rfc,..`.

mod harness;

use std::hint::black_box;

use fairlift_core::queue::NoMerges;
use harness::{Bare, Tree, Whole};

/// Before it counts: queues have formed, slices have begun, means are known.
const WARM_UP: usize = 20_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [what, elevator, contexts, cycles] = &args[..] else {
        return; // `cargo bench` without arguments runs every bench; this one is a tool
    };
    let contexts = contexts.parse().expect("CONTEXTS is a number");
    let cycles = WARM_UP + cycles.parse::<usize>().expect("N is a number");
    if what == "load" {
        let mut load = harness::Load::new(contexts);
        (0..cycles).for_each(|_| {
            black_box(load.next(None));
        });
    } else if let Some(mut q) = bare(what, elevator, contexts) {
        (0..cycles).for_each(|_| q.cycle());
        black_box(&mut q);
        if what.starts_with("asked") {
            println!("{:.2}", q.asked as f64 / cycles as f64);
        }
    } else if let Some((level, queued)) = what.split_once(',') {
        let level = match level {
            "rfc" => NoMerges::Rfc,
            number => NoMerges::from_sysfs(number.parse().expect("a level is 0, 1, 2 or rfc")),
        };
        let mut q = Whole::with(elevator, contexts, level, queued.parse().expect("QUEUED is a number"));
        (0..cycles).for_each(|_| q.cycle());
        black_box(q.done);
    } else {
        let mut q = Whole::new(elevator, contexts, what == "merging");
        (0..cycles).for_each(|_| q.cycle());
        black_box(q.done);
    }
}

/// The elevator queue that `what` names.
fn bare(what: &str, elevator: &str, contexts: usize) -> Option<Bare> {
    let (tree, own) = match what.strip_prefix("asked-").unwrap_or(what) {
        "bare" | "asked" => (Tree::Flat, false),
        "own" => (Tree::Flat, true),
        "tree" => (Tree::ThreeLevels, false),
        "tree-own" => (Tree::ThreeLevels, true),
        "wide" => (Tree::Wide, false),
        "wide-own" => (Tree::Wide, true),
        _ => return None,
    };
    Some(Bare::new(elevator, contexts, own, tree))
}
