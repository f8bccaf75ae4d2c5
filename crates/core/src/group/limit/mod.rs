//! Limits on the tree of groups: bytes and requests a second, for reads and for writes, at any group.
//!
//! A bio goes when its group and every ancestor allow it, and is charged to all of them at that same moment; so every limit on
//! the way holds in every window, whatever the others do. (To let bios climb level by level, charged where they pass, is
//! simpler, but a group whose bios pile up below a busy parent then leaves faster than its own limit as soon as the parent is
//! free.)
//!
//! * **Exact.** A busy group's k-th request goes at the first nanosecond by which its predecessors are paid for (`pace.rs`).
//!   Nothing is rounded away, no request is too large, no rate too small.
//! * **Burst.** Unused time is kept for [`Limits::burst_ns`] at most; a bio that waited - for an ancestor, for its turn, for a
//!   late host - keeps the price of one bio if that is more. So in any window a limit lets at most
//!   `rate x (window + burst) + 2 bios` pass.
//! * **Order.** First come, first served within a group and direction. Groups that wait for a common ancestor share it by
//!   weight (start-time fair queueing, Goyal, Vin and Cheng 1996): each pays what its bios cost at the scarcest limit from
//!   that ancestor up.
//! * **Cost.** Without a limit on the way, one look. With limits, O(depth x log groups) a bio. Nothing allocates.
//!
//! The tree knows no bios: the host keeps them by [`WaiterId`], and calls [`Limits::next`] when it can take one.

mod gate;
mod pace;
#[cfg(test)]
mod tests;
mod tree;

use alloc::vec::Vec;

use super::GroupId;
use crate::collections::{Id, List, ListLinks};
use gate::{Entity, Place, Side};
use tree::{Ancestry, Node};

pub use pace::RATE_MAX;

/// Unused time that is kept, by default: two ticks of the slowest clock (HZ=100) that a host may have for its timers.
pub const BURST_NS: u64 = 20_000_000;

crate::collections::define_id! {
    /// A bio that waits.
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
}

/// May a bio go?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is charged.
    Go,
    /// It waits under this name until [`Limits::next`] says it.
    Wait(WaiterId),
    /// It would have to wait, and [`Limits::new`]'s `waiters_max` do already.
    Full,
}

/// Which waiting bio goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This one goes now; it is charged, and its name is free.
    Go(WaiterId),
    /// None before `until`, nanoseconds; ask again then.
    Wait {
        /// When.
        until: u64,
    },
    /// Nobody waits.
    Empty,
}

/// The limits of a tree of groups, and who waits for them.
#[derive(Debug)]
pub struct Limits {
    nodes: Vec<Node>,
    /// [`Groups::changes`](super::Groups) when the tree was last looked at.
    seen: u64,
    sides: [Side; 2],
    waiters: Waiters,
    /// Bios of one group that may wait.
    room: usize,
    burst_ns: u64,
}

/// The names of those who wait.
#[derive(Debug)]
struct Waiters {
    /// How large each is, bytes.
    bytes: Vec<u64>,
    links: ListLinks<WaiterId>,
    free: List<WaiterId>,
}

impl Limits {
    /// No limits yet, for a table of `slots` groups ([`super::Groups::slots`]) of which each may have `room` bios waiting. All it
    /// will ever need is allocated here.
    pub fn new(slots: usize, room: usize) -> Limits {
        Limits::with_room(slots.max(1), room, slots.max(1) * room)
    }

    /// As [`Limits::new`], but so many bios may wait in all, of whatever groups.
    pub fn sharing(slots: usize, waiters_max: usize) -> Limits {
        Limits::with_room(slots.max(1), waiters_max, waiters_max)
    }

    fn with_room(slots: usize, room: usize, names: usize) -> Limits {
        Limits {
            nodes: alloc::vec![Node::ROOT; slots],
            seen: 0,
            sides: [Side::new(slots), Side::new(slots)],
            waiters: Waiters::new(names),
            room,
            burst_ns: BURST_NS,
        }
    }

    /// Unused time that is kept, nanoseconds ([`BURST_NS`] at first). A host must not be later than this with its timers, or
    /// the excess is lost.
    pub fn burst_ns(&self) -> u64 {
        self.burst_ns
    }

    /// Keep unused time for so long.
    pub fn set_burst_ns(&mut self, burst_ns: u64) {
        self.burst_ns = burst_ns;
    }

    /// Bios waiting at `group` and below.
    pub fn waiting(&self, group: GroupId) -> usize {
        self.sides.iter().map(|side| side.gates[group.index()].waiting as usize).sum()
    }

    /// Of these, those of `group` itself.
    pub fn waiting_here(&self, group: GroupId) -> usize {
        self.sides.iter().map(|side| side.gates[group.index()].fifo.len()).sum()
    }

    /// How many names there are for those who wait.
    pub fn names(&self) -> usize {
        self.waiters.bytes.len()
    }

    // ---- a bio comes ------------------------------------------------------------------------------------------------------

    /// A bio of `group` with so many bytes: may it go?
    #[inline]
    pub fn ask(&mut self, group: GroupId, direction: Direction, bytes: u64, now: u64) -> Answer {
        let gate = &self.sides[direction as usize].gates[group.index()];
        if gate.scarce.is_none() && gate.fifo.is_empty() {
            return Answer::Go;
        }
        self.ask_limited(group, direction as usize, bytes, now)
    }

    fn ask_limited(&mut self, group: GroupId, at: usize, bytes: u64, now: u64) -> Answer {
        if self.may_pass(group, at, now) {
            self.charge_way(group, at, bytes, now);
            return Answer::Go;
        }
        let here = self.sides.iter().map(|side| side.gates[group.index()].fifo.len()).sum::<usize>();
        if here >= self.room {
            return Answer::Full;
        }
        let Some(waiter) = self.waiters.take(bytes) else { return Answer::Full };
        let mut bios = List::new();
        bios.push_back(&mut self.waiters.links, waiter);
        self.append(at, group, bios, now);
        Answer::Wait(waiter)
    }

    /// A bio that nobody may hold up (metadata, swap): it goes, and is charged all the same.
    pub fn charge(&mut self, group: GroupId, direction: Direction, bytes: u64, now: u64) {
        let at = direction as usize;
        if self.sides[at].gates[group.index()].scarce.is_none() {
            return;
        }
        self.charge_way(group, at, bytes, now);
        // Those who were ready may not be any more.
        for above in Ancestry::of(&self.nodes, group) {
            let side = &mut self.sides[at];
            if side.gates[above.index()].place != Place::Idle {
                side.withdraw(&self.nodes, above);
                side.rise(&self.nodes, above, now);
            }
        }
    }

    /// Nobody waits for one of its limits, and all of them allow it.
    fn may_pass(&self, group: GroupId, at: usize, now: u64) -> bool {
        let gates = &self.sides[at].gates;
        gates[group.index()].fifo.is_empty()
            && Ancestry::of(&self.nodes, group)
                .map(|g| &gates[g.index()])
                .all(|gate| gate.rates().is_none() || (gate.waiting == 0 && gate.open_at() <= now))
    }

    fn charge_way(&mut self, group: GroupId, at: usize, bytes: u64, now: u64) {
        for above in Ancestry::of(&self.nodes, group) {
            let gate = &mut self.sides[at].gates[above.index()];
            gate.forget_credit(now, self.burst_ns);
            gate.charge(bytes);
        }
    }

    // ---- a bio goes -------------------------------------------------------------------------------------------------------

    /// The next waiting bio of `direction` that may go. Ask at the time of the last [`Next::Wait`], after every
    /// [`Answer::Wait`] and every change, and again after each [`Next::Go`].
    pub fn next(&mut self, direction: Direction, now: u64) -> Next {
        let at = direction as usize;
        self.sides[at].ring(&self.nodes, now);
        if self.sides[at].gates[GroupId::ROOT.index()].place == Place::Ready {
            return self.serve(at, now).map_or(Next::Empty, Next::Go);
        }
        self.sides[at].first_timer().map_or(Next::Empty, |until| Next::Wait { until })
    }

    /// Everybody who waits goes at once and is charged: for a host that has to run dry. What they owe is paid by those who come
    /// later. O(waiters x depth).
    pub fn open(&mut self, now: u64, mut go: impl FnMut(WaiterId)) {
        for at in 0..2 {
            for index in 0..self.nodes.len() {
                let group = GroupId::from_index(index);
                let mut bios = self.leave_gate(at, group);
                while let Some(waiter) = bios.pop_front(&mut self.waiters.links) {
                    self.charge_way(group, at, self.waiters.bytes[waiter.index()], now);
                    self.waiters.release(waiter);
                    go(waiter);
                }
            }
        }
    }

    /// Down from the root to the bio whose turn it is, and up again with the bill.
    fn serve(&mut self, at: usize, now: u64) -> Option<WaiterId> {
        let side = &mut self.sides[at];
        let mut entity = side.gates[GroupId::ROOT.index()].ready.first()?;
        while entity.is_child() {
            entity = side.gates[entity.group().index()].ready.first()?;
        }
        let leaf = entity.group();
        let waiter = side.gates[leaf.index()].fifo.pop_front(&mut self.waiters.links)?;
        let bytes = self.waiters.bytes[waiter.index()];
        self.waiters.release(waiter);
        for group in Ancestry::of(&self.nodes, leaf) {
            let weight = match entity.is_child() {
                true => self.nodes[entity.group().index()].weight,
                false => self.nodes[leaf.index()].leaf_weight,
            };
            let gate = &mut side.gates[group.index()];
            gate.waiting -= 1;
            gate.charge_waiter(bytes, now, self.burst_ns);
            side.charge_turn(group, entity, bytes, weight);
            side.settle(group, now);
            entity = Entity::child(group);
        }
        Some(waiter)
    }
}

impl Waiters {
    fn new(capacity: usize) -> Waiters {
        let mut links = ListLinks::new(capacity);
        let mut free = List::new();
        (0..capacity).for_each(|slot| free.push_back(&mut links, WaiterId::from_index(slot)));
        Waiters { bytes: alloc::vec![0; capacity], links, free }
    }

    fn take(&mut self, bytes: u64) -> Option<WaiterId> {
        let waiter = self.free.pop_front(&mut self.links)?;
        self.bytes[waiter.index()] = bytes;
        Some(waiter)
    }

    fn release(&mut self, waiter: WaiterId) {
        self.free.push_front(&mut self.links, waiter);
    }
}
