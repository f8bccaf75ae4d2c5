//! The lower half of a request queue: request pool, contexts, elevator and dispatch list. A host that merges by itself
//! (the kernel module) uses it alone; [`super::RequestQueue`] builds on it.

mod arrive;
mod complete;
mod dispatch;
mod merging;
mod merging_host;
mod slots;
mod switch;
mod tasks;

use super::DispatchList;
use crate::collections::{List, Table};
use crate::context::{Contexts, ContextsMut};
use crate::elevator::{AnyElevator, DeviceState, Elevator, Env, Finding, Grouping};
use crate::group::{Groups, Places, Rounds, Turns, Waits};
use crate::request::{RequestId, Requests};

/// An elevator with the requests it orders.
pub struct ElevatorQueue {
    pub(super) requests: Requests,
    pub(super) contexts: Contexts,
    /// Contexts by subtree of groups.
    context_places: Places,
    contexts_max: usize,
    pub(super) groups: Groups,
    pub(super) list: DispatchList,
    /// By group: requests that go before all others of their group, around the elevator, when it is their group's turn.
    pub(super) heads: Table<List<RequestId>>,
    /// How many there are of these.
    pub(super) headed: usize,
    pub(super) elevator: AnyElevator,
    /// [`Elevator::watches_device`] and [`Elevator::grouping`]: kept here because asking costs as much as it saves.
    watches_device: bool,
    pub(super) grouping: Grouping,
    /// Are requests counted by group? Set once a host asks for the groups to change them.
    pub(super) grouped: bool,
    /// Which listens to the device: the elevator, or the groups?
    is_watched: bool,
    pub(super) turns: Turns,
    waits: Waits,
    /// Counts elevators since construction, from 1. A request remembers under which one it was inserted; 0 = none.
    generation: u16,
    pub(super) device: DeviceState,
    /// Requests with the elevator or on the dispatch list.
    queued: usize,
}

impl ElevatorQueue {
    /// A queue for at most `requests_max` requests of `contexts_max` contexts at a time.
    pub fn new(
        requests_max: usize,
        contexts_max: usize,
        rotational: bool,
        elevator: impl Into<AnyElevator>,
    ) -> ElevatorQueue {
        let elevator = elevator.into();
        let contexts = Contexts::new(contexts_max);
        ElevatorQueue {
            requests: Requests::new(requests_max),
            waits: Waits::new(contexts.slots()),
            contexts,
            context_places: Places::new(1, contexts_max, 0),
            contexts_max,
            groups: Groups::new(0),
            list: DispatchList::new(requests_max),
            heads: Table::new(List::new(), 0),
            headed: 0,
            watches_device: elevator.watches_device(),
            grouping: elevator.grouping(),
            grouped: false,
            is_watched: elevator.watches_device(),
            turns: Turns::new(1),
            elevator,
            generation: 1,
            device: DeviceState { rotational, in_flight: [0; 2], depth: 0, flushes: 0 },
            queued: 0,
        }
    }

    /// With room for `groups_max` groups beside the root. To be said before anything else.
    #[must_use]
    pub fn with_groups(mut self, groups_max: usize) -> ElevatorQueue {
        self.groups = Groups::new(groups_max);
        let slots = self.groups.slots();
        let contexts = self.contexts_max;
        self.contexts = Contexts::with_groups(contexts, slots);
        self.context_places = Places::new(slots, contexts, if slots > 1 { contexts } else { 0 });
        self.waits = Waits::new(self.contexts.slots());
        self.turns = Turns::new(slots);
        if slots > 1 {
            self.heads = Table::new(List::new(), slots);
        }
        self
    }

    /// The device takes so many requests at a time, for elevators that want to know.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> ElevatorQueue {
        self.device.depth = depth;
        self
    }

    /// All requests, with the states they are in, for none; the queue is of no use after that. For a host that serves them
    /// without it.
    pub fn swap_requests(&mut self, none: &mut Requests) {
        core::mem::swap(&mut self.requests, none);
    }

    /// The requests.
    #[inline]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    #[inline]
    pub(crate) fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// The contexts.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The contexts, to create one.
    pub fn contexts_mut(&mut self) -> ContextsMut<'_> {
        ContextsMut {
            contexts: &mut self.contexts,
            groups: &mut self.groups,
            places: &mut self.context_places,
        }
    }

    /// The groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The groups, to create one or change its weight.
    pub fn groups_mut(&mut self) -> &mut Groups {
        if !self.grouped && self.groups.slots() > 1 {
            self.start_grouping();
        }
        &mut self.groups
    }

    /// Set a tunable of the groups to a stored value that [`Tunable::parse`](crate::tunable::Tunable::parse) returned.
    pub fn set_for_groups(&mut self, name: &str, value: u64) {
        self.groups.set_stored(name, value);
    }

    /// The elevator.
    pub fn elevator(&self) -> &dyn Elevator {
        &*self.elevator
    }

    /// The elevator, to see which one it is.
    pub fn any_elevator(&self) -> &AnyElevator {
        &self.elevator
    }

    /// The elevator, to set its tunables ([`crate::elevator::set`]).
    pub fn elevator_mut(&mut self) -> &mut dyn Elevator {
        &mut *self.elevator
    }

    /// For a host whose flush commands pass this queue by: is one in the device?
    pub fn set_flushing(&mut self, flushing: bool) {
        self.device.flushes = u32::from(flushing);
    }

    /// The host has so many request slots (`nr_requests`): a sync request finds one while fewer are taken than `all`, an async one while
    /// fewer are taken than `for_async`. The device idles for no group that finds none. Until it is said there are enough.
    pub fn set_request_slots(&mut self, all: u32, for_async: u32) {
        self.groups.set_request_slots(all, for_async);
    }

    /// What the elevator has found out about the device by the time `now`, nanoseconds.
    pub fn found(&self, now: u64, tell: &mut dyn FnMut(Finding)) {
        self.elevator.found(&self.device, now, tell);
    }

    /// Requests in the device, `[async, sync]`.
    pub fn in_flight(&self) -> [u32; 2] {
        self.device.in_flight
    }

    /// Requests with the elevator or on the dispatch list.
    #[inline]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Does neither the elevator nor the dispatch list hold a request?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// The same, under an elevator that then has nothing to say either, and no groups to give turns to.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.queued == 0 && !self.grouped && self.elevator.rests_empty()
    }

    pub(crate) fn list(&self) -> &DispatchList {
        &self.list
    }

    pub(crate) fn list_mut(&mut self) -> (&mut DispatchList, &Requests) {
        (&mut self.list, &self.requests)
    }

    #[inline]
    pub(super) fn split(&mut self, now: u64) -> (&mut AnyElevator, Env<'_>) {
        let env = Env {
            now,
            requests: &self.requests,
            contexts: &self.contexts,
            rounds: Rounds::new(&mut self.groups),
            device: &self.device,
            dispatch: &mut self.list,
        };
        (&mut self.elevator, env)
    }

    /// Is it the turn keeper who says which group's queue to ask?
    #[inline]
    pub(super) fn in_turns(&self) -> bool {
        self.grouped && self.grouping == Grouping::Queues
    }

    /// Are requests counted by group?
    #[inline]
    pub(crate) fn is_grouped(&self) -> bool {
        self.grouped
    }

    /// One request less is queued; it comes again at once.
    pub(super) fn uncount(&mut self) {
        self.queued -= 1;
    }

    fn start_grouping(&mut self) {
        self.grouped = true;
        self.is_watched = true;
        self.count_root();
    }
}

impl core::fmt::Debug for ElevatorQueue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ElevatorQueue")
            .field("elevator", &self.elevator.name())
            .field("queued", &self.queued)
            .field("in_flight", &self.device.in_flight)
            .finish_non_exhaustive()
    }
}
