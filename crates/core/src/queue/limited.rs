//! Limits of groups at the door of the queue: bios wait here before they become requests or merge.
//!
//! A bio that is held counts as not submitted yet: it has no request slot, merges with nothing, and no barrier waits for it.
//! Its context and group are kept until it is let in. Metadata goes in at once and is charged, so that a group at its limit does
//! not hold up a journal that others wait for; flushes carry nothing and are not charged; a discard counts as one sector. (The
//! last three as blk-throttle has them, Linux 6.12 `block/blk-throttle.c`.)

use alloc::vec::Vec;

use super::{RequestQueue, Submitted, Waiter};
use crate::collections::Id;
use crate::context::ContextId;
use crate::elevator::Dispatch;
use crate::group::limit::{Answer, Direction, Limits, Next, Rates};
use crate::group::{GroupError, GroupId};
use crate::request::{Bio, Flags, Op};

/// Limits, and the bios they hold.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: Limits,
    /// Was there ever a limit?
    used: bool,
    /// The held bios, by the limits' name for them.
    held: Vec<Bio>,
    /// Bios in `held` and `door`.
    count: usize,
    /// Bios that were let go and found no request slot, by direction: the next of that direction wait behind them.
    door: [Option<Bio>; 2],
    /// The direction that is let in first next time.
    turn: usize,
    /// Somebody found no room to wait, and room was made since.
    turned_away: bool,
    room_made: bool,
}

const NO_BIO: Bio = Bio {
    cookie: 0,
    op: Op::Flush,
    flags: Flags::NONE,
    sector: 0,
    sectors: 0,
    segments: 0,
    context: ContextId::OVERFLOW,
    ioprio: None,
    group: None,
};

impl Limiter {
    pub(super) fn new(groups_max: usize, room: usize) -> Limiter {
        let limits = Limits::new(groups_max + 1, room);
        Limiter {
            held: alloc::vec![NO_BIO; limits.names()],
            limits,
            used: false,
            count: 0,
            door: [None; 2],
            turn: 0,
            turned_away: false,
            room_made: false,
        }
    }

    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.used
    }
}

fn direction(bio: &Bio) -> Direction {
    if bio.op == Op::Read { Direction::Read } else { Direction::Write }
}

fn bytes(bio: &Bio) -> u64 {
    match bio.op {
        Op::Discard => 512,
        _ => u64::from(bio.sectors) * 512,
    }
}

impl RequestQueue {
    /// The limits of groups and who waits for them.
    pub fn limits(&self) -> &Limits {
        &self.limiter.limits
    }

    /// Limit `group`'s reads or writes from now on, whoever waits for it; [`Rates::NONE`] takes the limit away. Ask
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
        self.limiter.limits.follow(self.lower.groups(), now);
        self.limiter.limits.set(group, direction, rates, now);
        self.limiter.used = true;
        Ok(())
    }

    /// Bios that limits hold back.
    pub fn held(&self) -> usize {
        self.limiter.count
    }

    /// Has room been made since the last call for those who got [`Submitted::NoRoom`]? Then all of them may submit again,
    /// longest wait first.
    pub fn take_room(&mut self) -> bool {
        core::mem::take(&mut self.limiter.room_made)
    }

    /// The groups changed; whoever waits at one that is gone waits at its heir.
    pub(super) fn follow_groups(&mut self, now: u64) {
        if self.limiter.used {
            self.limiter.limits.follow(self.lower.groups(), now);
        }
    }

    /// The answer to a bio that has to wait for a limit; `None`: it goes on.
    pub(super) fn hold_back(&mut self, bio: &Bio, now: u64) -> Option<Submitted> {
        if bio.op == Op::Flush {
            return None;
        }
        self.follow_groups(now);
        let group = self.groups().known(bio.group.unwrap_or(self.contexts()[bio.context].group));
        let limits = &mut self.limiter.limits;
        if bio.flags.contains(Flags::META) {
            limits.charge(group, direction(bio), bytes(bio), now);
            return None;
        }
        match limits.ask(group, direction(bio), bytes(bio), now) {
            Answer::Go => None,
            Answer::Wait(name) => {
                let context = self.lower.contexts_mut().hold(bio.context);
                let group = self.lower.groups_mut().hold(group);
                self.limiter.held[name.index()] = Bio { context, group: Some(group), ..*bio };
                self.limiter.count += 1;
                Some(Submitted::Held)
            }
            Answer::Full => {
                self.limiter.turned_away = true;
                // Its task goes to sleep: what it has gathered must not wait with it.
                self.flush_task_plug(bio.context, now);
                self.plug.unplug();
                Some(Submitted::NoRoom)
            }
        }
    }

    /// Let those in whom the limits allow by now; `entered` gets each bio, and what became of it. Returns when to call again, if
    /// somebody waits for a limit. [`RequestQueue::dispatch`] does it too. A host whose device is full calls this at the time
    /// it named, so that the elevator knows what there is; and one that lets waiters resubmit before it dispatches calls it
    /// after a completion, as who waits here for a slot came before them.
    #[inline]
    pub fn let_in(&mut self, now: u64, entered: impl FnMut(&Bio, Submitted)) -> Option<u64> {
        if self.limiter.count == 0 { None } else { self.let_in_held(now, entered) }
    }

    fn let_in_held(&mut self, now: u64, mut entered: impl FnMut(&Bio, Submitted)) -> Option<u64> {
        self.follow_groups(now);
        let mut until = None;
        let first = self.limiter.turn;
        self.limiter.turn = 1 - first;
        for at in [first, 1 - first] {
            while let Some(bio) = self.next_held(at, now, &mut until) {
                let answer = self.enter_held(bio, now);
                if answer == Submitted::Full {
                    self.limiter.door[at] = Some(bio);
                    break;
                }
                self.limiter.count -= 1;
                entered(&bio, answer);
            }
        }
        until
    }

    fn next_held(&mut self, at: usize, now: u64, until: &mut Option<u64>) -> Option<Bio> {
        if let Some(bio) = self.limiter.door[at].take() {
            return Some(bio);
        }
        match self.limiter.limits.next(Direction::ALL[at], now) {
            Next::Go(name) => {
                self.limiter.room_made |= core::mem::take(&mut self.limiter.turned_away);
                Some(self.limiter.held[name.index()])
            }
            Next::Wait { until: at } => {
                *until = Some(until.map_or(at, |until| until.min(at)));
                None
            }
            Next::Empty => None,
        }
    }

    /// A bio that waited becomes a request or joins one, unless there is no slot.
    fn enter_held(&mut self, bio: Bio, now: u64) -> Submitted {
        let answer = match self.try_merge(&bio, now) {
            Some(rq) => Submitted::Merged(rq),
            None => self.enqueue(bio, Waiter::Door, now),
        };
        if answer == Submitted::Full {
            return answer;
        }
        // Its task has gone on: nobody hands over what would lie on its plug.
        self.flush_task_plug(bio.context, now);
        self.plug.unplug();
        self.lower.contexts_mut().drop_hold(bio.context);
        if let Some(group) = bio.group.filter(|group| *group != GroupId::ROOT) {
            self.lower.groups_mut().drop_hold(group);
        }
        answer
    }

    /// What to tell the host when the queue answers so and the limits want to be asked at `until`.
    pub(super) fn with_limits(answer: Dispatch, until: Option<u64>) -> Dispatch {
        match (answer, until) {
            (Dispatch::Idle { until: a }, Some(b)) => Dispatch::Idle { until: a.min(b) },
            (Dispatch::Empty, Some(until)) => Dispatch::Idle { until },
            (answer, _) => answer,
        }
    }
}
