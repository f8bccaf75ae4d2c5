//! Random streams of everything a host may do, against what must hold whatever the policy: every request is issued
//! exactly once (again after a requeue), an idle wait ends in the future, an idle device gets the next request after a
//! bounded number of waits, and equal streams give equal answers. A failure names its seed.

use std::format;
use std::vec::Vec;

use super::*;
use crate::collections::Id;
use crate::elevator::Growth;
use crate::request::{Bio, RequestState};
use crate::tunable::Unit;

struct Stream {
    rig: Rig,
    random: u64,
    contexts: Vec<ContextId>,
    groups: Vec<GroupId>,
    /// Inserted, not issued.
    waiting: Vec<RequestId>,
    in_device: Vec<RequestId>,
    inserted: u64,
    completed: u64,
    log: Vec<Dispatch>,
    seed: u64,
    grouped: bool,
    /// Depth 1 and mostly sequential readers: the stream that idles much. Else deep and random.
    calm: bool,
    ends: Vec<u64>,
}

const REQUESTS: usize = 40;
const CONTEXTS: usize = 6;
const GROUPS: usize = 4;

impl Stream {
    fn new(seed: u64) -> Stream {
        let grouped = seed % 2 == 1;
        let groups = if grouped { GROUPS } else { 0 };
        let mut rig = Rig::sized(REQUESTS, CONTEXTS, groups, !(seed / 8).is_multiple_of(3));
        if seed % 16 == 6 {
            rig.set("strict_guarantees", "1");
        }
        if seed.is_multiple_of(5) {
            rig.set("low_latency", "0");
        }
        Stream {
            rig,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            contexts: Vec::new(),
            groups: std::vec![GroupId::ROOT],
            waiting: Vec::new(),
            in_device: Vec::new(),
            inserted: 0,
            completed: 0,
            log: Vec::new(),
            seed,
            grouped,
            calm: (seed / 24).is_multiple_of(2),
            ends: (0..64).map(|i| i * 10_000_000).collect(),
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

    fn group(&mut self) -> GroupId {
        let i = self.below(self.groups.len() as u64) as usize;
        self.groups[i]
    }

    fn context(&mut self) -> ContextId {
        if self.contexts.is_empty() || self.below(30) == 0 {
            let (ioprio, group) = (self.ioprio(), self.group());
            let context = self.rig.q.contexts_mut().create_in(group, ioprio);
            // More tasks than slots: some share their group's context.
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
        let sector = self.below(3) * 10_000_000 + self.below(4) * 5_000 + self.below(12) * 8;
        let sectors = if self.below(4) == 0 { 64 } else { 8 };
        let follows = self.calm && op == Op::Read && self.below(20) > 0;
        let sector = if follows { self.ends[context.index()] } else { sector };
        let mut request = request::request(op, flags, sector, sectors, context, self.rig.now);
        // Now and then on another group's account.
        request.group = match self.below(12) {
            0 => self.group(),
            _ => self.rig.q.contexts()[context].group,
        };
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

    fn some_waiting(&mut self) -> Option<RequestId> {
        if self.waiting.is_empty() {
            return None;
        }
        let i = self.below(self.waiting.len() as u64) as usize;
        let rq = self.waiting[i];
        (self.rig.q.requests()[rq].state == RequestState::Sorted).then_some(rq)
    }

    fn gone(&mut self, rq: RequestId) {
        self.rig.q.release(rq);
        let at = self.waiting.iter().position(|w| *w == rq).unwrap();
        self.waiting.swap_remove(at);
        self.completed += 1;
    }

    fn cancel(&mut self) {
        if let Some(rq) = self.some_waiting() {
            assert!(self.rig.q.cancel(rq, self.rig.now), "seed {}", self.seed);
            self.gone(rq);
        }
    }

    fn bio(context: ContextId, sector: u64) -> Bio {
        Bio {
            cookie: 0,
            op: Op::Read,
            flags: Flags::NONE,
            sector,
            sectors: 8,
            segments: 1,
            context,
            ioprio: None,
            group: None,
        }
    }

    /// Grow or join requests as a merging queue would.
    fn merge(&mut self) {
        let (Some(rq), now) = (self.some_waiting(), self.rig.now) else { return };
        let request = self.rig.q.requests()[rq];
        let bio = Stream::bio(request.context, request.end());
        if self.below(2) == 0 {
            if self.rig.q.allow_merge(rq, &bio, now) && self.rig.q.latter(rq, now).is_none() {
                self.rig.q.requests_mut()[rq].sectors += 8;
                self.rig.q.grew(rq, Growth::Back, now);
            }
            return;
        }
        let bio = Stream::bio(request.context, request.sector.saturating_sub(8));
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
            a.end() == b.sector && a.op == b.op && a.payer == b.payer
        });
        if let Some(gone) = gone {
            self.rig.q.requests_mut()[rq].sectors += 8;
            self.rig.q.absorbed(rq, gone, now);
            self.gone(gone);
        }
    }

    fn set_tunable(&mut self) {
        let list = (DESCRIPTOR.tunables)("");
        let tunable = &list[self.below(list.len() as u64) as usize];
        let spread =
            (tunable.max - tunable.min).min(if tunable.unit == Unit::Milliseconds { 60 } else { 12 });
        let value = match self.below(3) {
            0 => tunable.default,
            _ => tunable.min + self.below(spread + 1),
        };
        self.rig.set(tunable.name, &format!("{value}"));
    }

    fn change_groups(&mut self) {
        if !self.grouped {
            return;
        }
        match self.below(4) {
            0 | 1 => {
                let parent = self.group();
                let params = GroupParams::weight(1 + self.below(2000) as u32);
                if let Ok(group) = self.rig.q.groups_mut().create(parent, params) {
                    self.groups.push(group);
                }
            }
            2 if self.groups.len() > 1 => {
                let i = 1 + self.below(self.groups.len() as u64 - 1) as usize;
                let group = self.groups.swap_remove(i);
                self.rig.q.remove_group(group).unwrap();
            }
            _ => {
                let (context, group) = (self.context(), self.group());
                self.rig.q.move_context(context, group, self.rig.now);
            }
        }
    }

    fn step(&mut self) {
        // Mostly busy; now and then long enough for an idle wait, a turn, a raise or a deadline to run out.
        let pass = [0, 0, 0, 100_000, 100_000, MS, MS, 9 * MS][self.below(8) as usize];
        let pass = if self.below(100) == 0 { 130 * MS } else { pass };
        let pass = if self.below(1000) == 0 { 5000 * MS } else { pass };
        self.rig.now += self.below(pass + 1);
        match self.below(100) {
            0..=39 => self.insert(),
            40..=64 => _ = self.dispatch(),
            65..=84 => self.complete(),
            85 => self.requeue(),
            86 => self.cancel(),
            87..=90 => self.merge(),
            91 => {
                if !self.contexts.is_empty() {
                    let i = self.below(self.contexts.len() as u64) as usize;
                    let context = self.contexts.swap_remove(i);
                    self.rig.q.context_exit(context, self.rig.now);
                }
            }
            92 => {
                let (context, ioprio) = (self.context(), self.ioprio());
                self.rig.q.set_ioprio(context, ioprio, self.rig.now);
            }
            93 | 94 => self.change_groups(),
            95 => self.set_tunable(),
            96 | 97 => self.catch_up(),
            98 => {
                if self.below(10) == 0 {
                    self.rig.q.drain(self.rig.now);
                }
            }
            _ => {
                if self.below(20) == 0 {
                    let groups = if self.grouped { GROUPS } else { 0 };
                    drop(self.rig.q.switch(build(REQUESTS, CONTEXTS, groups), self.rig.now));
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

    fn finish(mut self) -> Vec<Dispatch> {
        while !self.waiting.is_empty() || !self.in_device.is_empty() {
            self.catch_up();
        }
        assert!(self.rig.q.elevator().is_empty());
        assert_eq!(self.inserted, self.completed, "seed {}", self.seed);
        assert_eq!(self.rig.q.requests().taken(), 0);
        self.log
    }
}

fn run(seed: u64, steps: u64) -> Vec<Dispatch> {
    let mut stream = Stream::new(seed);
    for _ in 0..steps {
        stream.step();
    }
    stream.finish()
}

#[test]
fn random_streams() {
    for seed in 0..300 {
        run(seed, 2_000);
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
