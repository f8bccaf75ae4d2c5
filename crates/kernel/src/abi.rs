//! The C functions, declared for C in `kernel/src/core.h`. Each does one call of [`Host`].
//!
//! What every function with a `queue` asks of its caller: the pointer came from [`fairlift_new`], was not given to
//! [`fairlift_free`], and no other call for the same queue runs at the same time (the module holds the queue's spinlock).
//! The comments below call that *the rule*.

use alloc::boxed::Box;
use core::ffi::{c_char, c_int};
use core::fmt::Write;

use fairlift_core::collections::Id;
use fairlift_core::context::IoClass;
use fairlift_core::group::limit::{Direction, RATE_MAX, Rates};
use fairlift_core::tunable::Tunable;
use fairlift_core::{Dispatch, Flags, IoPrio, Op};

use crate::host::{self, Arrival, ELEVATORS, Host, Setup, Slot};
use crate::limits::{LetIn, Line};
use crate::replay::Header;

/// No slot: all are taken, or there is none.
pub const NO_SLOT: Slot = u32::MAX;
/// [`fairlift_dispatch`]: nothing to give away until the time stored in `until`.
pub const IDLE: Slot = u32::MAX - 1;
/// [`fairlift_yield`]: to an unknown task.
pub const UNKNOWN: u32 = u32::MAX;

/// In [`CArrival::flags`]: the context's task sent it for itself ([`Arrival::own`]).
pub const OWN: u16 = 1 << 7;

/// `struct fairlift_setup`.
#[repr(C)]
pub struct CSetup {
    /// Position among [`ELEVATORS`].
    pub elevator: u32,
    /// Position among the elevator's profiles; beyond them means the default.
    pub profile: u32,
    /// See [`Setup::requests_max`].
    pub requests_max: u32,
    /// See [`Setup::contexts_max`].
    pub contexts_max: u32,
    /// See [`Setup::records_max`].
    pub records_max: u32,
    /// See [`Setup::rotational`].
    pub rotational: u32,
    /// See [`Setup::groups_max`].
    pub groups_max: u32,
    /// Zero: C's structure has a multiple of 8 bytes.
    pub reserved: u32,
}

/// `struct fairlift_arrival`.
#[repr(C)]
pub struct CArrival {
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// What [`fairlift_context_new`] returned; 0 for none.
    pub context: u32,
    /// What [`fairlift_group_new`] returned; 0 for the root.
    pub group: u32,
    /// Bits in the order of the record's flag names: sync, meta, noidle, fua, preflush, readahead, nomerge; then [`OWN`].
    pub flags: u16,
    /// 0 read, 1 write, 2 discard.
    pub op: u8,
    /// Class (1 real time, 2 best effort, 3 idle; else best effort, level 4) in the upper, level in the lower four bits.
    pub ioprio: u8,
}

const _: () = assert!(size_of::<CArrival>() == 24 && size_of::<CSetup>() == 32, "as in kernel/src/core.h");
const _: () =
    assert!(crate::record::FLAGS[0].1.contains(Flags::SYNC), "CArrival::arrival tests bit 0 by itself");

fn ioprio(class_and_level: u8) -> IoPrio {
    let level = class_and_level & 7;
    match class_and_level >> 4 {
        1 => IoPrio::RealTime(level),
        2 => IoPrio::BestEffort(level),
        3 => IoPrio::Idle,
        _ => IoPrio::DEFAULT,
    }
}

impl CArrival {
    #[inline]
    fn arrival(&self) -> Arrival {
        // Most requests are sync, and nothing else.
        let mut flags = if self.flags & 1 != 0 { Flags::SYNC } else { Flags::NONE };
        if self.flags & !(1 | OWN) != 0 {
            for (bit, (_, flag)) in crate::record::FLAGS.iter().enumerate().skip(1) {
                if self.flags & (1 << bit) != 0 {
                    flags.insert(*flag);
                }
            }
        }
        Arrival {
            op: match self.op {
                0 => Op::Read,
                2 => Op::Discard,
                _ => Op::Write,
            },
            flags,
            sector: self.sector,
            sectors: self.sectors,
            context: self.context,
            group: self.group,
            own: self.flags & OWN != 0,
            ioprio: ioprio(self.ioprio),
        }
    }
}

fn setup(c: &CSetup) -> Option<Setup> {
    let descriptor = fairlift_core::elevator::find(ELEVATORS.get(c.elevator as usize)?)?;
    let profile = descriptor.profiles.get(c.profile as usize).or(descriptor.profiles.first()).copied();
    Some(Setup {
        elevator: descriptor.name,
        profile: profile.unwrap_or(""),
        requests_max: c.requests_max,
        contexts_max: c.contexts_max,
        groups_max: c.groups_max,
        records_max: c.records_max,
        rotational: c.rotational != 0,
    })
}

/// A new queue, or null when the elevator is unknown. Allocates; the allocator it uses must not fail.
///
/// # Safety
/// `c` points to a `CSetup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_new(c: *const CSetup) -> *mut Host {
    // SAFETY: the caller says that it points to one.
    let c = unsafe { &*c };
    setup(c).and_then(Host::new).map_or(core::ptr::null_mut(), |host| Box::into_raw(Box::new(host)))
}

/// Free a queue.
///
/// # Safety
/// The rule; the pointer is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_free(queue: *mut Host) {
    // SAFETY: by the rule it is a box made by `fairlift_new` that nobody else uses.
    drop(unsafe { Box::from_raw(queue) });
}

/// The queue behind a pointer.
///
/// # Safety
/// The rule, for as long as the reference is used.
#[inline]
unsafe fn host<'a>(queue: *mut Host) -> &'a mut Host {
    // SAFETY: by the rule it points to a live `Host` that nobody else refers to.
    unsafe { &mut *queue }
}

/// An arrival from C.
///
/// # Safety
/// `arrival` points to a `CArrival`.
#[inline]
unsafe fn arrival(arrival: *const CArrival) -> Arrival {
    // SAFETY: the caller says so.
    unsafe { &*arrival }.arrival()
}

/// [`Host::insert`].
///
/// # Safety
/// The rule; `a` points to a `CArrival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_insert(queue: *mut Host, a: *const CArrival, now: u64) -> Slot {
    // SAFETY: the rule.
    let (host, arrival) = unsafe { (host(queue), arrival(a)) };
    host.insert(&arrival, now).unwrap_or(NO_SLOT)
}

/// [`Host::insert_head`].
///
/// # Safety
/// The rule; `a` points to a `CArrival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_insert_head(queue: *mut Host, a: *const CArrival, now: u64) -> Slot {
    // SAFETY: the rule.
    let (host, arrival) = unsafe { (host(queue), arrival(a)) };
    host.insert_head(&arrival, now).unwrap_or(NO_SLOT)
}

/// [`Host::issue_around`].
///
/// # Safety
/// The rule; `a` points to a `CArrival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_issue_around(queue: *mut Host, a: *const CArrival, now: u64) -> Slot {
    // SAFETY: the rule.
    let (host, arrival) = unsafe { (host(queue), arrival(a)) };
    host.issue_around(&arrival, now).unwrap_or(NO_SLOT)
}

/// [`Host::dispatch`]: a slot, [`IDLE`] with `until` set, or [`NO_SLOT`].
///
/// # Safety
/// The rule; `until` points to a `u64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_dispatch(queue: *mut Host, now: u64, until: *mut u64) -> Slot {
    // SAFETY: the rule.
    match unsafe { host(queue) }.dispatch(now) {
        Dispatch::Issue(rq) => rq.index() as Slot,
        Dispatch::Empty | Dispatch::Busy => NO_SLOT,
        Dispatch::Idle { until: time } => {
            // SAFETY: the caller says that it points to a `u64`.
            unsafe { *until = time };
            IDLE
        }
    }
}

/// [`Host::flushing`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_flushing(queue: *mut Host, flushing: bool, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.flushing(flushing, now);
}

/// [`Host::request_slots`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_request_slots(queue: *mut Host, all: u32, for_async: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.request_slots(all, for_async, now);
}

/// [`Host::fill`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_fill(queue: *mut Host, slot: Slot, sector: u64, sectors: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.fill(slot, sector, sectors, now);
}

/// [`Host::complete`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_complete(queue: *mut Host, slot: Slot, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.complete(slot, now);
}

/// [`Host::take_back`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_take_back(queue: *mut Host, slot: Slot, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.take_back(slot, now);
}

/// [`Host::insert_again`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_insert_again(queue: *mut Host, slot: Slot) {
    // SAFETY: the rule.
    unsafe { host(queue) }.insert_again(slot);
}

/// [`Host::allow_merge`].
///
/// # Safety
/// The rule; `bio` points to a `CArrival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_allow_merge(
    queue: *mut Host,
    slot: Slot,
    bio: *const CArrival,
    now: u64,
) -> bool {
    // SAFETY: the rule.
    let (host, bio) = unsafe { (host(queue), arrival(bio)) };
    host.allow_merge(slot, &bio, now)
}

/// [`Host::find_front`].
///
/// # Safety
/// The rule; `bio` points to a `CArrival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_find_front(queue: *mut Host, bio: *const CArrival, now: u64) -> Slot {
    // SAFETY: the rule.
    let (host, bio) = unsafe { (host(queue), arrival(bio)) };
    host.find_front(&bio, now).unwrap_or(NO_SLOT)
}

/// [`Host::grew`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_grew(
    queue: *mut Host,
    slot: Slot,
    front: bool,
    sector: u64,
    sectors: u32,
    now: u64,
) {
    // SAFETY: the rule.
    unsafe { host(queue) }.grew(slot, front, sector, sectors, now);
}

/// [`Host::absorbed`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_absorbed(queue: *mut Host, slot: Slot, gone: Slot, sectors: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.absorbed(slot, gone, sectors, now);
}

/// [`Host::former`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_former(queue: *mut Host, slot: Slot, now: u64) -> Slot {
    // SAFETY: the rule.
    unsafe { host(queue) }.former(slot, now).unwrap_or(NO_SLOT)
}

/// [`Host::latter`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_latter(queue: *mut Host, slot: Slot, now: u64) -> Slot {
    // SAFETY: the rule.
    unsafe { host(queue) }.latter(slot, now).unwrap_or(NO_SLOT)
}

/// [`Host::context_new`]; `group` and `prio` as in [`CArrival`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_context_new(queue: *mut Host, group: u32, prio: u8) -> u32 {
    // SAFETY: the rule.
    unsafe { host(queue) }.context_new(group, ioprio(prio))
}

/// [`Host::context_exit`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_context_exit(queue: *mut Host, context: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.context_exit(context, now);
}

/// The class of a group by the number of the ioprio class.
fn class(number: u8) -> IoClass {
    ioprio(number << 4).class()
}

/// [`Host::group_new`]; `class` is 1 real time, 2 best effort, 3 idle. [`UNKNOWN`] when there is no room.
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_group_new(queue: *mut Host, parent: u32, weight: u32, c: u8) -> u32 {
    // SAFETY: the rule.
    unsafe { host(queue) }.group_new(parent, weight, class(c)).unwrap_or(UNKNOWN)
}

/// [`Host::group_set`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_group_set(queue: *mut Host, group: u32, weight: u32, c: u8) {
    // SAFETY: the rule.
    unsafe { host(queue) }.group_set(group, weight, class(c));
}

/// [`Host::group_leaf`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_group_leaf(queue: *mut Host, group: u32, weight: u32) {
    // SAFETY: the rule.
    unsafe { host(queue) }.group_leaf(group, weight);
}

/// [`Host::group_remove`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_group_remove(queue: *mut Host, group: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.group_remove(group, now);
}

/// [`Host::group_limit`] for both directions, reads first; 0 = no limit. Returns whether there is such a group.
///
/// # Safety
/// The rule; `bytes_per_s` and `ios_per_s` point to two numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_group_limit(
    queue: *mut Host,
    group: u32,
    bytes_per_s: *const [u64; 2],
    ios_per_s: *const [u64; 2],
    now: u64,
) -> bool {
    // SAFETY: the rule, and the caller says that the numbers are there.
    let (host, bytes, ios) = unsafe { (host(queue), *bytes_per_s, *ios_per_s) };
    Direction::ALL.into_iter().enumerate().all(|(at, direction)| {
        let rates = Rates { bytes_per_s: bytes[at], ios_per_s: ios[at] };
        host.group_limit(group, direction, rates, now).is_some()
    })
}

/// The largest rate [`fairlift_group_limit`] takes as it is, a second.
#[unsafe(no_mangle)]
pub extern "C" fn fairlift_rate_max() -> u64 {
    RATE_MAX
}

fn direction(write: bool) -> Direction {
    if write { Direction::Write } else { Direction::Read }
}

/// [`Host::lines`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_lines(queue: *mut Host) -> u32 {
    // SAFETY: the rule.
    unsafe { host(queue) }.lines() as u32
}

/// [`Host::limits_are_used`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_limits_are_used(queue: *mut Host) -> bool {
    // SAFETY: the rule.
    unsafe { host(queue) }.limits_are_used()
}

/// [`Host::is_limited`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_is_limited(queue: *mut Host, group: u32, write: bool) -> bool {
    // SAFETY: the rule.
    unsafe { host(queue) }.is_limited(group, direction(write))
}

/// [`Host::ask`]: [`NO_SLOT`] if it goes, else its line.
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_ask(
    queue: *mut Host,
    group: u32,
    write: bool,
    bytes: u64,
    now: u64,
) -> Line {
    // SAFETY: the rule.
    unsafe { host(queue) }.ask(group, direction(write), bytes, now).unwrap_or(NO_SLOT)
}

/// [`Host::let_in`]: a line, [`IDLE`] with `until` set, or [`NO_SLOT`].
///
/// # Safety
/// The rule; `until` points to a `u64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_let_in(queue: *mut Host, now: u64, until: *mut u64) -> Line {
    // SAFETY: the rule.
    match unsafe { host(queue) }.let_in(now) {
        LetIn::Go(line) => line,
        LetIn::Nobody => NO_SLOT,
        LetIn::Idle(time) => {
            // SAFETY: the caller says that it points to a `u64`.
            unsafe { *until = time };
            IDLE
        }
    }
}

/// [`Host::charge`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_charge(
    queue: *mut Host,
    group: u32,
    write: bool,
    bytes: u64,
    whole: bool,
    now: u64,
) {
    // SAFETY: the rule.
    unsafe { host(queue) }.charge(group, direction(write), bytes, whole, now);
}

/// [`Host::refund`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_refund(queue: *mut Host, group: u32, write: bool, bytes: u64, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.refund(group, direction(write), bytes, now);
}

/// [`Host::takes_too_many`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_takes_too_many(queue: *mut Host, group: u32, tags: u32) -> bool {
    // SAFETY: the rule.
    unsafe { host(queue) }.takes_too_many(group, tags)
}

/// [`Host::hold_write`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_hold_write(
    queue: *mut Host,
    group: u32,
    unsent: u32,
    tags: u32,
    now: u64,
) -> bool {
    // SAFETY: the rule.
    unsafe { host(queue) }.hold_write(group, unsent, tags, now)
}

/// [`Host::next_write`]; `NO_SLOT` for none.
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_next_write(queue: *mut Host, tags: u32, now: u64) -> u32 {
    // SAFETY: the rule.
    unsafe { host(queue) }.next_write(tags, now).unwrap_or(NO_SLOT)
}

/// [`Host::writes_came`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_writes_came(queue: *mut Host) {
    // SAFETY: the rule.
    unsafe { host(queue) }.writes_came();
}

/// [`Host::move_writes`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_move_writes(queue: *mut Host, group: u32, heir: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.move_writes(group, heir, now);
}

/// `struct fairlift_group_stats`: what a group got since it was made. Arrays: reads, writes, discards.
#[repr(C)]
pub struct CGroupStats {
    /// Requests done, flushes without data left out.
    pub ios: [u64; 3],
    /// Their sectors.
    pub sectors: [u64; 3],
    /// Bios and requests merged into its queued ones.
    pub merged: u64,
    /// Requests with the elevator now.
    pub queued: u64,
    /// See [`GroupStats::time_ns`](fairlift_core::group::GroupStats::time_ns).
    pub time_ns: u64,
    /// From arrival to the device, summed over requests.
    pub wait_ns: u64,
    /// In the device, summed over requests.
    pub service_ns: u64,
    /// See [`GroupStats::idle_ns`](fairlift_core::group::GroupStats::idle_ns).
    pub idle_ns: u64,
    /// See [`GroupStats::dequeued`](fairlift_core::group::GroupStats::dequeued).
    pub dequeued: u64,
}

/// [`Host::group_stats`].
///
/// # Safety
/// The rule; `stats` points to a `CGroupStats`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_group_stats(queue: *mut Host, group: u32, stats: *mut CGroupStats) {
    // SAFETY: the rule.
    let host = unsafe { host(queue) };
    let got = host.group_stats(group);
    let total = got.total();
    let [reads, writes, discards] = got.io.map(|[a, s]| a.ios + s.ios);
    let filled = CGroupStats {
        ios: [reads, writes.saturating_sub(host.group_flushes(group)), discards],
        sectors: got.io.map(|[a, s]| a.sectors + s.sectors),
        merged: total.merged,
        queued: host.group_queued(group).into(),
        time_ns: got.time_ns,
        wait_ns: total.wait_ns,
        service_ns: total.service_ns,
        idle_ns: got.idle_ns,
        dequeued: got.dequeued,
    };
    // SAFETY: the caller says that it points to a `CGroupStats`.
    unsafe { stats.write(filled) };
}

/// [`Host::yield_to`]; `to` may be [`UNKNOWN`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_yield(queue: *mut Host, from: u32, to: u32, now: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.yield_to(from, (to != UNKNOWN).then_some(to), now);
}

/// [`Host::yields`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_yields(queue: *mut Host) -> bool {
    // SAFETY: the rule.
    unsafe { host(queue) }.yields()
}

/// [`Host::give_up`]. Who stands in a line may go: [`fairlift_let_in`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_give_up(queue: *mut Host) {
    // SAFETY: the rule.
    unsafe { host(queue) }.give_up();
}

/// [`Host::has_given_up`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_has_given_up(queue: *mut Host) -> bool {
    // SAFETY: the rule.
    unsafe { host(queue) }.has_given_up()
}

/// `struct fairlift_state`: what a queue holds.
#[repr(C)]
pub struct CState {
    /// Requests with the elevator.
    pub queued: u32,
    /// Async and sync requests in the device.
    pub in_flight: [u32; 2],
    /// Slots taken.
    pub requests: u32,
    /// Contexts in use, the shared one included.
    pub contexts: u32,
    /// Groups there are, the root included.
    pub groups: u32,
    /// Lines of the record, its header included; 0 when it is off.
    pub record_lines: u32,
    /// Zero: C's structure has a multiple of 8 bytes.
    pub reserved: u32,
    /// Calls after the record was full.
    pub record_lost: u64,
}

/// What the queue holds.
///
/// # Safety
/// The rule; `state` points to a `CState`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_state(queue: *mut Host, state: *mut CState) {
    // SAFETY: the rule.
    let host = unsafe { host(queue) };
    let recorder = host.recorder();
    let filled = CState {
        queued: host.queued() as u32,
        in_flight: host.in_flight(),
        requests: host.taken() as u32,
        contexts: host.contexts() as u32,
        groups: host.groups() as u32,
        reserved: 0,
        record_lines: if recorder.is_on() { recorder.entries().len() as u32 + 1 } else { 0 },
        record_lost: recorder.lost(),
    };
    // SAFETY: the caller says that it points to a `CState`.
    unsafe { state.write(filled) };
}

/// Text for C: fills a buffer, always ends it with a NUL, and drops what does not fit.
struct Text<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Text<'a> {
    /// # Safety
    /// `buffer` points to `size` bytes, at least one, that no other code uses during `'a`.
    unsafe fn new(buffer: *mut c_char, size: usize) -> Text<'a> {
        // SAFETY: the caller says so, and bytes have no invalid values once written; C's buffers are initialised.
        let buffer = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
        Text { buffer, length: 0 }
    }

    fn end(self) -> c_int {
        self.buffer[self.length] = 0;
        self.length as c_int
    }
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self.buffer.len() - 1 - self.length;
        let taken = &text.as_bytes()[..text.len().min(room)];
        self.buffer[self.length..self.length + taken.len()].copy_from_slice(taken);
        self.length += taken.len();
        Ok(())
    }
}

/// Line `index` of the record, with a newline, into `buffer`; its length, 0 beyond the end.
///
/// # Safety
/// The rule; `buffer` points to `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_record_line(
    queue: *mut Host,
    index: u32,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the rule.
    let (host, mut text) = unsafe { (host(queue), Text::new(buffer, size)) };
    if !host.recorder().is_on() {
        return text.end();
    }
    // Writing to `Text` cannot fail.
    let _ = match index.checked_sub(1) {
        None => writeln!(text, "{}", Header(host.setup())),
        Some(entry) => match host.recorder().entries().get(entry as usize) {
            Some(entry) => writeln!(text, "{entry}"),
            None => Ok(()),
        },
    };
    text.end()
}

/// Line `index` of what the elevator has found out ([`Host::finding`]), with a newline, into `buffer`; its length, 0 beyond the last.
///
/// # Safety
/// The rule; `buffer` points to `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_finding(
    queue: *mut Host,
    index: u32,
    now: u64,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the rule.
    let (host, mut text) = unsafe { (host(queue), Text::new(buffer, size)) };
    if let Some(finding) = host.finding(index as usize, now) {
        let _ = host::tell(&finding, &mut text);
    }
    text.end()
}

/// Tunable `index` of an elevator by numbers.
fn tunable(elevator: u32, profile: u32, index: u32) -> Option<&'static Tunable> {
    let descriptor = fairlift_core::elevator::find(ELEVATORS.get(elevator as usize)?)?;
    let profile = descriptor.profiles.get(profile as usize).or(descriptor.profiles.first());
    host::tunable_of(descriptor.name, profile.copied().unwrap_or(""), index as usize)
}

/// The name of tunable `index` of an elevator into `buffer`; its length, 0 beyond the last. Needs no lock.
///
/// # Safety
/// `buffer` points to `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_tunable_name(
    elevator: u32,
    profile: u32,
    index: u32,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller says so.
    let mut text = unsafe { Text::new(buffer, size) };
    if let Some(tunable) = tunable(elevator, profile, index) {
        let _ = text.write_str(tunable.name);
    }
    text.end()
}

/// The name of profile `index` of an elevator into `buffer`; its length, 0 beyond the last. Needs no lock.
///
/// # Safety
/// `buffer` points to `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_profile_name(
    elevator: u32,
    index: u32,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller says so.
    let mut text = unsafe { Text::new(buffer, size) };
    let descriptor = ELEVATORS.get(elevator as usize).and_then(|name| fairlift_core::elevator::find(name));
    if let Some(name) = descriptor.and_then(|d| d.profiles.get(index as usize)) {
        let _ = text.write_str(name);
    }
    text.end()
}

/// The value of tunable `index` as sysfs shows it into `buffer`; its length.
///
/// # Safety
/// The rule; `buffer` points to `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_tunable_show(
    queue: *mut Host,
    index: u32,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the rule.
    let (host, mut text) = unsafe { (host(queue), Text::new(buffer, size)) };
    if let Some((tunable, value)) = host.get(index as usize) {
        let _ = host::show(tunable, value, &mut text);
    }
    text.end()
}

/// Parse `length` bytes at `value` for tunable `index` of an elevator: 0 with the stored form in `parsed`, or -1 with the
/// reason, naming what is allowed, in `reason`. Needs no lock.
///
/// # Safety
/// `value` points to `length` bytes, `parsed` to a `u64`, `reason` to `size` bytes, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_tunable_parse(
    elevator: u32,
    profile: u32,
    index: u32,
    value: *const c_char,
    length: usize,
    parsed: *mut u64,
    reason: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: the caller says so.
    let (value, mut text) =
        unsafe { (core::slice::from_raw_parts(value.cast::<u8>(), length), Text::new(reason, size)) };
    let Some(tunable) = tunable(elevator, profile, index) else {
        let _ = text.write_str("no such tunable");
        text.end();
        return -1;
    };
    let value = core::str::from_utf8(value).unwrap_or("(not text)");
    match host::parse(tunable, value) {
        Ok(stored) => {
            // SAFETY: the caller says that it points to a `u64`.
            unsafe { *parsed = stored };
            text.end();
            0
        }
        Err(_) => {
            let _ = host::explain(tunable, value, &mut text);
            text.end();
            -1
        }
    }
}

/// [`Host::set`] with a value of [`fairlift_tunable_parse`].
///
/// # Safety
/// The rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fairlift_tunable_set(queue: *mut Host, index: u32, value: u64) {
    // SAFETY: the rule.
    unsafe { host(queue) }.set(index as usize, value);
}
