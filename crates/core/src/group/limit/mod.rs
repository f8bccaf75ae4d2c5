//! Limits on the tree of groups: bytes and requests a second, for reads and for writes, at any group.
//!
//! A bio goes when its group and every ancestor allow it, and is charged to all of them at that same moment; so every limit on
//! the way holds in every window, whatever the others do. (To let bios climb level by level, charged where they pass, is
//! simpler, but a group whose bios pile up below a busy parent then leaves faster than its own limit as soon as the parent is
//! free.)
//!
//! * **Exact.** A busy group's k-th request goes at the first nanosecond by which its predecessors are paid for ([`pace`]).
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

mod pace;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use super::GroupId;
use crate::collections::{Id, List, ListLinks, Tree, TreeLinks};
use pace::Pace;

pub use pace::RATE_MAX;

/// Unused time that is kept, by default: two ticks of the slowest clock (HZ=100) that a host may have for its timers.
pub const BURST_NS: u64 = 20_000_000;
/// The weight that a turn's price is divided by at face value, and that of a group's own bios beside its child groups.
const WEIGHT_ONE: u32 = 100;

crate::collections::define_id! {
    /// A bio that waits.
    WaiterId
}

crate::collections::define_id! {
    /// What waits below a group: its own bios (even), or a child group (odd).
    Entity
}

impl Entity {
    fn own(group: GroupId) -> Entity {
        Entity::from_index(2 * group.index())
    }

    fn child(group: GroupId) -> Entity {
        Entity::from_index(2 * group.index() + 1)
    }

    fn group(self) -> GroupId {
        GroupId::from_index(self.index() / 2)
    }

    fn is_child(self) -> bool {
        self.index() % 2 == 1
    }
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
    groups: Vec<Group>,
    sides: [Side; 2],
    waiters: Waiters,
    /// The direction to ask first: they take turns.
    turn: usize,
    burst_ns: u64,
}

/// A group's place in the tree.
#[derive(Clone, Copy, Debug)]
struct Group {
    parent: Option<GroupId>,
    weight: u32,
    used: bool,
}

/// The names of those who wait.
#[derive(Debug)]
struct Waiters {
    /// How large each is, bytes.
    bytes: Vec<u64>,
    links: ListLinks<WaiterId>,
    free: List<WaiterId>,
}

/// All of one direction.
#[derive(Debug)]
struct Side {
    gates: Vec<Gate>,
    entities: TreeLinks<Entity, u64>,
    /// Groups that have bios which could go but for the group's own limit, by when it allows the next.
    timers: Tree<GroupId>,
    timer_links: TreeLinks<GroupId, u64>,
}

/// A group in one direction.
#[derive(Clone, Copy, Debug)]
struct Gate {
    bytes: Pace,
    ios: Pace,
    /// The smallest rates here and above.
    scarce: Rates,
    fifo: List<WaiterId>,
    /// Bios waiting here and below.
    waiting: u32,
    place: Place,
    /// The entities below with a bio that nothing below this gate holds back, by virtual time: nanoseconds of the scarcest
    /// limit from here up, by weight.
    ready: Tree<Entity>,
    /// Virtual time of the entity served last: where one that comes back begins.
    clock: u64,
    /// This group's own virtual times: of its bios in its own tree, of itself in its parent's.
    vtime: [u64; 2],
}

/// Where a group stands as an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Nothing below it is ready.
    Idle,
    /// Something is, its own limit is in the way: it is in the timers.
    Timed,
    /// Something is, and its limit allows it: it is in its parent's tree (or the root).
    Ready,
}

impl Gate {
    const NEW: Gate = Gate {
        bytes: Pace::NONE,
        ios: Pace::NONE,
        scarce: Rates::NONE,
        fifo: List::new(),
        waiting: 0,
        place: Place::Idle,
        ready: Tree::new(),
        clock: 0,
        vtime: [0; 2],
    };

    /// When the next bio may pass.
    #[inline]
    fn open_at(&self) -> u64 {
        self.bytes.ready_at().max(self.ios.ready_at())
    }

    fn is_limited(&self) -> bool {
        self.bytes.rate() != 0 || self.ios.rate() != 0
    }

    /// Keep what was not used for `burst_ns` at most.
    #[inline]
    fn forget_credit(&mut self, now: u64, burst_ns: u64) {
        self.bytes.forget_credit(now.saturating_sub(burst_ns));
        self.ios.forget_credit(now.saturating_sub(burst_ns));
    }

    /// So many more bios wait here or below.
    fn more_wait(&mut self, bios: u32, now: u64, burst_ns: u64) {
        if self.waiting == 0 {
            self.forget_credit(now, burst_ns);
        }
        self.waiting += bios;
    }

    /// A bio passes that came a moment ago.
    #[inline]
    fn charge(&mut self, bytes: u64) {
        self.bytes.charge(bytes);
        self.ios.charge(1);
    }

    /// A bio passes that waited: it keeps its own price of credit if that is more than the burst.
    #[inline]
    fn charge_waiter(&mut self, bytes: u64, now: u64, burst_ns: u64) {
        self.bytes.forget_credit(now.saturating_sub(burst_ns.max(self.bytes.cost_ns(bytes))));
        self.ios.forget_credit(now.saturating_sub(burst_ns.max(self.ios.cost_ns(1))));
        self.charge(bytes);
    }

    /// What a bio costs those who compete for this gate: nanoseconds of the scarcest limit from here up, or without one bytes.
    fn price(&self, bytes: u64) -> u64 {
        if self.scarce.is_none() {
            return bytes.max(1);
        }
        let time = |units, rate| Pace::of(rate).cost_ns(units);
        time(bytes, self.scarce.bytes_per_s).max(time(1, self.scarce.ios_per_s))
    }
}

impl Side {
    /// Does `entity`, the one that was served, have more that is ready?
    fn stays_ready(&self, entity: Entity) -> bool {
        let gate = &self.gates[entity.group().index()];
        if entity.is_child() { gate.place == Place::Ready } else { !gate.fifo.is_empty() }
    }

    /// Begin all virtual times anew, in the order they have now: prices change their meaning with the limits.
    fn restart_clocks(&mut self) {
        for gate in &mut self.gates {
            let mut ready = Tree::new();
            while let Some(entity) = gate.ready.first() {
                gate.ready.remove(&mut self.entities, entity);
                ready.insert(&mut self.entities, entity, 0);
            }
            (gate.ready, gate.clock, gate.vtime) = (ready, 0, [0; 2]);
        }
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

/// A group, its parent, ... to the root.
struct Ancestry<'a> {
    groups: &'a [Group],
    at: Option<GroupId>,
}

impl<'a> Ancestry<'a> {
    fn of(groups: &'a [Group], group: GroupId) -> Ancestry<'a> {
        Ancestry { groups, at: Some(group) }
    }
}

impl Iterator for Ancestry<'_> {
    type Item = GroupId;

    #[inline]
    fn next(&mut self) -> Option<GroupId> {
        let group = self.at?;
        self.at = self.groups[group.index()].parent;
        Some(group)
    }
}

impl Limits {
    /// No limits yet, for group slots `0..groups_max` (slot 0 is the root) and up to `waiters_max` waiting bios. All it will ever
    /// need is allocated here.
    pub fn new(groups_max: usize, waiters_max: usize) -> Limits {
        let groups_max = groups_max.max(1);
        let root = Group { parent: None, weight: WEIGHT_ONE, used: true };
        let mut groups = alloc::vec![Group { used: false, ..root }; groups_max];
        groups[GroupId::ROOT.index()] = root;
        let side = || Side {
            gates: alloc::vec![Gate::NEW; groups_max],
            entities: TreeLinks::new(2 * groups_max),
            timers: Tree::new(),
            timer_links: TreeLinks::new(groups_max),
        };
        Limits {
            groups,
            sides: [side(), side()],
            waiters: Waiters::new(waiters_max),
            turn: 0,
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

    // ---- the tree (not on the request path) -------------------------------------------------------------------------------

    /// `group` is a new child of `parent`, without limits.
    pub fn create(&mut self, group: GroupId, parent: GroupId, weight: u32) {
        debug_assert!(!self.groups[group.index()].used && self.groups[parent.index()].used);
        self.groups[group.index()] = Group { parent: Some(parent), weight: weight.max(1), used: true };
        for side in &mut self.sides {
            let scarce = side.gates[parent.index()].scarce;
            side.gates[group.index()] = Gate { scarce, ..Gate::NEW };
        }
    }

    /// `group`, which has no child, is no more; who waits there waits at its parent, behind those who do already.
    pub fn remove(&mut self, group: GroupId, now: u64) {
        let Some(parent) = self.groups[group.index()].parent else { return };
        for at in 0..2 {
            let bios = core::mem::take(&mut self.sides[at].gates[group.index()].fifo);
            self.leave_parent(at, group);
            let gate = &mut self.sides[at].gates[group.index()];
            debug_assert!(gate.waiting as usize == bios.len(), "a group that is removed has no children");
            *gate = Gate::NEW;
            self.append(at, parent, bios, now);
        }
        self.groups[group.index()].used = false;
    }

    /// `group` with all below it moves to `parent`, which is not below it.
    pub fn set_parent(&mut self, group: GroupId, parent: GroupId, now: u64) {
        if self.groups[group.index()].parent.is_none() {
            return;
        }
        for at in 0..2 {
            self.leave_parent(at, group);
        }
        self.groups[group.index()].parent = Some(parent);
        self.find_scarce();
        for at in 0..2 {
            self.join_parent(at, group, now);
        }
    }

    /// The weight by which `group` shares its parent's limits with its siblings.
    pub fn set_weight(&mut self, group: GroupId, weight: u32) {
        self.groups[group.index()].weight = weight.max(1);
    }

    /// The limits of `group` itself.
    pub fn rates(&self, group: GroupId, direction: Direction) -> Rates {
        let gate = &self.sides[direction as usize].gates[group.index()];
        Rates { bytes_per_s: gate.bytes.rate(), ios_per_s: gate.ios.rate() }
    }

    /// Limit `group` from now on; rates above [`RATE_MAX`] are taken as that. What its last bios owe is paid at the new rate.
    /// Ask [`Limits::next`] again.
    pub fn set(&mut self, group: GroupId, direction: Direction, rates: Rates, now: u64) {
        let at = direction as usize;
        let gate = &mut self.sides[at].gates[group.index()];
        gate.bytes.set(rates.bytes_per_s.min(RATE_MAX), now);
        gate.ios.set(rates.ios_per_s.min(RATE_MAX), now);
        self.find_scarce();
        self.withdraw(at, group);
        self.rise(at, group, now);
    }

    /// Bios waiting at `group` and below.
    pub fn waiting(&self, group: GroupId) -> usize {
        self.sides.iter().map(|side| side.gates[group.index()].waiting as usize).sum()
    }

    /// The smallest rates from each group up, and what follows from them.
    fn find_scarce(&mut self) {
        for side in &mut self.sides {
            for index in 0..side.gates.len() {
                let mut scarce = Rates::NONE;
                for group in Ancestry::of(&self.groups, GroupId::from_index(index)) {
                    let gate = &side.gates[group.index()];
                    let here = Rates { bytes_per_s: gate.bytes.rate(), ios_per_s: gate.ios.rate() };
                    scarce = scarce.scarcer(here);
                }
                side.gates[index].scarce = scarce;
            }
            side.restart_clocks();
        }
    }

    /// Take the bios of `group` and below off its ancestors' books.
    fn leave_parent(&mut self, at: usize, group: GroupId) {
        self.withdraw(at, group);
        let waiting = self.sides[at].gates[group.index()].waiting;
        for above in Ancestry::of(&self.groups, group).skip(1) {
            self.sides[at].gates[above.index()].waiting -= waiting;
        }
    }

    fn join_parent(&mut self, at: usize, group: GroupId, now: u64) {
        let waiting = self.sides[at].gates[group.index()].waiting;
        for above in Ancestry::of(&self.groups, group).skip(1) {
            self.sides[at].gates[above.index()].more_wait(waiting, now, self.burst_ns);
        }
        self.rise(at, group, now);
    }

    /// Put `bios`, which wait nowhere now, behind those of `group`.
    fn append(&mut self, at: usize, group: GroupId, mut bios: List<WaiterId>, now: u64) {
        if bios.is_empty() {
            return;
        }
        let count = bios.len() as u32;
        for above in Ancestry::of(&self.groups, group) {
            self.sides[at].gates[above.index()].more_wait(count, now, self.burst_ns);
        }
        let side = &mut self.sides[at];
        let gate = &mut side.gates[group.index()];
        let is_first = gate.fifo.is_empty();
        while let Some(waiter) = bios.pop_front(&mut self.waiters.links) {
            gate.fifo.push_back(&mut self.waiters.links, waiter);
        }
        if is_first {
            let alone = gate.ready.is_empty();
            gate.ready.insert(&mut side.entities, Entity::own(group), gate.vtime[0].max(gate.clock));
            if alone {
                self.rise(at, group, now);
            }
        }
    }

    // ---- a bio comes ------------------------------------------------------------------------------------------------------

    /// A bio of `group` with so many bytes: may it go?
    #[inline]
    pub fn ask(&mut self, group: GroupId, direction: Direction, bytes: u64, now: u64) -> Answer {
        let gate = &self.sides[direction as usize].gates[group.index()];
        if gate.scarce.is_none() && gate.waiting == 0 {
            return Answer::Go;
        }
        self.ask_limited(group, direction as usize, bytes, now)
    }

    fn ask_limited(&mut self, group: GroupId, at: usize, bytes: u64, now: u64) -> Answer {
        if self.may_pass(group, at, now) {
            self.charge_way(group, at, bytes, now);
            return Answer::Go;
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
        let mut below = Some(group);
        while let Some(group) = below {
            if self.sides[at].gates[group.index()].place != Place::Idle {
                self.withdraw(at, group);
                self.rise(at, group, now);
            }
            below = self.groups[group.index()].parent;
        }
    }

    /// Nobody waits for one of its limits, and all of them allow it.
    fn may_pass(&self, group: GroupId, at: usize, now: u64) -> bool {
        let gates = &self.sides[at].gates;
        gates[group.index()].waiting == 0
            && Ancestry::of(&self.groups, group).map(|g| &gates[g.index()]).all(|gate| {
                !gate.is_limited() || (gate.waiting == 0 && gate.open_at() <= now)
            })
    }

    fn charge_way(&mut self, group: GroupId, at: usize, bytes: u64, now: u64) {
        for above in Ancestry::of(&self.groups, group) {
            let gate = &mut self.sides[at].gates[above.index()];
            gate.forget_credit(now, self.burst_ns);
            gate.charge(bytes);
        }
    }

    // ---- a bio goes -------------------------------------------------------------------------------------------------------

    /// The next waiting bio that may go. Ask at the time of the last [`Next::Wait`], after every [`Answer::Wait`] and every
    /// change, and again after each [`Next::Go`].
    pub fn next(&mut self, now: u64) -> Next {
        for at in [self.turn, 1 - self.turn] {
            self.ring(at, now);
            if self.sides[at].gates[GroupId::ROOT.index()].place == Place::Ready {
                self.turn = 1 - at;
                return self.serve(at, now).map_or(Next::Empty, Next::Go);
            }
        }
        let first = |side: &Side| side.timers.first().map(|g| side.timer_links.key(g));
        match self.sides.iter().filter_map(first).min() {
            Some(until) => Next::Wait { until },
            None => Next::Empty,
        }
    }

    /// Limits whose time has come open.
    fn ring(&mut self, at: usize, now: u64) {
        while let Some(group) = self.sides[at].timers.first()
            && self.sides[at].timer_links.key(group) <= now
        {
            self.withdraw(at, group);
            self.rise(at, group, now);
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
        for group in Ancestry::of(&self.groups, leaf) {
            let weight = if entity.is_child() { self.groups[entity.group().index()].weight } else { WEIGHT_ONE };
            let stays = side.stays_ready(entity);
            let gate = &mut side.gates[group.index()];
            gate.waiting -= 1;
            gate.charge_waiter(bytes, now, self.burst_ns);
            let start = side.entities.key(entity);
            gate.clock = gate.clock.max(start);
            // At 1 byte a second 32 MiB cost 2^55 ns, x 100 < 2^62; more than that stops at the end of virtual time, where
            // everybody is equal.
            let price = gate.price(bytes).saturating_mul(WEIGHT_ONE.into()) / u64::from(weight);
            let vtime = start.saturating_add(price.max(1));
            gate.ready.remove(&mut side.entities, entity);
            if stays {
                gate.ready.insert(&mut side.entities, entity, vtime);
            }
            side.gates[entity.group().index()].vtime[usize::from(entity.is_child())] = vtime;
            // What the group itself is to its parent now. It is taken out of the tree there on the next step up.
            let gate = &mut side.gates[group.index()];
            gate.place = if gate.ready.is_empty() {
                Place::Idle
            } else if gate.open_at() > now {
                side.timers.insert(&mut side.timer_links, group, gate.open_at());
                Place::Timed
            } else {
                Place::Ready
            };
            entity = Entity::child(group);
        }
        Some(waiter)
    }

    // ---- who is ready -----------------------------------------------------------------------------------------------------

    /// `group`, in no tree, takes its place; so do those above it for whom it is the first that is ready.
    fn rise(&mut self, at: usize, mut group: GroupId, now: u64) {
        loop {
            let side = &mut self.sides[at];
            let gate = &mut side.gates[group.index()];
            if gate.ready.is_empty() {
                return;
            }
            if gate.open_at() > now {
                gate.place = Place::Timed;
                side.timers.insert(&mut side.timer_links, group, gate.open_at());
                return;
            }
            gate.place = Place::Ready;
            let vtime = gate.vtime[1];
            let Some(parent) = self.groups[group.index()].parent else { return };
            let above = &mut side.gates[parent.index()];
            let is_first = above.ready.is_empty();
            above.ready.insert(&mut side.entities, Entity::child(group), vtime.max(above.clock));
            if !is_first {
                return;
            }
            group = parent;
        }
    }

    /// Take `group` out of the tree it is in; so with those above it that have nothing else.
    fn withdraw(&mut self, at: usize, mut group: GroupId) {
        loop {
            let side = &mut self.sides[at];
            let gate = &mut side.gates[group.index()];
            match core::mem::replace(&mut gate.place, Place::Idle) {
                Place::Idle => return,
                Place::Timed => {
                    side.timers.remove(&mut side.timer_links, group);
                    return;
                }
                Place::Ready => {}
            }
            let Some(parent) = self.groups[group.index()].parent else { return };
            let above = &mut side.gates[parent.index()];
            above.ready.remove(&mut side.entities, Entity::child(group));
            if !above.ready.is_empty() {
                return;
            }
            group = parent;
        }
    }
}
