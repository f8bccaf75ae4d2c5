//! No call takes long, however many groups there are: the longest of each, printed (`--nocapture`), not judged.

use std::println;
use std::time::Instant;

use super::*;

const GROUPS: u64 = 4000;
const CALLS: [&str; 7] =
    ["set a limit", "ask", "charge", "begin a round", "next", "settle", "remove a group"];
/// The same calls are made so often, and each counts with its shortest time: what else the machine does is none of theirs.
const RUNS: usize = 3;

/// How long each call took, in order, nanoseconds.
#[derive(Default)]
struct Times([Vec<u64>; CALLS.len()]);

impl Times {
    fn of<R>(&mut self, call: usize, what: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = what();
        self.0[call].push(start.elapsed().as_nanos() as u64);
        result
    }

    /// The shorter of each.
    fn shorter(mut self, other: Times) -> Times {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = theirs.min(*mine));
        }
        self
    }

    fn print(&self, title: &str) {
        for (name, times) in CALLS.iter().zip(&self.0) {
            let mean = times.iter().sum::<u64>() / times.len().max(1) as u64;
            let longest = times.iter().max().copied().unwrap_or(0);
            println!(
                "{title}, {name:14}: mean {mean:4} ns, longest {longest:5} ns, of {} calls",
                times.len()
            );
        }
    }
}

/// The same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Limits everywhere, bios everywhere, and all that changes.
fn run(parents: &[usize]) -> Times {
    let Limits { mut groups, .. } = tree(parents, 0);
    let mut limiter = Limiter::new(groups.slots(), 4);
    let (mut times, mut random, mut now) = (Times::default(), Random(1), 0);
    for g in 0..=GROUPS as usize {
        limiter.set(&groups, group(g), WRITE, Rates { bytes_per_s: 1 << 30, ios_per_s: 1_000_000 }, 0);
    }
    for _ in 0..100_000 {
        now += random.below(20_000);
        let g = group(random.below(GROUPS + 1) as usize);
        match random.below(12) {
            0 => {
                let rates =
                    Rates { bytes_per_s: 1 + random.below(1 << 30), ios_per_s: 1 + random.below(100_000) };
                times.of(0, || limiter.set(&groups, g, WRITE, rates, now));
            }
            1 => times.of(2, || limiter.charge(&groups, g, WRITE, 4096, now)),
            2 if groups.remove(g).is_ok() => {
                times.of(6, || limiter.removed(&groups, g, now));
                let parent = groups.known(groups[g].parent());
                let _ = groups.create(parent, GroupParams::default());
            }
            2..6 => {
                let mut round = times.of(3, || limiter.begin(&groups, now));
                while let Some(g) = times.of(4, || limiter.next(&groups, &mut round)) {
                    let entered = if random.below(8) == 0 { Entered::NoSlot } else { Entered::Yes };
                    times.of(5, || limiter.settle(&groups, &mut round, entered));
                    if entered == Entered::Yes && g != GroupId::ROOT {
                        groups.drop_hold(g);
                    }
                }
            }
            _ => {
                let (g, bytes) = (groups.known(g), 512 << random.below(8));
                if times.of(1, || limiter.ask(&groups, g, WRITE, bytes, g, now)) == Answer::Held {
                    groups.hold(g);
                }
            }
        }
    }
    times
}

/// 4,000 groups in chains 32 deep, and 4,000 side by side.
#[test]
fn longest_calls_with_4000_groups() {
    for (title, depth) in [("32 deep", 31), ("flat", 1)] {
        let parents: Vec<usize> = (0..GROUPS as usize).map(|g| if g % depth == 0 { 0 } else { g }).collect();
        let times = (1..RUNS).fold(run(&parents), |times, _| times.shorter(run(&parents)));
        times.print(title);
    }
}
