//! A controller's place in the block layer: the bios it holds, the tasks that sleep for it, its thread.

use std::collections::VecDeque;

use fairlift_core::{Bio, Flags, Op};

use super::{Ask, Controller, Line, Ticket, Verdict};
use crate::block::Submitter;
use crate::engine::{OpId, TaskId};
use crate::group::Cgroup;

/// A bio the controller knows of, from being asked for to being done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) op: OpId,
    pub(crate) bio: Bio,
    pub(crate) cgroup: Cgroup,
    ask: Ask,
    held: bool,
}

/// What the block layer is to do with a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seated {
    /// Submit it under this ticket.
    Pass(Ticket),
    /// It is taken care of.
    Held,
    /// Its task sleeps, then submits it under this ticket.
    Sleep(u64, Ticket),
    /// Its task sleeps in a line, then asks again.
    Blocked,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Seat {
    controller: Box<dyn Controller>,
    entries: Vec<Option<Entry>>,
    free: Vec<Ticket>,
    lines: Vec<VecDeque<TaskId>>,
    thread: Option<TaskId>,
    /// The thread waits to be woken.
    idle: bool,
    /// Bios it holds.
    holding: usize,
}

impl Seat {
    pub(crate) fn new(controller: Box<dyn Controller>) -> Seat {
        let (entries, free, lines) = (Vec::new(), Vec::new(), Vec::new());
        Seat { controller, entries, free, lines, thread: None, idle: false, holding: 0 }
    }

    pub(crate) fn thread_name(&self) -> &'static str {
        self.controller.thread()
    }

    pub(crate) fn set_thread(&mut self, task: TaskId) {
        self.thread = Some(task);
    }

    pub(crate) fn bios_keep_group(&self) -> bool {
        self.controller.bios_keep_group()
    }

    /// A bio comes.
    pub(crate) fn ask(&mut self, op: OpId, bio: Bio, by: Submitter, now: u64) -> Seated {
        let ask = Ask {
            group: by.cgroup.index(),
            read: bio.op == Op::Read,
            sync: bio.is_sync(),
            sectors: bio.sectors,
            daemon: by.daemon,
            meta: bio.flags.contains(Flags::META),
        };
        let ticket = self.take(Entry { op, bio, cgroup: by.cgroup, ask, held: false });
        match self.controller.ask(&ask, ticket, now) {
            Verdict::Pass => Seated::Pass(ticket),
            Verdict::Hold => {
                if let Some(entry) = &mut self.entries[ticket as usize] {
                    entry.held = true;
                }
                self.holding += 1;
                Seated::Held
            }
            Verdict::SleepUntil(at) => Seated::Sleep(at, ticket),
            Verdict::Block(line) => {
                self.release(ticket);
                if line >= self.lines.len() {
                    self.lines.resize_with(line + 1, VecDeque::new);
                }
                self.lines[line].push_back(by.task);
                Seated::Blocked
            }
        }
    }

    fn take(&mut self, entry: Entry) -> Ticket {
        if let Some(ticket) = self.free.pop() {
            self.entries[ticket as usize] = Some(entry);
            return ticket;
        }
        self.entries.push(Some(entry));
        self.entries.len() as Ticket - 1
    }

    fn release(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.entries[ticket as usize].take()?;
        self.free.push(ticket);
        Some(entry)
    }

    /// A held bio.
    pub(crate) fn entry(&self, ticket: Ticket) -> Option<Entry> {
        self.entries.get(ticket as usize).copied().flatten()
    }

    pub(crate) fn was_held(&self, ticket: Ticket) -> bool {
        self.entry(ticket).is_some_and(|entry| entry.held)
    }

    /// The operation and the group of a bio it knows of.
    pub(crate) fn whose(&self, ticket: Ticket) -> (OpId, Cgroup) {
        let entry = self.entries[ticket as usize].expect("a ticket is good until its bio is done");
        (entry.op, entry.cgroup)
    }

    /// The bio is done: of which operation and group it was.
    pub(crate) fn completed(&mut self, ticket: Ticket, now: u64) -> (OpId, Cgroup) {
        let entry = self.release(ticket).expect("a ticket is good until its bio is done");
        self.controller.completed(&entry.ask, now);
        (entry.op, entry.cgroup)
    }

    /// What the thread submits now; nothing: it sleeps.
    pub(crate) fn conduct(&mut self, now: u64) -> Vec<Ticket> {
        let mut out = Vec::new();
        while out.is_empty() && self.controller.next_event().is_some_and(|at| at <= now) {
            self.controller.conduct(now, &mut out);
        }
        self.idle = out.is_empty();
        self.holding -= out.len().min(self.holding);
        out
    }

    /// When the thread is to be woken.
    pub(crate) fn next_event(&self) -> Option<u64> {
        if self.idle { self.controller.next_event() } else { None }
    }

    /// The tasks to wake now: the thread if there is something to do, and those that the controller lets go.
    pub(crate) fn wake(&mut self, now: u64, woken: &mut VecDeque<TaskId>) {
        let mut lines: Vec<Line> = Vec::new();
        self.controller.take_woken(&mut lines);
        for line in lines {
            woken.extend(self.lines.get_mut(line).into_iter().flat_map(|line| line.drain(..)));
        }
        if self.next_event().is_some_and(|at| at <= now) {
            woken.extend(self.thread);
        }
    }

    pub(crate) fn is_waiting(&self, task: TaskId) -> bool {
        self.lines.iter().any(|line| line.contains(&task))
    }

    /// Bios it holds.
    pub(crate) fn holding(&self) -> usize {
        self.holding
    }

    /// Bios it knows of, and tasks that wait for it.
    pub(crate) fn unfinished(&self) -> usize {
        self.entries.iter().flatten().count() + self.lines.iter().map(VecDeque::len).sum::<usize>()
    }
}
