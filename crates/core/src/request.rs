//! Bios, requests and the pool they live in.
//!
//! A *bio* is what a program submits; a *request* is one or more merged bios that the device serves as one. Requests
//! are slots of a pool with a fixed capacity, named by [`RequestId`]; elevators link them by id.

use core::ops::{BitOr, Index, IndexMut};

use crate::collections::{Id, Table};
use crate::context::{ContextId, IoPrio};
use crate::group::GroupId;

crate::collections::define_id! {
    /// A request's slot in its pool ([`Requests`]).
    RequestId
}

/// What a bio or request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Device to memory.
    Read,
    /// Memory to device.
    Write,
    /// The sectors' contents are no longer needed.
    Discard,
    /// Write back the device's volatile cache; carries no sectors.
    Flush,
}

/// The modifiers of a bio or request (the kernel's `REQ_*`/`BIO_RW_*` bits that a scheduler can see).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(u16);

impl Flags {
    /// No modifier.
    pub const NONE: Flags = Flags(0);
    /// A task waits for this write. Reads are sync without it.
    pub const SYNC: Flags = Flags(1);
    /// File system metadata.
    pub const META: Flags = Flags(1 << 1);
    /// Sync, but the submitter will not send more soon: do not idle for it.
    pub const NOIDLE: Flags = Flags(1 << 2);
    /// Unplug the queue once this bio is queued.
    pub const UNPLUG: Flags = Flags(1 << 3);
    /// An ordered write of the 2.6 era: nothing passes it in either direction.
    pub const BARRIER: Flags = Flags(1 << 4);
    /// The write reaches the medium before it completes.
    pub const FUA: Flags = Flags(1 << 5);
    /// Flush the device's cache before this write.
    pub const PREFLUSH: Flags = Flags(1 << 6);
    /// Read-ahead: may fail rather than wait.
    pub const READAHEAD: Flags = Flags(1 << 7);
    /// May never be merged (again).
    pub const NOMERGE: Flags = Flags(1 << 8);

    /// Are all bits of `other` set?
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Is any bit of `other` set?
    #[inline]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Set the bits of `other`.
    #[inline]
    pub fn insert(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// Clear the bits of `other`.
    #[inline]
    pub fn remove(&mut self, other: Flags) {
        self.0 &= !other.0;
    }

    /// The bits set in either; `|` for constants.
    #[inline]
    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// What a program (or the file system for it) submits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bio {
    /// The host's own name for the bio; handed back when it is done.
    pub cookie: u64,
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector (512 bytes each).
    pub sector: u64,
    /// Length in sectors; 0 only for [`Op::Flush`].
    pub sectors: u32,
    /// Memory segments it takes in a device's scatter list (a 4 KiB page is one).
    pub segments: u16,
    /// Whose I/O it is.
    pub context: ContextId,
    /// A priority of its own, overriding the context's.
    pub ioprio: Option<IoPrio>,
    /// A group of its own, overriding the context's: for a buffered write that of the task that dirtied the page.
    pub group: Option<GroupId>,
}

impl Bio {
    /// First sector behind the bio.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.sector + self.sectors as u64
    }

    /// Does a task wait for it? Reads always, writes when flagged SYNC.
    #[inline]
    pub const fn is_sync(&self) -> bool {
        matches!(self.op, Op::Read) || self.flags.contains(Flags::SYNC)
    }
}

/// Where a request is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RequestState {
    /// The slot is free.
    #[default]
    Free,
    /// Taken, not with an elevator yet (plugged, or waiting in a flush sequence).
    Held,
    /// With the elevator.
    Sorted,
    /// On the dispatch list: no merging, no reordering by the elevator any more.
    Listed,
    /// With the device.
    Issued,
}

/// How the device answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// It did what it was asked.
    #[default]
    Done,
    /// It failed. The time it took is paid for; nothing is learnt of think times or speed from it.
    Failed,
}

/// One or more merged bios. A slot is one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// Memory segments.
    pub segments: u16,
    /// The first bio's submitter.
    pub context: ContextId,
    /// The best priority of its bios.
    pub ioprio: IoPrio,
    /// The first bio's group, its owner. It stays that one's until it is done.
    pub group: GroupId,
    /// The group that is billed for it, and in whose queue it waits: the owner, unless another group waits for the owner's I/O and
    /// pays for it (`group/ledger.rs`).
    pub payer: GroupId,
    /// When the slot was taken, nanoseconds; a merged request keeps the oldest.
    pub start_ns: u64,
    /// When it went to the device, nanoseconds.
    pub issued_ns: u64,
    /// Where it is.
    pub state: RequestState,
    /// How the device answered, once it is done.
    pub status: Status,
    /// Which elevator attachment it was inserted under; hooks are skipped after a switch. 0 = none.
    pub(crate) generation: u16,
    /// Bookkeeping of the queue layer above the elevator.
    pub(crate) queue: QueueData,
}

/// What [`crate::queue`] keeps per request; elevators do not look at it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueData {
    /// First and last bio node (list through the queue's bio pool).
    pub(crate) bio_first: u32,
    pub(crate) bio_last: u32,
    /// Part of a barrier or flush sequence.
    pub(crate) sequence: u8,
    /// Counted in a sync (1) or async (0) slot, or in none (2: the queue's own flush).
    pub(crate) pool: u8,
    /// May others be sorted past it?
    pub(crate) standing: Standing,
}

/// May a request on the dispatch list be passed?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Standing {
    /// As the order of sectors has it.
    #[default]
    Sortable,
    /// No: it went around the elevator, or was offered to the device.
    Fixed,
    /// No: it went around the elevator and waits before all others of its group, on that group's own list.
    First,
    /// No: the device gave it back, and it waits to be issued again.
    Requeued,
}

impl Request {
    /// First sector behind the request.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.sector + self.sectors as u64
    }

    /// Does a task wait for it? Reads always, writes when flagged SYNC.
    #[inline]
    pub const fn is_sync(&self) -> bool {
        matches!(self.op, Op::Read) || self.flags.contains(Flags::SYNC)
    }

    /// 0 for reads, 1 for everything that changes the medium.
    #[inline]
    pub const fn is_write(&self) -> bool {
        !matches!(self.op, Op::Read)
    }

    /// May bios or requests still be merged into it, as far as it alone can tell?
    #[inline]
    pub const fn is_mergeable(&self) -> bool {
        matches!(self.state, RequestState::Sorted | RequestState::Held)
            && !self
                .flags
                .intersects(Flags(Flags::NOMERGE.0 | Flags::BARRIER.0 | Flags::FUA.0 | Flags::PREFLUSH.0))
            && !matches!(self.op, Op::Flush)
    }

    pub(crate) const EMPTY: Request = Request {
        op: Op::Read,
        flags: Flags::NONE,
        sector: 0,
        sectors: 0,
        segments: 0,
        context: ContextId::OVERFLOW,
        ioprio: IoPrio::DEFAULT,
        group: GroupId::ROOT,
        payer: GroupId::ROOT,
        start_ns: 0,
        issued_ns: 0,
        state: RequestState::Free,
        status: Status::Done,
        generation: 0,
        queue: QueueData {
            bio_first: u32::MAX,
            bio_last: u32::MAX,
            sequence: 0,
            pool: 2,
            standing: Standing::Sortable,
        },
    };
}

/// A fixed number of request slots.
#[derive(Debug)]
pub struct Requests {
    slots: Table<Request>,
    /// The free slot to take next; each free slot names the one below it in its `queue.bio_first`.
    free: u32,
    taken: usize,
}

/// The end of the stack of free slots: a slot that does not exist.
const NO_SLOT: u32 = u32::MAX;

const _: () = assert!(size_of::<Request>() == 64, "a slot is one cache line");

impl Requests {
    /// A pool of `capacity` free slots. The only allocation it ever makes.
    pub fn new(capacity: usize) -> Requests {
        let mut slots = Table::new(Request::EMPTY, capacity);
        let mut free = NO_SLOT;
        for (index, slot) in slots.iter_mut().enumerate().rev() {
            slot.queue.bio_first = core::mem::replace(&mut free, index as u32);
        }
        Requests { slots, free, taken: 0 }
    }

    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many slots are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Take a slot for `request`; `None` when all are taken. Lowest free slot first after construction, then the
    /// one freed last: equal histories name equal slots.
    #[inline]
    pub fn take(&mut self, request: Request) -> Option<RequestId> {
        let (id, slot) = self.take_slot()?;
        *slot = request;
        Some(id)
    }

    /// As [`Requests::take`], for the caller to fill.
    #[inline]
    pub(crate) fn take_slot(&mut self) -> Option<(RequestId, &mut Request)> {
        let id = RequestId(self.free);
        let slot = self.slots.get_mut(id.index())?;
        self.free = slot.queue.bio_first;
        self.taken += 1;
        Some((id, slot))
    }

    /// Give a slot back.
    #[inline]
    pub fn release(&mut self, id: RequestId) {
        self.release_after(id, |_| ());
    }

    /// Give a slot back after a last look at what is in it, for one look-up of the slot.
    #[inline(always)]
    pub(crate) fn release_after<R>(&mut self, id: RequestId, last: impl FnOnce(&Request) -> R) -> R {
        let slot = &mut self.slots[id.index()];
        debug_assert!(slot.state != RequestState::Free, "slot released twice");
        let answer = last(slot);
        slot.state = RequestState::Free;
        slot.queue.bio_first = self.free;
        self.free = id.0;
        self.taken -= 1;
        answer
    }

    /// All slots that are taken, by id.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, r)| r.state != RequestState::Free)
            .map(|(i, r)| (RequestId::from_index(i), r))
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;
    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id.index()]
    }
}

impl IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slots[id.index()]
    }
}

/// A request for tests and benchmarks of a bare elevator: `Sorted`, owned by `context`.
pub fn request(op: Op, flags: Flags, sector: u64, sectors: u32, context: ContextId, now: u64) -> Request {
    Request {
        op,
        flags,
        sector,
        sectors,
        segments: 1,
        context,
        start_ns: now,
        state: RequestState::Sorted,
        ..Request::EMPTY
    }
}
