//! anticipatory ("as"): deadline's trees and FIFOs, batches by time, and the one idea that made it famous: after a read,
//! wait a moment for the same task's next one.
//!
//! # Why wait
//! A program that reads a file sends one read, looks at the data, and sends the next, a few hundred microseconds later and
//! right behind the first. A scheduler that never idles has by then sent the disk's arm away to another task's request, and back
//! again, and away: two seeks per read. This one keeps the disk idle for up to `antic_expire` (6 ms) when it expects
//! that to pay: the task's think time is short, and no other task has a request close to where the arm is.
//!
//! # Terms
//! * *sync*: reads, and writes that a task waits for; *async*: all other writes. Each class has a tree by sector, a FIFO by
//!   arrival with deadlines, and a *next* request, the one cheapest to reach from where the class was served last.
//! * *batch*: a time during which one class is served. It ends only when both classes have requests: a sync one after
//!   `read_batch_expire`, an async one after `write_batch_expire` or its number of requests, which adapts so that those
//!   two coincide. Before the other class starts, the drive is left to run dry ([`Phase::Draining`]).
//! * *awaited task*: whose sync request was dispatched last. After an async one there is none.
//! * *close*: within 8192 sectors ahead of the last position or 4096 behind, a window that doubles with every millisecond
//!   waited; or nearer than the awaited task's own seeks use to be.
//!
//! # The wait
//! | state | meaning | `dispatch` answers |
//! |---|---|---|
//! | [`Wait::Off`] | not waiting | a request |
//! | [`Wait::Completion`] | the awaited task's request is still in the drive | `Empty` |
//! | [`Wait::Next`] | it is done; its next request should come | `Idle` until `antic_expire` after the completion |
//! | [`Wait::Over`] | that request came, or a close one, or time is up | a request; no new wait before |
//!
//! `Anticipatory::is_in_vain` holds the conditions for not waiting; [`history`] what is learned about tasks. The kernel
//! ends a wait on a timer, here every hook first asks whether time is up.
//!
//! # Kept as the kernel has it
//! 1. Front merges are looked up in the wrong tree (2.6.25 to 2.6.32): trees separate sync from async, the look-up reads from writes, so
//!    that a read looks among the async writes and an async write among the sync requests. Only sync writes are lucky. No
//!    tunable: what the queue's one-hit cache front-merges, it merges all the same.
//! 2. If the drive was busy when a sync batch was chosen, the clock of the write batch before it has been restarted by the
//!    time it is read: that batch seems to have taken next to nothing, and is doubled if its number was used up. Measured
//!    properly are batches after which the drive was already idle (a drive that takes one request at a time).
//! 3. A batch starts at its FIFO's head if the drive is dry, otherwise, after the draining, with the next in sector order.
//! 4. A task's first think times are rounded up (to 4 jiffies and more, of 6): waiting starts carefully. At HZ=250 and
//!    100, where `antic_expire` is one jiffy, a task of two or three requests is never waited for.
//! 5. An exited task is waited for like any other until experience speaks against it.
//! 6. A close request of another task counts as one of the awaited task in its history.
//!
//! # Not as the kernel has it
//! * An exact clock (no tick) measures think times in nanoseconds; rules given in jiffies are those of HZ=1000.
//! * The elevator does not know when it was attached and takes the first call for it.
//! * If a request has to leave because another one of its class grew to the same start sector, the grown one may become
//!   the next. (The kernel may then have no next although a request is queued, and forgets it when drained.)
//! * Restarting the queue after a wait or a drain is the host's business (`Idle`, completions), not kblockd's.
//! * `est_time`, the read-only statistics file, is not there.
//!
//! Source: `docs/sources.md`; Linux 2.6.30 to 2.6.32 `block/as-iosched.c` (removed in 2.6.33, commit 492af6350a5; default
//! elevator before 2.6.18) and `Documentation/block/as-iosched.txt`.

mod clock;
mod history;

use alloc::boxed::Box;
use core::cmp::Reverse;

use crate::collections::{Id, SortedFifo, SortedFifoLinks, Table};
use crate::context::ContextId;
use crate::elevator::{
    AnyElevator, Config, Descriptor, Dispatch, Env, Growth, MayQueue, PerGroup, Placement, Policy,
};
use crate::request::{Bio, Op, Request, RequestId, Status};
use crate::tunable::{Tunable, Unit};
use clock::Clock;
use history::{Newcomers, Task};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "anticipatory",
    about: "batches by time; after a read, idles a moment for the same task's next one",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| {
        AnyElevator::Anticipatory(Box::new(PerGroup::new(Anticipatory::new(config), config.groups_max)))
    },
};

/// The largest number the kernel's sysfs files take.
const INT_MAX: u64 = i32::MAX as u64;

// Defaults are those of HZ=1000; see `Anticipatory::new` for how the kernel states them.
const READ_EXPIRE: Tunable = Tunable::new(
    "read_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    125,
    "deadline of a sync request, looked at once in this time",
);
const WRITE_EXPIRE: Tunable = Tunable::new(
    "write_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    250,
    "deadline of an async write, looked at once in this time",
);
const ANTIC_EXPIRE: Tunable = Tunable::new(
    "antic_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    6,
    "how long to idle for a task's next request; 0 never waits",
);
const READ_BATCH_EXPIRE: Tunable = Tunable::new(
    "read_batch_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    500,
    "how long sync requests are served while async writes wait",
);
const WRITE_BATCH_EXPIRE: Tunable = Tunable::new(
    "write_batch_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    125,
    "how long async writes should be served while sync requests wait: their number adapts to it",
);

const TUNABLES: &[Tunable] =
    &[READ_EXPIRE, WRITE_EXPIRE, ANTIC_EXPIRE, READ_BATCH_EXPIRE, WRITE_BATCH_EXPIRE];

/// Going back further than this counts as starting over from the low end, sectors.
const BACK_MAX: u64 = 1024 * 1024;
/// What going back costs, compared with going ahead.
const BACK_COST: u64 = 2;

/// A request so little ahead of the last position is close, sectors; behind it, half of that.
const CLOSE: u64 = 8192;

/// What a task waits for, and the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Async,
    Sync,
}
use Class::{Async, Sync};

impl Class {
    fn of(request: &Request) -> Class {
        if request.is_sync() { Sync } else { Async }
    }
}

/// The requests of one class in both orders.
#[derive(Clone, Default)]
struct ClassQueue {
    requests: SortedFifo<RequestId>,
    /// The cheapest to reach from `position`, as far as that was worked out: growing at the front does not change it.
    next: Option<RequestId>,
    /// End of the request dispatched last.
    position: u64,
    /// When the FIFO's head was last looked at.
    checked_ns: u64,
}

/// How far a batch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It has not started: requests of the other class are still out.
    Draining,
    /// A sync batch whose first request is not done: its clock has not started.
    Opening,
    Running,
}

/// See the table at the top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Off,
    Completion,
    Next { until: u64 },
    Over,
}

struct Settings {
    read_expire_ns: u64,
    write_expire_ns: u64,
    antic_expire_ns: u64,
    read_batch_expire_ns: u64,
    write_batch_expire_ns: u64,
}

/// One queue, with its batch and its wait.
#[derive(Clone)]
pub struct Queue {
    classes: [ClassQueue; 2],
    /// Dispatched and not done, those on the dispatch list included.
    out: u32,

    // The batch.
    batch: Class,
    phase: Phase,
    /// It has expired once the clock shows more than this. `None` before the first call.
    batch_until_ns: Option<u64>,
    /// Requests an async batch may take, and may still take.
    writes_max: u64,
    writes_left: u64,
    /// For want of requests of either class, the length of this async batch says nothing.
    writes_idled: bool,

    // The wait.
    wait: Wait,
    /// Index into `tasks`, and who had that slot then.
    awaited: Option<usize>,
    awaited_epoch: u32,
    /// When a request of the awaited task was last completed, since its last dispatch.
    answered_ns: Option<u64>,
    /// The awaited task when its slot has gone to another; [`DEPARTED`] names it.
    departed: Task,
}

/// The awaited task is [`Queue::departed`].
const DEPARTED: usize = usize::MAX;

/// anticipatory: the rules, the links of all trees and lists, and what is known of tasks.
pub struct Anticipatory {
    /// Where each request is filed; `None`: not here.
    classes: Table<Option<Class>>,
    links: SortedFifoLinks<RequestId>,
    /// By context.
    tasks: Table<Task>,
    newcomers: Newcomers,

    // Settings.
    settings: Settings,
    clock: Clock,
    /// By class, in whole ticks: deadline of a request, and how often to look; how long a batch lasts.
    expire_ns: [u64; 2],
    batch_ns: [u64; 2],
    /// `antic_expire` in whole ticks.
    patience_ns: u64,
}

impl Anticipatory {
    fn new(config: &Config) -> Anticipatory {
        let clock = Clock::new(config.tick_ns);
        let jiffies = |count: u64| count * clock.jiffy_ns();
        let mut anticipatory = Anticipatory {
            classes: Table::new(None, config.requests_max),
            links: SortedFifoLinks::new(config.requests_max),
            tasks: Table::new(Task::new(0, true), config.contexts_max),
            newcomers: Newcomers::default(),
            settings: Settings {
                read_expire_ns: jiffies(clock.hz_over(8)),
                write_expire_ns: jiffies(clock.hz_over(4)),
                antic_expire_ns: jiffies(clock.hz_over(150).max(1)),
                read_batch_expire_ns: jiffies(clock.hz_over(2)),
                write_batch_expire_ns: jiffies(clock.hz_over(8)),
            },
            clock,
            expire_ns: [0; 2],
            batch_ns: [0; 2],
            patience_ns: 0,
        };
        anticipatory.settings_changed();
        anticipatory
    }
}

impl Queue {
    fn new(clock: Clock) -> Queue {
        Queue {
            classes: Default::default(),
            out: 0,
            batch: Async,
            phase: Phase::Running,
            batch_until_ns: None,
            writes_max: (clock.hz_over(8) / 10).max(2),
            writes_left: 0,
            writes_idled: false,
            wait: Wait::Off,
            awaited: None,
            awaited_epoch: 0,
            answered_ns: None,
            departed: Task::new(0, true),
        }
    }

    fn is_empty(&self) -> bool {
        self.classes.iter().all(|queue| queue.requests.is_empty())
    }

    fn queue(&self, class: Class) -> &ClassQueue {
        &self.classes[class as usize]
    }

    fn queue_mut(&mut self, class: Class) -> &mut ClassQueue {
        &mut self.classes[class as usize]
    }

    fn is_queued(&self, class: Class) -> bool {
        !self.queue(class).requests.is_empty()
    }

    /// The first call in every hook that gets the time: what the kernel does on a timer. Answers with the clock.
    fn catch_up(&mut self, rules: &mut Anticipatory, env: &Env<'_>) -> u64 {
        let now = rules.clock.at(env.now);
        self.miss_departed(rules);
        if self.batch_until_ns.is_none() {
            self.start_batch_clock(rules, Sync, now);
        }
        if let Wait::Next { until } = self.wait
            && now >= until
        {
            self.wait = Wait::Over;
            if let Some(task) = self.awaited {
                known(&mut self.departed, &mut rules.tasks, task).did_not_come(&mut rules.newcomers);
            }
        }
        now
    }

    // ---- the decision ----

    fn pick(&mut self, rules: &mut Anticipatory, env: &Env<'_>, now: u64) -> Dispatch {
        let (sync, asynchronous) = (self.is_queued(Sync), self.is_queued(Async));
        if self.batch == Async && !sync && (self.writes_left == 0 || !asynchronous) {
            self.writes_idled = true;
        }
        match self.wait {
            Wait::Completion => return Dispatch::Empty,
            Wait::Next { until } => return Dispatch::Idle { until },
            Wait::Off | Wait::Over => {}
        }
        if !(sync || asynchronous) || self.phase == Phase::Draining {
            return Dispatch::Empty;
        }

        let mut going_on = None;
        if !(sync && asynchronous && self.is_batch_over(now)) {
            going_on = self.queue(self.batch).next;
            if self.batch == Sync && rules.patience_ns > 0 {
                if let Some(expired) = self.expired_head(rules, Sync, now) {
                    return self.send(rules, env, expired);
                }
                if self.wait == Wait::Off
                    && self.awaited.is_some()
                    && !self.is_in_vain(rules, env, going_on, now)
                {
                    return self.start_waiting(rules);
                }
            }
            if going_on.is_some() && !asynchronous {
                self.start_batch_clock(rules, Sync, now);
            }
        }
        let Some(rq) = going_on.or_else(|| self.change_batch(sync, asynchronous, now)) else {
            return Dispatch::Empty;
        };
        let rq = self.expired_head(rules, self.batch, now).unwrap_or(rq);
        if self.phase == Phase::Draining && !self.open_batch(rules, now) {
            return Dispatch::Empty;
        }
        self.send(rules, env, rq)
    }

    /// Is there no point in waiting for the awaited task, given that `rq` (or nothing) could be had instead? The answer
    /// may change what is known of the task and its like: ask only to act on it.
    fn is_in_vain(
        &mut self,
        rules: &mut Anticipatory,
        env: &Env<'_>,
        rq: Option<RequestId>,
        now: u64,
    ) -> bool {
        let Some(awaited) = self.awaited else { return true };
        let rq = rq.map(|rq| &env.requests[rq]);
        // Here it is. If it is a write, somebody called fsync, and will not read before it is done.
        if rq.is_some_and(|rq| rq.context.index() == awaited) {
            return true;
        }
        if self.answered_ns.is_some_and(|at| now.saturating_sub(at) >= rules.patience_ns) {
            return true;
        }
        let close = rq.filter(|rq| rq.is_sync() && self.is_close(rules, awaited, rq.sector, now));
        let Anticipatory { tasks, newcomers, clock, patience_ns, .. } = rules;
        let task = known(&mut self.departed, tasks, awaited);
        // It has more to do already: it reads ahead, or several at a time.
        if task.queued > 0 || task.listed > 0 {
            return true;
        }
        if let Some(rq) = close {
            task.was_succeeded(newcomers);
            task.learn(rq, now, *clock, newcomers);
            return true;
        }
        task.is_not_worth_waiting_for(*patience_ns / clock.grain_ns(), newcomers)
    }

    /// Is `sector` near where the arm is, or as near as the awaited task's next request can be hoped to be?
    fn is_close(&self, rules: &Anticipatory, awaited: usize, sector: u64, now: u64) -> bool {
        let waited = match (self.wait, self.answered_ns) {
            (Wait::Off, _) | (_, None) => 0,
            (_, Some(at)) => now.saturating_sub(at) / rules.clock.jiffy_ns(),
        };
        // After 20 ms everything is; so it is if 1/HZ is so small that the window outgrows any disk earlier. (After
        // `antic_expire`, which is another end of it, nobody asks.)
        if waited > rules.clock.hz_over(50).min(50) {
            return true;
        }
        let window = CLOSE << waited;
        let last = self.queue(self.batch).position;
        last <= sector.saturating_add(window / 2) && sector <= last.saturating_add(window)
            || last.abs_diff(sector) < self.task_of(rules, awaited).expected_seek(&rules.newcomers)
    }

    fn start_waiting(&mut self, rules: &Anticipatory) -> Dispatch {
        match self.answered_ns {
            None => {
                self.wait = Wait::Completion;
                Dispatch::Empty
            }
            Some(at) => {
                let until = at.saturating_add(rules.patience_ns);
                self.wait = Wait::Next { until };
                Dispatch::Idle { until }
            }
        }
    }

    // ---- batches ----

    fn is_batch_over(&self, now: u64) -> bool {
        let time_is_up = self.batch_until_ns.is_some_and(|until| now > until);
        self.phase == Phase::Running && (time_is_up || self.batch == Async && self.writes_left == 0)
    }

    /// Choose the class for a new batch; answers with the head of its FIFO.
    fn change_batch(&mut self, sync: bool, asynchronous: bool, now: u64) -> Option<RequestId> {
        let class = if sync && !(asynchronous && self.batch == Sync) { Sync } else { Async };
        if class != self.batch {
            self.phase = Phase::Draining;
        }
        self.batch = class;
        if class == Async {
            self.writes_left = self.writes_max;
            self.writes_idled = false;
        }
        let queue = self.queue_mut(class);
        queue.checked_ns = now;
        queue.requests.oldest()
    }

    /// Start the batch that was chosen, if the drive is dry.
    fn open_batch(&mut self, rules: &Anticipatory, now: u64) -> bool {
        if self.out > 0 {
            return false;
        }
        if self.batch == Async {
            self.phase = Phase::Running;
            self.start_batch_clock(rules, Async, now);
        } else {
            // The clock still shows the writes' time; `fit_writes` reads it when the first request is done.
            self.phase = Phase::Opening;
        }
        true
    }

    fn start_batch_clock(&mut self, rules: &Anticipatory, class: Class, now: u64) {
        self.batch_until_ns = Some(now.saturating_add(rules.batch_ns[class as usize]));
    }

    /// A request of `class` is done: that may be the end of draining, and the start of a sync batch's clock.
    fn advance_batch(&mut self, rules: &Anticipatory, class: Class, now: u64) {
        if self.phase == Phase::Draining && self.out == 0 {
            self.start_batch_clock(rules, self.batch, now);
            self.phase = if self.batch == Sync { Phase::Opening } else { Phase::Running };
        }
        if self.phase == Phase::Opening && self.batch == class {
            self.fit_writes(rules, now);
            self.start_batch_clock(rules, Sync, now);
            self.phase = Phase::Running;
        }
    }

    /// Let the number of writes in a batch follow the time they took, counted from their start to the first completion of
    /// the sync batch behind them.
    fn fit_writes(&mut self, rules: &Anticipatory, now: u64) {
        let target_ns = rules.batch_ns[Async as usize];
        let until_ns = self.batch_until_ns.unwrap_or(now);
        let took_ns = now.saturating_add(target_ns).saturating_sub(until_ns);
        let max = self.writes_max;
        let fitting = if took_ns > target_ns && !self.writes_idled {
            if took_ns > target_ns.saturating_mul(3) { max / 2 } else { max - 1 }
        } else if took_ns < target_ns && self.writes_left == 0 {
            if took_ns.saturating_mul(3) < target_ns { max * 2 } else { max + 1 }
        } else {
            max
        };
        self.writes_max = fitting.clamp(1, INT_MAX);
    }

    /// The head of `class`'s FIFO if it has expired. Looked at only so often: else, once everything is late, everything
    /// would be served in order of arrival, and be later still.
    fn expired_head(&mut self, rules: &Anticipatory, class: Class, now: u64) -> Option<RequestId> {
        let queue = self.queue_mut(class);
        if now.saturating_sub(queue.checked_ns) < rules.expire_ns[class as usize] {
            return None;
        }
        queue.checked_ns = now;
        let head = queue.requests.oldest()?;
        (now > rules.links.deadline(head)).then_some(head)
    }

    // ---- filing ----

    /// Dispatch `rq`, and note what that means for the next request.
    fn send(&mut self, rules: &mut Anticipatory, env: &Env<'_>, rq: RequestId) -> Dispatch {
        self.send_but(rules, env, rq, None)
    }

    /// The same, when `absent` is not in its place yet.
    fn send_but(
        &mut self,
        rules: &mut Anticipatory,
        env: &Env<'_>,
        rq: RequestId,
        absent: Option<RequestId>,
    ) -> Dispatch {
        let request = &env.requests[rq];
        let task = request.context.index();
        let class = Class::of(request);
        self.wait = Wait::Off;
        self.answered_ns = None;
        self.awaited = (class == Sync).then_some(task);
        self.awaited_epoch = rules.tasks[task].epoch;
        if class == Async {
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        self.queue_mut(class).position = request.end();
        self.queue_mut(class).next = self.best_neighbour(rules, class, rq, absent);
        self.forget(rules, env, rq);
        rules.tasks[task].listed += 1;
        self.out += 1;
        Dispatch::Issue(rq)
    }

    /// The request to serve after `rq`, which is leaving: the one above it or else the lowest, or the one below it. `absent` counts as
    /// not there.
    fn best_neighbour(
        &self,
        rules: &Anticipatory,
        class: Class,
        rq: RequestId,
        absent: Option<RequestId>,
    ) -> Option<RequestId> {
        let (requests, links) = (&self.queue(class).requests, &rules.links);
        let upwards = |at: Option<RequestId>| match at {
            Some(at) if Some(at) == absent => requests.next(links, at),
            at => at,
        };
        let below = match requests.prev(links, rq) {
            Some(at) if Some(at) == absent => requests.prev(links, at),
            at => at,
        };
        let above =
            upwards(requests.next(links, rq)).or(upwards(requests.first())).filter(|other| *other != rq);
        self.cheaper(rules, class, above, below)
    }

    /// The one to serve first.
    fn cheaper(
        &self,
        rules: &Anticipatory,
        class: Class,
        one: Option<RequestId>,
        other: Option<RequestId>,
    ) -> Option<RequestId> {
        let position = self.queue(class).position;
        one.into_iter().chain(other).min_by_key(|rq| cost(position, rules.links.sector(*rq)))
    }

    /// `newcomer` starts where `alias` does, which makes way for it ([`Env::alias_goes_out`]) and goes to the device.
    #[cold]
    fn send_away(
        &mut self,
        rules: &mut Anticipatory,
        env: &mut Env<'_>,
        alias: RequestId,
        newcomer: RequestId,
    ) {
        self.send_but(rules, env, alias, Some(newcomer));
        env.dispatch.place(env.requests, alias, Placement::Sorted);
    }

    fn offer_as_next(&mut self, rules: &Anticipatory, class: Class, rq: RequestId) {
        self.queue_mut(class).next = self.cheaper(rules, class, Some(rq), self.queue(class).next);
    }

    /// `rq` is no longer queued.
    fn forget(&mut self, rules: &mut Anticipatory, env: &Env<'_>, rq: RequestId) {
        let Some(class) = rules.classes[rq.index()].take() else { return };
        rules.tasks[env.requests[rq].context.index()].queued -= 1;
        if self.queue(class).next == Some(rq) {
            self.queue_mut(class).next = self.best_neighbour(rules, class, rq, None);
        }
        self.classes[class as usize].requests.remove(&mut rules.links, rq);
    }

    /// The index of `context`'s task, which starts afresh if it is another than the last in this slot.
    fn task(&mut self, rules: &mut Anticipatory, env: &Env<'_>, context: ContextId) -> usize {
        let index = context.index();
        let context = &env.contexts[context];
        if rules.tasks[index].epoch != context.epoch {
            if self.awaited == Some(index) {
                self.departed = rules.tasks[index];
                self.awaited = Some(DEPARTED);
            }
            rules.tasks[index] = Task::new(context.epoch, context.alive);
        }
        index
    }

    /// The awaited task.
    fn task_of<'a>(&'a self, rules: &'a Anticipatory, index: usize) -> &'a Task {
        if index == DEPARTED { &self.departed } else { &rules.tasks[index] }
    }

    /// The awaited task's slot went to another by way of another group: there is nothing left to wait for.
    fn miss_departed(&mut self, rules: &Anticipatory) {
        if self.awaited.is_some_and(|task| self.task_of(rules, task).epoch != self.awaited_epoch) {
            self.awaited = None;
            if matches!(self.wait, Wait::Completion | Wait::Next { .. }) {
                self.wait = Wait::Over;
            }
        }
    }
}

/// The task of this index, for a queue whose awaited task may have left its slot to another.
fn known<'a>(departed: &'a mut Task, tasks: &'a mut Table<Task>, index: usize) -> &'a mut Task {
    if index == DEPARTED { departed } else { &mut tasks[index] }
}

/// What it costs to go from `position` to `sector`: least first. Ahead is better than behind, up to twice the distance;
/// what is too far behind comes last, from the low end. Of equals the one ahead wins.
fn cost(position: u64, sector: u64) -> (bool, u64, Reverse<u64>) {
    let (starts_over, cost) = match position.checked_sub(sector) {
        None | Some(0) => (false, sector - position),
        Some(back) if back <= BACK_MAX => (false, back * BACK_COST),
        Some(_) => (true, sector),
    };
    (starts_over, cost, Reverse(sector))
}

impl Policy for Anticipatory {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn new_queue(&self) -> Queue {
        Queue::new(self.clock)
    }

    fn insert(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        let now = queue.catch_up(self, env);
        let request = &env.requests[rq];
        let class = Class::of(request);
        let task = queue.task(self, env, request.context);
        if class == Sync {
            self.tasks[task].learn(request, now, self.clock, &mut self.newcomers);
        }
        self.tasks[task].queued += 1;
        let deadline_ns = now.saturating_add(self.expire_ns[class as usize]);
        let requests = &mut queue.classes[class as usize].requests;
        if !env.alias_goes_out() {
            requests.insert(&mut self.links, rq, request.sector, deadline_ns);
        } else if let Err(alias) = requests.insert_unique(&mut self.links, rq, request.sector, deadline_ns) {
            queue.send_away(self, env, alias, rq);
            let sector = env.requests[rq].sector;
            queue.classes[class as usize].requests.insert(&mut self.links, rq, sector, deadline_ns);
        }
        self.classes[rq.index()] = Some(class);
        queue.offer_as_next(self, class, rq);
        if matches!(queue.wait, Wait::Completion | Wait::Next { .. })
            && queue.is_in_vain(self, env, Some(rq), now)
        {
            queue.wait = Wait::Over;
        }
    }

    fn dispatch(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Dispatch {
        let now = queue.catch_up(self, env);
        queue.pick(self, env, now)
    }

    /// All sync requests from one to the next, then all async ones. What was measured of the batch is void: by leaving it a
    /// sync one, no write batch will be judged by it.
    fn drain(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Option<RequestId> {
        let now = queue.catch_up(self, env);
        queue.batch = Sync;
        queue.phase = Phase::Running;
        for class in &mut queue.classes {
            class.checked_ns = now;
        }
        let rq = queue.queue(Sync).next.or(queue.queue(Async).next)?;
        queue.send(self, env, rq);
        Some(rq)
    }

    fn is_empty(&self, queue: &Queue) -> bool {
        queue.is_empty()
    }

    /// While others were served the arm went elsewhere: there is nothing left to wait for.
    fn paused(&mut self, queue: &mut Queue) {
        if matches!(queue.wait, Wait::Completion | Wait::Next { .. }) {
            queue.wait = Wait::Over;
        }
    }

    fn issued(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        queue.catch_up(self, env);
        self.tasks[env.requests[rq].context.index()].listed -= 1;
    }

    fn requeued(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        queue.catch_up(self, env);
        self.tasks[env.requests[rq].context.index()].listed += 1;
    }

    fn completed(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        let now = queue.catch_up(self, env);
        let request = &env.requests[rq];
        let task = request.context.index();
        let class = Class::of(request);
        queue.out -= 1;
        queue.advance_batch(self, class, now);
        if queue.awaited == Some(task) {
            queue.answered_ns = Some(now);
            if queue.wait == Wait::Completion {
                queue.wait = Wait::Next { until: now.saturating_add(self.patience_ns) };
            }
        }
        if class == Sync && request.status == Status::Done {
            self.tasks[task].was_answered(now);
        }
    }

    /// In the kernel's tree, which is the right one for sync writes only.
    fn find_front(&self, queue: &Queue, _env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        let class = if bio.op == Op::Read { Async } else { Sync };
        queue.queue(class).requests.find(&self.links, bio.end())
    }

    fn grew(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        queue.catch_up(self, env);
        let Some(class) = self.classes[rq.index()].filter(|_| growth == Growth::Front) else { return };
        let sector = env.requests[rq].sector;
        let requests = &mut queue.classes[class as usize].requests;
        if !env.alias_goes_out() {
            requests.resort(&mut self.links, rq, sector);
        } else if let Err(alias) = requests.resort_unique(&mut self.links, rq, sector) {
            queue.send_away(self, env, alias, rq);
            queue.classes[class as usize].requests.resort(&mut self.links, rq, sector);
            queue.offer_as_next(self, class, rq);
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let now = queue.catch_up(self, env);
        let leaving = self.classes[gone.index()];
        if let Some(class) = leaving.filter(|_| self.classes[rq.index()] == leaving) {
            queue.classes[class as usize].requests.inherit(&mut self.links, rq, gone);
        }
        queue.forget(self, env, gone);
        if leaving == Some(Sync) {
            self.tasks[env.requests[gone].context.index()].was_answered(now);
        }
    }

    fn remove(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        queue.catch_up(self, env);
        queue.forget(self, env, rq);
    }

    fn former(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.queue(self.classes[rq.index()]?).requests.prev(&self.links, rq)
    }

    fn latter(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.queue(self.classes[rq.index()]?).requests.next(&self.links, rq)
    }

    fn may_queue(
        &mut self,
        queue: &mut Queue,
        env: &mut Env<'_>,
        context: ContextId,
        _sync: bool,
    ) -> MayQueue {
        queue.catch_up(self, env);
        let waits = matches!(queue.wait, Wait::Completion | Wait::Next { .. });
        let task = queue.task(self, env, context);
        if waits && queue.awaited == Some(task) { MayQueue::Must } else { MayQueue::May }
    }

    /// A wait for it goes on: another task may carry its work on.
    fn context_exit(&mut self, queue: &mut Queue, env: &mut Env<'_>, context: ContextId) {
        queue.catch_up(self, env);
        let task = queue.task(self, env, context);
        self.tasks[task].is_alive = false;
    }

    fn idling_for(&self, queue: &Queue) -> Option<ContextId> {
        let awaited = queue.awaited.filter(|_| matches!(queue.wait, Wait::Next { .. }))?;
        Some(if awaited == DEPARTED { ContextId::OVERFLOW } else { ContextId::from_index(awaited) })
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        let settings = &mut self.settings;
        Some(match name {
            "read_expire" => &mut settings.read_expire_ns,
            "write_expire" => &mut settings.write_expire_ns,
            "antic_expire" => &mut settings.antic_expire_ns,
            "read_batch_expire" => &mut settings.read_batch_expire_ns,
            "write_batch_expire" => &mut settings.write_batch_expire_ns,
            _ => return None,
        })
    }

    /// Queued requests, the running batch and a running wait keep the end they have.
    fn settings_changed(&mut self) {
        let Anticipatory { settings, clock, .. } = &self;
        let [expire_ns, batch_ns] = [
            [settings.write_expire_ns, settings.read_expire_ns],
            [settings.write_batch_expire_ns, settings.read_batch_expire_ns],
        ]
        .map(|by_class| by_class.map(|span_ns| clock.whole(span_ns)));
        let patience_ns = clock.whole(settings.antic_expire_ns);
        (self.expire_ns, self.batch_ns, self.patience_ns) = (expire_ns, batch_ns, patience_ns);
    }
}
