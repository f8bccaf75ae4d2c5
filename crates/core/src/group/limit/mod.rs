//! Limits on the tree of groups: bytes and bios a second, for reads and for writes, at any group.
//!
//! A bio goes when its group and every ancestor allow it, and is charged to all of them at that same moment; so every limit on
//! the way holds in every window, whatever the others do. (To let bios climb level by level, charged where they pass, is
//! simpler, but a group whose bios pile up below a busy parent then leaves faster than its own limit as soon as the parent is
//! free.)
//!
//! * **Exact.** A busy group's k-th bio goes at the first nanosecond by which its predecessors are paid for (`pace.rs`).
//!   Nothing is rounded away, no bio is too large, no rate too small.
//! * **Burst.** Unused time is kept for [`BURST_NS`] at most, or what [`Limiter::set_burst`] says; a bio that waited - for an ancestor, for its turn, for a slot, for
//!   a late host - keeps the price of one bio if that is more. So in any window a limit lets at most
//!   `rate x (window + burst) + 2 bios` pass.
//! * **Order.** First come, first served within a group and direction. Groups that wait for a common ancestor share it by
//!   weight (start-time fair queueing, Goyal, Vin and Cheng 1996), each paying its part of what is scarce from that ancestor up
//!   (`Gate::price`). What was paid stays paid, whatever happens to limits, weights and other groups.
//! * **No slot.** Who may go and finds no slot stands back with its own group in its direction; all others go on. It is
//!   charged when it goes.
//! * **Cost.** Without any limit in a direction one branch. With limits O(depth x log groups) for every call, also for a change
//!   of a limit or of the tree, of which no copy is kept. Nothing allocates.
//!
//! The [`Limiter`] keeps what waits as tokens of the host's. A host asks for each that comes, and lets in those that may pass by
//! now with a round, at the time the last one named and after all that may have changed the answer:
//!
//! ```
//! # use fairlift_core::group::limit::{Answer, Direction, Entered, Limiter, Rates};
//! # use fairlift_core::group::{GroupId, Groups};
//! # let (groups, group, now) = (Groups::new(0), GroupId::ROOT, 0);
//! # let mut limiter = Limiter::new(1, 4);
//! # fn enter(_: char) -> Entered { Entered::Yes }
//! limiter.set(&groups, group, Direction::Write, Rates { bytes_per_s: 0, ios_per_s: 10 }, now);
//! assert_eq!(limiter.ask(&groups, group, Direction::Write, 4096, 'a', now), Answer::Go);
//! assert_eq!(limiter.ask(&groups, group, Direction::Write, 4096, 'b', now), Answer::Held);
//! let mut round = limiter.begin(&groups, 100_000_000);
//! while let Some(token) = limiter.next(&groups, &mut round) {
//!     let entered = enter(token);
//!     limiter.settle(&groups, &mut round, entered);
//! }
//! assert_eq!(limiter.end(round), None); // or when to begin the next one
//! ```

mod gate;
mod pace;
mod side;
#[cfg(test)]
mod tests;

use super::{GroupId, Groups};
use crate::collections::{Id, List, ListLinks, Table};
use pace::Pace;
use side::Side;

pub use pace::RATE_MAX;

/// Unused time that is kept: two ticks of the slowest clock (HZ=100) that a host may have for its timers. What a host is later
/// than this with its timers is lost.
pub const BURST_NS: u64 = 20_000_000;

/// A round never says that the next one is due later than this from now: a limit may owe centuries, and a host's timer need
/// not be able to count them.
pub const WAIT_MAX_NS: u64 = 3600 * crate::SECOND;

/// Groups of a direction that come forward at the beginning of a round, to see whether there is a slot now.
const FORWARD_MAX: usize = 2;
/// Tokens that find no slot in one round; more have their try in the next, which comes at once.
const REFUSED_MAX: u32 = 8;

crate::collections::define_id! {
    /// Who waits: a place among the waiters.
    WaiterId
}

/// The limits of one direction; 0 = none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Bytes a second, up to [`RATE_MAX`].
    pub bytes_per_s: u64,
    /// Bios a second, up to [`RATE_MAX`].
    pub ios_per_s: u64,
}

impl Rates {
    /// No limit.
    pub const NONE: Rates = Rates { bytes_per_s: 0, ios_per_s: 0 };

    #[inline]
    fn is_none(self) -> bool {
        self == Rates::NONE
    }

    /// The smaller of each.
    fn scarcer(self, other: Rates) -> Rates {
        let least = |a: u64, b: u64| if a == 0 || b == 0 { a | b } else { a.min(b) };
        Rates {
            bytes_per_s: least(self.bytes_per_s, other.bytes_per_s),
            ios_per_s: least(self.ios_per_s, other.ios_per_s),
        }
    }
}

/// Which of a group's two limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Reads.
    Read,
    /// Everything that changes the medium.
    Write,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Read, Direction::Write];

    /// In which direction something of this kind goes.
    #[inline]
    pub fn of(op: crate::Op) -> Direction {
        if op == crate::Op::Read { Direction::Read } else { Direction::Write }
    }
}

/// What something of this kind and length is charged for: a discard moves no data and counts as one sector.
#[inline]
pub fn bytes_of(op: crate::Op, sectors: u32) -> u64 {
    if op == crate::Op::Discard { 512 } else { u64::from(sectors) * 512 }
}

/// May a bio go?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is charged.
    Go,
    /// The limiter has its token until [`Limiter::next`] says it.
    Held,
    /// It would have to wait, and there is no room ([`Limiter::new`]).
    Full,
}

/// What became of a token that may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    /// It went, and is charged.
    Yes,
    /// There is no slot for it. It stays, and its group stands back in its direction.
    NoSlot,
}

/// Letting in, once: [`Limiter::begin`].
#[derive(Debug)]
pub struct Round {
    now: u64,
    /// The direction that goes first.
    first: usize,
    /// Whose token [`Limiter::next`] said, in which direction.
    asked: Option<(usize, GroupId)>,
    refused: u32,
    /// The round stopped before it was through.
    again: bool,
}

/// The limits of a tree of groups, and the tokens that wait for them.
#[derive(Debug)]
pub struct Limiter<T> {
    sides: [Side; 2],
    waiters: Waiters<T>,
    /// Tokens of one group that may wait.
    room: usize,
    /// The direction that goes first in the next round.
    turn: usize,
    /// A group that had to refuse a bio has room again.
    room_made: bool,
}

/// The places of those who wait.
#[derive(Debug)]
struct Waiters<T> {
    /// The token and how large its bio is, bytes.
    tokens: Table<Option<(T, u64)>>,
    links: ListLinks<WaiterId>,
    free: List<WaiterId>,
}

impl<T: Copy> Limiter<T> {
    /// No limits yet, for a table of `slots` groups ([`Groups::slots`]) of which each may have `room` tokens waiting. All it
    /// will ever need is allocated here.
    pub fn new(slots: usize, room: usize) -> Limiter<T> {
        Limiter::with_room(slots.max(1), room, slots.max(1) * room)
    }

    /// As [`Limiter::new`], but so many tokens may wait in all, of whatever groups.
    pub fn sharing(slots: usize, tokens_max: usize) -> Limiter<T> {
        Limiter::with_room(slots.max(1), tokens_max, tokens_max)
    }

    fn with_room(slots: usize, room: usize, places: usize) -> Limiter<T> {
        Limiter {
            sides: [Side::new(slots), Side::new(slots)],
            waiters: Waiters::new(places),
            room,
            turn: 0,
            room_made: false,
        }
    }

    /// Is there a limit, or a bio that waits for one that was? Else the host need not ask.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.sides[0].busy | self.sides[1].busy != 0
    }

    /// Tokens waiting.
    #[inline]
    pub fn held(&self) -> usize {
        self.waiters.taken()
    }

    /// Tokens waiting at `group` and below.
    pub fn waiting(&self, group: GroupId) -> usize {
        self.sides.iter().map(|side| side.gate(group).waiting as usize).sum()
    }

    /// Of these, those of `group` itself.
    pub fn waiting_here(&self, group: GroupId) -> usize {
        self.sides.iter().map(|side| side.gate(group).line.len()).sum()
    }

    /// The limits of `group` itself.
    pub fn rates(&self, groups: &Groups, group: GroupId, direction: Direction) -> Rates {
        let gate = self.sides[direction as usize].gate(group);
        if gate.epoch == groups.epoch(group) { gate.rates() } else { Rates::NONE }
    }

    // ---- limits -----------------------------------------------------------------------------------------------------------

    /// Limit `group` from now on; rates above [`RATE_MAX`] are taken as that. What its last bios owe is paid at the new rate,
    /// or, while there is none, at the last there was. Begin a round.
    pub fn set(&mut self, groups: &Groups, group: GroupId, direction: Direction, rates: Rates, now: u64) {
        let side = &mut self.sides[direction as usize];
        side.renew(groups, group);
        side.set(groups, group, rates, now);
    }

    /// Keep up to so much unused time of `group` from now on, instead of [`BURST_NS`]: the depth of its bucket, `rate x burst_ns`. With
    /// less than [`BURST_NS`], what a host is late with its timers may be lost. It holds for all later limits of the group, too.
    pub fn set_burst(&mut self, groups: &Groups, group: GroupId, direction: Direction, burst_ns: u64) {
        let side = &mut self.sides[direction as usize];
        side.renew(groups, group);
        side.gate_mut(group).burst_ns = burst_ns;
    }

    /// `group` was removed: its own limits are gone, with what was owed to them. What waits there goes on waiting for those
    /// above, in its place. Begin a round.
    pub fn removed(&mut self, groups: &Groups, group: GroupId, now: u64) {
        for side in self.sides.iter_mut().filter(|side| side.busy > 0) {
            side.renew(groups, group);
            side.set(groups, group, Rates::NONE, now);
            let gate = side.gate_mut(group);
            (gate.bytes, gate.ios) = (Pace::NONE, Pace::NONE);
        }
    }

    // ---- a bio comes ------------------------------------------------------------------------------------------------------

    /// A bio of `group` with so many bytes: may it go? If not, `token` is kept.
    #[inline]
    pub fn ask(
        &mut self,
        groups: &Groups,
        group: GroupId,
        direction: Direction,
        bytes: u64,
        token: T,
        now: u64,
    ) -> Answer {
        if self.sides[direction as usize].busy == 0 {
            return Answer::Go;
        }
        self.ask_limited(groups, (group, direction), bytes, token, now)
    }

    fn ask_limited(
        &mut self,
        groups: &Groups,
        (group, direction): (GroupId, Direction),
        bytes: u64,
        token: T,
        now: u64,
    ) -> Answer {
        let here = self.waiting_here(group);
        let side = &mut self.sides[direction as usize];
        side.renew(groups, group);
        if side.may_pass(groups, group, now) {
            side.pass(groups, group, bytes, now);
            return Answer::Go;
        }
        let waiter = if here < self.room { self.waiters.take(token, bytes) } else { None };
        let Some(waiter) = waiter else {
            side.gate_mut(group).turned_away = true;
            return Answer::Full;
        };
        side.line_up(groups, &mut self.waiters.links, (group, waiter), now);
        Answer::Held
    }

    /// A bio that may not be held up (metadata, the data of a flush sequence, what goes to the head): it goes, and is charged
    /// all the same.
    #[inline]
    pub fn charge(&mut self, groups: &Groups, group: GroupId, direction: Direction, bytes: u64, now: u64) {
        let side = &mut self.sides[direction as usize];
        if side.busy > 0 {
            side.renew(groups, group);
            side.bill(groups, group, (bytes, 1), now, false);
        }
    }

    /// The rest of a bio of which a part was let go: a sender asked before it could say how much it would send. It goes, and
    /// its bytes are charged; that it is one bio was charged then.
    #[inline]
    pub fn charge_rest(
        &mut self,
        groups: &Groups,
        group: GroupId,
        direction: Direction,
        bytes: u64,
        now: u64,
    ) {
        let side = &mut self.sides[direction as usize];
        if side.busy > 0 && bytes > 0 {
            side.renew(groups, group);
            side.bill(groups, group, (bytes, 0), now, false);
        }
    }

    /// A bio that was let go turned out to be none (a flush without data): it is not charged. Begin a round.
    pub fn refund(&mut self, groups: &Groups, group: GroupId, direction: Direction, bytes: u64, now: u64) {
        let side = &mut self.sides[direction as usize];
        if side.busy > 0 {
            side.renew(groups, group);
            side.refund(groups, group, bytes, now);
        }
    }

    // ---- bios go ----------------------------------------------------------------------------------------------------------

    /// Begin to let in the bios that the limits allow by `now`. Those that found no slot before have another try, a few at a time.
    pub fn begin(&mut self, groups: &Groups, now: u64) -> Round {
        for side in &mut self.sides {
            side.come_forward(groups, FORWARD_MAX, now);
        }
        let first = self.turn;
        self.turn = 1 - (first & 1);
        Round { now, first, asked: None, refused: 0, again: false }
    }

    /// The next who may go. Nothing is charged before [`Limiter::settle`] says what became of it, which comes before all other
    /// calls.
    pub fn next(&mut self, groups: &Groups, round: &mut Round) -> Option<T> {
        round.again = false;
        for at in [round.first & 1, 1 - (round.first & 1)] {
            let side = &mut self.sides[at];
            round.again |= side.ring(groups, round.now);
            if let Some(group) = side.first() {
                if round.refused >= REFUSED_MAX {
                    round.again = true;
                    return None;
                }
                round.asked = Some((at, group));
                let first = side.gate(group).line.front()?;
                return self.waiters.tokens[first.index()].map(|(token, _)| token);
            }
        }
        None
    }

    /// What became of the one that [`Limiter::next`] said.
    pub fn settle(&mut self, groups: &Groups, round: &mut Round, entered: Entered) {
        let Some((at, group)) = round.asked.take() else { return };
        match entered {
            Entered::Yes => {
                self.let_go(groups, at, group, round.now);
            }
            Entered::NoSlot => {
                round.refused += 1;
                self.sides[at].stand_back(groups, group, round.now);
            }
        }
    }

    /// When to begin the next round, if a bio waits for a time: later than now, and not later than [`WAIT_MAX_NS`] from
    /// now.
    pub fn end(&self, round: Round) -> Option<u64> {
        let soon = round.now.saturating_add(1);
        if round.again {
            return Some(soon);
        }
        let until = self.sides.iter().filter_map(Side::first_timer).min()?;
        Some(until.clamp(soon, round.now.saturating_add(WAIT_MAX_NS).max(soon)))
    }

    /// A slot that `group` had is free: who stands back there is among the first who try again. O(1).
    #[inline]
    pub fn slot_freed(&mut self, group: GroupId) {
        if self.waiters.taken() > 0 {
            self.sides.iter_mut().for_each(|side| side.prefer(group));
        }
    }

    /// One waiting bio goes at once, allowed or not, and is charged: for a host that has to run dry, until there is none.
    /// Bios that come later pay what it owes.
    pub fn release(&mut self, groups: &Groups, now: u64) -> Option<T> {
        let at = self.sides.iter().position(|side| side.some_line().is_some())?;
        let group = self.sides[at].some_line()?;
        self.let_go(groups, at, group, now)
    }

    /// Has room been made since the last call for those who got [`Answer::Full`]?
    #[inline]
    pub fn take_room(&mut self) -> bool {
        core::mem::take(&mut self.room_made)
    }

    fn let_go(&mut self, groups: &Groups, at: usize, group: GroupId, now: u64) -> Option<T> {
        let waiter = self.sides[at].take_first(&mut self.waiters.links, group)?;
        let (token, bytes) = self.waiters.release(waiter)?;
        self.sides[at].bill(groups, group, (bytes, 1), now, true);
        for side in &mut self.sides {
            self.room_made |= core::mem::take(&mut side.gate_mut(group).turned_away);
        }
        Some(token)
    }
}

impl<T: Copy> Waiters<T> {
    fn new(capacity: usize) -> Waiters<T> {
        let mut links = ListLinks::new(capacity);
        let mut free = List::new();
        (0..capacity).for_each(|slot| free.push_back(&mut links, WaiterId::from_index(slot)));
        Waiters { tokens: Table::new(None, capacity), links, free }
    }

    fn taken(&self) -> usize {
        self.tokens.len() - self.free.len()
    }

    fn take(&mut self, token: T, bytes: u64) -> Option<WaiterId> {
        let waiter = self.free.pop_front(&mut self.links)?;
        self.tokens[waiter.index()] = Some((token, bytes));
        Some(waiter)
    }

    fn release(&mut self, waiter: WaiterId) -> Option<(T, u64)> {
        self.free.push_front(&mut self.links, waiter);
        self.tokens[waiter.index()].take()
    }
}
