//! Operations and their bios: how the kernel's parts hand I/O to the block layer, and wait for it.

use std::task::Poll;

use fairlift_core::{Bio, ContextId, Flags, IoPrio, Op};

use super::controller::Ticket;
use super::files::{PAGE_SECTORS, Run};
use crate::anatomy::{Cause, Why};
use crate::block::{Attempt, Owner, Passes, Taken};
use crate::engine::{OpDone, OpId, Sys};
use crate::group::Cgroup;

/// What the bios of an operation have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) ioprio: Option<IoPrio>,
    /// One bio a page (a buffer head each), instead of bios as large as a request may be.
    pub(crate) page_by_page: bool,
}

impl Kind {
    pub(crate) const fn new(op: Op, flags: Flags) -> Kind {
        Kind { op, flags, ioprio: None, page_by_page: false }
    }
}

impl Sys {
    /// The next finished operation of this task.
    pub fn next_completion(&self) -> impl Future<Output = OpDone> {
        self.wait(Why::Io, |machine, task| machine.take_completion(task, None))
    }

    /// The next finished operation, if there is one already.
    pub fn try_completion(&self) -> Option<OpDone> {
        self.machine.borrow_mut().take_completion(self.task, None)
    }

    /// Wait for one operation of this task; others stay to be collected.
    pub(crate) fn completion_of(&self, op: OpId) -> impl Future<Output = u64> {
        self.wait(Why::Io, move |machine, task| machine.take_completion(task, Some(op)).map(|d| d.at_ns))
    }

    pub(crate) fn open_op(&self, owner: Owner) -> OpId {
        self.machine.borrow_mut().block.open_op(owner)
    }

    pub(crate) fn close_op(&self, op: OpId) {
        let mut machine = self.machine.borrow_mut();
        let now = machine.now();
        machine.block.close_op(op, now);
    }

    /// The caller goes to sleep for I/O: nothing may be held back any longer.
    pub(crate) fn unplug(&self) {
        self.machine.borrow_mut().block.unplug();
    }

    /// Gather what is submitted until [`Sys::close_plug`] (kernels with task plugs).
    pub fn open_plug(&self) {
        let mut machine = self.machine.borrow_mut();
        let context = machine.context_of(self.task);
        machine.block.open_plug(context);
    }

    /// Hand over what was gathered.
    pub fn close_plug(&self) {
        let mut machine = self.machine.borrow_mut();
        let (context, now) = (machine.context_of(self.task), machine.now());
        machine.block.close_plug(context, now);
    }

    /// Submit a run of sectors as bios no larger than a request may be, for the caller's group.
    pub(crate) async fn submit_run(&self, op: OpId, kind: Kind, run: Run) {
        self.submit_run_for(op, kind, run, &|_| None).await;
    }

    /// The same for the groups that `whose` names by how many sectors of the run lie before a bio; `None`: the caller's.
    pub(crate) async fn submit_run_for(
        &self,
        op: OpId,
        kind: Kind,
        run: Run,
        whose: &dyn Fn(u64) -> Option<Cgroup>,
    ) {
        let context = self.context();
        let mut at = run.sector;
        let end = run.sector + run.sectors;
        while at < end {
            let bio = self.next_bio(&kind, context, (at, end));
            self.submit_bio_for(op, bio, whose(at - run.sector)).await;
            at = bio.end();
        }
    }

    /// The next bio of what is left `from` a sector `to` another. A part that the scheduler wanted is not merged with the next one again, as
    /// no part of a bio is that Linux splits (6.12 `block/blk-merge.c`, `bio_submit_split`).
    fn next_bio(&self, kind: &Kind, context: ContextId, (from, to): (u64, u64)) -> Bio {
        let mut machine = self.machine.borrow_mut();
        let now = machine.now();
        let block = &mut machine.block;
        let most = if kind.page_by_page { PAGE_SECTORS } else { block.bio_sectors_max() };
        let whole = most.min(to - from).min(block.room_at(from));
        let mut bio = Bio {
            cookie: 0,
            op: kind.op,
            flags: kind.flags,
            sector: from,
            sectors: whole as u32,
            segments: 0,
            context,
            ioprio: kind.ioprio,
            group: None,
        };
        let part = whole.min(block.part_sectors_max(&bio, now));
        if part < whole {
            bio.flags.insert(Flags::NOMERGE);
        }
        bio.sectors = part as u32;
        bio.segments = part.div_ceil(PAGE_SECTORS) as u16;
        bio
    }

    /// Submit one bio, waiting for a request slot if need be.
    pub(crate) async fn submit_bio(&self, op: OpId, bio: Bio) {
        self.submit_bio_for(op, bio, None).await;
    }

    /// The same for `cgroup`; `None`: the caller's.
    async fn submit_bio_for(&self, op: OpId, bio: Bio, cgroup: Option<Cgroup>) {
        self.submit_as(op, bio, cgroup, Attempt::New).await;
    }

    /// Submit a bio that a controller held, from this task, which is the controller's thread.
    pub(crate) async fn submit_held(&self, ticket: Ticket) {
        let context = self.context();
        let held = self.machine.borrow().block.held_bio(ticket, context);
        if let Some(held) = held {
            self.submit_as(held.op, held.bio, Some(held.cgroup), Attempt::Passed(Passes::of(Some(ticket))))
                .await;
        }
    }

    /// Submit a bio, waiting for a controller, for room among the bios its limit holds and for a request slot if need be.
    pub(super) async fn submit_as(&self, op: OpId, bio: Bio, cgroup: Option<Cgroup>, attempt: Attempt) {
        let (now, scheduled_ns) = {
            let mut machine = self.machine.borrow_mut();
            let now = machine.now();
            (now, machine.block.enter_scheduler(&bio, now))
        };
        if scheduled_ns > now {
            self.pause_until(scheduled_ns, Why::CPU).await;
        }
        let mut taken = self.try_bio(op, &bio, cgroup, attempt);
        while taken != Taken::Yes {
            taken = self.try_again(op, &bio, cgroup, taken).await;
        }
        let owed_ns = self.owed_ns();
        if owed_ns > 0 {
            self.pause(owed_ns, Why::Because(Cause::Throttle)).await;
        }
    }

    /// What becomes of a bio, which most often goes at once.
    fn try_bio(&self, op: OpId, bio: &Bio, cgroup: Option<Cgroup>, attempt: Attempt) -> Taken {
        let mut taken = Taken::Yes;
        let _ = self.poll(Why::Because(Cause::Slot), |machine, task| {
            let now = machine.now();
            taken = machine.block.submit(op, bio, machine.submitter(task, cgroup), attempt, now);
            (!matches!(taken, Taken::Wait(_))).then_some(())
        });
        taken
    }

    /// The same of one that did not, when its task has slept or was woken.
    async fn try_again(&self, op: OpId, bio: &Bio, cgroup: Option<Cgroup>, taken: Taken) -> Taken {
        let mut attempt = match taken {
            Taken::Yes => return taken,
            Taken::Sleep(at, then) => {
                self.sleep_until(at).await;
                return self.try_bio(op, bio, cgroup, then);
            }
            Taken::Wait(then) => then,
        };
        let mut sleeps = false;
        std::future::poll_fn(|_| {
            if !std::mem::replace(&mut sleeps, true) {
                return Poll::Pending;
            }
            self.poll(Why::Because(Cause::Slot), |machine, task| {
                if machine.block.is_waiting(task) {
                    return None; // woken for another reason
                }
                let now = machine.now();
                match machine.block.submit(op, bio, machine.submitter(task, cgroup), attempt, now) {
                    Taken::Wait(then) => {
                        attempt = then;
                        None
                    }
                    taken => Some(taken),
                }
            })
        })
        .await
    }

    /// How long a program's task pauses as its group owes for what was not held up (io.latency, io.cost), nanoseconds.
    fn owed_ns(&self) -> u64 {
        let machine = &mut *self.machine.borrow_mut();
        let pause_ns = machine.block.take_pause(self.task);
        if pause_ns > 0 && machine.submitter(self.task, None).daemon { 0 } else { pause_ns }
    }

    /// Write these blocks of the device, a bio each, and wait for all of them.
    pub(crate) async fn write_blocks(&self, flags: Flags, blocks: &[u64]) {
        let op = self.open_op(Owner::Task(self.task));
        self.open_plug();
        for block in blocks {
            let run = Run { sector: block * PAGE_SECTORS, sectors: PAGE_SECTORS };
            self.submit_run(op, Kind::new(Op::Write, flags), run).await;
        }
        self.close_plug();
        self.close_op(op);
        self.unplug();
        self.completion_of(op).await;
    }

    /// Write back the device's volatile cache.
    pub async fn flush_device(&self) {
        let op = self.open_op(Owner::Task(self.task));
        let context = self.context();
        let bio = Bio {
            cookie: 0,
            op: Op::Flush,
            flags: Flags::SYNC,
            sector: 0,
            sectors: 0,
            segments: 0,
            context,
            ioprio: None,
            group: None,
        };
        self.submit_bio(op, bio).await;
        self.close_op(op);
        self.unplug();
        self.completion_of(op).await;
    }

    /// Processor time of one I/O system call in this kernel, nanoseconds.
    pub fn cpu_per_io_ns(&self) -> u64 {
        self.machine.borrow().kernel.rules.cpu_per_io_ns
    }
}
