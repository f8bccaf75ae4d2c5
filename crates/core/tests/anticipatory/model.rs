//! anticipatory once more, as plainly as possible: vectors searched from end to end, time in grains (jiffies, or
//! nanoseconds on an exact clock), tasks that are never forgotten. Shares no code with the core; written from the
//! description of the algorithm.

/// A request's and a task's name, never used twice.
pub(crate) type Name = u64;
pub(crate) type TaskName = usize;

const MS: u64 = 1_000_000;
const ASYNC: usize = 0;
const SYNC: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Issue(Name),
    /// Nanoseconds.
    Idle(u64),
    Empty,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    Read,
    Write,
    Antic,
    ReadBatch,
    WriteBatch,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rq {
    pub(crate) name: Name,
    pub(crate) task: TaskName,
    pub(crate) sync: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

#[derive(Clone, Debug)]
struct Queued {
    rq: Rq,
    deadline: u64,
}

#[derive(Clone, Default)]
struct Task {
    exited: bool,
    queued: i64,
    listed: i64,
    last_end: Option<u64>,
    answered: Option<u64>,
    samples: u128,
    think_total: u128,
    seek_total: u128,
}

impl Task {
    fn mean_seek(&self) -> Option<u128> {
        (self.seek_total + self.samples / 2).checked_div(self.samples)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Antic {
    Off,
    WaitReq,
    WaitNext(u64),
    Finished,
}

fn eighth(old: u128, new: u128) -> u128 {
    (7 * old + 256 * new) / 8
}

pub(crate) struct Model {
    grain: u64,
    /// Grains per jiffy.
    jiffy: u64,
    hz: u64,

    /// Oldest first.
    queue: Vec<Queued>,
    /// In no tree for the moment.
    hidden: Option<Name>,
    next: [Option<Name>; 2],
    last: [u64; 2],
    checked: [u64; 2],
    expire: [u64; 2],
    batch_expire: [u64; 2],
    antic_expire: u64,

    dir: usize,
    changed: bool,
    new: bool,
    batch_expires: Option<u64>,
    write_count: u64,
    current_writes: u64,
    idled: bool,
    dispatched: u64,

    antic: Antic,
    awaited: Option<TaskName>,
    finished_at: Option<u64>,
    tasks: Vec<Task>,
    new_think: u128,
    new_seek: u128,
    exit: u128,
    no_coop: u128,
}

impl Model {
    pub(crate) fn new(tick_ns: u64) -> Model {
        let hz = 1_000_000_000_u64.checked_div(tick_ns).unwrap_or(1000);
        let jiffy = if tick_ns == 0 { MS } else { 1 };
        Model {
            grain: tick_ns.max(1),
            jiffy,
            hz,
            queue: Vec::new(),
            hidden: None,
            next: [None; 2],
            last: [0; 2],
            checked: [0; 2],
            expire: [hz / 4 * jiffy, hz / 8 * jiffy],
            batch_expire: [hz / 8 * jiffy, hz / 2 * jiffy],
            antic_expire: (hz / 150).max(1) * jiffy,
            dir: ASYNC,
            changed: false,
            new: false,
            batch_expires: None,
            write_count: (hz / 8 / 10).max(2),
            current_writes: 0,
            idled: false,
            dispatched: 0,
            antic: Antic::Off,
            awaited: None,
            finished_at: None,
            tasks: Vec::new(),
            new_think: 0,
            new_seek: 0,
            exit: 0,
            no_coop: 0,
        }
    }

    pub(crate) fn set(&mut self, setting: Setting, ms: u64) {
        let grains = (ms * MS).div_ceil(self.grain);
        match setting {
            Setting::Read => self.expire[SYNC] = grains,
            Setting::Write => self.expire[ASYNC] = grains,
            Setting::Antic => self.antic_expire = grains,
            Setting::ReadBatch => self.batch_expire[SYNC] = grains,
            Setting::WriteBatch => self.batch_expire[ASYNC] = grains,
        }
    }

    pub(crate) fn new_task(&mut self) -> TaskName {
        self.tasks.push(Task::default());
        self.tasks.len() - 1
    }

    /// The timer, if it went off by `now`. Answers with the time in grains.
    fn timer(&mut self, now_ns: u64) -> u64 {
        let now = now_ns / self.grain;
        if self.batch_expires.is_none() {
            self.batch_expires = Some(now + self.batch_expire[SYNC]);
        }
        if let Antic::WaitNext(until) = self.antic
            && until <= now
        {
            self.antic = Antic::Finished;
            let task = &self.tasks[self.awaited.expect("somebody is waited for")];
            if task.samples == 0 {
                self.exit = eighth(self.exit, 1);
            }
            if task.exited {
                self.no_coop = eighth(self.no_coop, 1);
            }
        }
        now
    }

    // ---- order ----

    fn get(&self, name: Name) -> Option<&Queued> {
        self.queue.iter().find(|q| q.rq.name == name)
    }

    fn class(&self, class: usize) -> impl Iterator<Item = &Queued> {
        self.queue.iter().filter(move |q| usize::from(q.rq.sync) == class)
    }

    /// Does `a` go before `b`?
    fn before(&self, class: usize, a: u64, b: u64) -> bool {
        let last = self.last[class];
        let distance = |s: u64| {
            if s >= last {
                Some(s - last)
            } else if last - s <= 1024 * 1024 {
                Some(2 * (last - s))
            } else {
                None
            }
        };
        match (distance(a), distance(b)) {
            (Some(x), Some(y)) => x < y || x == y && a >= b,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => a <= b,
        }
    }

    fn choose(&self, class: usize, a: Option<Name>, b: Option<Name>) -> Option<Name> {
        let start = |name| self.get(name).expect("queued").rq.start;
        match (a, b) {
            (Some(x), Some(y)) => Some(if self.before(class, start(x), start(y)) { x } else { y }),
            _ => a.or(b),
        }
    }

    fn follower(&self, gone: &Rq) -> Option<Name> {
        let class = usize::from(gone.sync);
        let mut all: Vec<&Queued> = self.class(class).filter(|q| Some(q.rq.name) != self.hidden).collect();
        all.sort_by_key(|q| q.rq.start);
        let up =
            all.iter().find(|q| q.rq.start > gone.start).or(all.first()).filter(|q| q.rq.name != gone.name);
        let down = all.iter().rfind(|q| q.rq.start < gone.start);
        self.choose(class, up.map(|q| q.rq.name), down.map(|q| q.rq.name))
    }

    // ---- learning ----

    fn learn(&mut self, task: TaskName, rq: &Rq, now: u64) {
        let t = &mut self.tasks[task];
        if let Some(last_end) = t.last_end {
            let mut think = 0;
            if let Some(answered) = t.answered
                && t.queued + t.listed == 0
            {
                let most = (self.hz / 50 - 1) * self.jiffy;
                think = u128::from((now - answered).min(most));
            }
            let mut seek = u128::from(last_end.max(rq.start) - last_end.min(rq.start));
            if t.samples == 0 {
                self.new_think = eighth(self.new_think, think);
                self.new_seek = eighth(self.new_seek, seek);
                self.exit = eighth(self.exit, 0);
            }
            let mean = t.mean_seek().unwrap_or(0);
            seek = seek.min(4 * mean + if t.samples <= 60 { 2 * 1024 * 1024 } else { 131_072 });
            t.samples = eighth(t.samples, 1);
            t.think_total = eighth(t.think_total, think);
            t.seek_total = eighth(t.seek_total, seek);
        }
        t.last_end = Some(rq.end);
    }

    fn close(&self, awaited: TaskName, start: u64, now: u64) -> bool {
        let delay = match self.finished_at {
            Some(at) if self.antic != Antic::Off => (now - at) / self.jiffy,
            _ => 0,
        };
        if delay > 0 && (delay > self.hz / 50 || delay > self.antic_expire / self.jiffy) {
            return true;
        }
        let (start, last) = (i128::from(start), i128::from(self.last[self.dir]));
        let window = 8192 << delay;
        if start >= last - window / 2 && start <= last + window {
            return true;
        }
        let t = &self.tasks[awaited];
        let expected = t.mean_seek().unwrap_or(self.new_seek / 256);
        expected > (start - last).unsigned_abs()
    }

    fn breaks(&mut self, rq: Option<Rq>, now: u64) -> bool {
        let awaited = self.awaited.expect("somebody is waited for");
        if rq.is_some_and(|rq| rq.task == awaited) {
            return true;
        }
        if self.finished_at.is_some_and(|at| now - at >= self.antic_expire) {
            return true;
        }
        let Task { exited, samples, queued, listed, think_total, .. } = self.tasks[awaited];
        if queued > 0 || listed > 0 {
            return true;
        }
        if let Some(rq) = rq
            && rq.sync
            && self.close(awaited, rq.start, now)
        {
            if exited {
                if samples == 0 {
                    self.exit = eighth(self.exit, 1);
                }
                self.no_coop = eighth(self.no_coop, 0);
            }
            self.learn(awaited, &rq, now);
            return true;
        }
        if exited {
            if samples == 0 {
                self.exit = eighth(self.exit, 1);
            }
            if self.no_coop > 128 {
                return true;
            }
        }
        let limit = u128::from(self.antic_expire);
        match (think_total + 128).checked_div(samples) {
            None => self.new_think / 256 > limit || self.exit * self.no_coop > 128 * 256,
            Some(mean) => mean > limit,
        }
    }

    // ---- hooks ----

    /// Answers with whom the arrival sent away.
    pub(crate) fn insert(&mut self, rq: Rq, now_ns: u64) -> Option<Name> {
        let now = self.timer(now_ns);
        let class = usize::from(rq.sync);
        if rq.sync {
            self.learn(rq.task, &rq, now);
        }
        self.tasks[rq.task].queued += 1;
        let alias = self.class(class).find(|q| q.rq.start == rq.start).map(|q| q.rq.name);
        if let Some(alias) = alias {
            self.leave(alias);
        }
        self.queue.push(Queued { rq, deadline: now + self.expire[class] });
        self.next[class] = self.choose(class, Some(rq.name), self.next[class]);
        if matches!(self.antic, Antic::WaitReq | Antic::WaitNext(_)) && self.breaks(Some(rq), now) {
            self.antic = Antic::Finished;
        }
        alias
    }

    /// To the dispatch list.
    fn leave(&mut self, name: Name) {
        let rq = self.get(name).expect("queued").rq;
        let class = usize::from(rq.sync);
        self.antic = Antic::Off;
        self.finished_at = None;
        self.last[class] = rq.end;
        self.awaited = if rq.sync { Some(rq.task) } else { None };
        if !rq.sync && self.current_writes > 0 {
            self.current_writes -= 1;
        }
        self.next[class] = self.follower(&rq);
        self.queue.retain(|q| q.rq.name != name);
        self.tasks[rq.task].queued -= 1;
        self.tasks[rq.task].listed += 1;
        self.dispatched += 1;
    }

    fn expired(&mut self, class: usize, now: u64) -> Option<Name> {
        if now - self.checked[class] < self.expire[class] {
            return None;
        }
        self.checked[class] = now;
        let head = self.class(class).next()?;
        if now > head.deadline { Some(head.rq.name) } else { None }
    }

    fn over(&self, now: u64) -> bool {
        !self.changed
            && !self.new
            && (now > self.batch_expires.expect("the clock runs")
                || self.dir == ASYNC && self.current_writes == 0)
    }

    pub(crate) fn dispatch(&mut self, now_ns: u64) -> Answer {
        let now = self.timer(now_ns);
        let reads = self.class(SYNC).count() > 0;
        let writes = self.class(ASYNC).count() > 0;
        if self.dir == ASYNC && !reads && (!writes || self.current_writes == 0) {
            self.idled = true;
        }
        if self.antic == Antic::WaitReq || self.changed || !reads && !writes {
            return Answer::Empty;
        }
        if let Antic::WaitNext(until) = self.antic {
            return Answer::Idle(until * self.grain);
        }

        let mut chosen = None;
        if !(reads && writes && self.over(now)) {
            let next = self.next[self.dir];
            if self.dir == SYNC && self.antic_expire > 0 {
                if let Some(late) = self.expired(SYNC, now) {
                    self.leave(late);
                    return Answer::Issue(late);
                }
                let next_rq = next.map(|name| self.get(name).expect("queued").rq);
                if self.awaited.is_some() && self.antic != Antic::Finished && !self.breaks(next_rq, now) {
                    return match self.finished_at {
                        None => {
                            self.antic = Antic::WaitReq;
                            Answer::Empty
                        }
                        Some(at) => {
                            self.antic = Antic::WaitNext(at + self.antic_expire);
                            Answer::Idle((at + self.antic_expire) * self.grain)
                        }
                    };
                }
            }
            if next.is_some() && reads && !writes {
                self.batch_expires = Some(now + self.batch_expire[SYNC]);
            }
            chosen = next;
        }
        if chosen.is_none() {
            let to = match (reads, writes) {
                (true, true) => 1 - self.dir,
                (true, false) => SYNC,
                _ => ASYNC,
            };
            self.changed = to != self.dir;
            if self.changed {
                self.new = false;
            }
            if to == ASYNC {
                self.current_writes = self.write_count;
                self.idled = false;
            }
            self.dir = to;
            self.checked[to] = now;
            chosen = self.class(to).next().map(|q| q.rq.name);
        }
        if let Some(late) = self.expired(self.dir, now) {
            chosen = Some(late);
        }
        if self.changed {
            if self.dispatched > 0 {
                return Answer::Empty;
            }
            self.changed = false;
            if self.dir == ASYNC {
                self.batch_expires = Some(now + self.batch_expire[ASYNC]);
            } else {
                self.new = true;
            }
        }
        let name = chosen.expect("something is queued");
        self.leave(name);
        Answer::Issue(name)
    }

    /// All of it, in the order it leaves.
    pub(crate) fn drain(&mut self, now_ns: u64) -> Vec<Name> {
        let now = self.timer(now_ns);
        (self.dir, self.changed, self.new) = (SYNC, false, false);
        self.checked = [now; 2];
        let mut all = Vec::new();
        while let Some(name) = self.next[SYNC].or(self.next[ASYNC]) {
            self.leave(name);
            all.push(name);
        }
        all
    }

    pub(crate) fn issued(&mut self, rq: &Rq, now_ns: u64) {
        self.timer(now_ns);
        self.tasks[rq.task].listed -= 1;
    }

    pub(crate) fn requeued(&mut self, rq: &Rq, now_ns: u64) {
        self.timer(now_ns);
        self.tasks[rq.task].listed += 1;
    }

    pub(crate) fn completed(&mut self, rq: &Rq, now_ns: u64) {
        let now = self.timer(now_ns);
        if self.changed && self.dispatched == 1 {
            self.batch_expires = Some(now + self.batch_expire[self.dir]);
            self.changed = false;
            self.new = self.dir == SYNC;
        }
        self.dispatched -= 1;
        if self.new && rq.sync {
            self.resize(now);
            self.batch_expires = Some(now + self.batch_expire[SYNC]);
            self.new = false;
        }
        if self.awaited == Some(rq.task) {
            self.finished_at = Some(now);
            if self.antic == Antic::WaitReq {
                self.antic = Antic::WaitNext(now + self.antic_expire);
            }
        }
        if rq.sync {
            self.tasks[rq.task].answered = Some(now);
        }
    }

    fn resize(&mut self, now: u64) {
        let target = i128::from(self.batch_expire[ASYNC]);
        let expires = i128::from(self.batch_expires.expect("the clock runs"));
        let took = (i128::from(now) - expires + target).max(0);
        if took > target {
            if !self.idled {
                self.write_count =
                    if took > 3 * target { self.write_count / 2 } else { self.write_count - 1 };
            }
        } else if took < target && self.current_writes == 0 {
            self.write_count = if target > 3 * took { self.write_count * 2 } else { self.write_count + 1 };
        }
        self.write_count = self.write_count.clamp(1, i32::MAX as u64);
    }

    /// The request grew in front. Answers with whom that sent away.
    pub(crate) fn new_start(&mut self, name: Name, start: u64, now_ns: u64) -> Option<Name> {
        self.timer(now_ns);
        let at = self.queue.iter().position(|q| q.rq.name == name).expect("queued");
        self.queue[at].rq.start = start;
        let class = usize::from(self.queue[at].rq.sync);
        let alias = self.class(class).find(|q| q.rq.start == start && q.rq.name != name)?.rq.name;
        // While the other leaves, the grown request is in neither its old nor its new place.
        self.hidden = Some(name);
        self.leave(alias);
        self.hidden = None;
        self.next[class] = self.choose(class, Some(name), self.next[class]);
        Some(alias)
    }

    pub(crate) fn new_end(&mut self, name: Name, end: u64, now_ns: u64) {
        self.timer(now_ns);
        let at = self.queue.iter().position(|q| q.rq.name == name).expect("queued");
        self.queue[at].rq.end = end;
    }

    pub(crate) fn absorb(&mut self, name: Name, gone: Name, now_ns: u64) {
        let now = self.timer(now_ns);
        let (kept, leaving) =
            (self.get(name).expect("queued").clone(), self.get(gone).expect("queued").clone());
        assert_eq!(kept.rq.sync, leaving.rq.sync, "neighbours");
        let class = usize::from(kept.rq.sync);
        if leaving.deadline < kept.deadline {
            self.queue.retain(|q| q.rq.name != name);
            let at = self.queue.iter().position(|q| q.rq.name == gone).expect("queued");
            self.queue.insert(at, Queued { deadline: leaving.deadline, ..kept });
        }
        if self.next[class] == Some(gone) {
            self.next[class] = self.follower(&leaving.rq);
        }
        self.queue.retain(|q| q.rq.name != gone);
        self.tasks[leaving.rq.task].queued -= 1;
        if leaving.rq.sync {
            self.tasks[leaving.rq.task].answered = Some(now);
        }
    }

    pub(crate) fn front(&self, read: bool, end: u64) -> Option<Name> {
        self.class(usize::from(!read)).find(|q| q.rq.start == end).map(|q| q.rq.name)
    }

    pub(crate) fn latter(&self, name: Name) -> Option<Name> {
        let rq = self.get(name)?.rq;
        let above = self.class(usize::from(rq.sync)).filter(|q| q.rq.start > rq.start);
        above.min_by_key(|q| q.rq.start).map(|q| q.rq.name)
    }

    pub(crate) fn former(&self, name: Name) -> Option<Name> {
        let rq = self.get(name)?.rq;
        let below = self.class(usize::from(rq.sync)).filter(|q| q.rq.start < rq.start);
        below.max_by_key(|q| q.rq.start).map(|q| q.rq.name)
    }

    pub(crate) fn must_queue(&mut self, task: TaskName, now_ns: u64) -> bool {
        self.timer(now_ns);
        matches!(self.antic, Antic::WaitReq | Antic::WaitNext(_)) && self.awaited == Some(task)
    }

    pub(crate) fn exit(&mut self, task: TaskName, now_ns: u64) {
        self.timer(now_ns);
        self.tasks[task].exited = true;
    }
}
