//! One container of sorted requests in its steady state, for callgrind or the clock: `sorted CANDIDATE PATTERN QUEUED N`.
//!
//! CANDIDATE is `fifo` ([`SortedFifo`]) or `tree` (a [`Tree`], a [`List`] and an array of deadlines, as the elevators had
//! before). At each step one leaves and another arrives. PATTERN says who and where: `sweep` (the next by sector, after every
//! 16 the oldest, as the elevator deadline has it; random sectors), `random` (any; random sectors) or `skewed` (any; most
//! sectors low). Count `insert` and `remove` with callgrind: the difference of two N, with `callgrind_annotate --inclusive=yes`.
//!
//! `sorted CANDIDATE PATTERN QUEUED longest N RUNS` prints the longest insertion and removal in nanoseconds (clock included):
//! each of the N steps counts as long as in the shortest of its RUNS runs, which are the same, so that interrupts do not show.

use std::hint::black_box;
use std::time::Instant;

use fairlift_core::RequestId;
use fairlift_core::collections::{Id, List, ListLinks, SortedFifo, SortedFifoLinks, Tree, TreeLinks};

/// Sectors of the disk: 500 GB.
const DISK: u64 = 976_773_168;

trait Candidate {
    fn new(capacity: usize) -> Self;
    fn insert(&mut self, id: RequestId, sector: u64, deadline: u64);
    /// The one behind.
    fn remove(&mut self, id: RequestId) -> Option<RequestId>;
    fn oldest(&self) -> Option<RequestId>;
}

struct Fifo(SortedFifo<RequestId>, SortedFifoLinks<RequestId>);

impl Fifo {
    #[cold]
    fn insert_equal(&mut self, id: RequestId, sector: u64, deadline: u64) {
        self.0.insert(&mut self.1, id, sector, deadline);
    }
}

impl Candidate for Fifo {
    fn new(capacity: usize) -> Fifo {
        Fifo(SortedFifo::new(), SortedFifoLinks::new(capacity))
    }

    #[inline(never)]
    fn insert(&mut self, id: RequestId, sector: u64, deadline: u64) {
        if self.0.insert_unique(&mut self.1, id, sector, deadline).is_err() {
            self.insert_equal(id, sector, deadline);
        }
    }

    #[inline(never)]
    fn remove(&mut self, id: RequestId) -> Option<RequestId> {
        self.0.remove(&mut self.1, id)
    }

    fn oldest(&self) -> Option<RequestId> {
        self.0.oldest()
    }
}

struct TreeAndList {
    tree: Tree<RequestId>,
    tree_links: TreeLinks<RequestId, u64>,
    fifo: List<RequestId>,
    fifo_links: ListLinks<RequestId>,
    deadlines: Vec<u64>,
}

impl TreeAndList {
    #[cold]
    fn insert_equal(&mut self, id: RequestId, sector: u64) {
        self.tree.insert(&mut self.tree_links, id, sector);
    }
}

impl Candidate for TreeAndList {
    fn new(capacity: usize) -> TreeAndList {
        TreeAndList {
            tree: Tree::new(),
            tree_links: TreeLinks::new(capacity),
            fifo: List::new(),
            fifo_links: ListLinks::new(capacity),
            deadlines: vec![0; capacity],
        }
    }

    #[inline(never)]
    fn insert(&mut self, id: RequestId, sector: u64, deadline: u64) {
        if self.tree.insert_unique(&mut self.tree_links, id, sector).is_err() {
            self.insert_equal(id, sector);
        }
        self.fifo.push_back(&mut self.fifo_links, id);
        self.deadlines[id.index()] = deadline;
    }

    #[inline(never)]
    fn remove(&mut self, id: RequestId) -> Option<RequestId> {
        let behind = self.tree.next(&self.tree_links, id);
        self.tree.remove(&mut self.tree_links, id);
        self.fifo.remove(&mut self.fifo_links, id);
        behind
    }

    fn oldest(&self) -> Option<RequestId> {
        self.fifo.front()
    }
}

struct Steady<C> {
    queue: C,
    queued: usize,
    /// Leave in any order, instead of in sweeps.
    any: bool,
    /// Most are at low sectors, so that the nearer end is a bad guess.
    skewed: bool,
    random: u64,
    next: Option<RequestId>,
    count: u64,
}

impl<C: Candidate> Steady<C> {
    fn new(queued: usize, pattern: &str) -> Steady<C> {
        let queue = C::new(2 * queued);
        let (any, skewed) = (pattern != "sweep", pattern == "skewed");
        let mut steady = Steady { queue, queued, any, skewed, random: 1, next: None, count: 0 };
        for at in 0..queued {
            let sector = steady.draw();
            steady.queue.insert(RequestId::from_index(at), sector, 0);
        }
        steady
    }

    fn draw(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let sector = (self.random >> 20) % DISK;
        if self.skewed {
            // Seven bits of it stay at least, and different ones for most.
            return (sector << 20) >> (self.random >> 58).min(42);
        }
        sector & !7
    }

    /// Who leaves.
    fn choose(&mut self) -> RequestId {
        self.count += 1;
        if self.any {
            let at = (self.draw() >> 3) as usize % self.queued;
            return RequestId::from_index(at);
        }
        let next = self.next.filter(|_| !self.count.is_multiple_of(16)).or(self.queue.oldest());
        next.expect("somebody is queued")
    }

    fn cycle(&mut self) {
        let gone = self.choose();
        self.next = self.queue.remove(gone);
        let sector = self.draw();
        self.queue.insert(gone, sector, self.count);
    }

    /// As `cycle`, taking the time of insertion and removal, nanoseconds.
    fn timed(&mut self) -> [u64; 2] {
        let gone = self.choose();
        let start = Instant::now();
        self.next = self.queue.remove(gone);
        let removed = start.elapsed();
        let sector = self.draw();
        let start = Instant::now();
        self.queue.insert(gone, sector, self.count);
        [start.elapsed(), removed].map(|span| span.as_nanos() as u64)
    }
}

fn run<C: Candidate>(pattern: &str, queued: usize, rest: &[String]) {
    let number = |text: &String| text.parse::<usize>().expect("N is a number");
    match rest {
        [n] => {
            let mut steady = Steady::<C>::new(queued, pattern);
            (0..10_000 + number(n)).for_each(|_| steady.cycle());
            black_box(&mut steady.queue);
        }
        [word, n, runs] if word == "longest" => {
            let mut shortest = vec![[u64::MAX; 2]; number(n)];
            for _ in 0..number(runs) {
                let mut steady = Steady::<C>::new(queued, pattern);
                for spans in &mut shortest {
                    let now = steady.timed();
                    *spans = core::array::from_fn(|at| spans[at].min(now[at]));
                }
            }
            for (at, what) in ["insertion", "removal"].iter().enumerate() {
                let mut spans: Vec<u64> = shortest.iter().map(|spans| spans[at]).collect();
                spans.sort_unstable();
                println!(
                    "{what}: median {} ns, longest {} ns",
                    spans[spans.len() / 2],
                    spans[spans.len() - 1]
                );
            }
        }
        _ => {}
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [candidate, pattern, queued, rest @ ..] = &args[..] else {
        return; // `cargo bench` without arguments runs every bench; this one is a tool
    };
    let queued = queued.parse().expect("QUEUED is a number");
    match &candidate[..] {
        "fifo" => run::<Fifo>(pattern, queued, rest),
        "tree" => run::<TreeAndList>(pattern, queued, rest),
        other => panic!("no candidate {other}"),
    }
}
