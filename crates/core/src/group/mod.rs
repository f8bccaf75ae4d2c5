//! Groups: a tree of whose I/O it is, above the io contexts. One number, the weight, says how much of the device a group
//! gets beside its siblings; `docs/groups.md` has the model and its guarantees.
//!
//! Slot 0 is the root, which is always there. A group's own tasks compete with its child groups under the group's
//! [`GroupParams::leaf_weight`]. A request belongs to the group it was submitted in until it is done: neither moving its
//! context nor removing the group changes that. A removed group takes no new I/O (what still names it goes to the nearest
//! ancestor left). It keeps its place in the tree, between its parent and its children, until its last request is done and
//! its last child is gone; then its slot is free again.

mod charge;
mod fair;
mod goals;
pub(crate) mod ledger;
pub mod limit;
mod places;
mod reserve;
mod rounds;
mod stats;
#[cfg(test)]
mod tests;
mod tunables;
mod turns;
mod waits;
mod writeback;

pub use charge::{Bill, Charge};
pub(crate) use ledger::Came;
pub use ledger::Totals;
pub(crate) use places::{Claim, Places};
pub use rounds::Rounds;
pub use stats::{GoalStats, GroupStats, IoStats, TurnBy};
pub use tunables::{Settings, TUNABLES};
pub(crate) use turns::{Decision, Turns};
pub use waits::WaitToken;
pub(crate) use waits::Waits;
pub use writeback::Writeback;

use core::ops::Index;

use crate::collections::{Id, Stack, Table};
use crate::context::IoClass;
use crate::request::Request;
use crate::tunable::SetError;
use fair::Fair;
use goals::Goals;
use ledger::{Ledger, Marks};

crate::collections::define_id! {
    /// A group's slot in [`Groups`].
    GroupId
}

impl GroupId {
    /// The group of everything that was put in no other.
    pub const ROOT: GroupId = GroupId::constant(0);
}

/// Smallest and largest weight, as cgroup v2's `io.weight` has them.
pub const WEIGHT_RANGE: (u32, u32) = (1, 10_000);
/// The weight of a group that never asked for one.
pub const WEIGHT_DEFAULT: u32 = 100;
/// Levels of groups below the root. What a request costs grows with its group's depth, and a tenant may make groups below
/// its own.
pub const DEPTH_MAX: usize = 32;

/// What the reserves of all groups below the root may come to, percent: the groups without one are not to starve.
pub const RESERVE_MAX: u32 = reserve::MOST;

/// What a group is entitled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupParams {
    /// Share beside the sibling groups and the parent's own tasks, in [`WEIGHT_RANGE`].
    pub weight: u32,
    /// Share of its own tasks beside its child groups, in [`WEIGHT_RANGE`].
    pub leaf_weight: u32,
    /// Strict among siblings: a best-effort group gets nothing while a real-time one has something to do.
    pub class: IoClass,
    /// The percentage of the device's service that it gets before weights divide the rest, 0 to [`RESERVE_MAX`]; 0 = none. Strict classes
    /// come before it. The reserves of its children add up to no more than this.
    pub reserve: u32,
    /// How soon a sync request of the group's own tasks is to be on its way to the device and done, nanoseconds; 0 = no goal. While the
    /// group has had no more than its due it goes first when it would miss that.
    pub latency_ns: u64,
}

impl Default for GroupParams {
    fn default() -> GroupParams {
        GroupParams::DEFAULT
    }
}

impl GroupParams {
    /// [`GroupParams::default`], for constants.
    pub const DEFAULT: GroupParams = GroupParams {
        weight: WEIGHT_DEFAULT,
        leaf_weight: WEIGHT_DEFAULT,
        class: IoClass::BestEffort,
        reserve: 0,
        latency_ns: 0,
    };

    /// The default with another weight.
    pub fn weight(weight: u32) -> GroupParams {
        GroupParams { weight, ..GroupParams::default() }
    }

    fn check(&self) -> Result<(), GroupError> {
        let allowed = |weight| (WEIGHT_RANGE.0..=WEIGHT_RANGE.1).contains(&weight);
        if !allowed(self.weight) || !allowed(self.leaf_weight) {
            return Err(GroupError::Weight);
        }
        if self.reserve <= RESERVE_MAX { Ok(()) } else { Err(GroupError::Reserve { free: RESERVE_MAX }) }
    }
}

/// Why a change to the tree was refused; nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// Every slot is taken, or as many as its subtree may have: put the tasks in the parent, whose share they then split with
    /// its other tasks.
    Full,
    /// It would be more than [`DEPTH_MAX`] levels below the root.
    Depth,
    /// No such group, or it was removed.
    Unknown,
    /// A weight outside [`WEIGHT_RANGE`].
    Weight,
    /// The reserves could not all be kept: those of the children of one group would be more than its own (of the root's: more than
    /// [`RESERVE_MAX`]), or it would be less than those of its children. Or it is the root's, which has the device.
    Reserve {
        /// The most, or, below its children's, the least that it may be, percent.
        free: u32,
    },
    /// The root cannot be removed.
    Root,
}

const GOAL_NONE: GoalStats = GoalStats { met: 0, missed_above_due: 0, missed_within_due: 0 };
const IO_NONE: IoStats = IoStats { ios: 0, sectors: 0, merged: 0, service_ns: 0, wait_ns: 0 };

/// One group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    params: GroupParams,
    parent: GroupId,
    /// Levels below the root.
    depth: u8,
    /// Is the slot in use (a group, or what one that was removed left)?
    used: bool,
    removed: bool,
    /// Counts the groups that had this slot.
    epoch: u32,
    pub(crate) stats: GroupStats,
}

impl Group {
    const FREE: Group = Group {
        params: GroupParams::DEFAULT,
        parent: GroupId::ROOT,
        depth: 0,
        used: false,
        removed: false,
        epoch: 0,
        stats: GroupStats {
            io: [[IO_NONE; 2]; 3],
            time_ns: 0,
            dequeued: 0,
            idle_ns: 0,
            goal: GOAL_NONE,
            turns: [0; 3],
        },
    };

    /// What it is entitled to.
    pub fn params(&self) -> &GroupParams {
        &self.params
    }

    /// Whose child it is; the root is its own parent.
    #[inline]
    pub fn parent(&self) -> GroupId {
        self.parent
    }

    /// What it got. Counted once the queue has groups.
    pub fn stats(&self) -> &GroupStats {
        &self.stats
    }
}

/// The groups of one queue. Slot 0 is the root.
#[derive(Debug)]
pub struct Groups {
    slots: Table<Group>,
    free: Stack<GroupId>,
    /// Slots by subtree.
    places: Places,
    fair: Fair,
    settings: Settings,
    ledger: Ledger,
    goals: Goals,
    /// Who got the last turn, and why.
    turn_by: Option<(GroupId, TurnBy)>,
    /// Were there ever others than the root? Until then nothing is counted, and elevators need not ask.
    in_use: bool,
    /// Has, or had, a group a reserve or a goal? Until then a request's way is shorter.
    promises: bool,
}

impl Groups {
    /// A table for `capacity` groups beside the root, and as many in reserve for when one subtree takes all of those
    /// (`places.rs`). The only allocation it ever makes.
    pub fn new(capacity: usize) -> Groups {
        let size = Groups::slots_for(capacity);
        let mut slots = Table::new(Group::FREE, size);
        slots[0].used = true;
        let settings = Settings::DEFAULT;
        let mut fair = Fair::new(size, settings.quantum());
        fair.enter(GroupId::ROOT, GroupId::ROOT, &GroupParams::default());
        let free = Stack::full(GroupId::ROOT, (1..size).rev().map(GroupId::from_index));
        let ledger = Ledger::new(size);
        let places = Places::new(size, capacity, capacity);
        Groups {
            slots,
            free,
            places,
            fair,
            settings,
            ledger,
            goals: Goals::new(size),
            turn_by: None,
            in_use: false,
            promises: false,
        }
    }

    /// Slots of a table for `capacity` groups, the root and the reserve included.
    pub const fn slots_for(capacity: usize) -> usize {
        2 * capacity + 1
    }

    /// Number of slots, the root included: an elevator's per-group arrays have this length.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A new group below `parent`.
    ///
    /// # Errors
    /// [`GroupError::Weight`], [`GroupError::Unknown`], [`GroupError::Depth`], [`GroupError::Full`], [`GroupError::Reserve`].
    pub fn create(&mut self, parent: GroupId, params: GroupParams) -> Result<GroupId, GroupError> {
        params.check()?;
        self.live(parent)?;
        let depth = self.slots[parent.index()].depth + 1;
        if usize::from(depth) > DEPTH_MAX {
            return Err(GroupError::Depth);
        }
        if !self.places.has_one_for(self, parent) {
            return Err(GroupError::Full);
        }
        self.check_reserve(parent, None, params.reserve)?;
        let id = self.free.pop().ok_or(GroupError::Full)?;
        let epoch = self.slots[id.index()].epoch.wrapping_add(1);
        self.slots[id.index()] = Group { params, parent, depth, used: true, epoch, ..Group::FREE };
        self.ledger.open(id);
        self.fair.enter(id, parent, &params);
        self.goals.enter(id, params.latency_ns);
        self.ledger.account_mut(parent).holds += 1;
        self.in_use = true;
        self.note_promises();
        self.occupy(id, 1);
        Ok(id)
    }

    /// So many more (or fewer) slots of the subtrees that `id` is in.
    fn occupy(&mut self, id: GroupId, change: i32) {
        let mut at = id;
        for _ in 0..=DEPTH_MAX {
            self.places.change(at, change);
            if at == GroupId::ROOT {
                break;
            }
            at = self.slots[at.index()].parent;
        }
    }

    /// Change weights and class (*reweigh*, *reclass*); what was charged so far stays charged.
    ///
    /// # Errors
    /// [`GroupError::Weight`], [`GroupError::Unknown`], [`GroupError::Reserve`].
    pub fn set_params(&mut self, id: GroupId, params: GroupParams) -> Result<(), GroupError> {
        params.check()?;
        self.live(id)?;
        self.check_reserve(self.slots[id.index()].parent, Some(id), params.reserve)?;
        self.slots[id.index()].params = params;
        self.settle();
        self.fair.set_params(id, &params);
        self.goals.set(id, params.latency_ns);
        self.note_promises();
        if self.ledger.account(id).sync_queued > 0 {
            // Nobody says what time it is: the time of those that wait begins with what the device did last.
            self.goals.arrived(id, self.ledger.last_ns());
        }
        Ok(())
    }

    /// Were there ever others than the root?
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use
    }

    fn note_promises(&mut self) {
        self.promises = self.goals.any() || self.fair.has_reserves();
    }

    /// Has, or had, a group a latency goal?
    #[inline]
    pub(crate) fn has_goals(&self) -> bool {
        self.goals.any()
    }

    /// May a child of `parent`, `id` or a new one, have this reserve?
    fn check_reserve(&self, parent: GroupId, id: Option<GroupId>, percent: u32) -> Result<(), GroupError> {
        if percent > 0 {
            let own = id.map_or(0, |id| self.slots[id.index()].params.reserve);
            let taken = self.reserved_below(parent) - if id == Some(GroupId::ROOT) { 0 } else { own };
            let most = match parent {
                _ if id == Some(GroupId::ROOT) => 0,
                GroupId::ROOT => RESERVE_MAX,
                _ => self.slots[parent.index()].params.reserve,
            };
            let free = most.saturating_sub(taken);
            if percent > free {
                return Err(GroupError::Reserve { free });
            }
        }
        let least = id.filter(|id| *id != GroupId::ROOT).map_or(0, |id| self.reserved_below(id));
        if percent < least { Err(GroupError::Reserve { free: least }) } else { Ok(()) }
    }

    /// The reserves of the children of `parent`, in all. O(groups), but only once there is a reserve.
    fn reserved_below(&self, parent: GroupId) -> u32 {
        if !self.fair.has_reserves() {
            return 0;
        }
        let child = |(index, group): &(usize, &Group)| *index > 0 && group.used && group.parent == parent;
        self.slots.iter().enumerate().filter(child).map(|(_, group)| group.params.reserve).sum()
    }

    /// `id` was removed: of its reserve is kept what its children have; so it is with removed groups above it.
    fn release_reserve(&mut self, id: GroupId) {
        let mut at = id;
        for _ in 0..DEPTH_MAX {
            let group = &self.slots[at.index()];
            let kept = self.reserved_below(at);
            if at == GroupId::ROOT || !group.removed || group.params.reserve == kept {
                return;
            }
            let (parent, params) = (group.parent, GroupParams { reserve: kept, ..group.params });
            self.slots[at.index()].params = params;
            self.fair.set_params(at, &params);
            at = parent;
        }
    }

    /// Remove `id`: it takes no new I/O; what still names it goes to its nearest ancestor that is left. Child groups keep
    /// their place, and the slot is free again once the last of them, of its contexts and of its requests is gone.
    pub(crate) fn remove(&mut self, id: GroupId) -> Result<(), GroupError> {
        self.live(id)?;
        if id == GroupId::ROOT {
            return Err(GroupError::Root);
        }
        self.slots[id.index()].removed = true;
        self.ledger.account_mut(id).mark(Marks::LIVE, false);
        self.release_reserve(id);
        self.goals.set(id, 0);
        self.reap(id);
        Ok(())
    }

    fn live(&self, id: GroupId) -> Result<(), GroupError> {
        let known = self.slots.get(id.index()).is_some_and(|g| g.used && !g.removed);
        if known { Ok(()) } else { Err(GroupError::Unknown) }
    }

    /// The tunables ([`TUNABLES`]) as they are.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Set a tunable from text; it holds from the next turn on.
    ///
    /// # Errors
    /// Unknown name, malformed text or a value out of range; the old value stays.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        self.settings.set(name, text)?;
        self.fair.set_quantum(self.settings.quantum());
        Ok(())
    }

    /// The stored value of a tunable; `None` if there is none of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        let mut copy = self.settings;
        copy.place(name).map(|value| *value)
    }

    /// Set a tunable to a stored value that [`Tunable::parse`](crate::tunable::Tunable::parse) returned; as
    /// [`Groups::set`].
    pub(crate) fn set_stored(&mut self, name: &str, value: u64) {
        if let Some(place) = self.settings.place(name) {
            *place = value;
            self.fair.set_quantum(self.settings.quantum());
        }
    }

    /// What share of the device is due to the group's own tasks while those that are busy now are, in 2^-20. A group that is
    /// not busy counts as if it were.
    pub fn share(&self, id: GroupId) -> u64 {
        self.fair.share(id)
    }

    /// Requests of `id` that wait, under any elevator. Counted once the queue has groups.
    pub fn queued(&self, id: GroupId) -> u32 {
        self.ledger.account(id).queued
    }

    /// Requests in the device that `id` pays for. Counted once the queue has groups.
    #[inline]
    pub fn in_flight(&self, id: GroupId) -> u32 {
        self.ledger.account(id).in_flight
    }

    /// What was billed in all, and what there was to bill. Counted once the queue has groups.
    pub fn totals(&self) -> Totals {
        self.ledger.totals()
    }

    /// Is `one` of a better class than `other` where they compete, or due more?
    pub(crate) fn is_more_entitled(&self, one: GroupId, other: GroupId) -> bool {
        one != other
            && (self.fair.outranks(one, other)
                || !self.fair.outranks(other, one) && self.fair.is_due_more(one, other))
    }

    // ---- for elevators and the turn keeper ----

    /// The tree, to ask and compare.
    #[inline]
    pub(crate) fn fair(&self) -> &Fair {
        &self.fair
    }

    #[inline]
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The group that has the turn, after all bills: one that would miss its latency goal, else the tree's.
    pub(crate) fn next(&mut self, now: u64) -> Option<GroupId> {
        self.settle();
        if self.goals.any()
            && let Some(group) = self.claimant(now)
        {
            self.turn_by = Some((group, TurnBy::Goal));
            return Some(group);
        }
        let group = self.fair.pick()?;
        let by = if self.fair.by_reserve() { TurnBy::Reserve } else { TurnBy::Weight };
        self.turn_by = Some((group, by));
        Some(group)
    }

    // ---- latency goals ----

    /// The group that goes first because it would miss its goal, and has not had its due. Every bill has reached the tree.
    #[cold]
    fn claimant(&mut self, now: u64) -> Option<GroupId> {
        self.goals.first(&self.fair, now.saturating_add(self.claim_margin_ns()))
    }

    /// So much before its deadline a request has to go: what is in the device and itself, twice, for they may be longer than usual.
    fn claim_margin_ns(&self) -> u64 {
        self.ledger.time_of(self.ledger.in_flight + 1).saturating_mul(2)
    }

    /// Is the turn of `group` over because another one would miss its goal? (Not where overruns are forgiven: what is billed in the
    /// middle of a turn would be lost.)
    #[inline]
    pub(crate) fn is_claimed_from(&mut self, group: GroupId, now: u64) -> bool {
        self.goals.any() && self.settings.charges_overrun() && self.another_claims(group, now)
    }

    #[cold]
    fn another_claims(&mut self, group: GroupId, now: u64) -> bool {
        if self.claims_ns() > now {
            return false;
        }
        self.settle();
        self.claimant(now).is_some_and(|other| other != group)
    }

    /// When the first group has to go to keep its goal, nanoseconds.
    fn claims_ns(&self) -> u64 {
        self.goals.first_deadline_ns().map_or(u64::MAX, |ns| ns.saturating_sub(self.claim_margin_ns()))
    }

    /// `until`, or before that the time when a group has to go to keep its goal: nothing is held back longer.
    #[inline]
    pub(crate) fn no_later_than_goals(&self, until_ns: u64, now: u64) -> u64 {
        if !self.goals.any() {
            return until_ns;
        }
        let claims_ns = self.claims_ns();
        if claims_ns > now { until_ns.min(claims_ns) } else { until_ns }
    }

    /// Does `id` have something to do (or is it waited for)? Puts it into the tree or takes it out; did that change it?
    #[inline]
    pub(crate) fn set_busy(&mut self, id: GroupId, busy: bool) -> bool {
        let changes = busy != self.is_busy(id);
        if changes {
            self.change_busy(id, busy);
        }
        changes
    }

    /// Do the group's own tasks take part in the tree?
    #[inline]
    pub(crate) fn is_busy(&self, id: GroupId) -> bool {
        let busy = self.ledger.account(id).marks().has(Marks::BUSY);
        debug_assert!(busy == self.fair.is_busy(id));
        busy
    }

    fn change_busy(&mut self, id: GroupId, busy: bool) {
        self.ledger.account_mut(id).mark(Marks::BUSY, busy);
        if busy {
            self.fair.activate(id);
        } else {
            self.fair.deactivate(id);
            self.slots[id.index()].stats.dequeued += 1;
            self.reap(id);
        }
    }

    // ---- what is billed is charged ----

    /// Every bill reaches the tree (none does where overruns are forgiven: there a turn costs its slice).
    pub(crate) fn settle(&mut self) {
        while let Some((payer, bill)) = self.ledger.take_bill() {
            if self.settings.charges_overrun() {
                self.charge(payer, &bill);
            }
            self.reap(payer);
        }
    }

    /// The turn of `id` is over: every bill reaches the tree, what it has in the device is paid in advance, and `id` leaves the
    /// tree if it `leaves`.
    pub(crate) fn settle_turn(&mut self, id: GroupId, leaves: bool) {
        self.settle_turn_for(id, id, leaves);
    }

    /// The same for a turn of `id` that served requests billed to `home`: `id` pays for them. (cfq of 2.6.34 without
    /// `group_isolation` serves seekers of all groups in the root's round.)
    pub(crate) fn settle_turn_for(&mut self, id: GroupId, home: GroupId, leaves: bool) {
        let charge = self.settings.charge();
        let mut own_ns = 0;
        while let Some((payer, bill)) = self.ledger.take_bill() {
            if payer == home {
                own_ns = self.ledger.due_ns(payer, &bill, charge);
                self.slots[payer.index()].stats.add(&bill);
            } else {
                self.charge(payer, &bill);
            }
            if payer != id {
                self.reap(payer);
            }
        }
        own_ns += self.ledger.advance_ns(home, charge);
        self.charge_turn(id, own_ns, leaves);
    }

    /// As [`Groups::settle_turn`], but `time_ns` is all it costs, and what was overrun is forgiven.
    pub(crate) fn settle_turn_at(&mut self, id: GroupId, time_ns: u64, leaves: bool) {
        let mut billed = Bill::NONE;
        while let Some((payer, bill)) = self.ledger.take_bill() {
            if payer == id {
                billed = bill;
            }
            self.slots[payer.index()].stats.idle_ns += bill.waited_ns;
            if payer != id {
                self.reap(payer);
            }
        }
        let bill = Bill { time_ns, dry_ns: 0, waited_ns: 0, ..billed };
        self.slots[id.index()].stats.add(&bill);
        let cost_ns = self.ledger.cost_ns(&bill, self.settings.charge());
        self.charge_turn(id, cost_ns, leaves);
    }

    fn charge(&mut self, id: GroupId, bill: &Bill) {
        let due_ns = self.ledger.due_ns(id, bill, self.settings.charge());
        if due_ns > 0 {
            self.fair.charge(id, due_ns);
        }
        self.slots[id.index()].stats.add(bill);
    }

    fn charge_turn(&mut self, id: GroupId, cost_ns: u64, leaves: bool) {
        if !leaves || !self.is_busy(id) {
            self.fair.charge(id, cost_ns);
            return;
        }
        self.ledger.account_mut(id).mark(Marks::BUSY, false);
        self.fair.charge_and_deactivate(id, cost_ns);
        self.slots[id.index()].stats.dequeued += 1;
        self.reap(id);
    }

    // ---- a request's way: see the ledger ----

    /// Counting begins: so many requests are queued and in the device already, of the root's.
    pub(crate) fn start_counting(&mut self, queued: u32, in_flight: u32, now: u64) {
        self.ledger.start(queued, in_flight, now);
    }

    /// A request that `payer` pays for waits.
    #[inline]
    pub(crate) fn arrived(&mut self, payer: GroupId, sync: bool) -> Came {
        self.ledger.arrived(payer, sync)
    }

    /// The host's request slots, as [`ElevatorQueue::set_request_slots`](crate::queue::ElevatorQueue::set_request_slots) has them.
    pub(crate) fn set_request_slots(&mut self, all: u32, for_async: u32) {
        self.ledger.request_slots = [for_async.min(all), all];
    }

    /// A request of `payer` waits that its goal counts for, if it has one.
    #[inline]
    pub(crate) fn goal_arrived(&mut self, payer: GroupId, sync: bool, now: u64) {
        if sync && self.goals.any() {
            self.goals.arrived(payer, now);
        }
    }

    /// One of those waits no more; if it is on its way to the device, the next one's time begins `now`.
    #[inline]
    pub(crate) fn goal_gone(&mut self, payer: GroupId, sync: bool, now: Option<u64>) {
        if self.goals.any() {
            self.goals.gone(payer, sync, self.ledger.account(payer).sync_queued, now);
        }
    }

    /// A request that waited goes to the device. Answers with how many more of `payer` wait.
    #[inline(always)] // for the two that send a request of a group
    pub(crate) fn issued(&mut self, payer: GroupId, sync: bool, now: u64) -> u32 {
        let left = self.ledger.issued(payer, sync, now);
        if self.promises {
            self.issued_by_promise(payer, sync, now);
        }
        left
    }

    /// The rest of it, where a group has a reserve or a goal.
    #[cold]
    fn issued_by_promise(&mut self, payer: GroupId, sync: bool, now: u64) {
        if let Some((group, by)) = self.turn_by
            && group == payer
        {
            self.slots[payer.index()].stats.turns[by as usize] += 1;
        }
        self.goal_gone(payer, sync, Some(now));
    }

    /// One that waited went up in another, or was cancelled.
    pub(crate) fn withdrawn(&mut self, payer: GroupId, sync: bool) {
        self.ledger.withdrawn(payer, sync);
    }

    /// The device is done with a request.
    #[inline(always)] // for the two ways a request ends
    pub(crate) fn completed(&mut self, request: &Request, now: u64) {
        self.ledger.completed(request.payer, request.sectors, now);
        self.slots[request.group.index()].stats.count(request, now);
        if self.goals.any() && request.is_sync() {
            let stats = &mut self.slots[request.payer.index()].stats.goal;
            self.goals.judge(request.payer, request.start_ns, now, stats);
        }
    }

    /// The device is done with a request that several wanted.
    pub(crate) fn completed_for(
        &mut self,
        carrier: &Request,
        payers: impl Iterator<Item = GroupId>,
        count: u32,
        now: u64,
    ) {
        self.ledger.completed_for(carrier.payer, payers, count, now);
        self.slots[carrier.group.index()].stats.count(carrier, now);
    }

    /// The device gave a request back unserved.
    pub(crate) fn returned(&mut self, payer: GroupId, sync: bool, now: u64) -> Came {
        self.ledger.returned(payer, sync, now)
    }

    /// A request grew by another's.
    pub(crate) fn merged(&mut self, request: &Request) {
        self.slots[request.group.index()].stats.of(request).merged += 1;
    }

    /// The device is kept for `payer`.
    pub(crate) fn wait(&mut self, payer: GroupId, now: u64, until_ns: u64) {
        self.ledger.wait(payer, now, until_ns);
    }

    /// It is kept for no group any more.
    pub(crate) fn stop_waiting(&mut self, now: u64) {
        self.ledger.stop_waiting(now);
    }

    /// Take all groups without queued requests out of the tree (an elevator leaves).
    pub(crate) fn leave_dry(&mut self) {
        self.settle();
        for id in (0..self.slots.len()).map(GroupId::from_index) {
            if self.queued(id) == 0 {
                self.set_busy(id, false);
            }
        }
    }

    // ---- names ----

    /// `id` if it is a group, the nearest ancestor left if it was removed, else the root: a stale id costs fairness, never
    /// an error.
    #[inline]
    pub fn known(&self, id: GroupId) -> GroupId {
        match self.slots.get(id.index()) {
            Some(group) if group.used && !group.removed => id,
            Some(group) if group.used => self.heir(group.parent),
            _ => GroupId::ROOT,
        }
    }

    #[cold]
    fn heir(&self, mut id: GroupId) -> GroupId {
        for _ in 0..DEPTH_MAX {
            let group = &self.slots[id.index()];
            if !group.removed {
                return id;
            }
            id = group.parent;
        }
        GroupId::ROOT
    }

    /// Was it removed, and has something left?
    #[inline]
    pub(crate) fn is_removed(&self, id: GroupId) -> bool {
        self.slots[id.index()].removed
    }

    /// Counts the groups that had the slot of `id`.
    #[inline]
    pub(crate) fn epoch(&self, id: GroupId) -> u32 {
        self.slots[id.index()].epoch
    }

    /// `id`, its parent, and so on to the root.
    pub fn path(&self, id: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        let mut at = Some(id);
        core::iter::from_fn(move || {
            let here = at?;
            at = (here != GroupId::ROOT).then(|| self.slots[here.index()].parent);
            Some(here)
        })
    }

    /// All groups, the root first, without those removed.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, g)| g.used && !g.removed).map(|(i, g)| (GroupId::from_index(i), g))
    }

    /// One more request, context or held bio of `id`, or of the group it counts for: see [`Groups::known`]. The root's are not
    /// counted.
    #[inline]
    pub(crate) fn hold(&mut self, id: GroupId) -> GroupId {
        if id == GroupId::ROOT {
            return id;
        }
        let id = self.known(id);
        self.ledger.account_mut(id).holds += 1;
        id
    }

    /// As [`Groups::hold`] if `id` is a group; else `false`, and nothing is counted.
    #[inline]
    pub(crate) fn hold_if_live(&mut self, id: GroupId) -> bool {
        self.ledger.hold_if_live(id)
    }

    /// One of those is gone.
    #[inline]
    pub(crate) fn drop_hold(&mut self, id: GroupId) {
        if id == GroupId::ROOT {
            return;
        }
        let account = self.ledger.account_mut(id);
        debug_assert!(account.holds > 0, "group released more often than held");
        account.holds -= 1;
        if account.holds == 0 && !account.marks().has(Marks::LIVE) {
            self.reap(id);
        }
    }

    /// Free the slot of a removed group that has nothing left; and its parent's, if that waited only for it.
    #[inline]
    fn reap(&mut self, id: GroupId) {
        if !self.ledger.account(id).marks().has(Marks::LIVE) {
            self.reap_removed(id);
        }
    }

    #[cold]
    fn reap_removed(&mut self, id: GroupId) {
        let mut at = id;
        for _ in 0..DEPTH_MAX {
            let group = &self.slots[at.index()];
            let kept = !group.used || !group.removed || self.fair.is_busy(at) || self.ledger.owes(at);
            if at == GroupId::ROOT || kept || self.ledger.account(at).holds > 0 {
                return;
            }
            let parent = group.parent;
            self.occupy(at, -1);
            self.slots[at.index()].used = false;
            self.free.push(at);
            let above = self.ledger.account_mut(parent);
            above.holds = above.holds.saturating_sub(1);
            at = parent;
        }
    }
}

impl Index<GroupId> for Groups {
    type Output = Group;
    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.slots[id.index()]
    }
}
