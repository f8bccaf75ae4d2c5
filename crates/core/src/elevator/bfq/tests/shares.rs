//! Closed loops on a disk of constant service times: 4 KiB takes 0.1 ms where the last request ended and 8.3 ms elsewhere; one
//! request at a time, those issued first first. Shares of backlogged queues, fairness of throughput, latency of raised ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::vec::Vec;

use super::*;
use crate::SECOND;

const SEQUENTIAL_NS: u64 = 100_000;
const RANDOM_NS: u64 = 8_300_000;

/// What somebody does between two requests.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    /// Reads on, or at random, after so many nanoseconds, so many at a time.
    Sequential {
        think_ns: u64,
        depth: u64,
    },
    Random {
        think_ns: u64,
        depth: u64,
    },
    /// Reads one at fixed times.
    Every {
        period_ns: u64,
    },
}

struct Reader {
    context: ContextId,
    habit: Habit,
    sector: u64,
    done: u64,
    began: Vec<(RequestId, u64)>,
    waits: Vec<u64>,
}

struct Loop {
    rig: Rig,
    readers: Vec<Reader>,
    /// (when, who) submits next.
    events: BinaryHeap<Reverse<(u64, usize)>>,
    in_device: VecDeque<RequestId>,
    done_at: Option<u64>,
    head: u64,
    random: u64,
}

impl Loop {
    fn new(rig: Rig) -> Loop {
        Loop {
            rig,
            readers: Vec::new(),
            events: BinaryHeap::new(),
            in_device: VecDeque::new(),
            done_at: None,
            head: 0,
            random: 1,
        }
    }

    fn add(&mut self, context: ContextId, habit: Habit) -> usize {
        let i = self.readers.len();
        let sector = (i as u64 + 1) * 20 * FAR;
        self.readers.push(Reader { context, habit, sector, done: 0, began: Vec::new(), waits: Vec::new() });
        let depth = match habit {
            Habit::Sequential { depth, .. } | Habit::Random { depth, .. } => depth,
            Habit::Every { .. } => 1,
        };
        // Not together, or they would become one queue.
        for k in 0..depth {
            self.events.push(Reverse((self.rig.now + 250 * MS * i as u64 + k, i)));
        }
        i
    }

    fn run(&mut self, seconds: u64) {
        let end = self.rig.now + seconds * SECOND;
        while self.rig.now < end {
            let mut until = None;
            loop {
                match self.rig.ask() {
                    Dispatch::Issue(rq) => {
                        self.in_device.push_back(rq);
                        self.start_service();
                    }
                    Dispatch::Idle { until: at } => {
                        until = Some(at);
                        break;
                    }
                    Dispatch::Empty | Dispatch::Busy => break,
                }
            }
            let arrival = self.events.peek().map(|Reverse((at, _))| *at);
            let next = [until, self.done_at, arrival].into_iter().flatten().min().expect("something happens");
            self.rig.now = next.max(self.rig.now);
            if self.done_at == Some(next) {
                self.finish();
            } else if arrival == Some(next) {
                self.submit();
            }
        }
    }

    fn start_service(&mut self) {
        if self.done_at.is_some() {
            return;
        }
        let Some(rq) = self.in_device.front() else { return };
        let request = &self.rig.q.requests()[*rq];
        let time = if request.sector == self.head { SEQUENTIAL_NS } else { RANDOM_NS };
        self.head = request.end();
        self.done_at = Some(self.rig.now + time);
    }

    fn finish(&mut self) {
        self.done_at = None;
        let rq = self.in_device.pop_front().expect("in the device");
        let context = self.rig.q.requests()[rq].context;
        let now = self.rig.now;
        let i = self.readers.iter().position(|r| r.context == context).expect("somebody's");
        self.rig.complete(rq);
        let reader = &mut self.readers[i];
        reader.done += 1;
        let at = reader.began.iter().position(|(id, _)| *id == rq).expect("it began");
        let (_, began) = reader.began.swap_remove(at);
        reader.waits.push(now - began);
        match reader.habit {
            Habit::Sequential { think_ns, .. } | Habit::Random { think_ns, .. } => {
                self.events.push(Reverse((now + think_ns, i)));
            }
            Habit::Every { period_ns } => self.events.push(Reverse(((began + period_ns).max(now + 1), i))),
        }
        self.start_service();
    }

    fn submit(&mut self) {
        let Reverse((_, i)) = self.events.pop().expect("an event");
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let reader = &mut self.readers[i];
        let sector = if let Habit::Random { .. } = reader.habit {
            1_000_000_000 + (self.random >> 40) * 8
        } else {
            reader.sector += 8;
            reader.sector - 8
        };
        let context = reader.context;
        let rq = self.rig.read(context, sector);
        self.readers[i].began.push((rq, self.rig.now));
    }

    /// Requests of each over the time from now on.
    fn served(&mut self, seconds: u64) -> Vec<u64> {
        let before: Vec<u64> = self.readers.iter().map(|reader| reader.done).collect();
        self.run(seconds);
        self.readers.iter().zip(before).map(|(reader, before)| reader.done - before).collect()
    }
}

const SEQ: Habit = Habit::Sequential { think_ns: 100_000, depth: 1 };
const SEEK: Habit = Habit::Random { think_ns: 0, depth: 1 };

fn plain() -> Rig {
    let mut rig = Rig::new();
    rig.set("low_latency", "0");
    rig
}

/// Is `a : b` within a few per cent of `x : y`?
#[track_caller]
fn assert_ratio(a: u64, b: u64, due: (u64, u64), per_cent: u64) {
    let (got, due) = (a * due.1 * 100, b * due.0 * 100);
    assert!(got.abs_diff(due) <= due * per_cent / 100, "{a} to {b}, due {due:?} within {per_cent} %");
}

#[test]
fn equal_sequential_readers_share_equally() {
    let mut run = Loop::new(plain());
    for _ in 0..4 {
        let context = run.rig.context();
        run.add(context, SEQ);
    }
    run.run(5);
    let done = run.served(40);
    for other in &done[1..] {
        assert_ratio(done[0], *other, (1, 1), 3);
    }
    assert!(done.iter().sum::<u64>() > 150_000, "of 200,000 without a seek or a wait: {done:?}");
}

#[test]
fn levels_share_by_weight() {
    // Weights 80, 40 and 10.
    let mut run = Loop::new(plain());
    for level in [0, 4, 7] {
        let context = run.rig.context_at(IoPrio::BestEffort(level));
        run.add(context, SEQ);
    }
    run.run(10);
    let done = run.served(100);
    assert_ratio(done[0], done[1], (2, 1), 3);
    assert_ratio(done[1], done[2], (4, 1), 3);
}

/// A seeker's turn is paid by time, 15 requests; the one that is still in the device then is a gift of those that follow, which a
/// light one gets as often as a heavy one: five per cent.
#[test]
fn groups_share_by_weight_whatever_their_readers_do() {
    for (one, other) in [(SEQ, SEQ), (SEEK, SEEK)] {
        let mut run = Loop::new(plain());
        for (weight, habit) in [(100, one), (300, other)] {
            let group = run.rig.group(GroupId::ROOT, weight);
            let context = run.rig.context_in(group);
            run.add(context, habit);
        }
        run.run(10);
        let done = run.served(100);
        assert_ratio(done[1], done[0], (3, 1), 5);
    }
}

/// Who keeps requests queued all the time: here nothing need be waited for.
#[test]
fn deep_queues_share_by_weight() {
    for habit in [Habit::Sequential { think_ns: 0, depth: 16 }, Habit::Random { think_ns: 0, depth: 16 }] {
        let mut run = Loop::new(plain());
        for weight in [100, 200, 400] {
            let group = run.rig.group(GroupId::ROOT, weight);
            let context = run.rig.context_in(group);
            run.add(context, habit);
        }
        run.run(10);
        let done = run.served(100);
        assert_ratio(done[1], done[0], (2, 1), 3);
        assert_ratio(done[2], done[0], (4, 1), 3);
    }
}

/// A tree: 300 and 100, and the 100 divided 1 to 3.
#[test]
fn a_tree_of_groups_shares_at_each_level() {
    let mut run = Loop::new(plain());
    let (big, small) = (run.rig.group(GroupId::ROOT, 300), run.rig.group(GroupId::ROOT, 100));
    let inner = [run.rig.group(small, 100), run.rig.group(small, 300)];
    for group in [big, inner[0], inner[1]] {
        let context = run.rig.context_in(group);
        run.add(context, SEQ);
    }
    run.run(10);
    let done = run.served(200);
    assert_ratio(done[0], done[1] + done[2], (3, 1), 3);
    assert_ratio(done[2], done[1], (3, 1), 5);
}

/// A seeker beside a sequential reader in groups of equal weight pays for its time: it has not half of the sectors (which would
/// stop the reader), but part of the time.
#[test]
fn a_seeker_pays_for_its_time() {
    let mut run = Loop::new(plain());
    for habit in [SEQ, SEEK] {
        let group = run.rig.group(GroupId::ROOT, 100);
        let context = run.rig.context_in(group);
        run.add(context, habit);
    }
    run.run(10);
    let done = run.served(50);
    // Half of the time would be 125,000 pages (with a think time as long as the service) and 3000 seeks.
    assert!(done[0] > 60_000, "{done:?}");
    assert!((300..6_000).contains(&done[1]), "{done:?}");
}

/// A player reads 4 KiB every 100 ms beside four backlogged readers: raised, each waits little more than for what is in the device;
/// else for others' turns.
#[test]
fn a_soft_real_time_reader_is_raised() {
    let worst = |low_latency| {
        let mut rig = Rig::new();
        rig.set("low_latency", low_latency);
        let mut run = Loop::new(rig);
        for _ in 0..4 {
            let context = run.rig.context();
            run.add(context, SEQ);
        }
        run.run(40);
        let context = run.rig.context();
        let player = run.add(context, Habit::Every { period_ns: 100 * MS });
        run.run(5);
        let mut waits = run.readers[player].waits.split_off(20);
        waits.sort_unstable();
        waits[waits.len() * 9 / 10]
    };
    let (with, without) = (worst("1"), worst("0"));
    assert!(with < 25 * MS, "{with}");
    assert!(without > 2 * with, "{with} {without}");
}

/// A program that starts beside four readers gets most of the device until its raise is over (10.5 s on this disk, less on a faster
/// one), and its part afterwards.
#[test]
fn a_start_is_quick_and_ends() {
    let mut run = Loop::new(Rig::new());
    for _ in 0..4 {
        let context = run.rig.context();
        run.add(context, SEQ);
    }
    run.run(40);
    let context = run.rig.context();
    let starter = run.add(context, SEQ);
    run.run(1);
    let during = run.served(2);
    assert!(during[starter] * 10 > 6 * during.iter().sum::<u64>(), "{during:?}");
    run.run(30);
    let after = run.served(20);
    assert_ratio(after[starter], after[0], (1, 1), 10);
}
