//! mq-deadline and kyber once more, as plainly as possible: vectors, searched from end to end. Shares no code with the core's
//! elevators; written from the description of the algorithms (see the docs of `elevator::mq_deadline` and `elevator::kyber`).

use fairlift_core::context::IoClass;
use fairlift_core::{MS, Op, SECOND};

use crate::bench::Kind;

/// A request's name, never used twice.
pub(crate) type Name = u64;

/// What an elevator is asked to do, by name.
pub(crate) trait Model {
    fn insert(&mut self, name: Name, kind: Kind, start: u64, now: u64);
    fn dispatch(&mut self, now: u64) -> Option<Name>;
    /// A request that came at `came` and was issued at `issued` is done.
    fn completed(&mut self, name: Name, kind: Kind, came: u64, issued: u64, now: u64);
    fn absorb(&mut self, name: Name, gone: Name);
    fn new_start(&mut self, name: Name, start: u64);
    fn front(&self, kind: Kind, end: u64) -> Option<Name>;
    fn allows(&self, name: Name, kind: Kind) -> bool;
    /// It left by `drain` or was cancelled.
    fn lost(&mut self, name: Name);
    fn set(&mut self, setting: &str, value: u64);
}

// ---- mq-deadline ----

#[derive(Clone, Debug)]
struct Queued {
    name: Name,
    kind: Kind,
    start: u64,
    /// Breaks ties of equal starts.
    filed: u64,
    deadline: u64,
}

/// Times in nanoseconds.
pub(crate) struct MqDeadline {
    /// Oldest first.
    queue: Vec<Queued>,
    /// In the device, by class.
    device: Vec<(Name, usize)>,
    position: [[u64; 2]; 3],
    writes_last: bool,
    batch: u64,
    starved: u64,
    filings: u64,
    read_expire: u64,
    write_expire: u64,
    aging: u64,
    writes_starved: u64,
    fifo_batch: u64,
    front_merges: bool,
}

fn class(kind: Kind) -> usize {
    match kind.ioprio.class() {
        IoClass::RealTime => 0,
        IoClass::BestEffort => 1,
        IoClass::Idle => 2,
    }
}

fn writes(kind: Kind) -> bool {
    kind.op != Op::Read
}

impl MqDeadline {
    pub(crate) fn new() -> MqDeadline {
        MqDeadline {
            queue: Vec::new(),
            device: Vec::new(),
            position: [[0; 2]; 3],
            writes_last: true,
            batch: 0,
            starved: 0,
            filings: 0,
            read_expire: 500 * MS,
            write_expire: 5000 * MS,
            aging: 10_000 * MS,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
        }
    }

    fn expire(&self, writes: bool) -> u64 {
        if writes { self.write_expire } else { self.read_expire }
    }

    fn of(&self, class_: usize, write: bool) -> impl Iterator<Item = &Queued> {
        self.queue.iter().filter(move |q| class(q.kind) == class_ && writes(q.kind) == write)
    }

    fn above(&self, class: usize, write: bool) -> Option<Queued> {
        let from = self.position[class][usize::from(write)];
        self.of(class, write).filter(|q| q.start >= from).min_by_key(|q| (q.start, q.filed)).cloned()
    }

    fn has_any(&self, wanted: usize) -> bool {
        self.queue.iter().any(|q| class(q.kind) == wanted) || self.device.iter().any(|(_, c)| *c == wanted)
    }

    fn try_class(&mut self, class: usize, now: u64, old: Option<u64>) -> Option<Queued> {
        let mut chosen = self.above(class, self.writes_last).filter(|_| self.batch < self.fifo_batch);
        if chosen.is_none() {
            let (reads, waiting) = (self.of(class, false).count() > 0, self.of(class, true).count() > 0);
            let mut write = waiting;
            if reads {
                write = false;
                if waiting {
                    write = self.starved >= self.writes_starved;
                    self.starved += 1;
                }
            } else if !waiting {
                return None;
            }
            if write {
                self.starved = 0;
            }
            let oldest = self.of(class, write).next().cloned();
            let expired = oldest.clone().filter(|q| q.deadline <= now);
            chosen = expired.or(self.above(class, write)).or(oldest);
            self.writes_last = write;
            self.batch = 0;
        }
        let chosen = chosen?;
        let came = chosen.deadline.saturating_sub(self.expire(self.writes_last));
        if let Some(age) = old
            && (now < age || came > now - age)
        {
            return None;
        }
        self.batch += 1;
        Some(chosen)
    }

    fn choose(&mut self, now: u64) -> Option<Queued> {
        if (0..3).filter(|c| self.has_any(*c)).count() >= 2 {
            for class in [1, 2] {
                let aged = self.try_class(class, now, Some(self.aging));
                if aged.is_some() {
                    return aged;
                }
            }
        }
        let best = (0..3).find(|c| self.has_any(*c))?;
        self.try_class(best, now, None)
    }
}

impl Model for MqDeadline {
    fn insert(&mut self, name: Name, kind: Kind, start: u64, now: u64) {
        self.filings += 1;
        let deadline = now + self.expire(writes(kind));
        self.queue.push(Queued { name, kind, start, filed: self.filings, deadline });
    }

    fn dispatch(&mut self, now: u64) -> Option<Name> {
        let chosen = self.choose(now)?;
        let class = class(chosen.kind);
        self.position[class][usize::from(writes(chosen.kind))] = chosen.start;
        self.queue.retain(|q| q.name != chosen.name);
        self.device.push((chosen.name, class));
        Some(chosen.name)
    }

    fn completed(&mut self, name: Name, _: Kind, _: u64, _: u64, _: u64) {
        self.device.retain(|(n, _)| *n != name);
    }

    fn absorb(&mut self, name: Name, gone: Name) {
        let at = |m: &MqDeadline, name| m.queue.iter().position(|q| q.name == name).unwrap();
        let (kept, lost) = (at(self, name), at(self, gone));
        if self.queue[lost].deadline < self.queue[kept].deadline {
            let mut entry = self.queue[kept].clone();
            entry.deadline = self.queue[lost].deadline;
            self.queue[lost] = Queued { name: Name::MAX, ..entry.clone() };
            self.queue.retain(|q| q.name != name);
            let place = at(self, Name::MAX);
            self.queue[place].name = name;
        } else {
            self.queue.remove(lost);
        }
    }

    fn new_start(&mut self, name: Name, start: u64) {
        self.filings += 1;
        let filed = self.filings;
        for q in self.queue.iter_mut().filter(|q| q.name == name) {
            (q.start, q.filed) = (start, filed);
        }
    }

    fn front(&self, kind: Kind, end: u64) -> Option<Name> {
        let mut same = self.of(class(kind), writes(kind)).filter(|q| q.start == end).collect::<Vec<_>>();
        same.sort_by_key(|q| q.filed);
        same.first().filter(|_| self.front_merges).map(|q| q.name)
    }

    fn allows(&self, name: Name, kind: Kind) -> bool {
        self.queue.iter().any(|q| q.name == name && q.kind.ioprio == kind.ioprio)
    }

    fn lost(&mut self, name: Name) {
        self.queue.retain(|q| q.name != name);
    }

    fn set(&mut self, setting: &str, value: u64) {
        match setting {
            "read_expire" => self.read_expire = value * MS,
            "write_expire" => self.write_expire = value * MS,
            "prio_aging_expire" => self.aging = value * MS,
            "writes_starved" => self.writes_starved = value,
            "fifo_batch" => self.fifo_batch = value,
            "front_merges" => self.front_merges = value == 1,
            _ => {}
        }
    }
}

// ---- kyber ----

#[derive(Default)]
struct Domain {
    /// Both oldest first.
    hardware: Vec<(Name, Kind, u64)>,
    software: Vec<(Name, Kind, u64)>,
    with_token: Vec<Name>,
    depth: usize,
    target: u64,
    /// Eighths of twice the target: in all, and in the device.
    total: Vec<u64>,
    device: Vec<u64>,
    timeout: Option<u64>,
    memory: Option<u64>,
}

pub(crate) struct Kyber {
    domains: [Domain; 4],
    turn: usize,
    had: u32,
    timer: Option<u64>,
}

const BATCHES: [u32; 4] = [16, 8, 1, 1];
const DEPTHS: [usize; 4] = [256, 128, 64, 16];

fn domain(kind: Kind) -> usize {
    match kind.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

fn eighth(latency: u64, target: u64) -> u64 {
    let quarter = (target / 4).max(1);
    (0..7).find(|n| latency <= (n + 1) * quarter).unwrap_or(7)
}

/// The sample that `percent` of all do not exceed.
fn percentile(samples: &mut Vec<u64>, timeout: &mut Option<u64>, percent: usize, now: u64) -> Option<u64> {
    if samples.is_empty() {
        return None;
    }
    let until = *timeout.get_or_insert(now + SECOND);
    if samples.len() < 500 && now < until {
        return None;
    }
    *timeout = None;
    let mut sorted = core::mem::take(samples);
    sorted.sort_unstable();
    Some(sorted[(sorted.len() * percent).div_ceil(100) - 1])
}

impl Kyber {
    pub(crate) fn new() -> Kyber {
        let targets = [2 * MS, 10 * MS, 5 * SECOND, 0];
        let domains =
            core::array::from_fn(|d| Domain { depth: DEPTHS[d], target: targets[d], ..Domain::default() });
        Kyber { domains, turn: 0, had: 0, timer: None }
    }

    fn ring(&mut self, now: u64) {
        let Some(at) = self.timer.filter(|at| *at <= now) else { return };
        self.timer = None;
        let mut bad = false;
        for d in &mut self.domains[..3] {
            bad |= percentile(&mut d.device, &mut d.timeout, 90, at).is_some_and(|p| p >= 4);
        }
        for (d, most) in self.domains[..3].iter_mut().zip(DEPTHS) {
            let mut p = percentile(&mut d.total, &mut d.timeout, 99, at);
            if bad {
                p = p.or(d.memory);
                d.memory = None;
            } else if p.is_some() {
                d.memory = p;
            }
            match p {
                Some(p) if bad || p >= 4 => d.depth = (d.depth * (p as usize + 1) / 4).clamp(1, most),
                _ => {}
            }
        }
    }

    fn take(&mut self, from: usize) -> Option<Name> {
        let d = &mut self.domains[from];
        if d.with_token.len() >= d.depth {
            return None;
        }
        if d.hardware.is_empty() {
            d.hardware.append(&mut d.software);
        }
        if d.hardware.is_empty() {
            return None;
        }
        let (name, ..) = d.hardware.remove(0);
        d.with_token.push(name);
        Some(name)
    }
}

impl Model for Kyber {
    fn insert(&mut self, name: Name, kind: Kind, start: u64, _: u64) {
        self.domains[domain(kind)].software.push((name, kind, start));
    }

    fn dispatch(&mut self, now: u64) -> Option<Name> {
        self.ring(now);
        if self.had < BATCHES[self.turn]
            && let Some(name) = self.take(self.turn)
        {
            self.had += 1;
            return Some(name);
        }
        for step in 1..=4 {
            let turn = (self.turn + step) % 4;
            if let Some(name) = self.take(turn) {
                (self.turn, self.had) = (turn, 1);
                return Some(name);
            }
        }
        self.had = 0;
        None
    }

    fn completed(&mut self, name: Name, kind: Kind, came: u64, issued: u64, now: u64) {
        self.ring(now);
        let d = &mut self.domains[domain(kind)];
        d.with_token.retain(|n| *n != name);
        if domain(kind) < 3 {
            d.total.push(eighth(now - came, d.target));
            d.device.push(eighth(now - issued, d.target));
            self.timer = Some(self.timer.unwrap_or(now + 100 * MS));
        }
    }

    fn absorb(&mut self, _: Name, gone: Name) {
        self.lost(gone);
    }

    fn new_start(&mut self, name: Name, start: u64) {
        for d in &mut self.domains {
            d.software.iter_mut().chain(&mut d.hardware).filter(|q| q.0 == name).for_each(|q| q.2 = start);
        }
    }

    fn front(&self, kind: Kind, end: u64) -> Option<Name> {
        let newest = self.domains[domain(kind)].software.iter().rev().take(8);
        newest.clone().find(|q| q.2 == end).map(|q| q.0)
    }

    fn allows(&self, name: Name, kind: Kind) -> bool {
        let mut newest = self.domains[domain(kind)].software.iter().rev().take(8);
        newest.any(|q| q.0 == name && q.1.ioprio == kind.ioprio)
    }

    fn lost(&mut self, name: Name) {
        for d in &mut self.domains {
            d.software.retain(|q| q.0 != name);
            d.hardware.retain(|q| q.0 != name);
        }
    }

    fn set(&mut self, setting: &str, value: u64) {
        match setting {
            "read_lat_nsec" => self.domains[0].target = value,
            "write_lat_nsec" => self.domains[1].target = value,
            _ => {}
        }
    }
}
