//! A gate: one group in one direction. What it allows, which bios wait there, and what a turn at it costs.

use super::pace::Pace;
use super::{BURST_NS, Rates, WaiterId};
use crate::collections::{Id, List, Tree};
use crate::group::GroupId;

crate::collections::define_id! {
    /// What waits below a gate: its group's own bios (even), or a child group (odd).
    Entity
}

impl Entity {
    pub(super) fn own(group: GroupId) -> Entity {
        Entity::from_index(2 * group.index())
    }

    pub(super) fn child(group: GroupId) -> Entity {
        Entity::from_index(2 * group.index() + 1)
    }

    pub(super) fn group(self) -> GroupId {
        GroupId::from_index(self.index() / 2)
    }

    pub(super) fn is_child(self) -> bool {
        self.index() % 2 == 1
    }
}

/// Virtual time of a gate. At one turn a nanosecond of the largest price (2^56) it lasts for 10^14 years.
pub(super) type Vtime = u128;

/// A group in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    /// [`crate::group::Groups::epoch`] of the group this is about.
    pub(super) epoch: u32,
    pub(super) bytes: Pace,
    pub(super) ios: Pace,
    /// Unused time that is kept ([`super::Limiter::set_burst`]).
    pub(super) burst_ns: u64,
    /// Its own bios that wait, oldest first.
    pub(super) line: List<WaiterId>,
    /// Where these stand.
    pub(super) own: Own,
    /// Bios waiting here and below.
    pub(super) waiting: u32,
    /// Where the group stands with all that waits below it.
    pub(super) place: Place,
    /// The entities below with a bio that nothing below this gate holds back, by virtual time.
    pub(super) ready: Tree<Entity>,
    /// Virtual time of the entity served last: where one that comes back begins.
    pub(super) clock: Vtime,
    /// This group's own virtual times: of its bios at its own gate, of itself at its parent's.
    pub(super) vtime: [Vtime; 2],
    /// No bio that had a turn here was larger; a power of two.
    largest: u64,
    /// One of its bios found no room to wait.
    pub(super) turned_away: bool,
}

/// Where a group's own bios stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    /// There are none, or a call in progress is moving them.
    Out,
    /// In the tree of their gate.
    Ready,
    /// They were allowed to go and the first found no slot: in no tree until there may be one.
    Back,
}

/// Where a group stands as an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Nothing below it is ready.
    Idle,
    /// Something is, its own limit is in the way: it is in the timers.
    Timed,
    /// Something is, and its limit allows it: it is in its parent's tree (or the root).
    Ready,
}

impl Gate {
    pub(super) const NEW: Gate = Gate {
        epoch: 0,
        bytes: Pace::NONE,
        ios: Pace::NONE,
        burst_ns: BURST_NS,
        line: List::new(),
        own: Own::Out,
        waiting: 0,
        place: Place::Idle,
        ready: Tree::new(),
        clock: 0,
        vtime: [0; 2],
        largest: 512,
        turned_away: false,
    };

    /// When the next bio may pass.
    #[inline]
    pub(super) fn open_at(&self) -> u64 {
        self.bytes.ready_at().max(self.ios.ready_at())
    }

    /// Its own limits.
    #[inline]
    pub(super) fn rates(&self) -> Rates {
        Rates { bytes_per_s: self.bytes.rate(), ios_per_s: self.ios.rate() }
    }

    /// Where it belongs now.
    pub(super) fn place_at(&self, now: u64) -> Place {
        match self.open_at() {
            _ if self.ready.is_empty() => Place::Idle,
            at if at > now => Place::Timed,
            _ => Place::Ready,
        }
    }

    /// One more bio waits here or below. The burst is kept of the time that went unused before any bio waited.
    pub(super) fn one_more_waits(&mut self, now: u64) {
        if self.waiting == 0 {
            self.forget_credit(now);
        }
        self.waiting += 1;
    }

    /// A bio passes that came a moment ago, or the rest of one (no bio).
    #[inline]
    pub(super) fn charge(&mut self, bytes: u64, ios: u64, now: u64) {
        self.forget_credit(now);
        self.bytes.charge(bytes);
        self.ios.charge(ios);
    }

    /// A bio passes that waited: it keeps its own price of credit if that is more than the burst.
    pub(super) fn charge_waiter(&mut self, bytes: u64, now: u64) {
        let burst_ns = self.burst_ns;
        for (pace, units) in [(&mut self.bytes, bytes), (&mut self.ios, 1)] {
            // A busy gate has no such credit, and need not know the price twice.
            if pace.has_credit(now.saturating_sub(burst_ns)) {
                pace.forget_credit(now.saturating_sub(burst_ns.max(pace.cost_ns(units))));
            }
            pace.charge(units);
        }
    }

    #[inline]
    fn forget_credit(&mut self, now: u64) {
        self.bytes.forget_credit(now.saturating_sub(self.burst_ns));
        self.ios.forget_credit(now.saturating_sub(self.burst_ns));
    }

    /// What a bio of an entity of this weight pays in virtual time, when `scarce` are the smallest rates from here up.
    ///
    /// Limits that hold bytes share bytes, limits that hold bios share bios: the price is the part of a turn that the bio takes
    /// of what is scarce, and a whole turn is what the largest bio takes. So no group is ever more than one turn by weight behind
    /// for what it got, by whatever limits it was measured, and no clock starts over when limits change.
    pub(super) fn price(&mut self, bytes: u64, weight: u32, scarce: Rates) -> Vtime {
        // Not above 2^63, for what is larger than that.
        self.largest = self.largest.max(bytes.min(1 << 62).next_power_of_two());
        let part = part_of(bytes.min(self.largest), self.largest, scarce);
        // At most 2^32 x 2^24: the smallest weight pays 2^56 for a turn, the largest (10^4) 2^42.
        Vtime::from((part << 24) / u64::from(weight.max(1))).max(1)
    }
}

/// What `bytes` take of what is scarce, beside what `largest` take: a part of 2^32.
fn part_of(bytes: u64, largest: u64, scarce: Rates) -> u64 {
    const WHOLE: u64 = 1 << 32;
    // So many bytes take as long as one bio does: smaller bios are as dear as they are.
    let bytes_per_io = match (scarce.bytes_per_s, scarce.ios_per_s) {
        (_, 0) => 0,
        (0, _) => return WHOLE,
        (bytes_per_s, ios_per_s) => bytes_per_s / ios_per_s,
    };
    let (bytes, largest) = (bytes.max(bytes_per_io), largest.max(bytes_per_io));
    // At most 31 bits are left of either, so that a product with 2^32 fits.
    let shift = (u64::BITS - largest.leading_zeros()).saturating_sub(31);
    (((bytes >> shift) * WHOLE) / (largest >> shift).max(1)).max(1)
}
