//! One group in one direction: what it allows, who waits there, what below it is ready.

use alloc::vec::Vec;

use super::pace::Pace;
use super::tree::Node;
use super::{Rates, WaiterId};
use crate::collections::{Id, List, Tree, TreeLinks};
use crate::group::{GroupId, WEIGHT_DEFAULT};

crate::collections::define_id! {
    /// What waits below a group: its own bios (even), or a child group (odd).
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

/// All of one direction.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) gates: Vec<Gate>,
    pub(super) entities: TreeLinks<Entity, u64>,
    /// Groups that have bios which could go but for the group's own limit, by when it allows the next.
    pub(super) timers: Tree<GroupId>,
    pub(super) timer_links: TreeLinks<GroupId, u64>,
}

/// A group in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub(super) bytes: Pace,
    pub(super) ios: Pace,
    /// The smallest rates here and above.
    pub(super) scarce: Rates,
    pub(super) fifo: List<WaiterId>,
    /// Bios waiting here and below.
    pub(super) waiting: u32,
    pub(super) place: Place,
    /// The entities below with a bio that nothing below this gate holds back, by virtual time: nanoseconds of the scarcest
    /// limit from here up, by weight.
    pub(super) ready: Tree<Entity>,
    /// Virtual time of the entity served last: where one that comes back begins.
    pub(super) clock: u64,
    /// This group's own virtual times: of its bios in its own tree, of itself in its parent's.
    pub(super) vtime: [u64; 2],
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
    pub(super) fn open_at(&self) -> u64 {
        self.bytes.ready_at().max(self.ios.ready_at())
    }

    /// Its own limits.
    pub(super) fn rates(&self) -> Rates {
        Rates { bytes_per_s: self.bytes.rate(), ios_per_s: self.ios.rate() }
    }

    /// Keep what was not used for `burst_ns` at most.
    #[inline]
    pub(super) fn forget_credit(&mut self, now: u64, burst_ns: u64) {
        self.bytes.forget_credit(now.saturating_sub(burst_ns));
        self.ios.forget_credit(now.saturating_sub(burst_ns));
    }

    /// So many more bios wait here or below.
    pub(super) fn more_wait(&mut self, bios: u32, now: u64, burst_ns: u64) {
        if self.waiting == 0 {
            self.forget_credit(now, burst_ns);
        }
        self.waiting += bios;
    }

    /// A bio passes that came a moment ago.
    #[inline]
    pub(super) fn charge(&mut self, bytes: u64) {
        self.bytes.charge(bytes);
        self.ios.charge(1);
    }

    /// A bio passes that waited: it keeps its own price of credit if that is more than the burst.
    #[inline]
    pub(super) fn charge_waiter(&mut self, bytes: u64, now: u64, burst_ns: u64) {
        self.bytes.forget_credit(now.saturating_sub(burst_ns.max(self.bytes.cost_ns(bytes))));
        self.ios.forget_credit(now.saturating_sub(burst_ns.max(self.ios.cost_ns(1))));
        self.charge(bytes);
    }

    /// What a bio costs those who compete for this gate: nanoseconds of the scarcest limit from here up, or without one bytes.
    pub(super) fn price(&self, bytes: u64) -> u64 {
        if self.scarce.is_none() {
            return bytes.max(1);
        }
        let time = |units, rate| Pace::of(rate).cost_ns(units);
        time(bytes, self.scarce.bytes_per_s).max(time(1, self.scarce.ios_per_s))
    }
}

impl Side {
    pub(super) fn new(slots: usize) -> Side {
        Side {
            gates: alloc::vec![Gate::NEW; slots],
            entities: TreeLinks::new(2 * slots),
            timers: Tree::new(),
            timer_links: TreeLinks::new(slots),
        }
    }

    /// When the first limit opens for somebody who waits.
    pub(super) fn first_timer(&self) -> Option<u64> {
        self.timers.first().map(|group| self.timer_links.key(group))
    }

    /// Limits whose time has come open.
    pub(super) fn ring(&mut self, nodes: &[Node], now: u64) {
        while let Some(group) = self.timers.first()
            && self.timer_links.key(group) <= now
        {
            self.withdraw(nodes, group);
            self.rise(nodes, group, now);
        }
    }

    /// `entity` of `group`'s tree was served with a bio of so many bytes: its next turn comes later the more that cost and
    /// the less it weighs.
    pub(super) fn charge_turn(&mut self, group: GroupId, entity: Entity, bytes: u64, weight: u32) {
        let stays = self.stays_ready(entity);
        let start = self.entities.key(entity);
        let gate = &mut self.gates[group.index()];
        gate.clock = gate.clock.max(start);
        // At 1 byte a second 32 MiB cost 2^55 ns, x 100 < 2^62; more than that stops at the end of virtual time, where
        // everybody is equal.
        let price = gate.price(bytes).saturating_mul(WEIGHT_DEFAULT.into()) / u64::from(weight.max(1));
        let vtime = start.saturating_add(price.max(1));
        gate.ready.remove(&mut self.entities, entity);
        if stays {
            gate.ready.insert(&mut self.entities, entity, vtime);
        }
        self.gates[entity.group().index()].vtime[usize::from(entity.is_child())] = vtime;
    }

    /// After a turn: what `group` is to its parent now. It is still in the parent's tree and leaves it with the parent's own
    /// [`Side::charge_turn`].
    pub(super) fn settle(&mut self, group: GroupId, now: u64) {
        let gate = &mut self.gates[group.index()];
        gate.place = if gate.ready.is_empty() {
            Place::Idle
        } else if gate.open_at() > now {
            self.timers.insert(&mut self.timer_links, group, gate.open_at());
            Place::Timed
        } else {
            Place::Ready
        };
    }

    /// The group has bios of its own again.
    pub(super) fn offer_own(&mut self, nodes: &[Node], group: GroupId, now: u64) {
        let gate = &mut self.gates[group.index()];
        let alone = gate.ready.is_empty();
        gate.ready.insert(&mut self.entities, Entity::own(group), gate.vtime[0].max(gate.clock));
        if alone {
            self.rise(nodes, group, now);
        }
    }

    /// Does `entity`, the one that was served, have more that is ready?
    fn stays_ready(&self, entity: Entity) -> bool {
        let gate = &self.gates[entity.group().index()];
        if entity.is_child() { gate.place == Place::Ready } else { !gate.fifo.is_empty() }
    }

    /// Begin all virtual times anew, in the order they have now: prices change their meaning with the limits.
    pub(super) fn restart_clocks(&mut self) {
        for gate in &mut self.gates {
            let mut ready = Tree::new();
            while let Some(entity) = gate.ready.first() {
                gate.ready.remove(&mut self.entities, entity);
                ready.insert(&mut self.entities, entity, 0);
            }
            (gate.ready, gate.clock, gate.vtime) = (ready, 0, [0; 2]);
        }
    }

    /// The group's own bios, which wait nowhere then.
    pub(super) fn take_own(&mut self, nodes: &[Node], group: GroupId) -> List<WaiterId> {
        let gate = &mut self.gates[group.index()];
        let bios = core::mem::take(&mut gate.fifo);
        if !bios.is_empty() {
            gate.ready.remove(&mut self.entities, Entity::own(group));
            if gate.ready.is_empty() {
                self.withdraw(nodes, group);
            }
        }
        bios
    }

    /// `group`, in no tree, takes its place; so do those above it for whom it is the first that is ready.
    pub(super) fn rise(&mut self, nodes: &[Node], mut group: GroupId, now: u64) {
        loop {
            let gate = &mut self.gates[group.index()];
            if gate.ready.is_empty() {
                return;
            }
            if gate.open_at() > now {
                gate.place = Place::Timed;
                self.timers.insert(&mut self.timer_links, group, gate.open_at());
                return;
            }
            gate.place = Place::Ready;
            let vtime = gate.vtime[1];
            let Some(parent) = nodes[group.index()].parent else { return };
            let above = &mut self.gates[parent.index()];
            let is_first = above.ready.is_empty();
            above.ready.insert(&mut self.entities, Entity::child(group), vtime.max(above.clock));
            if !is_first {
                return;
            }
            group = parent;
        }
    }

    /// Take `group` out of the tree it is in; so with those above it that have nothing else.
    pub(super) fn withdraw(&mut self, nodes: &[Node], mut group: GroupId) {
        loop {
            let gate = &mut self.gates[group.index()];
            match core::mem::replace(&mut gate.place, Place::Idle) {
                Place::Idle => return,
                Place::Timed => {
                    self.timers.remove(&mut self.timer_links, group);
                    return;
                }
                Place::Ready => {}
            }
            let Some(parent) = nodes[group.index()].parent else { return };
            let above = &mut self.gates[parent.index()];
            above.ready.remove(&mut self.entities, Entity::child(group));
            if !above.ready.is_empty() {
                return;
            }
            group = parent;
        }
    }
}
