//! Controllers between merging and the request slot (Linux: `rq_qos`). A bio that joins a request passes them by; one that
//! is to become a request may have to wait, and its task sleeps for it, before it has a slot.
//!
//! Linux 6.12 asks them in the order here: writeback throttling ([`wbt`]). `docs/controllers.md` says what each is built from and
//! what is not modelled.

pub(crate) mod wbt;

use std::collections::VecDeque;

use fairlift_core::{Flags, Op, Request, RequestId};

use crate::engine::TaskId;
use wbt::Wbt;

/// A bio that a controller knows of, from its coming to its end.
pub(crate) type Slot = u32;

/// What the controllers see of a bio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) task: TaskId,
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    /// Submitted by a thread of the kernel's.
    pub(crate) daemon: bool,
}

/// Who decides next about a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Writeback,
    Through,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    coming: Coming,
    /// What the block layer calls it.
    cookie: u64,
    next: Stage,
    /// The line of [`wbt`] in which it holds a place.
    written: Option<wbt::Line>,
}

/// The controllers of one queue.
#[derive(Debug)]
pub(crate) struct RqQos {
    wbt: Option<Wbt>,
    entries: Vec<Option<Entry>>,
    free: Vec<Slot>,
    /// By task: it sleeps for one of its bios.
    asleep: Vec<bool>,
    woken: VecDeque<TaskId>,
    /// Bios that were let go since it was last looked.
    granted: Vec<Slot>,
}

impl RqQos {
    /// `None`: there is none that could do anything.
    pub(crate) fn new(wbt: Option<Wbt>) -> Option<RqQos> {
        wbt.as_ref()?;
        Some(RqQos {
            wbt,
            entries: Vec::new(),
            free: Vec::new(),
            asleep: Vec::new(),
            woken: VecDeque::new(),
            granted: Vec::new(),
        })
    }

    /// Does a controller follow such a bio? Of others it hears when their requests are issued and done.
    pub(crate) fn follows(&self, op: Op, flags: Flags) -> bool {
        self.wbt.as_ref().is_some_and(|wbt| wbt.throttles(op, flags))
    }

    /// A bio came that joined nothing.
    pub(crate) fn saw(&mut self, op: Op, now: u64) {
        if let (Some(wbt), Op::Read) = (&mut self.wbt, op) {
            wbt.read_came(now);
        }
    }

    /// A bio comes.
    pub(crate) fn come(&mut self, coming: Coming, cookie: u64) -> Slot {
        let entry = Some(Entry { coming, cookie, next: Stage::Writeback, written: None });
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = entry;
            return slot;
        }
        self.entries.push(entry);
        self.entries.len() as Slot - 1
    }

    /// May it go on to a request slot? If not, its task sleeps until it is woken, and asks again.
    pub(crate) fn pass(&mut self, slot: Slot, now: u64) -> bool {
        while let Some(entry) = self.entries[slot as usize] {
            let passes = match entry.next {
                Stage::Through => return true,
                Stage::Writeback => self.ask_wbt(slot, &entry.coming, now),
            };
            if !passes {
                self.sleep(entry.coming.task);
                return false;
            }
        }
        true
    }

    fn ask_wbt(&mut self, slot: Slot, coming: &Coming, now: u64) -> bool {
        let Some(wbt) = self.wbt.as_mut().filter(|wbt| wbt.throttles(coming.op, coming.flags)) else {
            self.set(slot, |entry| entry.next = Stage::Through);
            return true;
        };
        let want = wbt::Want::of(coming.op, coming.flags, coming.daemon);
        let passes = wbt.ask(slot, want, now);
        if passes {
            self.set(slot, |entry| (entry.written, entry.next) = (Some(want.line()), Stage::Through));
        }
        passes
    }

    fn set(&mut self, slot: Slot, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = &mut self.entries[slot as usize] {
            change(entry);
        }
    }

    fn sleep(&mut self, task: TaskId) {
        if self.asleep.len() <= task.0 {
            self.asleep.resize(task.0 + 1, false);
        }
        self.asleep[task.0] = true;
    }

    /// Does a task sleep for one of its bios?
    pub(crate) fn is_asleep(&self, task: TaskId) -> bool {
        self.asleep.get(task.0).copied().unwrap_or(false)
    }

    /// What the block layer calls a bio.
    pub(crate) fn cookie(&self, slot: Slot) -> u64 {
        self.entries[slot as usize].map_or(0, |entry| entry.cookie)
    }

    /// A bio is done, or goes nowhere: what the block layer called it.
    pub(crate) fn end(&mut self, slot: Slot, now: u64) -> u64 {
        let Some(entry) = self.entries[slot as usize].take() else { return 0 };
        self.free.push(slot);
        if let (Some(wbt), Some(line)) = (&mut self.wbt, entry.written) {
            wbt.done(line, now, &mut self.granted);
            self.let_go();
        }
        entry.cookie
    }

    /// A request goes to the device.
    pub(crate) fn issued(&mut self, rq: RequestId, request: &Request, now: u64) {
        if let (Some(wbt), Op::Read) = (&mut self.wbt, request.op) {
            wbt.read_issued(rq, now);
        }
    }

    /// The device is done with a request.
    pub(crate) fn completed(&mut self, rq: RequestId, request: &Request, now: u64) {
        let Some(wbt) = &mut self.wbt else { return };
        match request.op {
            Op::Read => wbt.read_done(rq, request.issued_ns, now),
            Op::Write | Op::Discard => wbt.write_done(),
            Op::Flush => {}
        }
    }

    /// A task that dirties pages is made to pause.
    pub(crate) fn dirtier_pauses(&mut self, now: u64) {
        if let Some(wbt) = &mut self.wbt {
            wbt.dirtier_pauses(now);
        }
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.wbt.as_ref().and_then(Wbt::next_event)
    }

    /// Look at the clocks.
    pub(crate) fn advance(&mut self, now: u64) {
        if let Some(wbt) = &mut self.wbt {
            wbt.advance(now, &mut self.granted);
            self.let_go();
        }
    }

    /// The bios granted a place go on, and their tasks wake.
    fn let_go(&mut self) {
        let mut granted = std::mem::take(&mut self.granted);
        for slot in granted.drain(..) {
            let Some(entry) = &mut self.entries[slot as usize] else { continue };
            if entry.next == Stage::Writeback {
                entry.written = Some(wbt::Want::of(entry.coming.op, entry.coming.flags, false).line());
                entry.next = Stage::Through;
            }
            let task = entry.coming.task;
            self.asleep[task.0] = false;
            self.woken.push_back(task);
        }
        self.granted = granted;
    }

    /// The tasks that may go on.
    pub(crate) fn take_woken(&mut self, out: &mut VecDeque<TaskId>) {
        out.append(&mut self.woken);
    }

    /// Bios that are not done.
    pub(crate) fn unfinished(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
