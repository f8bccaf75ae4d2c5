//! Random streams of everything a host may do, against what must hold whatever the policy: every request is issued
//! exactly once (again after a requeue), an idle wait ends in the future, an idle device gets the next request after a
//! bounded number of waits, and equal streams give equal answers. A failure names its seed.

use super::*;
use crate::collections::Id;
use crate::elevator::Growth;
use crate::request::RequestState;
use crate::tunable::Unit;

/// Answers of a stream, to compare two runs by.
type Log = Vec<Dispatch>;

struct Stream {
    rig: Rig,
    random: u64,
    contexts: Vec<ContextId>,
    /// Inserted, not issued.
    waiting: Vec<RequestId>,
    in_device: Vec<RequestId>,
    inserted: u64,
    completed: u64,
    log: Log,
    seed: u64,
    profile: &'static str,
    tick_ns: u64,
    /// Depth 1 and mostly sequential readers: the stream that idles much. Else deep and random.
    calm: bool,
    ends: [u64; CONTEXTS + 1],
}

const REQUESTS: usize = 48;
const CONTEXTS: usize = 6;

impl Stream {
    fn new(seed: u64) -> Stream {
        let profile = ["2.6.31", "2.6.34", "2.6.31", "2.6.37"][(seed % 4) as usize];
        let tick_ns = [0, MS, 4 * MS, 10 * MS][(seed / 4 % 4) as usize];
        let q = ElevatorQueue::new(
            REQUESTS,
            CONTEXTS,
            !(seed / 8).is_multiple_of(3),
            build(profile, REQUESTS, CONTEXTS, tick_ns),
        );
        let mut rig = Rig { q, now: 1000 * MS };
        if seed % 2 == 1 && (seed / 48).is_multiple_of(2) {
            rig.set("yield", "1");
        }
        Stream {
            rig,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            contexts: Vec::new(),
            waiting: Vec::new(),
            in_device: Vec::new(),
            inserted: 0,
            completed: 0,
            log: Vec::new(),
            seed,
            profile,
            tick_ns,
            calm: (seed / 24).is_multiple_of(2),
            ends: core::array::from_fn(|i| i as u64 * 10_000_000),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % n
    }

    fn ioprio(&mut self) -> IoPrio {
        let level = self.below(8) as u8;
        match self.below(8) {
            0 => IoPrio::RealTime(level),
            1 => IoPrio::Idle,
            2 => IoPrio::BestEffort(level),
            _ => IoPrio::DEFAULT,
        }
    }

    fn context(&mut self) -> ContextId {
        if self.contexts.is_empty() || self.below(30) == 0 {
            let ioprio = self.ioprio();
            let context = self.rig.context_at(ioprio);
            // More tasks than slots: some share the overflow context.
            if !self.contexts.contains(&context) {
                self.contexts.push(context);
            }
        }
        let i = self.below(self.contexts.len() as u64) as usize;
        self.contexts[i]
    }

    fn insert(&mut self) {
        let context = self.context();
        let op = if self.below(3) == 0 { Op::Write } else { Op::Read };
        let flags = match self.below(10) {
            0 => Flags::META,
            1 => Flags::SYNC,
            2 => Flags::SYNC | Flags::NOIDLE,
            _ => Flags::NONE,
        };
        // Crowded areas, so that there are neighbours, cooperators and requests at one sector.
        let sector = self.below(3) * 10_000_000 + self.below(4) * 5_000 + self.below(12) * PAGE;
        let sectors = if self.below(4) == 0 { 64 } else { 8 };
        let follows = self.calm && op == Op::Read && self.below(20) > 0;
        let sector = if follows { self.ends[context.index()] } else { sector };
        let start = self.rig.now.saturating_sub(self.below(3) * MS);
        let request = request::request(op, flags, sector, sectors, context, start);
        if let Some(rq) = self.rig.q.take(request) {
            self.rig.q.insert(rq, self.rig.now);
            self.waiting.push(rq);
            self.inserted += 1;
            if op == Op::Read {
                self.ends[context.index()] = sector + u64::from(sectors);
            }
        }
    }

    fn dispatch(&mut self) -> Dispatch {
        while self.calm && !self.in_device.is_empty() {
            self.complete();
        }
        let answer = self.rig.ask();
        self.log.push(answer);
        match answer {
            Dispatch::Issue(rq) => {
                let i = self.waiting.iter().position(|w| *w == rq);
                let i = i.unwrap_or_else(|| panic!("seed {}: {rq:?} issued though not waiting", self.seed));
                self.waiting.swap_remove(i);
                self.in_device.push(rq);
            }
            Dispatch::Idle { until } => {
                assert!(until > self.rig.now, "seed {}: an idle wait that is over", self.seed);
            }
            Dispatch::Empty | Dispatch::Busy => {}
        }
        answer
    }

    fn complete(&mut self) {
        if !self.in_device.is_empty() {
            let i = self.below(self.in_device.len() as u64) as usize;
            let rq = self.in_device.swap_remove(i);
            self.rig.complete(rq);
            self.completed += 1;
        }
    }

    fn requeue(&mut self) {
        if let Some(rq) = self.in_device.pop() {
            self.rig.q.requeue(rq, self.rig.now);
            self.waiting.push(rq);
        }
    }

    /// Grow or join requests as a merging queue would.
    fn merge(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let i = self.below(self.waiting.len() as u64) as usize;
        let (rq, now) = (self.waiting[i], self.rig.now);
        let request = self.rig.q.requests()[rq];
        if request.state != RequestState::Sorted {
            return;
        }
        let bio = self.rig.bio(request.context, request.end());
        if self.below(2) == 0 {
            if self.rig.q.allow_merge(rq, &bio, now) && self.rig.q.latter(rq, now).is_none() {
                self.rig.q.requests_mut()[rq].sectors += 8;
                self.rig.q.grew(rq, Growth::Back, now);
            }
            return;
        }
        let bio = self.rig.bio(request.context, request.sector.saturating_sub(8));
        if self.rig.q.find_front(&bio, now) == Some(rq)
            && self.rig.q.former(rq, now).is_none()
            && request.sector > 8
        {
            let request = &mut self.rig.q.requests_mut()[rq];
            request.sector -= 8;
            request.sectors += 8;
            self.rig.q.grew(rq, Growth::Front, now);
        }
        let gone = self.rig.q.latter(rq, now).filter(|gone| {
            let (a, b) = (&self.rig.q.requests()[rq], &self.rig.q.requests()[*gone]);
            a.end() == b.sector && a.op == b.op
        });
        if let Some(gone) = gone {
            self.rig.q.requests_mut()[rq].sectors += 8;
            self.rig.q.absorbed(rq, gone, now);
            self.rig.q.release(gone);
            let at = self.waiting.iter().position(|w| *w == gone).unwrap();
            self.waiting.swap_remove(at);
            self.completed += 1;
        }
    }

    fn set_tunable(&mut self) {
        let list = (DESCRIPTOR.tunables)(self.profile);
        let tunable = &list[self.below(list.len() as u64) as usize];
        let spread =
            (tunable.max - tunable.min).min(if tunable.unit == Unit::Milliseconds { 60 } else { 12 });
        let value = match self.below(3) {
            0 => tunable.default,
            _ => tunable.min + self.below(spread + 1),
        };
        self.rig.set(tunable.name, &std::format!("{value}"));
    }

    fn step(&mut self) {
        // Mostly busy; now and then long enough for an idle wait, a slice or a deadline to run out.
        let pass = [0, 0, 0, 100_000, 100_000, MS, MS, 9 * MS][self.below(8) as usize];
        let pass = if self.below(100) == 0 { 130 * MS } else { pass };
        self.rig.now += self.below(pass + 1);
        match self.below(100) {
            0..=39 => self.insert(),
            40..=64 => _ = self.dispatch(),
            65..=86 => self.complete(),
            87 => self.requeue(),
            88..=91 => self.merge(),
            92 => {
                if !self.contexts.is_empty() {
                    let i = self.below(self.contexts.len() as u64) as usize;
                    let context = self.contexts.swap_remove(i);
                    self.rig.q.context_exit(context, self.rig.now);
                }
            }
            93 => {
                let (context, ioprio) = (self.context(), self.ioprio());
                self.rig.q.set_ioprio(context, ioprio, self.rig.now);
            }
            94 => {
                let (from, to) = (self.context(), self.context());
                let to = (self.below(4) > 0).then_some(to);
                self.rig.q.yield_to(from, to, self.rig.now);
            }
            95 => {
                let (context, sync) = (self.context(), self.below(2) == 0);
                self.rig.q.may_queue(context, sync, self.rig.now);
            }
            96 => self.set_tunable(),
            97 => self.catch_up(),
            98 => {
                if self.below(10) == 0 {
                    self.rig.q.drain(self.rig.now);
                }
            }
            _ => {
                if self.below(20) == 0 {
                    let new = build(self.profile, REQUESTS, CONTEXTS, self.tick_ns);
                    drop(self.rig.q.switch(new, self.rig.now));
                }
            }
        }
    }

    /// Let the device run empty; then a waiting request must come after at most a few idle waits.
    fn catch_up(&mut self) {
        while !self.in_device.is_empty() {
            self.complete();
        }
        for _ in 0..3 {
            match self.dispatch() {
                Dispatch::Issue(_) => return,
                Dispatch::Idle { until } => {
                    // However long the wait set by `slice_idle`, it is not renewed.
                    self.rig.now = until;
                }
                Dispatch::Empty | Dispatch::Busy => {
                    assert!(self.waiting.is_empty(), "seed {}: requests forgotten", self.seed);
                    return;
                }
            }
        }
        panic!("seed {}: an idle device waits and waits", self.seed);
    }

    fn finish(mut self) -> Log {
        while !self.waiting.is_empty() || !self.in_device.is_empty() {
            self.catch_up();
        }
        assert!(self.rig.q.elevator().is_empty());
        assert_eq!(self.inserted, self.completed, "seed {}", self.seed);
        assert_eq!(self.rig.q.requests().taken(), 0);
        self.log
    }
}

fn run(seed: u64, steps: u64) -> Log {
    let mut stream = Stream::new(seed);
    for _ in 0..steps {
        stream.step();
    }
    stream.finish()
}

#[test]
fn random_streams() {
    for seed in 0..400 {
        run(seed, 2_500);
    }
}

#[test]
fn equal_streams_give_equal_answers() {
    let mut idle = 0;
    for seed in 1000..1048 {
        let log = run(seed, 1_000);
        idle += log.iter().filter(|a| matches!(a, Dispatch::Idle { .. })).count();
        assert_eq!(log, run(seed, 1_000), "seed {seed}");
    }
    assert!(idle > 300, "poor streams: {idle} idle waits");
}
