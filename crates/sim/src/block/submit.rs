//! A bio comes in: past the controllers, into the queue, or its task waits. Bios that limits held come in when they are let in.

use fairlift_core::collections::Id;
use fairlift_core::queue::Submitted;
use fairlift_core::{Bio, Flags, GroupId, Op};

use super::cookie::{TICKET, cookie, from_cookie, ticket_of};
use super::throttle::Throttled;
use super::{BlockLayer, OnDisk, Place, TraceKind};
use crate::engine::{OpId, TaskId};
use crate::group::Cgroup;
use crate::group::limits::PrioClass;
use crate::kernel::controller::Ticket;
use crate::kernel::rq_qos::Slot;

/// The task that submits a bio, and the one that pays for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submitter {
    pub(crate) task: TaskId,
    /// The group the bio is counted for.
    pub(crate) cgroup: Cgroup,
    /// Since when pages of that group wait to be written, if there are some.
    pub(crate) backlog_since_ns: Option<u64>,
    /// A thread of the kernel's.
    pub(crate) daemon: bool,
}

/// How a bio comes to the block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// For the first time, or to ask the controller again.
    New,
    /// The controller let it pass.
    Passed(Passes),
    /// It waited for a request slot, from this place in line on; with tags, for one of the first so many.
    ForSlot(Passes, Place, u32),
}

/// What a bio is known by to those that may hold it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Passes {
    /// To the controller above the queue.
    pub(crate) ticket: Option<Ticket>,
    /// To those between merging and the request slot.
    pub(super) slot: Option<Slot>,
    /// It waited for its group's part of the tags.
    pub(super) was_held: bool,
    /// On a volume: where to go on.
    pub(super) on_disk: Option<OnDisk>,
}

impl Passes {
    pub(crate) const fn of(ticket: Option<Ticket>) -> Passes {
        Passes { ticket, slot: None, was_held: false, on_disk: None }
    }
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// It is on its way.
    Yes,
    /// Its task waits to be woken and comes again like this.
    Wait(Attempt),
    /// Its task sleeps until this time and comes again like this.
    Sleep(u64, Attempt),
}

impl BlockLayer {
    /// Submit one bio of `op`.
    pub(crate) fn submit(&mut self, op: OpId, bio: &Bio, by: Submitter, attempt: Attempt, now: u64) -> Taken {
        self.dirty = true;
        if self.disks.is_some() {
            return self.submit_below(op, *bio, by, attempt, now);
        }
        self.account(now);
        let (mut passes, place) = match attempt {
            Attempt::ForSlot(passes, place, limit) => (passes, Some((place, limit))),
            Attempt::Passed(passes) => (passes, None),
            Attempt::New => match self.ask_controller(op, *bio, by, now) {
                Ok(ticket) => (Passes::of(ticket), None),
                Err(taken) => return taken,
            },
        };
        let again = place.is_some();
        let ticket = passes.ticket;
        let mut bio = *bio;
        self.address(&mut bio, op, by.cgroup, ticket);
        let requests_before = self.queue.pending();
        let mut throttled = self.throttle(&mut bio, &mut passes, by, now);
        if place.is_none() {
            throttled = self.hold_write(&bio, throttled, &mut passes, by.task, now);
        }
        let answer = match (throttled, place) {
            (Throttled::Waits, _) => return Taken::Wait(Attempt::Passed(passes)),
            (Throttled::Joined(rq), _) => Submitted::Merged(rq),
            (_, Some((_, limit))) => self.queue.resubmit_within(bio, limit, now),
            (Throttled::Passes, None) => self.queue.submit(bio, now),
            (Throttled::Woken, None) => self.queue.resubmit(bio, now),
        };
        self.tell_qos(&bio, answer, now);
        self.count_write(answer, passes.was_held, self.queue.pending() < requests_before, now);
        self.record_bio(answer, op, &bio, by.task, now);
        self.meter_bio(answer, by.cgroup, by.backlog_since_ns, now);
        match answer {
            Submitted::Queued(_) | Submitted::Held => {
                self.trace_bio(TraceKind::Queued, &bio, by.task, now);
                if answer == Submitted::Held {
                    self.tell_held(&bio, by.task, now);
                }
                self.count_bio(op, ticket);
            }
            Submitted::Merged(_) => {
                self.trace_bio(TraceKind::Merged, &bio, by.task, now);
                self.count_bio(op, ticket);
                self.count_merge(&bio);
            }
            Submitted::Full => {
                // Who lost a race keeps its place; who may not take a tag that is free lets others try.
                let place = place.map(|(place, _)| place).filter(|_| !self.queue.has_free_tag());
                let place = self.waiting.add(by.task, self.queue.group_of(&bio), bio.is_sync(), place);
                if !again {
                    self.trace_bio(TraceKind::Waits, &bio, by.task, now);
                }
                return Taken::Wait(Attempt::ForSlot(passes, place, self.queue.refused_limit()));
            }
            Submitted::NoRoom => {
                self.crowded.push_back(by.task);
                return Taken::Wait(Attempt::Passed(passes));
            }
            // A barrier that the device cannot order fails with EOPNOTSUPP in 2.6 and the file system goes on without.
            Submitted::Done | Submitted::Refused(_) => self.give_up(op, passes, now),
        }
        // Two requests may have become one, which frees a slot.
        self.wake_waiters();
        if self.direct || bio.flags.contains(Flags::UNPLUG) {
            // The driver is called within the submission: what comes next finds nothing to merge with.
            self.pump(now);
        }
        Taken::Yes
    }

    /// Make the bio what the queue gets.
    #[inline]
    pub(super) fn address(&self, bio: &mut Bio, op: OpId, cgroup: Cgroup, ticket: Option<Ticket>) {
        // Whom a controller's thread submits for the queue may not be told.
        bio.group = Some(match (&self.seat, ticket) {
            (Some(seat), Some(ticket)) if seat.was_held(ticket) && !seat.bios_keep_group() => GroupId::ROOT,
            _ => self.group_of(cgroup),
        });
        bio.cookie = match ticket {
            Some(ticket) => TICKET | u64::from(ticket),
            None => cookie(op, cgroup),
        };
        let policy = self.classes.get(cgroup.index()).copied().unwrap_or_default();
        if policy != PrioClass::NoChange {
            let contexts = self.queue.contexts();
            let own = bio.ioprio.unwrap_or(contexts[contexts.known(bio.context)].ioprio);
            bio.ioprio = Some(policy.apply(own));
        }
    }

    /// A bio is on its way; one that a controller held was counted when it was held.
    pub(super) fn count_bio(&mut self, op: OpId, ticket: Option<Ticket>) {
        if !self.was_held(ticket) {
            self.ops[op.0 as usize].left += 1;
            self.stats.bios += 1;
        }
    }

    pub(super) fn count_merge(&mut self, bio: &Bio) {
        self.stats.merged += 1;
        self.stats.merged_writes += u64::from(bio.op != Op::Read);
    }

    /// A bio goes nowhere.
    pub(super) fn give_up(&mut self, op: OpId, passes: Passes, now: u64) {
        let ticket = passes.ticket;
        let was_counted = self.was_held(ticket);
        if let (Some(qos), Some(slot)) = (&mut self.qos, passes.slot) {
            qos.end(slot, now);
            qos.take_woken(&mut self.woken);
        }
        if let (Some(seat), Some(ticket)) = (&mut self.seat, ticket) {
            seat.completed(ticket, now);
        }
        if was_counted {
            self.one_less(op, now);
        }
    }

    /// Let in the bios that the limits of the queue's groups allow; when to do it again.
    #[inline(always)] // as `book_entered`
    pub(super) fn let_in(&mut self, now: u64) -> Option<u64> {
        if self.queue.held() > 0 {
            self.account(now);
        }
        let entered = &mut self.entered;
        let until = self.queue.let_in(now, |bio, answer| entered.push((*bio, answer)));
        self.book_entered(now);
        until
    }

    /// Count the bios that were let in.
    #[inline(always)] // there are none without limits
    pub(super) fn book_entered(&mut self, now: u64) {
        if !self.entered.is_empty() {
            self.book_each(now);
        }
        if self.queue.take_room() {
            self.wake_crowded();
        }
    }

    #[cold]
    fn wake_crowded(&mut self) {
        self.woken.extend(self.crowded.drain(..));
    }

    #[cold]
    pub(super) fn book_each(&mut self, now: u64) {
        let mut entered = std::mem::take(&mut self.entered);
        for (bio, answer) in entered.drain(..) {
            self.tell_qos(&bio, answer, now);
            self.count_write(answer, false, false, now);
            let cookie = self.own_cookie(bio.cookie);
            let (op, cgroup) = match (&self.seat, ticket_of(cookie)) {
                (Some(seat), Some(ticket)) => seat.whose(ticket),
                _ => from_cookie(cookie),
            };
            self.meter_bio(answer, cgroup, None, now);
            if matches!(answer, Submitted::Merged(_)) {
                self.count_merge(&bio);
            }
            if let (Some(recorder), Some(task)) = (&mut self.recorder, self.task_of[bio.context.index()]) {
                match answer {
                    Submitted::Queued(rq) => recorder.queued(rq, op, task, false, now),
                    Submitted::Merged(rq) => recorder.merged(rq, op, task),
                    _ => {}
                }
            }
        }
        self.entered = entered;
    }

    pub(super) fn meter_bio(
        &mut self,
        answer: Submitted,
        group: Cgroup,
        backlog_since_ns: Option<u64>,
        now: u64,
    ) {
        let Some(meter) = &mut self.meter else { return };
        let own = match answer {
            Submitted::Queued(rq) => Some(rq),
            Submitted::Merged(_) => None,
            // What is held comes when it is let in.
            _ => return,
        };
        meter.came(group, own, backlog_since_ns, now);
    }
}
