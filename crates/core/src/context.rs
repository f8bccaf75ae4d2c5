//! io contexts: whose I/O a bio is (usually a task), with its priority.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::collections::Id;
use crate::group::GroupId;

crate::collections::define_id! {
    /// An io context's slot in [`Contexts`].
    ContextId
}

impl ContextId {
    /// The context that everybody shares once the table is full: worse fairness, never an error.
    pub const OVERFLOW: ContextId = ContextId::constant(0);
}

/// ioprio class, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum IoClass {
    /// Before everybody else.
    RealTime,
    /// The default.
    BestEffort,
    /// Only when nobody else wants the device.
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
    /// Is there still a task behind it? A dead context's requests are served, but nobody idles for it.
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

/// The io contexts of one queue. Slot 0 is the overflow context.
#[derive(Debug)]
pub struct Contexts {
    slots: Vec<Context>,
    free: Vec<ContextId>,
}

impl Contexts {
    /// A table for `capacity` contexts beside the overflow one. The only allocation it ever makes.
    pub fn new(capacity: usize) -> Contexts {
        let mut slots = alloc::vec![Context::FREE; capacity + 1];
        slots[0] = Context { alive: true, used: true, ..Context::FREE };
        Contexts { slots, free: (1..=capacity).rev().map(ContextId::from_index).collect() }
    }

    /// Number of slots, the overflow context included: an elevator's per-context arrays have this length.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A context for a new task in the root group; [`ContextId::OVERFLOW`] when the table is full.
    pub fn create(&mut self, ioprio: IoPrio) -> ContextId {
        self.create_in(GroupId::ROOT, ioprio)
    }

    /// As [`Contexts::create`], in `group`.
    pub fn create_in(&mut self, group: GroupId, ioprio: IoPrio) -> ContextId {
        let Some(id) = self.free.pop() else { return ContextId::OVERFLOW };
        let slot = &mut self.slots[id.index()];
        *slot = Context {
            ioprio,
            group,
            alive: true,
            epoch: slot.epoch.wrapping_add(1),
            used: true,
            ..Context::FREE
        };
        id
    }

    /// `id` if somebody has it, else [`ContextId::OVERFLOW`]: a stale or foreign id costs fairness, never an error.
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

    /// The task is gone. The slot is reused once its last request is done. The overflow context never goes.
    pub(crate) fn exit(&mut self, id: ContextId) {
        if id != ContextId::OVERFLOW {
            self.slots[id.index()].alive = false;
            self.reap(id);
        }
    }

    /// One more request of `id`, or of whom it counts for: see [`Contexts::known`].
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

    /// One request of `id` is done.
    #[inline]
    pub(crate) fn drop_hold(&mut self, id: ContextId) {
        let context = &mut self.slots[id.index()];
        debug_assert!(context.requests > 0, "context released more often than held");
        context.requests -= 1;
        if !context.alive {
            self.reap(id);
        }
    }

    #[cold]
    fn reap(&mut self, id: ContextId) {
        let context = &mut self.slots[id.index()];
        if context.used && !context.alive && context.requests == 0 {
            context.used = false;
            self.free.push(id);
        }
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
