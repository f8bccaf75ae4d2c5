//! One queue of the core as the module uses it.

use fairlift_core::collections::{Id, Table, strays};
use fairlift_core::context::IoClass;
use fairlift_core::elevator::{self, Config, Finding, Growth};
use fairlift_core::group::{self, DEPTH_MAX, GroupStats, WEIGHT_RANGE, Writeback};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::request::{Request, RequestState, request};
use fairlift_core::tunable::{SetError, Tunable, Unit};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoPrio, Op, RequestId, Requests};

use crate::first_come::FirstCome;
use crate::limits::Lines;
use crate::record::{Answer, Call, Recorder};

/// The elevators of the module, by the numbers C uses (`enum fairlift_elevator`).
pub const ELEVATORS: &[&str] = &["noop", "deadline", "anticipatory", "cfq", "fair"];

/// What a queue is built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The elevator's name in the core (without the module's `fl-`).
    pub elevator: &'static str,
    /// One of its profiles; empty for the default.
    pub profile: &'static str,
    /// Request slots.
    pub requests_max: u32,
    /// Contexts beside the overflow one.
    pub contexts_max: u32,
    /// Groups beside the root.
    pub groups_max: u32,
    /// Calls to record; 0 = none.
    pub records_max: u32,
    /// Do seeks cost time?
    pub rotational: bool,
}

/// A request or bio as the module describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// Whose it is: what [`Host::context_new`] returned; 0 for a task without a context of its own.
    pub context: u32,
    /// Whose group it counts for: what [`Host::group_new`] returned; 0 for the root.
    pub group: u32,
    /// Did the context's task send it for itself? Then the context is in that group from now on.
    pub own: bool,
    /// Its priority.
    pub ioprio: IoPrio,
}

/// A queue of the core, its clock and its recorder.
pub struct Host {
    pub(crate) queue: ElevatorQueue,
    pub(crate) lines: Lines,
    pub(crate) writeback: Writeback,
    /// By group: slots taken by it and all below it. The root's is not kept.
    taken_below: Table<u32>,
    /// By group: flushes without data, which the core counts as writes.
    flushes: Table<u64>,
    tunables: &'static [Tunable],
    recorder: Recorder,
    setup: Setup,
    /// The core's time never goes back.
    now: u64,
    /// Looks beyond a table's end before the present call.
    strays: u32,
    /// What the queue gets for its requests when it gives them up.
    none: Option<Requests>,
    /// In place of the queue, once that was found broken.
    pub(crate) first_come: Option<FirstCome>,
}

/// A request's slot, as the module remembers it.
pub type Slot = u32;

fn id(slot: Slot) -> RequestId {
    RequestId::from_index(slot as usize)
}

fn slot(rq: RequestId) -> Slot {
    rq.index() as Slot
}

fn group(number: u32) -> GroupId {
    GroupId::from_index(number as usize)
}

/// A weight out of range becomes the nearest in it.
fn in_range(weight: u32) -> u32 {
    weight.clamp(WEIGHT_RANGE.0, WEIGHT_RANGE.1)
}

/// Does it write dirty pages back, for a group?
#[inline]
fn writes_back(rq: &Request) -> bool {
    rq.group != GroupId::ROOT && rq.op == Op::Write && !rq.flags.contains(Flags::SYNC)
}

impl Host {
    /// A queue; `None` when there is no such elevator. The only place that allocates.
    pub fn new(setup: Setup) -> Option<Host> {
        let descriptor = elevator::find(setup.elevator)?;
        let [requests, contexts, groups] =
            [setup.requests_max, setup.contexts_max, setup.groups_max].map(|max| max as usize);
        let config = Config::for_queue(requests, contexts, groups, 0);
        let built = (descriptor.build)(&config, setup.profile);
        let tunables = built.tunables();
        let queue = ElevatorQueue::new(requests, contexts, setup.rotational, built).with_groups(groups);
        let recorder = Recorder::new(setup.records_max as usize);
        let lines = Lines::new(queue.groups());
        let writeback = Writeback::new(queue.groups());
        let taken_below = Table::new(0, queue.groups().slots());
        let flushes = Table::new(0, queue.groups().slots());
        let (strays, first_come, none) = (strays(), None, Some(Requests::new(0)));
        let mut host = Host {
            queue,
            lines,
            writeback,
            taken_below,
            flushes,
            tunables,
            recorder,
            setup,
            now: 0,
            strays,
            none,
            first_come,
        };
        // 2.6.34's cfq protects seeking tasks of different groups from each other only when told to; who sets weights means it.
        if let Some(isolation) = host.queue.elevator_mut().setting("group_isolation") {
            *isolation = u64::from(setup.groups_max > 0);
            host.queue.elevator_mut().settings_changed();
        }
        Some(host)
    }

    /// The groups' tunables as they were before `fairness` was on by default (2.6.37's rule: a turn's overruns cost nothing).
    pub(crate) fn with_former_defaults(mut self) -> Host {
        self.queue.set_for_groups("fairness", 0);
        self
    }

    /// What it was built from.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What was recorded.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Requests with the elevator.
    pub fn queued(&self) -> usize {
        self.first_come.as_ref().map_or_else(|| self.queue.queued(), FirstCome::queued)
    }

    /// Requests in the device, `[async, sync]`.
    pub fn in_flight(&self) -> [u32; 2] {
        self.first_come.as_ref().map_or_else(|| self.queue.in_flight(), FirstCome::in_flight)
    }

    /// Slots taken.
    pub fn taken(&self) -> usize {
        self.first_come.as_ref().map_or_else(|| self.queue.requests().taken(), FirstCome::taken)
    }

    /// Tasks with a context of their own, and one for all that have none.
    pub fn contexts(&self) -> usize {
        let contexts = self.queue.contexts();
        1 + contexts.iter().filter(|(id, _)| !contexts.is_shared(*id)).count()
    }

    /// The context of this number for what is sent in `group`. 0, or one that no task has: the one that those of the group's
    /// tasks share which have none of their own. How many such the core has is none of the module's business (nor of a
    /// record's): numbers count the others, from 1.
    fn context(&self, number: u32, group: GroupId) -> ContextId {
        let contexts = self.queue.contexts();
        let index = self.queue.groups().slots() + (number as usize).saturating_sub(1);
        if number > 0 && index < contexts.slots() {
            let own = contexts.known(ContextId::from_index(index));
            if own != ContextId::OVERFLOW {
                return own;
            }
        }
        contexts.shared_by(group)
    }

    /// What [`Host::context`] is asked by.
    fn number_of(&self, context: ContextId) -> u32 {
        if self.queue.contexts().is_shared(context) {
            return 0;
        }
        (context.index() + 1 - self.queue.groups().slots()) as u32
    }

    /// Groups there are, the root included.
    pub fn groups(&self) -> usize {
        self.queue.groups().iter().count()
    }

    #[inline]
    pub(crate) fn enter(&mut self, now: u64) -> u64 {
        self.now = self.now.max(now);
        self.strays = strays();
        self.now
    }

    /// The queue is broken, or the module wants no more of it: from now on first come, first served.
    #[cold]
    pub fn give_up(&mut self) {
        if let Some(mut requests) = self.none.take() {
            self.queue.swap_requests(&mut requests);
            self.first_come = Some(FirstCome::new(requests));
            #[cfg(target_os = "none")]
            crate::runtime::tell_gave_up();
        }
    }

    /// Is it first come, first served?
    pub fn has_given_up(&self) -> bool {
        self.first_come.is_some()
    }

    #[inline]
    pub(crate) fn note(&mut self, call: Call, answer: Answer) {
        self.note_with(|| (call, answer));
    }

    /// As [`Host::note`], for the calls that every request passes: what is to be noted is put together only if it is.
    #[inline(always)]
    fn note_with(&mut self, call: impl FnOnce() -> (Call, Answer)) {
        if self.check() && self.recorder.is_on() {
            self.record(call());
        }
    }

    #[cold]
    fn record(&mut self, (call, answer): (Call, Answer)) {
        self.recorder.push(self.now, call, answer);
    }

    /// Did the present call keep to the tables? If not, the queue is broken, and given up.
    #[inline]
    pub(crate) fn check(&mut self) -> bool {
        let is_sound = strays() == self.strays;
        if !is_sound {
            self.give_up();
        }
        is_sound
    }

    /// The latest time it was told.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Where a slot's request is; `Free` for a number that names none.
    fn state(&self, slot: Slot) -> RequestState {
        if (slot as usize) < self.queue.requests().capacity() {
            self.queue.requests()[id(slot)].state
        } else {
            RequestState::Free
        }
    }

    #[inline(always)] // into the three that take a slot
    fn take(&mut self, arrival: &Arrival) -> Option<RequestId> {
        let group = self.queue.groups().known(group(arrival.group));
        let context = self.context(arrival.context, group);
        if !self.queue.contexts().is_shared(context) {
            if arrival.ioprio != self.queue.contexts()[context].ioprio {
                self.queue.set_ioprio(context, arrival.ioprio, self.now);
            }
            if arrival.own && self.queue.contexts()[context].group != group {
                self.queue.move_context(context, group, self.now);
            }
        }
        let mut new = request(arrival.op, arrival.flags, arrival.sector, arrival.sectors, context, self.now);
        new.ioprio = arrival.ioprio;
        new.group = group;
        let writes_back = writes_back(&new);
        let rq = self.queue.take(new)?;
        self.count(group, 1);
        if writes_back {
            self.writeback.arrived(self.queue.groups(), group, arrival.sectors, self.now);
        }
        Some(rq)
    }

    #[inline(always)] // into the one that completes
    fn release(&mut self, rq: RequestId) {
        let request = &self.queue.requests()[rq];
        let (group, writes_back) = (request.group, writes_back(request));
        self.count(group, -1);
        if writes_back {
            self.writeback.done(group);
        }
        self.queue.release(rq);
    }

    /// One slot more or less of a request's group and all above it: as it has a request, they stay where they are.
    #[inline]
    fn count(&mut self, group: GroupId, change: i32) {
        for at in self.queue.groups().path(group).take_while(|at| *at != GroupId::ROOT) {
            let taken = &mut self.taken_below[at.index()];
            *taken = taken.saturating_add_signed(change);
        }
    }

    fn bio(&self, arrival: &Arrival) -> Bio {
        let group = self.queue.groups().known(group(arrival.group));
        Bio {
            cookie: 0,
            op: arrival.op,
            flags: arrival.flags,
            sector: arrival.sector,
            sectors: arrival.sectors,
            segments: 1,
            context: self.context(arrival.context, group),
            ioprio: Some(arrival.ioprio),
            group: Some(group),
        }
    }

    /// A request for the elevator; `None` when all slots are taken.
    #[inline(always)] // into the call from C
    pub fn insert(&mut self, arrival: &Arrival, now: u64) -> Option<Slot> {
        let now = self.enter(now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.insert(arrival, false, now);
        }
        let rq = self.take(arrival);
        if let Some(rq) = rq {
            self.queue.insert(rq, now);
        }
        self.note_with(|| (Call::Insert(*arrival), Answer::number(rq.map(slot))));
        rq.map(slot)
    }

    /// A request that goes before the others of its group (the data between two flushes), in its group's turn. Where there are
    /// no groups it goes before all. `None` when all slots are taken.
    pub fn insert_head(&mut self, arrival: &Arrival, now: u64) -> Option<Slot> {
        let now = self.enter(now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.insert(arrival, true, now);
        }
        let rq = self.take(arrival);
        if let Some(rq) = rq {
            self.queue.insert_head(rq, now);
        }
        self.note(Call::InsertHead(*arrival), Answer::number(rq.map(slot)));
        rq.map(slot)
    }

    /// A request that goes to the device at once, out of turn, for which its group is billed: data between two flushes for which
    /// no task waited. `None` when all slots are taken.
    pub fn issue_around(&mut self, arrival: &Arrival, now: u64) -> Option<Slot> {
        let now = self.enter(now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.issue_around(arrival, now);
        }
        let rq = self.take(arrival);
        if let Some(rq) = rq {
            self.queue.issue_around(rq, now);
        }
        self.note(Call::IssueAround(*arrival), Answer::number(rq.map(slot)));
        rq.map(slot)
    }

    /// The next request, or why there is none.
    #[inline(always)] // as `insert`
    pub fn dispatch(&mut self, now: u64) -> Dispatch {
        let now = self.enter(now);
        let mut answer = Dispatch::Empty;
        if self.first_come.is_none() {
            answer = self.queue.dispatch(now);
            self.note_with(|| (Call::Dispatch, Answer::from(answer)));
        }
        match (&mut self.first_come, answer) {
            (None, _) => answer,
            // The last that the queue gave away before it was found broken.
            (Some(broken), Dispatch::Issue(rq)) if broken.state(slot(rq)) == RequestState::Issued => answer,
            (Some(broken), _) => broken.dispatch().map_or(Dispatch::Empty, |slot| Dispatch::Issue(id(slot))),
        }
    }

    /// A request that was inserted and dispatched before its task had sent it is this one; without sectors it is a flush
    /// alone.
    pub fn fill(&mut self, slot: Slot, sector: u64, sectors: u32, now: u64) {
        self.enter(now);
        if !self.has_given_up() && self.state(slot) == RequestState::Issued {
            self.queue.fill(id(slot), sector, sectors);
            if sectors == 0 {
                let group = self.queue.requests()[id(slot)].group;
                self.flushes[group.index()] += 1;
            }
            self.note(Call::Fill { slot, sector, sectors }, Answer::None);
        }
    }

    /// The device is done with a request; its slot is free again.
    #[inline(always)] // as `insert`
    pub fn complete(&mut self, slot: Slot, now: u64) {
        let now = self.enter(now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.complete(slot);
        }
        match self.state(slot) {
            RequestState::Issued => self.queue.complete(id(slot), now),
            // Taken back, and then sent to the device without being inserted again.
            RequestState::Held => {
                self.queue.issue_again(id(slot), now);
                self.queue.complete(id(slot), now);
            }
            _ => return debug_assert!(false, "completed a request the device does not have"),
        }
        self.release(id(slot));
        self.note_with(|| (Call::Complete(slot), Answer::None));
    }

    /// The device gave a request back; the module keeps it.
    pub fn take_back(&mut self, slot: Slot, now: u64) {
        let now = self.enter(now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.take_back(slot);
        }
        if self.state(slot) == RequestState::Issued {
            self.queue.take_back(id(slot), now);
            self.note(Call::TakeBack(slot), Answer::None);
        }
    }

    /// A request taken back is to be dispatched before all others.
    pub fn insert_again(&mut self, slot: Slot) {
        self.enter(self.now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.insert_again(slot);
        }
        if self.state(slot) == RequestState::Held {
            self.queue.insert_again(id(slot), self.now);
            self.note(Call::InsertAgain(slot), Answer::None);
        }
    }

    /// May something of this sort be merged into the request?
    pub fn allow_merge(&mut self, slot: Slot, bio: &Arrival, now: u64) -> bool {
        let now = self.enter(now);
        if self.has_given_up() {
            return false;
        }
        let allowed =
            self.state(slot) == RequestState::Sorted && self.queue.allow_merge(id(slot), &self.bio(bio), now);
        self.note(Call::AllowMerge(slot, *bio), Answer::Flag(allowed));
        allowed
    }

    /// A request that starts where this bio ends.
    pub fn find_front(&mut self, bio: &Arrival, now: u64) -> Option<Slot> {
        let now = self.enter(now);
        if self.has_given_up() {
            return None;
        }
        let found = self.queue.find_front(&self.bio(bio), now).map(slot);
        self.note(Call::FindFront(*bio), Answer::number(found));
        found
    }

    /// The module merged a bio into a request, which now covers `sectors` from `sector` on.
    pub fn grew(&mut self, slot: Slot, front: bool, sector: u64, sectors: u32, now: u64) {
        let now = self.enter(now);
        // First come, first served keeps no order of sectors.
        if self.has_given_up() || !matches!(self.state(slot), RequestState::Sorted | RequestState::Listed) {
            return;
        }
        let growth = if front { Growth::Front } else { Growth::Back };
        let ioprio = self.queue.requests()[id(slot)].ioprio;
        self.queue.grow(id(slot), growth, (sector, sectors), ioprio, now);
        self.note(Call::Grew { slot, front, sector, sectors }, Answer::None);
    }

    /// The module merged request `gone` into `slot`, which is `sectors` long now; `gone`'s slot is free again.
    pub fn absorbed(&mut self, slot: Slot, gone: Slot, sectors: u32, now: u64) {
        let now = self.enter(now);
        if let Some(first_come) = &mut self.first_come {
            return first_come.absorbed(gone);
        }
        if self.state(slot) != RequestState::Sorted || self.state(gone) != RequestState::Sorted {
            return debug_assert!(false, "merged requests past merging");
        }
        self.queue.absorb(id(slot), id(gone), sectors, now);
        self.release(id(gone));
        self.note(Call::Absorbed { slot, gone, sectors }, Answer::None);
    }

    /// The request before this one in the elevator's order of sectors.
    pub fn former(&mut self, at: Slot, now: u64) -> Option<Slot> {
        self.neighbour(at, now, ElevatorQueue::former, Call::Former(at))
    }

    /// The request behind this one in the elevator's order of sectors.
    pub fn latter(&mut self, at: Slot, now: u64) -> Option<Slot> {
        self.neighbour(at, now, ElevatorQueue::latter, Call::Latter(at))
    }

    fn neighbour(
        &mut self,
        at: Slot,
        now: u64,
        ask: fn(&mut ElevatorQueue, RequestId, u64) -> Option<RequestId>,
        call: Call,
    ) -> Option<Slot> {
        let now = self.enter(now);
        if self.has_given_up() || self.state(at) != RequestState::Sorted {
            return None;
        }
        let found = ask(&mut self.queue, id(at), now).map(slot);
        self.note(call, Answer::number(found));
        found
    }

    /// A context for a new task of a group; 0 when all are taken: it has none of its own.
    pub fn context_new(&mut self, number: u32, ioprio: IoPrio) -> u32 {
        self.enter(self.now);
        if self.has_given_up() {
            return 0;
        }
        let of = self.queue.groups().known(group(number));
        let created = self.queue.contexts_mut().create_in(of, ioprio);
        let created = self.number_of(created);
        self.note(Call::ContextNew { group: number, ioprio }, Answer::Number(created.into()));
        created
    }

    /// A context's task is gone.
    pub fn context_exit(&mut self, number: u32, now: u64) {
        let now = self.enter(now);
        if self.has_given_up() {
            return;
        }
        // The shared ones stay.
        self.queue.context_exit(self.context(number, GroupId::ROOT), now);
        self.note(Call::ContextExit(number), Answer::None);
    }

    /// `from` now waits for `to`'s I/O, or for that of an unknown task.
    pub fn yield_to(&mut self, from: u32, to: Option<u32>, now: u64) {
        let now = self.enter(now);
        if self.has_given_up() {
            return;
        }
        let id = |number| self.context(number, GroupId::ROOT);
        let (one, other) = (id(from), to.map(id));
        self.queue.yield_to(one, other, now);
        self.note(Call::YieldTo(from, to), Answer::None);
    }

    /// Does [`Host::yield_to`] do anything: has the elevator the tunable `yield`, and is it on?
    pub fn yields(&mut self) -> bool {
        self.queue.elevator_mut().setting("yield").is_some_and(|value| *value != 0)
    }

    /// A new group below `parent`; `None` when there is no room for one.
    pub fn group_new(&mut self, parent: u32, weight: u32, class: IoClass) -> Option<u32> {
        self.enter(self.now);
        if self.has_given_up() {
            return None;
        }
        let parent_id = self.queue.groups().known(group(parent));
        let created = self
            .queue
            .groups_mut()
            .create(parent_id, GroupParams { weight: in_range(weight), class, ..GroupParams::default() })
            .ok();
        if let Some(id) = created {
            self.flushes[id.index()] = 0;
        }
        let created = created.map(|id| id.index() as u32);
        self.note(Call::GroupNew { parent, weight, class }, Answer::number(created));
        created
    }

    /// Change a group's weight and class.
    pub fn group_set(&mut self, number: u32, weight: u32, class: IoClass) {
        self.enter(self.now);
        if self.has_given_up() {
            return;
        }
        self.change(number, |params| (params.weight, params.class) = (in_range(weight), class));
        self.note(Call::GroupSet { group: number, weight, class }, Answer::None);
    }

    /// Change the weight of a group's own tasks beside its child groups.
    pub fn group_leaf(&mut self, number: u32, weight: u32) {
        self.enter(self.now);
        if self.has_given_up() {
            return;
        }
        self.change(number, |params| params.leaf_weight = in_range(weight));
        self.note(Call::GroupLeaf { group: number, weight }, Answer::None);
    }

    fn change(&mut self, number: u32, how: impl FnOnce(&mut GroupParams)) {
        let id = group(number);
        // Nothing to do for one that is gone.
        if self.queue.groups().known(id) == id {
            let mut params = *self.queue.groups()[id].params();
            how(&mut params);
            let _ = self.queue.groups_mut().set_params(id, params);
        }
    }

    /// A group is gone; what it has queued is still served, and the first of its lines wait in their place for the limits above.
    /// Call [`Host::let_in`].
    pub fn group_remove(&mut self, number: u32, now: u64) {
        let now = self.enter(now);
        if self.has_given_up() {
            return;
        }
        // As above; the root stays, with its limits.
        if self.queue.remove_group(group(number)).is_ok() {
            self.lines.removed(self.queue.groups(), group(number), now);
        }
        self.note(Call::GroupRemove(number), Answer::None);
    }

    /// Has this group, or one above it, so many of the host's `tags` that it should leave the rest to others? As the core gives
    /// out places: half of them in order of arrival; then a subtree may have three quarters of what it has and what is left
    /// to its parent's, at each level. The first tag is never too many.
    pub fn takes_too_many(&self, number: u32, tags: u32) -> bool {
        let taken = self.taken() as u32;
        if self.has_given_up() || taken < tags.div_ceil(2) {
            return false;
        }
        let groups = self.queue.groups();
        let mut way = [GroupId::ROOT; DEPTH_MAX];
        let mut levels = 0;
        let path = groups.path(groups.known(group(number))).take_while(|at| *at != GroupId::ROOT);
        for (place, at) in way.iter_mut().zip(path) {
            *place = at;
            levels += 1;
        }
        let mut left = tags.saturating_sub(taken);
        for at in way.iter().take(levels).rev() {
            let own = self.taken_below[at.index()];
            let most = (u64::from(left + own) * 3 / 4) as u32;
            if own > 0 && own >= most {
                return true;
            }
            left = most.saturating_sub(own);
        }
        false
    }

    /// Requests of a group that wait; those of the root for a number that names none.
    pub fn group_queued(&self, number: u32) -> u32 {
        let groups = self.queue.groups();
        groups.queued(groups.known(group(number)))
    }

    /// Flushes without data among the writes that [`Host::group_stats`] counts, of the root for a number that names none.
    pub fn group_flushes(&self, number: u32) -> u64 {
        let groups = self.queue.groups();
        self.flushes[groups.known(group(number)).index()]
    }

    /// What a group got; that of the root for a number that names none.
    pub fn group_stats(&self, number: u32) -> &GroupStats {
        let groups = self.queue.groups();
        groups[groups.known(group(number))].stats()
    }

    /// Flush commands pass the queue by: is one in the device from now on?
    pub fn flushing(&mut self, flushing: bool, now: u64) {
        self.enter(now);
        if !self.has_given_up() {
            self.queue.set_flushing(flushing);
            self.note(Call::Flushing(flushing), Answer::None);
        }
    }

    /// The disk has so many tags (`nr_requests`), and an async request finds one while fewer than `for_async` are taken: the device
    /// idles for no cgroup that finds none.
    pub fn request_slots(&mut self, all: u32, for_async: u32, now: u64) {
        self.enter(now);
        if !self.has_given_up() {
            self.queue.set_request_slots(all, for_async);
            self.note(Call::RequestSlots { all, for_async }, Answer::None);
        }
    }

    /// What the elevator has found out about the device by the time `now`, in the order of its own; `None` beyond the last, and
    /// once it was given up.
    pub fn finding(&self, index: usize, now: u64) -> Option<Finding> {
        let (mut at, mut found) = (0, None);
        if !self.has_given_up() {
            self.queue.found(self.now.max(now), &mut |finding| {
                if at == index {
                    found = Some(finding);
                }
                at += 1;
            });
        }
        found
    }

    /// Tunable `index` of the elevator, or of the groups, which follow.
    fn tunable(&self, index: usize) -> Option<&'static Tunable> {
        tunable(self.tunables, index)
    }

    /// A tunable with its value as stored.
    pub fn get(&mut self, index: usize) -> Option<(&'static Tunable, u64)> {
        let tunable = self.tunable(index)?;
        let own = self.queue.elevator_mut().setting(tunable.name).map(|value| *value);
        Some((tunable, own.or_else(|| self.queue.groups().get(tunable.name))?))
    }

    /// Set a tunable to a stored value that [`parse`] returned.
    pub fn set(&mut self, index: usize, value: u64) {
        self.enter(self.now);
        let Some(tunable) = self.tunable(index) else { return };
        let elevator = self.queue.elevator_mut();
        if let Some(place) = elevator.setting(tunable.name) {
            *place = value;
            elevator.settings_changed();
        } else {
            self.queue.set_for_groups(tunable.name, value);
        }
        self.note(Call::Set(index as u32, value), Answer::None);
    }
}

/// Tunable `index` of an elevator with these, or of the groups below it, which follow. How many requests there may be is
/// the kernel's to say (`nr_requests`), for all groups together.
fn tunable(elevators: &'static [Tunable], index: usize) -> Option<&'static Tunable> {
    let groups = group::TUNABLES.iter().filter(|tunable| tunable.name != "nr_group_requests");
    elevators.iter().chain(groups).nth(index)
}

/// Tunable `index` of an elevator under a profile, the groups' behind its own; `None` behind the last.
pub fn tunable_of(elevator: &str, profile: &str, index: usize) -> Option<&'static Tunable> {
    tunable((elevator::find(elevator)?.tunables)(profile), index)
}

/// A tunable's value as sysfs shows it.
pub fn show(tunable: &Tunable, value: u64, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
    match tunable.unit {
        Unit::Choice(words) => match words.get(value as usize) {
            Some(word) => writeln!(out, "{word}"),
            None => writeln!(out, "{value}"),
        },
        unit => writeln!(out, "{}", value / unit.scale()),
    }
}

/// A finding as debugfs shows it: as `fairlift run --explain` does, with the size in KiB where it holds for one size.
pub fn tell(finding: &Finding, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
    let Finding { what, sectors, value, unit } = finding;
    match sectors {
        0 => write!(out, "{what}: ")?,
        1 => write!(out, "{what}, 0.5 KiB: ")?,
        _ => write!(out, "{what}, {} KiB: ", sectors / 2)?,
    }
    writeln!(out, "{} {}", value / unit.scale(), unit.label())
}

/// The value in `text` as it is stored.
///
/// # Errors
/// What is wrong with it; [`explain`] says it in words.
pub fn parse(tunable: &'static Tunable, text: &str) -> Result<u64, SetError> {
    tunable.parse(text)
}

/// Why `text` is no value for `tunable`, naming what is allowed.
pub fn explain(tunable: &Tunable, text: &str, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
    let text = text.trim();
    if let Unit::Choice(words) = tunable.unit {
        write!(out, "{}: '{text}' is none of:", tunable.name)?;
        return words.iter().try_for_each(|word| write!(out, " {word}"));
    }
    let Tunable { name, min, max, unit, .. } = tunable;
    let space = if unit.label().is_empty() { "" } else { " " };
    write!(out, "{name}: '{text}' is not a number from {min} to {max}{space}{}", unit.label())
}
