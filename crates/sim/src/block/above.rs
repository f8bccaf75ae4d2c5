//! The controller above the queue, and what it and the queue's own limits hold.

use fairlift_core::{Bio, ContextId, Op};

use super::{Attempt, BlockLayer, Passes, Submitter, Taken};
use crate::engine::{OpId, TaskId};
use crate::kernel::controller::seat::{Entry, Seat, Seated};
use crate::kernel::controller::{Controller, Ticket};

impl BlockLayer {
    /// Put a controller above the queue.
    pub(crate) fn set_controller(&mut self, controller: Box<dyn Controller>) {
        self.seat = Some(Seat::new(controller));
    }

    /// What its thread is called.
    pub(crate) fn controller_thread(&self) -> Option<&'static str> {
        self.seat.as_ref().map(Seat::thread_name)
    }

    pub(crate) fn set_controller_thread(&mut self, task: TaskId) {
        if let Some(seat) = &mut self.seat {
            seat.set_thread(task);
        }
    }

    /// The ticket of a bio that passes; `Err`: it does not.
    pub(super) fn ask_controller(
        &mut self,
        op: OpId,
        bio: Bio,
        by: Submitter,
        now: u64,
    ) -> Result<Option<Ticket>, Taken> {
        let Some(seat) = &mut self.seat else { return Ok(None) };
        if bio.op == Op::Flush {
            return Ok(None); // carries nothing
        }
        let seated = seat.ask(op, bio, by, now);
        seat.wake(now, &mut self.woken);
        match seated {
            Seated::Pass(ticket) => Ok(Some(ticket)),
            Seated::Sleep(at, ticket) => Err(Taken::Sleep(at, Attempt::Passed(Passes::of(Some(ticket))))),
            Seated::Blocked => Err(Taken::Wait(Attempt::New)),
            Seated::Held => {
                self.ops[op.0 as usize].left += 1;
                self.stats.bios += 1;
                Err(Taken::Yes)
            }
        }
    }

    pub(super) fn was_held(&self, ticket: Option<Ticket>) -> bool {
        match (&self.seat, ticket) {
            (Some(seat), Some(ticket)) => seat.was_held(ticket),
            _ => false,
        }
    }

    /// What the controller's thread submits now.
    pub(crate) fn conduct(&mut self, now: u64) -> Vec<Ticket> {
        self.account(now);
        let Some(seat) = &mut self.seat else { return Vec::new() };
        let tickets = seat.conduct(now);
        seat.wake(now, &mut self.woken);
        tickets
    }

    /// A held bio as the controller's thread, whose io context is `context`, submits it.
    pub(crate) fn held_bio(&self, ticket: Ticket, context: ContextId) -> Option<Entry> {
        let mut entry = self.seat.as_ref()?.entry(ticket)?;
        entry.bio.context = context;
        Some(entry)
    }

    /// Bios held above the queue.
    pub(super) fn held(&self) -> usize {
        self.queue.held() + self.seat.as_ref().map_or(0, Seat::holding)
    }
}
