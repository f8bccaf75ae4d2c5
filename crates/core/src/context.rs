//! io contexts: whose I/O a bio is (usually a task), with its priority.

use core::ops::{Index, IndexMut};

use crate::collections::{Id, Stack, Table};
use crate::group::{GroupId, Groups, Places};

crate::collections::define_id! {
    /// An io context's slot in [`Contexts`].
    ContextId
}

impl ContextId {
    /// The context that the root's tasks share which have none of their own: worse fairness among them, never an error.
    /// Every group has such a one ([`Contexts::shared_by`]).
    pub const OVERFLOW: ContextId = ContextId::constant(0);
}

/// ioprio class, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum IoClass {
    /// Before all others.
    RealTime,
    /// The default.
    BestEffort,
    /// Only when no other I/O wants the device.
    Idle,
}

/// An I/O priority: class and level 0 (best) to 7, as `ionice` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum IoPrio {
    /// Real-time class, level 0-7.
    RealTime(u8),
    /// Best-effort class, level 0-7.
    BestEffort(u8),
    /// Idle class; it has no levels and counts as level 7.
    Idle,
}

impl IoPrio {
    /// What a task has that never asked: best effort, level 4.
    pub const DEFAULT: IoPrio = IoPrio::BestEffort(4);

    /// The class.
    #[inline]
    pub const fn class(self) -> IoClass {
        match self {
            IoPrio::RealTime(_) => IoClass::RealTime,
            IoPrio::BestEffort(_) => IoClass::BestEffort,
            IoPrio::Idle => IoClass::Idle,
        }
    }

    /// The level within the class, 0-7; larger ones are taken as 7.
    #[inline]
    pub const fn level(self) -> u8 {
        match self {
            IoPrio::RealTime(l) | IoPrio::BestEffort(l) => {
                if l > 7 {
                    7
                } else {
                    l
                }
            }
            IoPrio::Idle => 7,
        }
    }

    /// The better of two.
    #[inline]
    pub fn best(self, other: IoPrio) -> IoPrio {
        if (other.class(), other.level()) < (self.class(), self.level()) { other } else { self }
    }
}

/// One io context.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Priority of bios that bring none of their own.
    pub ioprio: IoPrio,
    /// Group of bios that bring none of their own.
    pub group: GroupId,
    /// Is there still a task behind it? A dead context's requests are served, but no elevator idles for it.
    pub alive: bool,
    /// Counts the tasks that had this slot: an elevator that keeps state per context starts afresh when it changes.
    pub epoch: u32,
    /// Is the slot in use (a task, or requests of one that left)?
    pub(crate) used: bool,
    /// Requests of this context between submission and completion.
    pub(crate) requests: u32,
    /// Allocations left as a *batcher* (a task that may exceed the request limit for a moment).
    pub(crate) batch_left: u32,
    /// When it last waited for a request slot, nanoseconds.
    pub(crate) batch_since_ns: u64,
}

impl Context {
    const FREE: Context = Context {
        ioprio: IoPrio::DEFAULT,
        group: GroupId::ROOT,
        alive: false,
        epoch: 0,
        used: false,
        requests: 0,
        batch_left: 0,
        batch_since_ns: 0,
    };
}

/// The io contexts of one queue. The first slots are the contexts that each group's tasks share which have none of their own;
/// the root's is slot 0.
#[derive(Debug)]
pub struct Contexts {
    slots: Table<Context>,
    free: Stack<ContextId>,
    /// How many slots are the groups' shared ones.
    shared: usize,
}

impl Contexts {
    /// A table for `capacity` contexts beside the root's shared one. The only allocation it ever makes.
    pub fn new(capacity: usize) -> Contexts {
        Contexts::with_groups(capacity, 1)
    }

    /// A table for `capacity` contexts beside those that each of `groups` groups shares, the root included; with others than
    /// the root as many in reserve for when one subtree takes all of those.
    pub(crate) fn with_groups(capacity: usize, groups: usize) -> Contexts {
        let shared = groups.max(1);
        let size = Contexts::slots_for(capacity, shared);
        let mut slots = Table::new(Context::FREE, size);
        for (index, slot) in slots.iter_mut().enumerate().take(shared) {
            *slot = Context { alive: true, used: true, group: GroupId::from_index(index), ..Context::FREE };
        }
        let free = Stack::full(ContextId::OVERFLOW, (shared..size).rev().map(ContextId::from_index));
        Contexts { slots, free, shared }
    }

    /// Slots of a table for `capacity` contexts in `groups` group slots, shared ones and reserve included.
    pub const fn slots_for(capacity: usize, groups: usize) -> usize {
        if groups > 1 { groups + 2 * capacity } else { 1 + capacity }
    }

    /// Number of slots, the shared ones included: an elevator's per-context arrays have this length.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The context of those of `group`'s tasks that have none of their own.
    #[inline]
    pub fn shared_by(&self, group: GroupId) -> ContextId {
        if group.index() < self.shared { ContextId::from_index(group.index()) } else { ContextId::OVERFLOW }
    }

    /// Is it one that several tasks share for want of their own?
    #[inline]
    pub fn is_shared(&self, id: ContextId) -> bool {
        id.index() < self.shared
    }

    /// A slot for a new task of `group`; `None` when the table is full.
    pub(crate) fn take(&mut self, group: GroupId, ioprio: IoPrio) -> Option<ContextId> {
        let id = self.free.pop()?;
        let slot = &mut self.slots[id.index()];
        *slot = Context {
            ioprio,
            group,
            alive: true,
            epoch: slot.epoch.wrapping_add(1),
            used: true,
            ..Context::FREE
        };
        Some(id)
    }

    /// `id`, which holds one request, is shared by the tasks of a group of this epoch: if that is another than the last one in
    /// its slot, what was learnt of it is void. With older requests of it about it stays as it is until they are done.
    pub(crate) fn renew_shared(&mut self, id: ContextId, epoch: u32) {
        let slot = &mut self.slots[id.index()];
        if slot.epoch != epoch && slot.requests == 1 {
            slot.epoch = epoch;
        }
    }

    /// The same for one that holds no request.
    pub(crate) fn renew_unused(&mut self, id: ContextId, epoch: u32) {
        let slot = &mut self.slots[id.index()];
        if slot.requests == 0 {
            slot.epoch = epoch;
        }
    }

    /// `id` if a context has it, else [`ContextId::OVERFLOW`]: a stale or foreign id costs fairness, never an error.
    #[inline]
    pub fn known(&self, id: ContextId) -> ContextId {
        if self.slots.get(id.index()).is_some_and(|c| c.used) { id } else { ContextId::OVERFLOW }
    }

    /// Is there a task behind it?
    pub(crate) fn is_alive(&self, id: ContextId) -> bool {
        self.slots.get(id.index()).is_some_and(|c| c.used && c.alive)
    }

    /// All contexts in use, the overflow one included.
    pub fn iter(&self) -> impl Iterator<Item = (ContextId, &Context)> {
        self.slots.iter().enumerate().filter(|(_, c)| c.used).map(|(i, c)| (ContextId::from_index(i), c))
    }

    /// The task is gone. The slot is reused once its last request is done; then it answers with the context's group. A shared
    /// context never goes.
    pub(crate) fn exit(&mut self, id: ContextId) -> Option<GroupId> {
        if self.is_shared(id) {
            return None;
        }
        self.slots[id.index()].alive = false;
        self.reap(id)
    }

    /// One more request of `id`, or of the context it counts for: see [`Contexts::known`].
    #[inline]
    pub(crate) fn hold(&mut self, id: ContextId) -> ContextId {
        match self.slots.get_mut(id.index()) {
            Some(context) if context.used => {
                context.requests += 1;
                id
            }
            _ => {
                self.slots[ContextId::OVERFLOW.index()].requests += 1;
                ContextId::OVERFLOW
            }
        }
    }

    /// One request of `id` is done. If that was the last of a task that is gone: whose group's it was.
    #[inline]
    pub(crate) fn drop_hold(&mut self, id: ContextId) -> Option<GroupId> {
        let context = &mut self.slots[id.index()];
        debug_assert!(context.requests > 0, "context released more often than held");
        context.requests -= 1;
        if context.alive { None } else { self.reap(id) }
    }

    #[cold]
    fn reap(&mut self, id: ContextId) -> Option<GroupId> {
        let context = &mut self.slots[id.index()];
        if !context.used || context.alive || context.requests > 0 {
            return None;
        }
        context.used = false;
        self.free.push(id);
        Some(context.group)
    }
}

/// The contexts of a queue, to create some in its groups.
#[derive(Debug)]
pub struct ContextsMut<'a> {
    pub(crate) contexts: &'a mut Contexts,
    pub(crate) groups: &'a mut Groups,
    pub(crate) places: &'a mut Places,
}

impl ContextsMut<'_> {
    /// A context for a new task in the root group; the root's shared one when the table is full.
    pub fn create(&mut self, ioprio: IoPrio) -> ContextId {
        self.create_in(GroupId::ROOT, ioprio)
    }

    /// As [`ContextsMut::create`], in `group`. When the table is full, or `group`'s subtree has as many as it may, it is the
    /// context that such tasks of `group` share: a task never counts for another group than its own.
    pub fn create_in(&mut self, group: GroupId, ioprio: IoPrio) -> ContextId {
        let group = self.groups.known(group);
        let taken = match self.places.has_one_for(self.groups, group) {
            true => self.contexts.take(group, ioprio),
            false => None,
        };
        let Some(id) = taken else { return self.contexts.shared_by(group) };
        self.places.take(self.groups, group);
        self.groups.hold(group);
        id
    }
}

impl core::ops::Deref for ContextsMut<'_> {
    type Target = Contexts;
    fn deref(&self) -> &Contexts {
        self.contexts
    }
}

impl Index<ContextId> for ContextsMut<'_> {
    type Output = Context;
    fn index(&self, id: ContextId) -> &Context {
        &self.contexts[id]
    }
}

impl IndexMut<ContextId> for ContextsMut<'_> {
    fn index_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.contexts[id]
    }
}

impl Index<ContextId> for Contexts {
    type Output = Context;
    #[inline]
    fn index(&self, id: ContextId) -> &Context {
        &self.slots[id.index()]
    }
}

impl IndexMut<ContextId> for Contexts {
    #[inline]
    fn index_mut(&mut self, id: ContextId) -> &mut Context {
        &mut self.slots[id.index()]
    }
}
