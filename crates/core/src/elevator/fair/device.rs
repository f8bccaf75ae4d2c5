//! What is found out about the device: how many requests at a time it gains from, what they cost, what a jump costs.
//!
//! * **One after the other, or many at a time.** A device is taken to serve one after the other, until it gains from more than [`SERIAL`] reads
//!   or writes, or, where no seeks cost time, more than one request in eight is done after another that went later. (A write buffer
//!   hides what a drive could do: a read of 60 us waits for 2 ms then, and what is written overtakes it.) Of one that serves one after
//!   the other all that is in it counts; it may have turns, waits, and places that are kept. Of the others reads and writes have a
//!   depth each.
//! * **Depth**: see [`super::depth`]. It binds only while two flows want the device.
//! * **Cost**: where turns pay the time since the last one was done; of another device that serves one after the other see [`super::gaps`], of one
//!   that serves many at a time [`super::costs`].
//! * **Pace** of writes: see [`super::pace`]. **Saving**: see [`super::returns`].

use super::costs::Costs;
use super::depth::{Depth, SERIAL};
use super::flow::FlowId;
use super::gaps::Gaps;
use super::pace::Pace;
use super::parts::Parts;
use super::returns::{Returns, Step, TURN_SAVINGS};
use crate::SECOND;
use crate::elevator::DeviceState;
use crate::request::Request;

/// Powers of two of 512 bytes up to 1 MiB and more.
pub(super) const SIZES: usize = 12;
/// Two flows share the device for this long after both were seen, and a flow counts as reading for this long after a read.
const SHARED_NS: u64 = SECOND / 2;
/// So many of 1024 requests are done after one that went later, above which the device serves many at a time, and below which it
/// may serve one after the other.
const OVERTAKEN: [u32; 2] = [128, 32];
/// A request does work for its bytes, and as much as so many sectors for itself (64 KiB).
pub(super) const WORK_SECTORS: u64 = 128;

/// Requests of one direction.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// In the device; and that before the first of those that were done at the same time as the last.
    count: u32,
    held: u32,
    last_done_ns: u64,
    depth: Depth,
    parts: Parts,
    /// Of 1024 of late those that one overtook that went later.
    overtaken: u32,
}

impl Lane {
    const NEW: Lane =
        Lane { count: 0, held: 0, last_done_ns: 0, depth: Depth::NEW, parts: Parts::NEW, overtaken: 0 };
}

/// What is known of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// Reads, writes.
    lanes: [Lane; 2],
    pace: Pace,
    costs: Costs,
    gaps: Gaps,
    returns: Returns,
    /// What a stream saves each time it is not interrupted, nanoseconds; `None`: nothing is done yet.
    saving_ns: Option<u64>,
    /// Does it serve many at a time?
    is_parallel: bool,
    /// Did seeks cost time when that was judged?
    judged_rotational: bool,
    /// Requests sent, and the number of the one that went last of those done.
    sent: u32,
    latest_done: u32,
    /// What a request cost at most of late, nanoseconds.
    pub(super) longest_ns: u64,
    /// When it was done with something last.
    last_done_ns: u64,
    // Who wants it.
    last_flow: Option<FlowId>,
    shared_until_ns: u64,
    read_until_ns: u64,
}

/// What is kept of a request in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) number: u32,
    pub(super) step: Step,
    /// A read of a stream?
    pub(super) streams: bool,
}

impl Model {
    pub(super) const NEW: Model = Model {
        lanes: [Lane::NEW; 2],
        pace: Pace::NEW,
        costs: Costs::NEW,
        gaps: Gaps::NEW,
        returns: Returns::NEW,
        saving_ns: None,
        is_parallel: false,
        judged_rotational: false,
        sent: 0,
        latest_done: 0,
        longest_ns: 0,
        last_done_ns: 0,
        last_flow: None,
        shared_until_ns: 0,
        read_until_ns: 0,
    };

    // ---- what it is asked ----

    /// Do two flows want the device?
    #[inline]
    pub(super) fn is_shared(&self, now: u64) -> bool {
        now < self.shared_until_ns
    }

    /// Does it serve one request after the other, so that idling for a flow may pay?
    #[inline]
    pub(super) fn is_serial(&self) -> bool {
        !self.is_parallel
    }

    /// Does it serve many at a time, or is that not known yet of a device without seeks?
    #[inline]
    pub(super) fn may_be_parallel(&self, device: &DeviceState) -> bool {
        self.is_parallel || !device.rotational && !self.lanes.iter().any(|lane| lane.depth.was_in_vain())
    }

    /// Reads, or writes, that it may hold while two flows want it.
    #[inline]
    pub(super) fn depth(&self, writes: bool) -> u32 {
        self.lanes[usize::from(writes)].depth.now
    }

    /// How many requests it holds, of `in_device`, that one more read or write would join, and how many of those it gains from.
    #[inline]
    pub(super) fn holds(&self, writes: bool, in_device: u32) -> (u32, u32) {
        match self.is_serial() {
            true => (in_device, self.depth(false).max(self.depth(true))),
            false => (self.lanes[usize::from(writes)].count, self.depth(writes)),
        }
    }

    /// Until when no write is to go, because a flow reads from a drive that would fill its buffer with it.
    #[inline]
    pub(super) fn paced_until(&self, now: u64) -> Option<u64> {
        let next_ns = self.pace.next_ns();
        let is_paced = self.is_parallel && now < next_ns && now < self.read_until_ns && self.is_shared(now);
        is_paced.then_some(next_ns)
    }

    /// What a write of 32 KiB takes of a drive whose buffer is full, nanoseconds; 0: not known.
    pub(super) fn write_ns(&self) -> u64 {
        self.pace.of_32_kib_ns()
    }

    /// Sectors that a read or write may have that is not to keep others waiting, on a device that serves many at a time.
    #[inline]
    pub(super) fn part_sectors(&self, writes: bool) -> u32 {
        self.lanes[usize::from(writes)].parts.sectors()
    }

    /// The same for reports; `None`: nothing is split.
    pub(super) fn splits_at(&self, writes: bool, device: &DeviceState) -> Option<u32> {
        Some(self.part_sectors(writes)).filter(|sectors| self.may_be_parallel(device) && *sectors < u32::MAX)
    }

    /// When it was done with something last, nanoseconds.
    pub(super) fn last_done_ns(&self) -> u64 {
        self.last_done_ns
    }

    /// What a stream saves each time it is not interrupted, nanoseconds.
    #[inline]
    pub(super) fn saving_ns(&self, device: &DeviceState) -> u64 {
        match self.saving_ns {
            Some(saving_ns) => saving_ns,
            None => self.returns.saving_ns(device.rotational),
        }
    }

    /// How long a stream's turn is, nanoseconds; 0 where turns do not pay.
    #[inline]
    pub(super) fn turn_ns(&self, device: &DeviceState, most_ns: u64) -> u64 {
        self.turn_of(self.saving_ns(device), most_ns)
    }

    /// The same by what a stream saves.
    #[inline]
    pub(super) fn turn_of(&self, saving_ns: u64, most_ns: u64) -> u64 {
        (TURN_SAVINGS * saving_ns).min(most_ns)
    }

    /// What requests are known to cost: what they are, their sectors, nanoseconds. For reports.
    pub(super) fn costs(&self, tell: &mut dyn FnMut(&'static str, u32, u64)) {
        let tell = |(what, sectors, ns)| tell(what, sectors, ns);
        match self.is_serial() && self.gaps.count {
            true => self.gaps.known().for_each(tell),
            false => self.costs.known().for_each(tell),
        }
    }

    // ---- what it learns ----

    /// `flow` has something to do with the device.
    #[inline]
    pub(super) fn seen(&mut self, flow: FlowId, now: u64) {
        if self.last_flow != Some(flow) {
            if self.last_flow.is_some() {
                self.shared_until_ns = now.saturating_add(SHARED_NS);
            }
            self.last_flow = Some(flow);
        }
    }

    /// A flow wants to read.
    #[inline]
    pub(super) fn read_came(&mut self, now: u64) {
        self.read_until_ns = now.saturating_add(SHARED_NS);
    }

    /// A request goes to the device. Answers with its number.
    #[inline]
    pub(super) fn sent(&mut self, request: &Request, now: u64) -> u32 {
        self.lanes[usize::from(request.is_write())].count += 1;
        if request.is_write() {
            self.pace.sent(request.sectors, now);
        }
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// A request is done. Answers with what it cost.
    #[inline(always)] // for `completed`
    pub(super) fn done(&mut self, request: &Request, sent: Sent, device: &DeviceState, now: u64) -> u64 {
        let (writes, sectors, issued_ns) = (request.is_write(), request.sectors, request.issued_ns);
        let before_ns = core::mem::replace(&mut self.last_done_ns, now);
        let cost_ns = now.saturating_sub(issued_ns.max(before_ns));
        self.longest_ns = cost_ns.max(self.longest_ns - self.longest_ns / 64);
        let size = (sectors.max(1).ilog2() as usize).min(SIZES - 1);
        let (has_turns, is_serial) = (self.saving_ns(device) > 0, self.is_serial());
        // Whether it serves many at a time, and what a stream saves, follow from what is measured, and change only with that.
        let mut has_learnt = self.saving_ns.is_none() || self.judged_rotational != device.rotational;
        if sent.streams && is_serial {
            self.returns.done(sent.step, size, cost_ns);
            has_learnt = true;
        }
        let others = self.lanes[0].count + self.lanes[1].count > 1;
        let was_overtaken = (self.latest_done.wrapping_sub(sent.number) as i32) > 0;
        if !was_overtaken {
            self.latest_done = sent.number;
        }
        let lane = &mut self.lanes[usize::from(writes)];
        if was_overtaken || others && lane.overtaken > 0 {
            lane.overtaken = (15 * lane.overtaken + if was_overtaken { 1024 } else { 0 }) / 16;
            has_learnt = true;
        }
        if lane.last_done_ns < now {
            lane.held = lane.count;
        }
        if !has_turns {
            // Where one is served after the other, more reads at a time only take from the writes what they gain.
            let busy_ns = match is_serial {
                true => cost_ns,
                false => now.saturating_sub(issued_ns.max(lane.last_done_ns)),
            };
            lane.depth.done(lane.held, WORK_SECTORS + u64::from(sectors), busy_ns, now);
            has_learnt = true;
        }
        lane.last_done_ns = now;
        lane.count = lane.count.saturating_sub(1);
        if writes {
            self.pace.done(sectors, now.saturating_sub(issued_ns), lane.count > 0, now);
        }
        if has_learnt {
            self.judge(device.rotational);
        }
        let known_ns = self.costs.done(writes, size, cost_ns);
        if !is_serial && self.costs.row_ended() {
            self.try_parts(now);
        }
        match () {
            () if has_turns => cost_ns,
            () if is_serial => {
                self.gaps.done(writes, size, cost_ns, issued_ns.saturating_sub(before_ns), known_ns)
            }
            () => known_ns,
        }
    }

    /// How large are parts to be? Where depth is not settled, larger ones may cost less only because more is in the device with them.
    #[cold]
    fn try_parts(&mut self, now: u64) {
        for (lane, writes) in self.lanes.iter_mut().zip([false, true]) {
            if lane.parts.row(&self.costs, writes, lane.depth.is_settled(now), now) {
                lane.depth.begin_anew(now);
            }
        }
    }

    /// One after the other, or many at a time? And what does a stream save?
    fn judge(&mut self, rotational: bool) {
        let overtaken = if rotational { 0 } else { self.lanes[0].overtaken.max(self.lanes[1].overtaken) };
        let deepest = self.lanes[0].depth.known().max(self.lanes[1].depth.known());
        let [many, few] = OVERTAKEN;
        match self.is_parallel {
            false if overtaken > many || deepest > SERIAL => self.is_parallel = true,
            true if overtaken < few && deepest <= 1 => self.is_parallel = false,
            _ => {}
        }
        let least = if overtaken < few || !self.is_parallel { 1 } else { SERIAL + 1 };
        self.lanes.iter_mut().for_each(|lane| lane.depth.is_at_least(least));
        self.saving_ns = Some(if self.is_serial() { self.returns.saving_ns(rotational) } else { 0 });
        self.judged_rotational = rotational;
    }

    /// A request that was sent is in the device no more.
    #[inline]
    pub(super) fn left(&mut self, request: &Request) {
        let lane = &mut self.lanes[usize::from(request.is_write())];
        lane.count = lane.count.saturating_sub(1);
    }
}
