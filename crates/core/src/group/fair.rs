//! Fair queueing in a tree: who is served next, and what being served costs.
//!
//! The children of a group are *entities*: its child groups and, as one more, its own tasks (the *leaf*). Within a class an
//! entity with weight `w` beside others of total weight `W` is due `w / W` of what the parent gets. Each entity has a
//! virtual *start*, which advances by `charge / w`; the band's virtual *now* is the average of the starts by weight, and
//! advances by `charge / W`. Whose start is not after now has had no more than its due and is *eligible*; of the eligible the
//! one with the earliest *deadline* is served, `quantum / w` after its start.
//!
//! This is earliest eligible virtual deadline first (Stoica and Abdel-Wahab, 1995). Serving the entity with the smallest start,
//! as CFQ's groups do, would let every light sibling have a turn before a heavy one gets its second. Here an entity that
//! stays busy is never further from its due than the largest single charge: one slice and, where that is charged, the request
//! that overran it; however many siblings it has, on each level of the tree.
//!
//! **Coming and going.** Who leaves keeps its start. Who comes back starts there, or now if that is later: credit is void
//! (sleeping gains nothing), debt stays until its siblings have caught up (so leaving right after a turn gains nothing
//! either). Now is the average of those who are there.
//!
//! Bounded work: each change costs O(log n) on each level up; an entity that becomes eligible is moved to the tree of the
//! eligible ones when one is picked, at most [`MOVED_AT_ONCE`] of them at a time.

use super::reserve::Reserves;
use super::{GroupId, GroupParams};
use crate::collections::{Id, Table, Tree, TreeLinks};
use crate::context::IoClass;

pub(super) use id::EntityId;

/// The macro declares public ids; this one stays inside.
#[allow(unreachable_pub)]
mod id {
    crate::collections::define_id! {
        /// A group's own tasks (even) or a group among its siblings (odd).
        EntityId
    }
}

/// The tasks of `group`.
#[inline]
fn leaf(group: GroupId) -> EntityId {
    EntityId::from_index(2 * group.index())
}

/// `group` as its parent's child.
#[inline]
fn child(group: GroupId) -> EntityId {
    EntityId::from_index(2 * group.index() + 1)
}

/// Whose tasks, or which group, an entity is.
#[inline]
fn group_of(entity: EntityId) -> GroupId {
    GroupId::from_index(entity.index() / 2)
}

fn is_leaf(entity: EntityId) -> bool {
    entity.index().is_multiple_of(2)
}

/// Virtual time: nanoseconds of charge at [`WEIGHT_DEFAULT`](super::WEIGHT_DEFAULT), from the beginning of the queue.
///
/// It does not wrap: a band in which one group of weight 1 keeps the device busy for ever advances by 100 a nanosecond and
/// reaches 2^64 after 5.8 years of service; everything heavier takes longer in proportion. At the end it stops
/// (saturates): from then on all groups are equal and take turns, and nothing is lost.
type Virtual = u64;

/// A weight, and how to divide by it without a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    weight: u32,
    /// 2^64 / weight, rounded up; 0 for a weight of 1.
    reciprocal: u64,
}

impl Weight {
    pub(super) fn of(weight: u32) -> Weight {
        let weight = weight.max(1);
        // 2^64 / w rounded down is (2^64 - 1) / w unless w divides 2^64; either way one more is not below the quotient.
        let reciprocal = if weight == 1 { 0 } else { u64::MAX / u64::from(weight) + 1 };
        Weight { weight, reciprocal }
    }

    /// `dividend / weight` and the remainder; exact for dividends below 2^50.
    ///
    /// With `r = reciprocal` and `e = r * w - 2^64 <= w` the product `d * r / 2^64` is `d / w + d * e / (w * 2^64)`, and the
    /// error stays below `1 / w`, as it must, while `d * e < 2^64`: `2^50 * 10,000 < 2^64`.
    #[inline]
    pub(super) fn divide(self, dividend: u64) -> (u64, u32) {
        debug_assert!(dividend < 1 << 50);
        if self.reciprocal == 0 {
            return (dividend, 0);
        }
        let quotient = ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64;
        (quotient, (dividend - quotient * u64::from(self.weight)) as u32)
    }
}

/// How long turns are: a part of a round by weight, within bounds. (What is due to a light one comes in short turns, so that the
/// distance from it stays small, too.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantum {
    pub(super) least_ns: u64,
    pub(super) most_ns: u64,
    /// Length of a round over all busy children; 0: every turn has the full length.
    pub(super) round_ns: u64,
}

impl Quantum {
    /// The virtual length of a turn of one of `weight` that usually costs `usual_ns` at least, where all that are busy weigh
    /// `whole`.
    #[inline]
    fn of(self, weight: Weight, whole: u64, usual_ns: u64) -> Virtual {
        let Quantum { least_ns, most_ns, round_ns } = self;
        let due_ns = if round_ns == 0 {
            most_ns
        } else {
            // Both factors are settings, of at most 2^32 ms < 2^52 ns and 2^14: saturating.
            let part = round_ns.saturating_mul(weight.weight.into()) / whole.max(1);
            part.max(least_ns).min(most_ns)
        };
        weight.divide(due_ns.max(usual_ns).clamp(1, CHARGE_MAX_NS) * u64::from(super::WEIGHT_DEFAULT)).0
    }
}

/// The largest single charge, nanoseconds: 18 minutes of one device for one turn. (100 times that is below 2^47.)
pub(super) const CHARGE_MAX_NS: u64 = 1 << 40;

/// Entities that may become eligible at one pick. Each charge makes at most one ineligible, so they do not pile up.
const MOVED_AT_ONCE: usize = 16;

/// The places of all entities in the trees by start or deadline.
type Links = TreeLinks<EntityId, Virtual>;

/// One child of a group.
#[derive(Clone, Copy, Debug)]
struct Entity {
    /// Whose child it is.
    node: GroupId,
    weight: Weight,
    class: IoClass,
    busy: bool,
    /// In the tree of those that are not eligible?
    ahead: bool,
    /// What the divisions of its charges left over, in parts of its weight: no charge is rounded away.
    rest: u32,
    /// What its turns have cost lately, where that is more than a [`Quantum`]: its own deadlines are reckoned with it, no other group's
    /// are.
    usual_ns: u64,
    start: Virtual,
    deadline: Virtual,
}

/// The busy children of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    /// By deadline.
    eligible: Tree<EntityId>,
    /// By start.
    ahead: Tree<EntityId>,
    /// Starts times weights, and weights, summed over both. 2^64 times a weight of 2^14 and 2^32 children fit.
    sum: u128,
    weight: u64,
    /// Now, while none is there.
    left_at: Virtual,
}

impl Band {
    /// The average of the starts by weight.
    fn now(&self) -> Virtual {
        if self.weight == 0 { self.left_at } else { (self.sum / u128::from(self.weight)) as Virtual }
    }

    /// Is `start` not after now? Without the division.
    #[inline]
    fn has_reached(&self, start: Virtual) -> bool {
        u128::from(start) * u128::from(self.weight) <= self.sum
    }

    fn is_empty(&self) -> bool {
        self.eligible.is_empty() && self.ahead.is_empty()
    }

    /// Into the tree that is `entity`'s.
    fn file(&mut self, links: &mut Links, id: EntityId, entity: &mut Entity) {
        entity.ahead = !self.has_reached(entity.start);
        if entity.ahead {
            self.ahead.insert(links, id, entity.start);
        } else {
            self.eligible.insert(links, id, entity.deadline);
        }
    }

    /// Out of the tree it is in.
    fn unfile(&mut self, links: &mut Links, id: EntityId, entity: &Entity) {
        let tree = if entity.ahead { &mut self.ahead } else { &mut self.eligible };
        tree.remove(links, id);
    }

    /// Its start and deadline changed: file it anew, unless that is where it is.
    #[inline(always)] // for one caller
    fn refile(&mut self, links: &mut Links, id: EntityId, entity: &mut Entity) {
        let stays = entity.ahead != self.has_reached(entity.start);
        let (tree, key) = match entity.ahead {
            true => (&mut self.ahead, entity.start),
            false => (&mut self.eligible, entity.deadline),
        };
        if !stays || !tree.rekey(links, id, key) {
            self.unfile(links, id, entity);
            self.file(links, id, entity);
        }
    }
}

/// A group's children, by class.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    bands: [Band; 3],
    /// Busy children, of all classes.
    busy: u32,
}

impl Node {
    #[inline]
    fn is_idle(&self) -> bool {
        debug_assert!((self.busy == 0) == self.bands.iter().all(Band::is_empty));
        self.busy == 0
    }

    /// Its child `id` takes part: without credit, with its debt.
    #[inline(always)] // for one caller
    fn join(&mut self, links: &mut Links, quantum: Quantum, id: EntityId, entity: &mut Entity) {
        let Entity { class, weight, start, usual_ns, .. } = *entity;
        let band = &mut self.bands[class as usize];
        let start = start.max(band.now());
        band.weight += u64::from(weight.weight);
        band.sum += u128::from(start) * u128::from(weight.weight);
        (entity.busy, entity.start) = (true, start);
        entity.deadline = start.saturating_add(quantum.of(weight, band.weight, usual_ns));
        band.file(links, id, entity);
        self.busy += 1;
    }

    /// It takes no part any more.
    #[inline(always)] // for the two who leave
    fn leave(&mut self, links: &mut Links, id: EntityId, entity: &mut Entity) {
        let Entity { class, weight, start, .. } = *entity;
        let band = &mut self.bands[class as usize];
        band.unfile(links, id, entity);
        entity.busy = false;
        band.weight -= u64::from(weight.weight);
        band.sum -= u128::from(start) * u128::from(weight.weight);
        band.left_at = start;
        self.busy -= 1;
    }
}

/// The tree.
#[derive(Debug)]
pub(crate) struct Fair {
    nodes: Table<Node>,
    entities: Table<Entity>,
    links: Links,
    /// What a turn costs: deadlines are reckoned with it. One slow request costs its group more, and moves no other group's deadline.
    quantum: Quantum,
    /// Was every group best-effort so far? Then no group outranks another, and the search by class can be left out.
    one_class: bool,
    reserves: Reserves,
    /// Was the group that was picked last picked by a reserve, its own or one above it?
    by_reserve: bool,
}

impl Fair {
    /// A tree for `slots` groups, the root included.
    pub(super) fn new(slots: usize, quantum: Quantum) -> Fair {
        let idle = Entity {
            node: GroupId::ROOT,
            weight: Weight::of(super::WEIGHT_DEFAULT),
            class: IoClass::BestEffort,
            busy: false,
            ahead: false,
            rest: 0,
            usual_ns: 0,
            start: 0,
            deadline: 0,
        };
        Fair {
            nodes: Table::new(Node::default(), slots),
            entities: Table::new(idle, 2 * slots),
            links: TreeLinks::new(2 * slots),
            quantum,
            one_class: true,
            reserves: Reserves::new(slots),
            by_reserve: false,
        }
    }

    /// A new group in a free slot.
    pub(super) fn enter(&mut self, group: GroupId, parent: GroupId, params: &GroupParams) {
        self.nodes[group.index()] = Node::default();
        self.one_class &= params.class == IoClass::BestEffort;
        let tasks = Entity {
            node: group,
            weight: Weight::of(params.leaf_weight),
            class: IoClass::BestEffort,
            busy: false,
            ahead: false,
            rest: 0,
            usual_ns: 0,
            start: 0,
            deadline: 0,
        };
        self.entities[leaf(group).index()] = tasks;
        self.entities[child(group).index()] =
            Entity { node: parent, weight: Weight::of(params.weight), class: params.class, ..tasks };
        self.reserves.enter(group, params.reserve);
    }

    /// What a turn is expected to cost.
    pub(super) fn set_quantum(&mut self, quantum: Quantum) {
        self.quantum = quantum;
    }

    fn band(&mut self, node: GroupId, class: IoClass) -> &mut Band {
        &mut self.nodes[node.index()].bands[class as usize]
    }

    // ---- being busy ----

    /// Do `group`'s own tasks take part?
    #[inline]
    pub(crate) fn is_busy(&self, group: GroupId) -> bool {
        self.entities[leaf(group).index()].busy
    }

    /// `group`'s own tasks have something to do.
    pub(crate) fn activate(&mut self, group: GroupId) {
        self.join_upwards(leaf(group));
    }

    fn join_upwards(&mut self, from: EntityId) {
        let mut at = from;
        while !self.entities[at.index()].busy {
            let node = self.entities[at.index()].node;
            let was_idle = self.nodes[node.index()].is_idle();
            self.join(at);
            if !was_idle || node == GroupId::ROOT {
                break;
            }
            at = child(node);
        }
    }

    /// `group`'s own tasks have nothing to do.
    pub(crate) fn deactivate(&mut self, group: GroupId) {
        self.leave_upwards(leaf(group));
    }

    fn leave_upwards(&mut self, from: EntityId) {
        let mut at = from;
        while self.entities[at.index()].busy {
            let node = self.entities[at.index()].node;
            self.leave(at);
            if !self.nodes[node.index()].is_idle() || node == GroupId::ROOT {
                break;
            }
            at = child(node);
        }
    }

    /// `id` takes part in its band.
    fn join(&mut self, id: EntityId) {
        let entity = &mut self.entities[id.index()];
        let (node, class) = (entity.node, entity.class);
        self.nodes[node.index()].join(&mut self.links, self.quantum, id, entity);
        if self.reserves.any() && !is_leaf(id) {
            self.reserves.join(node, group_of(id), class);
        }
    }

    /// `id` takes no part any more.
    fn leave(&mut self, id: EntityId) {
        let entity = &mut self.entities[id.index()];
        let node = entity.node;
        self.nodes[node.index()].leave(&mut self.links, id, entity);
        if self.reserves.any() && !is_leaf(id) {
            self.reserves.leave(node, group_of(id));
        }
    }

    fn file(&mut self, id: EntityId) {
        let entity = &mut self.entities[id.index()];
        self.nodes[entity.node.index()].bands[entity.class as usize].file(&mut self.links, id, entity);
    }

    fn unfile(&mut self, id: EntityId) {
        let entity = &self.entities[id.index()];
        self.nodes[entity.node.index()].bands[entity.class as usize].unfile(&mut self.links, id, entity);
    }

    // ---- being served ----

    /// `group`'s own tasks were served to this amount; so was every group above them.
    pub(crate) fn charge(&mut self, group: GroupId, charge_ns: u64) {
        self.charge_upwards(group, charge_ns, false);
    }

    /// As [`Fair::charge`], and then [`Fair::deactivate`]: who leaves need not be filed before.
    pub(crate) fn charge_and_deactivate(&mut self, group: GroupId, charge_ns: u64) {
        self.charge_upwards(group, charge_ns, true);
    }

    fn charge_upwards(&mut self, group: GroupId, charge_ns: u64, mut leaves: bool) {
        let whole = charge_ns.min(CHARGE_MAX_NS) * u64::from(super::WEIGHT_DEFAULT);
        let mut at = leaf(group);
        loop {
            let entity = &mut self.entities[at.index()];
            let Entity { node, class, weight, busy, rest, start, usual_ns, .. } = *entity;
            let is_reserved =
                self.reserves.any() && !is_leaf(at) && self.reserves.charge(node, group_of(at), charge_ns);
            let charge = if is_reserved { 0 } else { whole };
            let (advance, rest) = weight.divide(charge + u64::from(rest));
            let moved = start.saturating_add(advance);
            (entity.start, entity.rest) = (moved, rest);
            entity.usual_ns = charge_ns.max(usual_ns / 2);
            let above = &mut self.nodes[node.index()];
            let band = &mut above.bands[class as usize];
            if busy {
                band.sum += u128::from(moved - start) * u128::from(weight.weight);
            }
            leaves &= busy;
            if leaves {
                above.leave(&mut self.links, at, entity);
                leaves = above.is_idle();
                if self.reserves.any() && !is_leaf(at) {
                    self.reserves.leave(node, group_of(at));
                }
            } else if busy {
                // Of one that takes no part nobody asks for the deadline: it gets one when it comes back.
                entity.deadline = moved.saturating_add(self.quantum.of(weight, band.weight, entity.usual_ns));
                band.refile(&mut self.links, at, entity);
            }
            if node == GroupId::ROOT {
                return self.reserves.served(charge_ns);
            }
            at = child(node);
        }
    }

    /// Whose tasks are to be served now.
    pub(crate) fn pick(&mut self) -> Option<GroupId> {
        let mut node = GroupId::ROOT;
        self.by_reserve = false;
        loop {
            let first = self.pick_child(node)?;
            if is_leaf(first) {
                return Some(group_of(first));
            }
            node = group_of(first);
        }
    }

    /// The child of `node` to be served: of its best busy class the one that is short of its reserve, else the eligible one, with the
    /// earliest deadline.
    fn pick_child(&mut self, node: GroupId) -> Option<EntityId> {
        if self.reserves.any()
            && let Some(short) = self.short_child(node)
        {
            self.by_reserve = true;
            return Some(short);
        }
        let band = self.nodes[node.index()].bands.iter_mut().find(|band| !band.is_empty())?;
        for _ in 0..MOVED_AT_ONCE {
            let Some(next) = band.ahead.first() else { break };
            if !band.has_reached(self.links.key(next)) {
                break;
            }
            band.ahead.remove(&mut self.links, next);
            let entity = &mut self.entities[next.index()];
            entity.ahead = false;
            band.eligible.insert(&mut self.links, next, entity.deadline);
        }
        // The least start is never after the average, so that there is one.
        band.eligible.first()
    }

    /// Was the group that was picked last picked by a reserve?
    pub(super) fn by_reserve(&self) -> bool {
        self.by_reserve
    }

    /// Has a group a reserve?
    pub(super) fn has_reserves(&self) -> bool {
        self.reserves.any()
    }

    #[cold]
    fn short_child(&self, node: GroupId) -> Option<EntityId> {
        let class = self.best_class(node)?;
        let usual_ns = |group| self.entities[child(group).index()].usual_ns;
        self.reserves.first(node, class, usual_ns).map(child)
    }

    /// The best class of which a child of `node` is busy.
    fn best_class(&self, node: GroupId) -> Option<IoClass> {
        let classes = [IoClass::RealTime, IoClass::BestEffort, IoClass::Idle];
        classes.into_iter().find(|class| !self.nodes[node.index()].bands[*class as usize].is_empty())
    }

    /// Would `group`'s own tasks be served within what is due to them: has it, and has every group above it, had no more than its due
    /// by weight, or less than its reserve, and is no better class busy?
    pub(super) fn is_within_due(&self, group: GroupId) -> bool {
        let mut at = leaf(group);
        loop {
            let Entity { node, class, busy, start, .. } = self.entities[at.index()];
            let is_eligible = || self.nodes[node.index()].bands[class as usize].has_reached(start);
            if !busy
                || self.best_class(node) != Some(class)
                || !is_eligible() && !self.is_short_of_reserve(at)
            {
                return false;
            }
            if node == GroupId::ROOT {
                return true;
            }
            at = child(node);
        }
    }

    fn is_short_of_reserve(&self, id: EntityId) -> bool {
        self.reserves.any() && !is_leaf(id) && self.reserves.is_short(group_of(id))
    }

    // ---- comparing ----

    /// The children of their nearest common ancestor by which `one` and `other` compete; `None` for one and the same.
    fn rivals(&self, one: GroupId, other: GroupId) -> Option<(EntityId, EntityId)> {
        if one == other {
            return None;
        }
        let (mut a, mut b) = (leaf(one), leaf(other));
        let (mut above_a, mut above_b) = (self.depth(one), self.depth(other));
        while self.node(a) != self.node(b) {
            if above_a >= above_b {
                (a, above_a) = (child(self.node(a)), above_a.saturating_sub(1));
            } else {
                (b, above_b) = (child(self.node(b)), above_b.saturating_sub(1));
            }
        }
        Some((a, b))
    }

    fn node(&self, id: EntityId) -> GroupId {
        self.entities[id.index()].node
    }

    /// Groups above `group`.
    fn depth(&self, group: GroupId) -> u32 {
        let (mut at, mut depth) = (group, 0);
        while at != GroupId::ROOT {
            at = self.node(child(at));
            depth += 1;
        }
        depth
    }

    /// Is `one` served before `other` because of its class?
    pub(crate) fn outranks(&self, one: GroupId, other: GroupId) -> bool {
        if self.one_class {
            return false;
        }
        let pair = self.rivals(one, other);
        pair.is_some_and(|(a, b)| self.entities[a.index()].class < self.entities[b.index()].class)
    }

    /// Has `one` had no more than `other`, by weight, where they compete? (Of the same class; a better one always.)
    pub(crate) fn is_behind(&self, one: GroupId, other: GroupId) -> bool {
        let Some((a, b)) = self.rivals(one, other) else { return true };
        let [short, other_is] = [a, b].map(|id| self.is_short_of_reserve(id));
        let (a, b) = (&self.entities[a.index()], &self.entities[b.index()]);
        // Who is short of its reserve comes first.
        (a.class, !short, a.start) <= (b.class, !other_is, b.start)
    }

    /// Where both want the device: are the tasks of `one` due more of it than those of `other`?
    pub(crate) fn is_due_more(&self, one: GroupId, other: GroupId) -> bool {
        let Some((a, b)) = self.rivals(one, other) else { return false };
        if self.reserves.any() {
            return self.share(one) > self.share(other);
        }
        let due = |group, rival: EntityId| {
            self.share_below(group, rival) * u64::from(self.entities[rival.index()].weight.weight)
        };
        due(one, a) > due(other, b)
    }

    /// What part of what `top`, an ancestor, gets is due to the tasks of `group`, in 2^-20.
    fn share_below(&self, group: GroupId, top: EntityId) -> u64 {
        let (mut share, mut at) = (1u64 << 20, leaf(group));
        while at != top {
            let Entity { node, class, weight, busy, .. } = self.entities[at.index()];
            let weight = u64::from(weight.weight);
            let others = self.nodes[node.index()].bands[class as usize].weight;
            share = share * weight / if busy { others } else { others + weight }.max(1);
            at = child(node);
        }
        share
    }

    /// What part of the whole is `group`'s own tasks' due among those that are busy, in 2^-20. Those that are not count as
    /// if they came in.
    pub(crate) fn share(&self, group: GroupId) -> u64 {
        if self.reserves.any() {
            return self.share_with_reserves(group);
        }
        let mut share = 1u64 << 20;
        let mut at = leaf(group);
        loop {
            let Entity { node, class, weight, busy, .. } = self.entities[at.index()];
            let weight = u64::from(weight.weight);
            let others = self.nodes[node.index()].bands[class as usize].weight;
            share = share * weight / if busy { others } else { others + weight }.max(1);
            if node == GroupId::ROOT {
                return share;
            }
            at = child(node);
        }
    }

    /// The same with reserves: what is left of the parent's share after its busy children's reserves is divided by weight, and the
    /// child's own reserve added. From the leaf up that is `factor * share of the ancestor + more`.
    #[cold]
    fn share_with_reserves(&self, group: GroupId) -> u64 {
        let (mut factor, mut more) = (1i64 << 20, 0i64);
        let mut at = leaf(group);
        loop {
            let Entity { node, class, weight, busy, .. } = self.entities[at.index()];
            let weight = u64::from(weight.weight);
            let others = self.nodes[node.index()].bands[class as usize].weight;
            let all = if busy { others } else { others + weight }.max(1);
            let (own, reserved) = self.reserves.parts(node, (!is_leaf(at)).then(|| group_of(at)));
            // Weights and their sum are below 2^14 * 2^32; parts at most 2^20.
            let by_weight = ((weight << 16) / all) as i64 * 16;
            more += (factor * (own - ((by_weight * reserved) >> 20))) >> 20;
            factor = (factor * by_weight) >> 20;
            if node == GroupId::ROOT {
                return (factor + more).clamp(1, 1 << 20) as u64;
            }
            at = child(node);
        }
    }

    // ---- changing the tree ----

    /// New weights and class.
    pub(super) fn set_params(&mut self, group: GroupId, params: &GroupParams) {
        self.one_class &= params.class == IoClass::BestEffort;
        self.change(leaf(group), |entity| entity.weight = Weight::of(params.leaf_weight));
        let above = self.node(child(group));
        self.reserves.leave(above, group);
        self.change(child(group), |entity| {
            (entity.weight, entity.class) = (Weight::of(params.weight), params.class);
        });
        self.reserves.set(group, params.reserve);
        if self.entities[child(group).index()].busy {
            self.reserves.join(above, group, params.class);
        }
    }

    /// Change `id` where it stands: with its debt, which weighs by the new weight, without credit. What is now for the others
    /// stays that: a change forgives no group its debt.
    fn change(&mut self, id: EntityId, change: impl FnOnce(&mut Entity)) {
        let Entity { busy, node, class, start, weight: old, .. } = self.entities[id.index()];
        let now = self.band(node, class).now();
        // What was had too much was had in time, not in virtual time: a lighter group pays longer for it. A remainder is less
        // than a nanosecond.
        let debt = u128::from(start.saturating_sub(now)) * u128::from(old.weight);
        let mut entity = self.entities[id.index()];
        change(&mut entity);
        let debt = u64::try_from(debt / u128::from(entity.weight.weight.max(1))).unwrap_or(u64::MAX);
        entity.rest = 0;
        if !busy {
            entity.start = now.saturating_add(debt);
            self.entities[id.index()] = entity;
            return;
        }
        self.unfile(id);
        let band = self.band(node, class);
        band.weight -= u64::from(old.weight);
        band.sum -= u128::from(start) * u128::from(old.weight);
        band.left_at = now;
        // Of another class it comes to where that one's now is.
        let base = if entity.class == class { now } else { self.band(node, entity.class).now() };
        entity.start = base.saturating_add(debt);
        let band = self.band(node, entity.class);
        band.weight += u64::from(entity.weight.weight);
        band.sum += u128::from(entity.start) * u128::from(entity.weight.weight);
        let quantum = self.quantum.of(
            entity.weight,
            self.nodes[node.index()].bands[entity.class as usize].weight,
            entity.usual_ns,
        );
        entity.deadline = entity.start.saturating_add(quantum);
        self.entities[id.index()] = entity;
        self.file(id);
    }
}
