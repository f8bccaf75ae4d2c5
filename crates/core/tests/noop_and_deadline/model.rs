//! noop and deadline once more, as plainly as possible: vectors, searched from end to end. Shares no code with the core's
//! elevators; written from the description of the algorithms (see the docs of `elevator::deadline`).

use fairlift_core::context::IoClass;
use fairlift_core::{MS, Op};

use crate::bench::Kind;

/// A request's name, never used twice.
pub(crate) type Name = u64;

#[derive(Clone, Debug)]
struct Queued {
    name: Name,
    start: u64,
    /// 0 RT, 1 first, 2 second class.
    level: usize,
    deadline: u64,
}

/// What an elevator is asked to do, by name.
pub(crate) trait Model {
    /// Answers with whom the arrival sent away.
    fn insert(&mut self, name: Name, kind: Kind, start: u64, now: u64) -> Option<Name>;
    fn dispatch(&mut self, now: u64) -> Option<Name>;
    fn new_start(&mut self, name: Name, start: u64) -> Option<Name>;
    fn absorb(&mut self, name: Name, gone: Name);
    fn front(&self, kind: Kind, end: u64) -> Option<Name>;
    fn allows(&self, name: Name, kind: Kind) -> bool;
    fn former(&self, name: Name) -> Option<Name>;
    fn latter(&self, name: Name) -> Option<Name>;
    fn set(&mut self, setting: Setting, value: u64);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    RtExpire,
    ReadExpire,
    WriteExpire,
    WritesStarved,
    FifoBatch,
    FrontMerges,
    Classes,
    Quantum,
}

#[derive(Default)]
pub(crate) struct Noop {
    queue: Vec<Name>,
}

impl Model for Noop {
    fn insert(&mut self, name: Name, _: Kind, _: u64, _: u64) -> Option<Name> {
        self.queue.push(name);
        None
    }

    fn dispatch(&mut self, _: u64) -> Option<Name> {
        if self.queue.is_empty() { None } else { Some(self.queue.remove(0)) }
    }

    fn new_start(&mut self, _: Name, _: u64) -> Option<Name> {
        None
    }

    fn absorb(&mut self, _: Name, gone: Name) {
        self.queue.retain(|n| *n != gone);
    }

    fn front(&self, _: Kind, _: u64) -> Option<Name> {
        None
    }

    fn allows(&self, _: Name, _: Kind) -> bool {
        true
    }

    fn former(&self, name: Name) -> Option<Name> {
        let at = self.queue.iter().position(|n| *n == name)?;
        if at == 0 { None } else { Some(self.queue[at - 1]) }
    }

    fn latter(&self, name: Name) -> Option<Name> {
        let at = self.queue.iter().position(|n| *n == name)?;
        self.queue.get(at + 1).copied()
    }

    fn set(&mut self, _: Setting, _: u64) {}
}

/// Times in nanoseconds.
pub(crate) struct Deadline {
    /// All levels together, oldest first.
    queue: Vec<Queued>,
    goes_on_with: Option<Name>,
    batch_size: u64,
    batch_start: u64,
    starved: u64,
    last_looked_back_for: Option<Name>,

    tick: u64,
    seeks_cost: bool,
    expire: [u64; 3],
    writes_starved: u64,
    fifo_batch: u64,
    front_merges: bool,
    classes: u64,
    quantum: u64,
}

impl Deadline {
    pub(crate) fn new(tick: u64, seeks_cost: bool) -> Deadline {
        Deadline {
            queue: Vec::new(),
            goes_on_with: None,
            batch_size: 0,
            batch_start: 0,
            starved: 0,
            last_looked_back_for: None,
            tick,
            seeks_cost,
            expire: [125 * MS, 500 * MS, 5000 * MS],
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            classes: 0,
            quantum: 40 * MS,
        }
    }

    fn clock(&self, now: u64) -> u64 {
        now - now.checked_rem(self.tick).unwrap_or(0)
    }

    fn ticks(&self, span: u64) -> u64 {
        (span..).step_by(MS as usize).find(|t| *t == self.clock(*t)).expect("ticks are whole milliseconds")
    }

    fn level(&self, kind: Kind) -> usize {
        let read = kind.op == Op::Read;
        let sync = read || kind.flags.contains(fairlift_core::Flags::SYNC);
        match self.classes {
            0 => 2 - usize::from(read),
            1 => 2 - usize::from(sync),
            _ if kind.ioprio.class() == IoClass::Idle => 2,
            _ if kind.ioprio.class() == IoClass::RealTime && read => 0,
            _ => 2 - usize::from(sync),
        }
    }

    fn get(&self, name: Name) -> Option<&Queued> {
        self.queue.iter().find(|q| q.name == name)
    }

    fn oldest(&self, level: usize) -> Option<&Queued> {
        self.queue.iter().find(|q| q.level == level)
    }

    fn by_arrival(&self, level: usize) -> bool {
        self.classes == 2 && !self.seeks_cost && level < 2
    }

    /// Those of `level` in ascending order.
    fn ascending(&self, level: usize) -> Vec<&Queued> {
        let mut all: Vec<&Queued> = self.queue.iter().filter(|q| q.level == level).collect();
        all.sort_by_key(|q| q.start);
        all
    }

    /// Remove; answer with who follows in the order of service.
    fn remove(&mut self, name: Name) -> Option<Name> {
        let at = self.queue.iter().position(|q| q.name == name).expect("queued");
        let gone = self.queue.remove(at);
        if self.by_arrival(gone.level) {
            self.oldest(gone.level).map(|q| q.name)
        } else {
            self.ascending(gone.level).into_iter().find(|q| q.start > gone.start).map(|q| q.name)
        }
    }

    /// Send away whoever of `level` starts at `start`.
    fn clear_sector(&mut self, level: usize, start: u64, but: Name) -> Option<Name> {
        let there = self.queue.iter().find(|q| q.level == level && q.start == start && q.name != but)?.name;
        self.goes_on_with = self.remove(there);
        Some(there)
    }

    fn choose(&mut self, now: u64) -> Option<Name> {
        let running = self.goes_on_with.and_then(|name| self.get(name)).cloned();
        if let Some(q) = &running {
            let by_count = self.batch_size < self.fifo_batch;
            let by_time = self.classes == 2 && now < self.batch_start + self.ticks(self.quantum);
            let rt_waits = q.level > 0 && self.oldest(0).is_some();
            if (by_count || by_time) && !rt_waits {
                return Some(q.name);
            }
        }

        let waits = [0, 1, 2].map(|level| self.oldest(level).is_some());
        let level = match waits {
            [true, _, _] => 0,
            [_, true, true] => {
                if self.starved >= self.writes_starved {
                    self.starved = 0;
                    2
                } else {
                    self.starved += 1;
                    1
                }
            }
            [_, true, false] => 1,
            [_, false, true] => {
                self.starved = 0;
                2
            }
            _ => return None,
        };
        self.batch_size = 0;
        self.batch_start = now;

        let head = self.oldest(level)?.clone();
        if now > head.deadline {
            let back = if self.classes == 2 { (self.fifo_batch / 3).min(32) as usize } else { 0 };
            if back == 0 || self.by_arrival(level) || self.last_looked_back_for == Some(head.name) {
                return Some(head.name);
            }
            self.last_looked_back_for = Some(head.name);
            let ascending = self.ascending(level);
            let at = ascending.iter().position(|q| q.name == head.name)?;
            return Some(ascending[at.saturating_sub(back)].name);
        }
        match running {
            Some(q) if q.level == level => Some(q.name),
            _ => Some(head.name),
        }
    }
}

impl Model for Deadline {
    fn insert(&mut self, name: Name, kind: Kind, start: u64, now: u64) -> Option<Name> {
        let level = self.level(kind);
        let sent_away = self.clear_sector(level, start, name);
        let deadline = self.clock(now) + self.ticks(self.expire[level]);
        self.queue.push(Queued { name, start, level, deadline });
        sent_away
    }

    fn dispatch(&mut self, now: u64) -> Option<Name> {
        let name = self.choose(self.clock(now))?;
        self.batch_size += 1;
        self.goes_on_with = self.remove(name);
        Some(name)
    }

    fn new_start(&mut self, name: Name, start: u64) -> Option<Name> {
        // While another is sent away, the grown request is in neither its old nor its new place.
        let at = self.queue.iter().position(|q| q.name == name)?;
        let level = self.queue[at].level;
        self.queue[at].start = start;
        let there = self.queue.iter().find(|q| q.level == level && q.start == start && q.name != name)?.name;
        self.goes_on_with = self.remove(there);
        Some(there)
    }

    fn absorb(&mut self, name: Name, gone: Name) {
        let (Some(mut kept), Some(leaving)) = (self.get(name).cloned(), self.get(gone).cloned()) else {
            panic!("both are queued");
        };
        if kept.level == leaving.level && leaving.deadline < kept.deadline {
            kept.deadline = leaving.deadline;
            self.queue.retain(|q| q.name != name);
            let at = self.queue.iter().position(|q| q.name == gone).expect("queued");
            self.queue.insert(at, kept);
        }
        let follower = self.remove(gone);
        if self.goes_on_with == Some(gone) {
            self.goes_on_with = follower;
        }
    }

    fn front(&self, kind: Kind, end: u64) -> Option<Name> {
        let level = self.level(kind);
        let found = self.queue.iter().find(|q| q.level == level && q.start == end)?;
        self.front_merges.then_some(found.name)
    }

    fn allows(&self, name: Name, kind: Kind) -> bool {
        self.get(name).is_some_and(|q| self.level(kind) >= q.level)
    }

    fn former(&self, name: Name) -> Option<Name> {
        let q = self.get(name)?;
        self.ascending(q.level).iter().rev().find(|o| o.start < q.start).map(|o| o.name)
    }

    fn latter(&self, name: Name) -> Option<Name> {
        let q = self.get(name)?;
        self.ascending(q.level).iter().find(|o| o.start > q.start).map(|o| o.name)
    }

    fn set(&mut self, setting: Setting, value: u64) {
        match setting {
            Setting::RtExpire => self.expire[0] = value * MS,
            Setting::ReadExpire => self.expire[1] = value * MS,
            Setting::WriteExpire => self.expire[2] = value * MS,
            Setting::WritesStarved => self.writes_starved = value,
            Setting::FifoBatch => self.fifo_batch = value,
            Setting::FrontMerges => self.front_merges = value == 1,
            Setting::Classes => self.classes = value,
            Setting::Quantum => self.quantum = value * MS,
        }
    }
}
