//! Controllers between merging and the request slot (Linux: `rq_qos`). A bio that joins a request passes them by; one that
//! is to become a request may have to wait, and its task sleeps for it, before it has a slot.
//!
//! Linux 6.12 asks them in the order here: writeback throttling (`wbt`), io.latency, io.cost. `docs/controllers.md` says
//! what each is built from and what is not modelled.

pub mod iocost;
pub(crate) mod iolatency;
pub(crate) mod wbt;

use std::collections::VecDeque;

use fairlift_core::collections::Id;
use fairlift_core::{Flags, Op, Request, RequestId};

use crate::engine::{TaskId, earlier};
use iocost::IoCost;
use iolatency::IoLatency;
use wbt::Wbt;

/// A bio that a controller knows of, from its coming to its end.
pub(crate) type Slot = u32;

/// What the controllers see of a bio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) task: TaskId,
    pub(crate) group: usize,
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    /// Submitted by a thread of the kernel's.
    pub(crate) daemon: bool,
}

impl Coming {
    fn is_meta(&self) -> bool {
        self.flags.contains(Flags::META)
    }

    fn io(&self) -> iocost::Io {
        let Coming { group, op, sector, sectors, .. } = *self;
        iocost::Io { group, write: op == Op::Write, sector, sectors, meta: self.is_meta() }
    }
}

/// Who decides next about a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Writeback,
    /// io.latency, for this group: the bio's, or one above.
    Latency(usize),
    Cost,
    Through,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    coming: Coming,
    /// What the block layer calls it.
    cookie: u64,
    came_ns: u64,
    next: Stage,
    /// The line of [`wbt`] in which it holds a place.
    written: Option<wbt::Line>,
    /// [`iolatency`] counts it as in flight.
    counted: bool,
    /// What it paid to [`iocost`].
    paid: u64,
    /// When it began to ask for a request slot.
    asked_ns: u64,
}

/// A request, by its first bio.
#[derive(Clone, Copy, Debug, Default)]
struct OfRequest {
    asked_ns: u64,
    paid: bool,
}

/// The controllers of one queue.
#[derive(Debug)]
pub(crate) struct RqQos {
    wbt: Option<Wbt>,
    latency: Option<IoLatency>,
    cost: Option<IoCost>,
    entries: Vec<Option<Entry>>,
    free: Vec<Slot>,
    /// By request.
    requests: Vec<OfRequest>,
    /// By task: it sleeps for one of its bios; it has to pause so long before it goes on, nanoseconds.
    asleep: Vec<bool>,
    pauses: Vec<u64>,
    woken: VecDeque<TaskId>,
    /// Bios that were let go since it was last looked; by io.cost with what they paid.
    granted: Vec<Slot>,
    paid: Vec<(Slot, u64)>,
}

impl RqQos {
    /// `None`: there is none that could do anything. `requests`: most of the queue.
    pub(crate) fn new(
        wbt: Option<Wbt>,
        latency: Option<IoLatency>,
        cost: Option<IoCost>,
        requests: usize,
    ) -> Option<RqQos> {
        (wbt.is_some() || latency.is_some() || cost.is_some()).then(|| RqQos {
            wbt,
            latency,
            cost,
            entries: Vec::new(),
            free: Vec::new(),
            requests: vec![OfRequest::default(); requests],
            asleep: Vec::new(),
            pauses: Vec::new(),
            woken: VecDeque::new(),
            granted: Vec::new(),
            paid: Vec::new(),
        })
    }

    /// Does a controller follow such a bio? Of others it hears when their requests are issued and done.
    pub(crate) fn follows(&self, op: Op, flags: Flags) -> bool {
        let for_groups = self.latency.is_some() || self.cost.is_some();
        (for_groups && op != Op::Flush) || self.wbt.as_ref().is_some_and(|wbt| wbt.throttles(op, flags))
    }

    /// A bio comes that joins nothing.
    pub(crate) fn saw(&mut self, op: Op, now: u64) {
        if let (Some(wbt), Op::Read) = (&mut self.wbt, op) {
            wbt.read_came(now);
        }
    }

    /// A bio comes.
    pub(crate) fn come(&mut self, coming: Coming, cookie: u64, now: u64) -> Slot {
        let entry = Some(Entry {
            coming,
            cookie,
            came_ns: now,
            next: Stage::Writeback,
            written: None,
            counted: false,
            paid: 0,
            asked_ns: now,
        });
        let size = self.asleep.len().max(coming.task.0 + 1);
        self.asleep.resize(size, false);
        self.pauses.resize(size, 0);
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = entry;
            return slot;
        }
        self.entries.push(entry);
        self.entries.len() as Slot - 1
    }

    /// It joined this request, and passes the controllers by.
    pub(crate) fn joined(&mut self, slot: Slot, rq: RequestId, now: u64) {
        let Some(entry) = &mut self.entries[slot as usize] else { return };
        entry.next = Stage::Through;
        if let Some(cost) = self.cost.as_mut().filter(|_| has_cost(entry.coming.op)) {
            let beside_paid = self.requests[rq.index()].paid;
            entry.paid = cost.joined(&entry.coming.io(), beside_paid, now);
        }
    }

    /// May it go on to a request slot? If not, its task sleeps until it is woken, and asks again.
    pub(crate) fn pass(&mut self, slot: Slot, now: u64) -> bool {
        while let Some(entry) = self.entries[slot as usize] {
            let passes = match entry.next {
                Stage::Writeback => self.ask_wbt(slot, &entry.coming, now),
                Stage::Latency(group) => self.ask_latency(slot, &entry.coming, group, now),
                Stage::Cost => self.ask_cost(slot, &entry.coming, now),
                Stage::Through => return true,
            };
            if !passes {
                self.asleep[entry.coming.task.0] = true;
                return false;
            }
        }
        true
    }

    fn ask_wbt(&mut self, slot: Slot, coming: &Coming, now: u64) -> bool {
        let wbt = self.wbt.as_mut().filter(|wbt| wbt.throttles(coming.op, coming.flags));
        let want = wbt::Want::of(coming.op, coming.flags, coming.daemon);
        let passes = wbt.is_none_or(|wbt| wbt.ask(slot, want, now));
        if passes {
            self.pass_wbt(slot, now);
        }
        passes
    }

    fn pass_wbt(&mut self, slot: Slot, now: u64) {
        let Some(entry) = &mut self.entries[slot as usize] else { return };
        let Coming { op, flags, group, .. } = entry.coming;
        let throttled = self.wbt.as_ref().is_some_and(|wbt| wbt.throttles(op, flags));
        entry.written = throttled.then(|| wbt::Want::of(op, flags, false).line());
        entry.asked_ns = now;
        let concerned = |latency: &IoLatency| op != Op::Flush && latency.concerns(group);
        entry.next = match self.latency.as_ref().is_some_and(concerned) {
            true => Stage::Latency(group),
            false => Stage::Cost,
        };
    }

    fn ask_latency(&mut self, slot: Slot, coming: &Coming, group: usize, now: u64) -> bool {
        let Some(latency) = &mut self.latency else { return true };
        let passes = latency.ask(slot, group, coming.is_meta(), now, &mut self.granted);
        if passes {
            self.pass_latency(slot, group, now);
        }
        self.let_go(now);
        passes
    }

    /// It went past `group`'s limit.
    fn pass_latency(&mut self, slot: Slot, group: usize, now: u64) {
        let (Some(latency), Some(entry)) = (&mut self.latency, &mut self.entries[slot as usize]) else {
            return;
        };
        entry.asked_ns = now;
        if let Some(above) = latency.above(group) {
            entry.next = Stage::Latency(above);
            return;
        }
        (entry.counted, entry.next) = (true, Stage::Cost);
        self.pauses[entry.coming.task.0] = latency.pause_ns(entry.coming.group, now);
    }

    fn ask_cost(&mut self, slot: Slot, coming: &Coming, now: u64) -> bool {
        let Some(cost) = self.cost.as_mut().filter(|_| has_cost(coming.op)) else {
            self.pass_cost(slot, 0, now);
            return true;
        };
        match cost.ask(slot, &coming.io(), now) {
            iocost::Answer::Go(paid) => self.pass_cost(slot, paid, now),
            iocost::Answer::Owes(pause_ns) => {
                let pause = &mut self.pauses[coming.task.0];
                *pause = pause_ns.max(*pause);
                self.pass_cost(slot, 0, now);
            }
            iocost::Answer::Waits => {
                cost.waits(coming.group, now, &mut self.paid);
                self.asleep[coming.task.0] = true;
                self.let_go(now);
                return !self.asleep[coming.task.0];
            }
        }
        true
    }

    fn pass_cost(&mut self, slot: Slot, paid: u64, now: u64) {
        if let Some(entry) = &mut self.entries[slot as usize] {
            (entry.paid, entry.next, entry.asked_ns) = (paid, Stage::Through, now);
        }
    }

    /// It has a request slot.
    pub(crate) fn became(&mut self, slot: Slot, rq: RequestId) {
        if let Some(entry) = &self.entries[slot as usize] {
            self.requests[rq.index()] = OfRequest { asked_ns: entry.asked_ns, paid: entry.paid > 0 };
        }
    }

    /// Does a task sleep for one of its bios?
    pub(crate) fn is_asleep(&self, task: TaskId) -> bool {
        self.asleep.get(task.0).copied().unwrap_or(false)
    }

    /// How long a task has to pause before it goes on, nanoseconds.
    pub(crate) fn take_pause(&mut self, task: TaskId) -> u64 {
        self.pauses.get_mut(task.0).map_or(0, std::mem::take)
    }

    /// What the block layer calls a bio.
    pub(crate) fn cookie(&self, slot: Slot) -> u64 {
        self.entries[slot as usize].map_or(0, |entry| entry.cookie)
    }

    /// A bio is done, or goes nowhere: what the block layer called it.
    pub(crate) fn end(&mut self, slot: Slot, now: u64) -> u64 {
        let Some(entry) = self.entries[slot as usize].take() else { return 0 };
        let Entry { coming, came_ns, written, counted, paid, cookie, .. } = entry;
        self.free.push(slot);
        if let (Some(wbt), Some(line)) = (&mut self.wbt, written) {
            wbt.done(line, now, &mut self.granted);
        }
        if let Some(latency) = self.latency.as_mut().filter(|_| counted) {
            let io = iolatency::Io { group: coming.group, meta: coming.is_meta(), came_ns };
            latency.done(&io, now, &mut self.granted);
        }
        if let Some(cost) = self.cost.as_mut().filter(|_| paid > 0) {
            cost.bio_done(coming.group, paid);
        }
        self.let_go(now);
        cookie
    }

    /// A request goes to the device.
    pub(crate) fn issued(&mut self, rq: RequestId, request: &Request, now: u64) {
        if let (Some(wbt), Op::Read) = (&mut self.wbt, request.op) {
            wbt.read_issued(rq, now);
        }
    }

    /// The device is done with a request.
    pub(crate) fn completed(&mut self, rq: RequestId, request: &Request, now: u64) {
        if let Some(wbt) = &mut self.wbt {
            match request.op {
                Op::Read => wbt.read_done(rq, request.issued_ns, now),
                Op::Write | Op::Discard => wbt.write_done(),
                Op::Flush => {}
            }
        }
        if let Some(cost) = self.cost.as_mut().filter(|_| has_cost(request.op)) {
            let times_ns = (self.requests[rq.index()].asked_ns, request.start_ns);
            cost.request_done(request.op == Op::Write, request.sectors, times_ns, now);
        }
    }

    /// A task that dirties pages is made to pause.
    pub(crate) fn dirtier_pauses(&mut self, now: u64) {
        if let Some(wbt) = &mut self.wbt {
            wbt.dirtier_pauses(now);
        }
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        let latency = self.latency.as_ref().and_then(IoLatency::next_event);
        let cost = self.cost.as_ref().and_then(IoCost::next_event);
        earlier(self.wbt.as_ref().and_then(Wbt::next_event), earlier(latency, cost))
    }

    /// Look at the clocks.
    pub(crate) fn advance(&mut self, now: u64) {
        if let Some(wbt) = &mut self.wbt {
            wbt.advance(now, &mut self.granted);
        }
        if let Some(latency) = &mut self.latency {
            latency.advance(now);
        }
        if let Some(cost) = &mut self.cost {
            cost.advance(now, &mut self.paid);
        }
        self.let_go(now);
    }

    /// The bios granted a place go on, and their tasks wake.
    #[inline(always)] // as `take_woken`
    fn let_go(&mut self, now: u64) {
        if !self.granted.is_empty() || !self.paid.is_empty() {
            self.let_all_go(now);
        }
    }

    #[inline(never)]
    fn let_all_go(&mut self, now: u64) {
        let mut granted = std::mem::take(&mut self.granted);
        for slot in granted.drain(..) {
            match self.entries[slot as usize].map(|entry| entry.next) {
                Some(Stage::Writeback) => self.pass_wbt(slot, now),
                Some(Stage::Latency(group)) => self.pass_latency(slot, group, now),
                _ => {}
            }
            self.wake(slot);
        }
        self.granted = granted;
        let mut paid = std::mem::take(&mut self.paid);
        for (slot, paid) in paid.drain(..) {
            self.pass_cost(slot, paid, now);
            self.wake(slot);
        }
        self.paid = paid;
    }

    fn wake(&mut self, slot: Slot) {
        let Some(entry) = &self.entries[slot as usize] else { return };
        let task = entry.coming.task;
        self.asleep[task.0] = false;
        self.woken.push_back(task);
    }

    /// The tasks that may go on.
    #[inline(always)] // most often there is none
    pub(crate) fn take_woken(&mut self, out: &mut VecDeque<TaskId>) {
        if !self.woken.is_empty() {
            out.append(&mut self.woken);
        }
    }

    /// Bios that are not done.
    pub(crate) fn unfinished(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

/// io.cost knows what these cost.
fn has_cost(op: Op) -> bool {
    matches!(op, Op::Read | Op::Write)
}
