//! Limits of groups at the door of the queue: bios wait here before they become requests or merge.
//!
//! A bio that is held counts as not submitted yet: it has no request slot, merges with nothing, and no barrier waits for it.
//! Its context and group are kept until it is let in. Metadata goes in at once and is charged, so that a group at its limit does
//! not hold up a journal that others wait for; an empty flush carries nothing and is not charged; a discard counts as one sector.
//! (The last three as blk-throttle has them, Linux 6.12 `block/blk-throttle.c`.) A bio that goes before or after a flush is held
//! like any other, before its sequence begins.

use super::{RequestQueue, Submitted, Waiter};
use crate::elevator::Dispatch;
use crate::group::limit::{Answer, Direction, Entered, Limiter, Rates, bytes_of};
use crate::group::{GroupError, GroupId};
use crate::request::{Bio, Flags, Op};

impl RequestQueue {
    /// The limits of groups and the bios that wait for them.
    pub fn limiter(&self) -> &Limiter<Bio> {
        &self.limiter
    }

    /// Limit `group`'s reads or writes from now on, also those that wait; [`Rates::NONE`] takes the limit away. Ask
    /// [`RequestQueue::dispatch`] again.
    ///
    /// # Errors
    /// [`GroupError::Unknown`].
    pub fn set_limit(
        &mut self,
        group: GroupId,
        direction: Direction,
        rates: Rates,
        now: u64,
    ) -> Result<(), GroupError> {
        if self.groups().known(group) != group {
            return Err(GroupError::Unknown);
        }
        self.limiter.set(self.lower.groups(), group, direction, rates, now);
        Ok(())
    }

    /// Keep up to so much unused time for `group`'s limit of reads or writes from now on ([`Limiter::set_burst`]).
    ///
    /// # Errors
    /// [`GroupError::Unknown`].
    pub fn set_burst(
        &mut self,
        group: GroupId,
        direction: Direction,
        burst_ns: u64,
    ) -> Result<(), GroupError> {
        if self.groups().known(group) != group {
            return Err(GroupError::Unknown);
        }
        self.limiter.set_burst(self.lower.groups(), group, direction, burst_ns);
        Ok(())
    }

    /// Bios that limits hold back.
    #[inline]
    pub fn held(&self) -> usize {
        self.limiter.held()
    }

    /// Has room been made since the last call for those who got [`Submitted::NoRoom`]? Then all of them may submit again,
    /// longest wait first.
    #[inline]
    pub fn take_room(&mut self) -> bool {
        self.limiter.take_room()
    }

    /// The answer to a bio that has to wait for a limit; `None`: it goes on.
    pub(super) fn hold_back(&mut self, bio: &Bio, now: u64) -> Option<Submitted> {
        if bio.op == Op::Flush {
            return None;
        }
        let group = self.group_of(bio);
        let (direction, bytes) = (Direction::of(bio.op), bytes_of(bio.op, bio.sectors));
        if bio.flags.contains(Flags::META) {
            self.limiter.charge(self.lower.groups(), group, direction, bytes, now);
            return None;
        }
        let held = Bio { group: Some(group), ..*bio };
        match self.limiter.ask(self.lower.groups(), group, direction, bytes, held, now) {
            Answer::Go => None,
            Answer::Held => {
                // Both are there, so they keep their names.
                self.lower.contexts.hold(bio.context);
                self.lower.groups.hold(group);
                Some(Submitted::Held)
            }
            Answer::Full => {
                // Its task goes to sleep: what it has gathered must not wait with it.
                self.flush_task_plug(bio.context, now);
                self.plug.unplug();
                Some(Submitted::NoRoom)
            }
        }
    }

    /// Let in the bios that the limits allow by now; `entered` gets each bio, and what became of it. Returns when to call again, if
    /// a bio waits for a limit. [`RequestQueue::dispatch`] does it too. A host whose device is full calls this at the time
    /// it named, so that the elevator knows what there is; and one that lets waiters resubmit before it dispatches calls it
    /// after a completion, as a bio that waits here for a slot came before them.
    #[inline(always)] // there are none without limits
    pub fn let_in(&mut self, now: u64, entered: impl FnMut(&Bio, Submitted)) -> Option<u64> {
        if self.limiter.held() == 0 { None } else { self.let_in_held(now, entered) }
    }

    fn let_in_held(&mut self, now: u64, mut entered: impl FnMut(&Bio, Submitted)) -> Option<u64> {
        let mut round = self.limiter.begin(self.lower.groups(), now);
        while let Some(bio) = self.limiter.next(self.lower.groups(), &mut round) {
            let answer = match self.try_merge(&bio, now) {
                Some(rq) => Submitted::Merged(rq),
                None => self.enqueue(bio, Waiter::Door, now),
            };
            if answer == Submitted::Full {
                self.limiter.settle(self.lower.groups(), &mut round, Entered::NoSlot);
                continue;
            }
            self.limiter.settle(self.lower.groups(), &mut round, Entered::Yes);
            self.drop_held(&bio, now);
            entered(&bio, answer);
        }
        self.limiter.end(round)
    }

    /// A bio that was held went in: its context and group need not be kept for it.
    fn drop_held(&mut self, bio: &Bio, now: u64) {
        // Its task has gone on: nobody hands over what would lie on its plug.
        self.flush_task_plug(bio.context, now);
        self.plug.unplug();
        self.lower.drop_context(bio.context);
        if let Some(group) = bio.group.filter(|group| *group != GroupId::ROOT) {
            self.lower.groups_mut().drop_hold(group);
        }
    }

    /// What to tell the host when the queue answers so and the limits want to be asked at `until`.
    pub(super) fn with_limits(answer: Dispatch, until: Option<u64>) -> Dispatch {
        match (answer, until) {
            (Dispatch::Idle { until: a }, Some(b)) => Dispatch::Idle { until: a.min(b) },
            (Dispatch::Empty | Dispatch::Busy, Some(until)) => Dispatch::Idle { until },
            (answer, _) => answer,
        }
    }
}
