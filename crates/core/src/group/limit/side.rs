//! The gates of one direction: the waiting lines, and the next one to be served. Their tree is the table of groups itself.

use super::super::DEPTH_MAX;
use super::gate::{Entity, Gate, Own, Place, Vtime};
use super::{RATE_MAX, Rates, WaiterId};
use crate::collections::{Id, List, ListLinks, Stack, Table, Tree, TreeLinks};
use crate::group::{GroupId, Groups};

/// Limits that open in one step of a round: each may bring a whole way of gates in order.
const RINGS_MAX: usize = 2;

/// All gates of one direction.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) gates: Table<Gate>,
    /// Gates with a limit, and bios that wait; 0: there is nothing to do here.
    pub(super) busy: u32,
    entities: TreeLinks<Entity, Vtime>,
    /// Groups that have bios which could go but for the group's own limit, by when it allows the next.
    timers: Tree<GroupId>,
    timer_links: TreeLinks<GroupId, u64>,
    /// Groups with bios of their own that wait.
    lines: List<GroupId>,
    line_links: ListLinks<GroupId>,
    /// Groups that stand back until there may be a slot, longest wait first.
    back: List<GroupId>,
    back_links: ListLinks<GroupId>,
    /// The way of the bio that is billed: the gates from its group to the root, and the smallest rates from each up.
    way: Stack<(GroupId, Rates)>,
}

impl Side {
    pub(super) fn new(slots: usize) -> Side {
        Side {
            gates: Table::new(Gate::NEW, slots),
            busy: 0,
            entities: TreeLinks::new(2 * slots),
            timers: Tree::new(),
            timer_links: TreeLinks::new(slots),
            lines: List::new(),
            line_links: ListLinks::new(slots),
            back: List::new(),
            back_links: ListLinks::new(slots),
            way: Stack::new((GroupId::ROOT, Rates::NONE), DEPTH_MAX + 1),
        }
    }

    #[inline]
    pub(super) fn gate(&self, group: GroupId) -> &Gate {
        &self.gates[group.index()]
    }

    #[inline]
    pub(super) fn gate_mut(&mut self, group: GroupId) -> &mut Gate {
        &mut self.gates[group.index()]
    }

    /// A gate on the way of `group` that was about another group, which had the slot before, starts anew. No bio waits there:
    /// a slot is free only once all of its group is gone.
    pub(super) fn renew(&mut self, groups: &Groups, group: GroupId) {
        for above in groups.path(group) {
            let gate = &mut self.gates[above.index()];
            let epoch = groups.epoch(above);
            if gate.epoch != epoch {
                debug_assert!(gate.waiting == 0, "bios wait at a group that is gone");
                self.busy -= u32::from(!gate.rates().is_none());
                *gate = Gate::NEW;
                gate.epoch = epoch;
            }
        }
    }

    // ---- a bio comes ------------------------------------------------------------------------------------------------------

    /// No bio waits for a limit on the way of `group`, and all of them allow it.
    pub(super) fn may_pass(&self, groups: &Groups, group: GroupId, now: u64) -> bool {
        let lets_pass = |gate: &Gate| gate.rates().is_none() || (gate.waiting == 0 && gate.open_at() <= now);
        self.gate(group).line.is_empty() && groups.path(group).all(|above| lets_pass(self.gate(above)))
    }

    /// A bio passes all gates on its way at once, without competition.
    pub(super) fn pass(&mut self, groups: &Groups, group: GroupId, bytes: u64, now: u64) {
        groups.path(group).for_each(|above| self.gate_mut(above).charge(bytes, 1, now));
    }

    /// `waiter` waits behind those of `group` that do.
    pub(super) fn line_up(
        &mut self,
        groups: &Groups,
        links: &mut ListLinks<WaiterId>,
        (group, waiter): (GroupId, WaiterId),
        now: u64,
    ) {
        groups.path(group).for_each(|above| self.gate_mut(above).one_more_waits(now));
        self.busy += 1;
        self.gate_mut(group).line.push_back(links, waiter);
        if self.gate(group).line.len() == 1 {
            self.lines.push_back(&mut self.line_links, group);
            self.enter_own(group);
            self.rearrange(groups, group, now);
        }
    }

    // ---- a bio goes -------------------------------------------------------------------------------------------------------

    /// When the first limit opens for a waiting bio.
    pub(super) fn first_timer(&self) -> Option<u64> {
        self.timers.first().map(|group| self.timer_links.key(group))
    }

    /// The first limits whose time has come open. Are there more?
    pub(super) fn ring(&mut self, groups: &Groups, now: u64) -> bool {
        for _ in 0..RINGS_MAX {
            match self.timers.first() {
                Some(group) if self.timer_links.key(group) <= now => self.rearrange(groups, group, now),
                _ => return false,
            }
        }
        self.first_timer().is_some_and(|at| at <= now)
    }

    /// The group whose bio is next, if one may go: down from the root.
    pub(super) fn first(&self) -> Option<GroupId> {
        if self.gate(GroupId::ROOT).place != Place::Ready {
            return None;
        }
        let mut entity = self.gate(GroupId::ROOT).ready.first()?;
        while entity.is_child() {
            entity = self.gate(entity.group()).ready.first()?;
        }
        Some(entity.group())
    }

    /// Some group whose bios wait.
    pub(super) fn some_line(&self) -> Option<GroupId> {
        self.lines.front()
    }

    /// The first bio of `group` waits no longer; who it is. It has to be billed.
    pub(super) fn take_first(&mut self, links: &mut ListLinks<WaiterId>, group: GroupId) -> Option<WaiterId> {
        let gate = &mut self.gates[group.index()];
        let waiter = gate.line.pop_front(links)?;
        self.busy -= 1;
        if gate.line.is_empty() {
            self.lines.remove(&mut self.line_links, group);
            if gate.own == Own::Back {
                gate.own = Own::Out;
                self.back.remove(&mut self.back_links, group);
            }
        }
        Some(waiter)
    }

    /// A bio of `group` goes: every gate on its way charges it, and every entity on its way pays for its turn. One that waited
    /// had the turn. One that may not be held up pays where others wait, or its group would get more than its share.
    pub(super) fn bill(
        &mut self,
        groups: &Groups,
        group: GroupId,
        (bytes, ios): (u64, u64),
        now: u64,
        waited: bool,
    ) {
        self.find_way(groups, group);
        self.leave_own(group);
        if let Some(gate) = self.way.first().copied() {
            self.pay_turn(gate, Entity::own(group), (bytes, groups[group].params().leaf_weight), waited);
        }
        self.enter_own(group);
        let mut at = 0;
        while let Some((group, _)) = self.way.get(at).copied() {
            at += 1;
            let gate = self.gate_mut(group);
            if waited {
                gate.waiting -= 1;
                gate.charge_waiter(bytes, now);
            } else {
                gate.charge(bytes, ios, now);
            }
            let above = self.way.get(at).copied();
            let parent = above.map(|(parent, _)| parent);
            self.leave(group, parent);
            if let Some(gate) = above {
                let weight = groups[group].params().weight;
                self.pay_turn(gate, Entity::child(group), (bytes, weight), waited);
            }
            self.enter(group, parent, now);
        }
    }

    /// Fill in `way` for a bio of `group`.
    fn find_way(&mut self, groups: &Groups, group: GroupId) {
        self.way.clear();
        for above in groups.path(group) {
            self.way.push((above, self.gates[above.index()].rates()));
        }
        let mut scarce = Rates::NONE;
        for (_, rates) in self.way.iter_mut().rev() {
            scarce = scarce.scarcer(*rates);
            *rates = scarce;
        }
    }

    /// `entity`, in no tree, pays at a gate of the way, with the smallest rates from there up, for a bio of so many bytes, by its
    /// weight.
    fn pay_turn(
        &mut self,
        (group, scarce): (GroupId, Rates),
        entity: Entity,
        (bytes, weight): (u64, u32),
        waited: bool,
    ) {
        let gate = self.gate_mut(group);
        if !waited && gate.waiting == 0 {
            return;
        }
        let (price, clock) = (gate.price(bytes, weight, scarce), gate.clock);
        let vtime = &mut self.gate_mut(entity.group()).vtime[usize::from(entity.is_child())];
        let start = clock.max(*vtime);
        *vtime = start + price;
        if waited {
            self.gate_mut(group).clock = start;
        }
    }

    // ---- no slot ----------------------------------------------------------------------------------------------------------

    /// The bio of `group` that may go finds no slot: its group stands back, and no other.
    pub(super) fn stand_back(&mut self, groups: &Groups, group: GroupId, now: u64) {
        self.leave_own(group);
        self.gate_mut(group).own = Own::Back;
        self.back.push_back(&mut self.back_links, group);
        self.rearrange(groups, group, now);
    }

    /// The bios of `group` that stand back are the next to come forward: a slot of theirs is free.
    pub(super) fn prefer(&mut self, group: GroupId) {
        if self.gate(group).own == Own::Back {
            self.back.remove(&mut self.back_links, group);
            self.back.push_front(&mut self.back_links, group);
        }
    }

    /// Up to `count` groups that stand back take their places again.
    pub(super) fn come_forward(&mut self, groups: &Groups, count: usize, now: u64) {
        for _ in 0..count {
            let Some(group) = self.back.pop_front(&mut self.back_links) else { return };
            self.gate_mut(group).own = Own::Out;
            self.enter_own(group);
            self.rearrange(groups, group, now);
        }
    }

    // ---- limits -----------------------------------------------------------------------------------------------------------

    /// Limit `group` from now on.
    pub(super) fn set(&mut self, groups: &Groups, group: GroupId, rates: Rates, now: u64) {
        let gate = &mut self.gates[group.index()];
        self.busy -= u32::from(!gate.rates().is_none());
        gate.bytes.set(rates.bytes_per_s.min(RATE_MAX), now);
        gate.ios.set(rates.ios_per_s.min(RATE_MAX), now);
        self.busy += u32::from(!gate.rates().is_none());
        self.rearrange(groups, group, now);
    }

    /// A bio of `group` that was charged did not go: all limits on its way open that much earlier.
    pub(super) fn refund(&mut self, groups: &Groups, group: GroupId, bytes: u64, now: u64) {
        for above in groups.path(group) {
            let gate = self.gate_mut(above);
            gate.bytes.refund(bytes);
            gate.ios.refund(1);
            self.rearrange(groups, above, now);
        }
    }

    // ---- places -----------------------------------------------------------------------------------------------------------

    /// Something changed at the gate of `group`: it takes the place that it belongs to now, and so do those above it as far as
    /// that matters to them.
    fn rearrange(&mut self, groups: &Groups, group: GroupId, now: u64) {
        for group in groups.path(group) {
            let (before, after) = (self.gate(group).place, self.gate(group).place_at(now));
            if before == after && after != Place::Timed {
                return;
            }
            let parent = parent_of(groups, group);
            self.leave(group, parent);
            self.enter(group, parent, now);
            if before != Place::Ready && after != Place::Ready {
                return;
            }
        }
    }

    /// `group` leaves the tree it is in.
    fn leave(&mut self, group: GroupId, parent: Option<GroupId>) {
        match (core::mem::replace(&mut self.gate_mut(group).place, Place::Idle), parent) {
            (Place::Timed, _) => self.timers.remove(&mut self.timer_links, group),
            (Place::Ready, Some(parent)) => {
                self.gates[parent.index()].ready.remove(&mut self.entities, Entity::child(group));
            }
            (Place::Ready, None) | (Place::Idle, _) => {}
        }
    }

    /// `group`, in no tree, takes the place that it belongs to.
    fn enter(&mut self, group: GroupId, parent: Option<GroupId>, now: u64) {
        let gate = self.gate_mut(group);
        gate.place = gate.place_at(now);
        match (gate.place, parent) {
            (Place::Timed, _) => {
                let open_at = gate.open_at();
                self.timers.insert(&mut self.timer_links, group, open_at);
            }
            (Place::Ready, Some(parent)) => self.compete(parent, Entity::child(group)),
            (Place::Ready, None) | (Place::Idle, _) => {}
        }
    }

    /// The group's own bios leave the tree, if they are there.
    fn leave_own(&mut self, group: GroupId) {
        let gate = &mut self.gates[group.index()];
        if gate.own == Own::Ready {
            gate.own = Own::Out;
            gate.ready.remove(&mut self.entities, Entity::own(group));
        }
    }

    /// The group's own bios, in no tree, are in that of their gate if there are any and they do not stand back.
    fn enter_own(&mut self, group: GroupId) {
        let gate = self.gate_mut(group);
        if gate.own == Own::Out && !gate.line.is_empty() {
            gate.own = Own::Ready;
            self.compete(group, Entity::own(group));
        }
    }

    /// `entity` competes at the gate of `group`: from where it was, or from where those are who compete already.
    fn compete(&mut self, group: GroupId, entity: Entity) {
        let clock = self.gate(group).clock;
        let vtime = &mut self.gates[entity.group().index()].vtime[usize::from(entity.is_child())];
        *vtime = clock.max(*vtime);
        let vtime = *vtime;
        self.gates[group.index()].ready.insert(&mut self.entities, entity, vtime);
    }
}

/// The parent of `group`; the root has none.
fn parent_of(groups: &Groups, group: GroupId) -> Option<GroupId> {
    (group != GroupId::ROOT).then(|| groups[group].parent())
}
