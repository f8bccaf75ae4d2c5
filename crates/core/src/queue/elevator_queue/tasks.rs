//! Tasks and groups change, and tasks wait for each other.

use super::ElevatorQueue;
use crate::context::{ContextId, IoPrio};
use crate::group::{GroupError, GroupId, WaitToken};

impl ElevatorQueue {
    /// The context's task is gone. What it has queued is still served.
    pub fn context_exit(&mut self, context: ContextId, now: u64) {
        if self.contexts.is_shared(context) || !self.contexts.is_alive(context) {
            return;
        }
        self.waits.leave(&self.contexts, context);
        let (elevator, mut env) = self.split(now);
        elevator.context_exit(&mut env, context);
        if let Some(home) = self.contexts.exit(context) {
            self.context_freed(home);
        }
    }

    /// Change a context's priority (`ioprio_set`).
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPrio, now: u64) {
        if !self.contexts.is_alive(context) {
            return;
        }
        self.contexts[context].ioprio = ioprio;
        let (elevator, mut env) = self.split(now);
        elevator.ioprio_changed(&mut env, context);
    }

    /// Put a context into another group. What it has queued or in the device stays with the old one.
    pub fn move_context(&mut self, context: ContextId, group: GroupId, now: u64) {
        let group = self.groups.known(group);
        if self.contexts.is_alive(context)
            && !self.contexts.is_shared(context)
            && self.contexts[context].group != group
        {
            self.change_group(context, group);
            let (elevator, mut env) = self.split(now);
            elevator.context_moved(&mut env, context);
        }
    }

    #[cold]
    pub(super) fn change_group(&mut self, context: ContextId, group: GroupId) {
        self.groups.hold(group);
        self.context_places.take(&self.groups, group);
        let old = core::mem::replace(&mut self.contexts[context].group, group);
        self.context_freed(old);
    }

    /// Remove a group: it takes no new I/O, which goes to the nearest ancestor left, and so do its contexts with their next
    /// request; its child groups keep their place. What it has queued or in the device is served as its own.
    ///
    /// # Errors
    /// [`GroupError::Root`], [`GroupError::Unknown`].
    pub fn remove_group(&mut self, group: GroupId) -> Result<(), GroupError> {
        self.groups.remove(group)
    }

    /// `from` waits for the I/O of `whom` from now on: what `whom` sends until the wait ends is served for the most entitled
    /// of those who wait for it, whose group pays. `None` if that cannot be said (the same context, or a shared one). A context
    /// waits for one other at a time: an earlier wait of `from` ends.
    pub fn wait_begin(&mut self, from: ContextId, whom: ContextId) -> Option<WaitToken> {
        let (from, whom) = (self.contexts.known(from), self.contexts.known(whom));
        if self.contexts.is_shared(whom) && whom != ContextId::OVERFLOW {
            let epoch = self.groups.epoch(self.contexts[whom].group);
            self.contexts.renew_unused(whom, epoch);
        }
        self.waits.begin(&self.contexts, from, whom)
    }

    /// A wait is over. It also ends with either context.
    pub fn wait_end(&mut self, token: WaitToken) {
        self.waits.end(&self.contexts, token);
    }

    /// See [`Elevator::yield_to`](crate::elevator::Elevator::yield_to).
    pub fn yield_to(&mut self, from: ContextId, to: Option<ContextId>, now: u64) {
        let from = self.contexts.known(from);
        let to = to.map(|to| self.contexts.known(to));
        let (elevator, mut env) = self.split(now);
        elevator.yield_to(&mut env, from, to);
    }
}
