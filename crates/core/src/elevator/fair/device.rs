//! What is found out about the device: what a request takes alone, how many at a time it gains from, what a jump costs.
//!
//! * **Alone.** A request that goes into an empty device, and that no other one joins, tells what such a request takes: by
//!   direction, size (powers of two) and whether it continues the last one, comes back to a stream, or jumps. Under load the
//!   device is let run empty for one request, when the figure is a second old and at most every half second.
//! * **Depth.** While the device holds as many requests as it may, it does work worth `gain` times the time it takes, work being
//!   what its requests would take alone. A device that serves one after the other gains 1 at any depth; one that overlaps a
//!   command's latency with others' gains as much as it overlaps. The depth grows while each place is worth 3/4 of a request
//!   alone, and shrinks below 11/20; in between it stays, and a depth that did not pay is not tried again for ten seconds. It
//!   binds only while two flows want the device.
//! * **Saving.** See [`super::returns`]. A device that gains from more than [`SERIAL`] at a time has no turns.

use super::flow::FlowId;
use super::returns::{Returns, Step, TURN_SAVINGS};
use crate::elevator::DeviceState;
use crate::request::{Request, RequestId};
use crate::{MS, SECOND};

/// How a request lies to what the device did last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Right behind it, of the same stream.
    Continues = 0,
    /// The first of a stream after others.
    Returns = 1,
    /// Of a flow that is no stream.
    Jumps = 2,
}

/// Powers of two of 512 bytes up to 1 MiB and more.
pub(super) const SIZES: usize = 12;
/// Places, for reads and for writes.
const ROWS: usize = 6;
/// What a request takes alone is measured again after this long.
const STALE_NS: u64 = SECOND;
const SAMPLE_EVERY_NS: u64 = SECOND / 2;
/// Two flows share the device for this long after both were seen.
const SHARED_NS: u64 = SECOND / 2;
/// The depth is judged after so many requests, or fewer that took so long.
const JUDGED: u32 = 64;
const JUDGED_LEAST: u32 = 8;
const JUDGED_NS: u64 = 100 * MS;
/// Per cent of a request alone that a place has to be worth: above, the depth grows; below, it shrinks.
const GROWS: u64 = 75;
const SHRINKS: u64 = 55;
/// A depth that did not pay is tried again after this long.
const RETRY_NS: u64 = 10 * SECOND;
/// A device that gains from so many at a time, or fewer, serves one after the other.
const SERIAL: u32 = 3;
const DEPTH_MAX: u32 = 1024;

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// 0: not known.
    alone_ns: u64,
    at_ns: u64,
}

impl Cell {
    fn learn(&mut self, took_ns: u64, now: u64) {
        let took_ns = took_ns.max(1);
        self.alone_ns = if self.alone_ns == 0 { took_ns } else { (7 * self.alone_ns + took_ns) / 8 };
        self.at_ns = now;
    }
}

/// Work done while the device was full.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    work_ns: u64,
    busy_ns: u64,
    requests: u32,
}

/// What is known of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    cells: [[Cell; SIZES]; ROWS],
    /// The request that has the device to itself.
    alone: Option<RequestId>,
    window: Window,
    /// What it held once the last request was sent: what is done before the next goes was done at that depth.
    held: u32,
    /// Requests it may hold while two flows want it.
    pub(super) depth: u32,
    /// The depth that did not pay, and until when that is believed.
    ceiling: (u32, u64),
    /// What a request cost at most of late, nanoseconds.
    pub(super) longest_ns: u64,
    /// When it was done with something last.
    last_done_ns: u64,
    returns: Returns,
    // Sharing.
    last_flow: Option<FlowId>,
    shared_until_ns: u64,
    // Sampling: it is let run empty, or one request has it to itself.
    sampling: bool,
    sample_ns: u64,
}

/// What a request is to the model: a row and a size.
pub(super) type Kind = (u8, u8);

impl Model {
    pub(super) const NEW: Model = Model {
        cells: [[Cell { alone_ns: 0, at_ns: 0 }; SIZES]; ROWS],
        alone: None,
        window: Window { work_ns: 0, busy_ns: 0, requests: 0 },
        held: 0,
        depth: 1,
        ceiling: (u32::MAX, 0),
        longest_ns: 0,
        last_done_ns: 0,
        returns: Returns::NEW,
        last_flow: None,
        shared_until_ns: 0,
        sampling: false,
        sample_ns: 0,
    };

    // ---- what it is asked ----

    /// Do two flows want the device?
    #[inline]
    pub(super) fn is_shared(&self, now: u64) -> bool {
        now < self.shared_until_ns
    }

    /// Does it serve one request after the other, so that keeping it for somebody may pay?
    #[inline]
    pub(super) fn is_serial(&self) -> bool {
        self.depth <= SERIAL
    }

    /// Is nothing to go out now, because a request is measured alone?
    #[inline]
    pub(super) fn is_kept(&self, in_device: u32) -> bool {
        self.sampling && in_device > 0
    }

    /// When it was done with something last, nanoseconds.
    pub(super) fn last_done_ns(&self) -> u64 {
        self.last_done_ns
    }

    /// What a stream saves each time it is not interrupted, nanoseconds.
    #[inline]
    pub(super) fn saving_ns(&self, device: &DeviceState) -> u64 {
        if self.is_serial() { self.returns.saving_ns(device.rotational) } else { 0 }
    }

    /// How long a stream's turn is, nanoseconds; 0 where turns do not pay.
    pub(super) fn turn_ns(&self, device: &DeviceState, most_ns: u64) -> u64 {
        (TURN_SAVINGS * self.saving_ns(device)).min(most_ns)
    }

    /// What requests take alone, of which that is known: what they are, their sectors, nanoseconds.
    pub(super) fn alone(&self) -> impl Iterator<Item = (&'static str, u32, u64)> + '_ {
        const WHAT: [&str; ROWS] = [
            "alone: a stream's read that goes on",
            "alone: a stream's read after others",
            "alone: a read elsewhere",
            "alone: a stream's write that goes on",
            "alone: a stream's write after others",
            "alone: a write elsewhere",
        ];
        self.cells
            .iter()
            .zip(WHAT)
            .flat_map(|(cells, what)| {
                cells.iter().enumerate().map(move |(size, cell)| (what, 1 << size, cell.alone_ns))
            })
            .filter(|(_, _, alone_ns)| *alone_ns > 0)
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

    pub(super) fn kind(request: &Request, place: Place) -> Kind {
        let size = request.sectors.max(1).ilog2().min(SIZES as u32 - 1) as u8;
        (place as u8 + 3 * u8::from(request.is_write()), size)
    }

    /// `rq` goes to the device, which holds so many others.
    #[inline]
    pub(super) fn sent(&mut self, rq: RequestId, others: u32) {
        self.alone = (others == 0).then_some(rq);
        self.held = others + 1;
    }

    /// `rq` is done. Answers with what it cost: the time since the last one was done, if it was there by then.
    pub(super) fn done(&mut self, rq: RequestId, request: &Request, kind: Kind, step: Step, now: u64) -> u64 {
        let cost_ns = now.saturating_sub(request.issued_ns.max(self.last_done_ns));
        self.last_done_ns = now;
        self.longest_ns = cost_ns.max(self.longest_ns - self.longest_ns / 64);
        let (row, size) = (usize::from(kind.0), usize::from(kind.1));
        if self.alone == Some(rq) {
            (self.alone, self.sampling) = (None, false);
            self.cells[row][size].learn(now.saturating_sub(request.issued_ns), now);
            self.sample_ns = now.saturating_add(SAMPLE_EVERY_NS);
        }
        if kind.0 < 2 && self.is_serial() {
            self.returns.done(step, size, cost_ns);
        }
        if self.held >= self.depth {
            self.weigh(self.cells[row][size], cost_ns, now);
        }
        cost_ns
    }

    /// `rq` is not measured: it did not go to the device, or came back undone.
    pub(super) fn forget(&mut self, rq: RequestId) {
        self.alone = self.alone.filter(|alone| *alone != rq);
    }

    /// A request was done while the device was full.
    fn weigh(&mut self, cell: Cell, cost_ns: u64, now: u64) {
        if self.is_shared(now) && now.saturating_sub(cell.at_ns) > STALE_NS && now >= self.sample_ns {
            self.sampling = true;
        }
        if cell.alone_ns == 0 {
            return;
        }
        let window = &mut self.window;
        window.work_ns += cell.alone_ns;
        window.busy_ns += cost_ns;
        window.requests += 1;
        let enough = window.requests >= JUDGED
            || window.requests >= JUDGED_LEAST.max(self.depth) && window.busy_ns >= JUDGED_NS;
        if enough {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: u64) {
        let Window { work_ns, busy_ns, .. } = core::mem::take(&mut self.window);
        let step = (self.depth / 4).max(1);
        let worth = work_ns.saturating_mul(100) / busy_ns.max(1) / u64::from(self.depth);
        if worth >= GROWS {
            let (ceiling, until_ns) = self.ceiling;
            let most = if now < until_ns { ceiling - 1 } else { DEPTH_MAX };
            self.depth = (self.depth + step).min(most).max(self.depth);
        } else if worth < SHRINKS && self.depth > 1 {
            self.ceiling = (self.depth, now.saturating_add(RETRY_NS));
            self.depth = (self.depth - step).max(1);
        }
    }
}
