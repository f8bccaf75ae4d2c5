//! Statistics of a trace in one pass and bounded memory.

mod depth;
mod moments;
mod percentiles;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::event::{Action, Device, Event, Op};
use crate::format::Facts;
use crate::names::Text;
use crate::requests::{Interval, Step, Tracker};

pub use depth::Depth;
pub use moments::Moments;
pub use percentiles::Percentiles;

/// Who issued an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Who {
    /// Process number.
    pub pid: Option<u32>,
    /// Process name.
    pub comm: Option<Text>,
}

/// Number and bytes of I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// How much.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What arrived, of one process, of one device, or of all.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// By operation.
    pub ops: BTreeMap<Op, Amount>,
    /// By size: n counts sizes of 2^n bytes and more, below 2^(n+1). Sizes of zero are in none.
    pub sizes: BTreeMap<u32, u64>,
    /// I/Os that begin where the one before ended, of those that have one before on the same device.
    pub sequential: u64,
    /// Distances to the end of the one before, in sectors, of those that are not sequential.
    pub seeks: Moments,
    /// ns between arrivals.
    pub gaps: Moments,
    /// The arrivals of each second from the first, the last one not full and left out.
    pub per_second: Moments,
    /// Intervals of the I/O's life.
    pub intervals: [Moments; Interval::ALL.len()],
    /// Response times, for formats that record them with the arrival.
    pub responses: Moments,
    last_ns: Option<u64>,
    /// First arrival, second counted now, arrivals in it.
    second: Option<(u64, u64, u64)>,
    /// End of the last I/O.
    end: Option<(Device, u64)>,
}

impl Load {
    /// All arrivals.
    pub fn total(&self) -> Amount {
        self.ops.values().fold(Amount::default(), |sum, amount| Amount {
            count: sum.count + amount.count,
            bytes: sum.bytes.saturating_add(amount.bytes),
        })
    }

    /// The moments of an interval.
    pub fn interval(&self, interval: Interval) -> &Moments {
        &self.intervals[interval as usize]
    }

    /// Share of sequential I/Os among those with one before; `None` without any.
    pub fn sequential_share(&self) -> Option<f64> {
        let all = self.sequential + self.seeks.count;
        (all > 0).then(|| self.sequential as f64 / all as f64)
    }

    fn arrive(&mut self, event: &Event) {
        self.ops.entry(event.op).or_default().add(event.bytes);
        if let Some(exponent) = event.bytes.checked_ilog2() {
            *self.sizes.entry(exponent).or_insert(0) += 1;
        }
        if let Some((device, end)) = self.end
            && device == event.device
            && event.bytes > 0
        {
            if end == event.sector {
                self.sequential += 1;
            } else {
                self.seeks.add(end.abs_diff(event.sector));
            }
        }
        if event.bytes > 0 {
            self.end = Some((event.device, event.end_sector()));
        }
        if let Some(last_ns) = self.last_ns.replace(event.time_ns) {
            self.gaps.add(event.time_ns.saturating_sub(last_ns));
        }
        self.count_second(event.time_ns);
        if let Some(response_ns) = event.response_ns {
            self.responses.add(response_ns);
        }
    }

    fn count_second(&mut self, now_ns: u64) {
        let (first_ns, current, count) = self.second.get_or_insert((now_ns, 0, 0));
        let second = now_ns.saturating_sub(*first_ns) / 1_000_000_000;
        if second > *current {
            self.per_second.add(*count);
            self.per_second.add_zeroes(second - *current - 1);
            (*current, *count) = (second, 0);
        }
        *count += 1;
    }
}

/// Everything `inspect` shows of a trace.
///
/// Arrivals are queue events; in traces that have none (block request tracepoints only) the issues.
#[derive(Debug, Default)]
pub struct Summary {
    /// Events of each kind, by blkparse's letter or a name.
    pub actions: BTreeMap<&'static str, u64>,
    /// All events, notes included.
    pub events: u64,
    /// Notes: messages, process names, wall clocks.
    pub notes: u64,
    /// Time of the first event that is no note.
    pub first_ns: Option<u64>,
    /// Time of the last one.
    pub last_ns: u64,
    /// All arrivals.
    pub all: Load,
    /// Those of each process; past [`Summary::PROCESSES_MAX`] the rest are under [`Who::default`].
    pub processes: BTreeMap<Who, Load>,
    /// And of each device; past [`Summary::DEVICES_MAX`] the rest are under [`Device::None`].
    pub devices: BTreeMap<Device, Load>,
    /// I/Os queued and not complete.
    pub outstanding: Depth,
    /// Requests in the devices.
    pub in_device: Depth,
    /// Percentiles of the time in the device, of queue to completion, and of recorded responses.
    pub d2c: Percentiles,
    /// See [`Summary::d2c`].
    pub q2c: Percentiles,
    /// See [`Summary::d2c`].
    pub response: Percentiles,
    tracker: Tracker,
    has_queue: bool,
    /// Nothing ends in this trace, so nothing is followed.
    only_arrivals: bool,
    /// Times at which arrivals with recorded responses are done.
    pending: BinaryHeap<Reverse<u64>>,
}

impl Summary {
    /// How many processes are listed apart.
    pub const PROCESSES_MAX: usize = 4096;
    /// How many devices.
    pub const DEVICES_MAX: usize = 4096;
    /// How many I/Os with recorded responses may be in flight at once; more are not counted in the depth.
    const PENDING_MAX: usize = 1 << 18;

    /// An empty summary.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a format of these facts: one that records arrivals only needs less memory and time.
    pub fn of(facts: Facts) -> Self {
        Self { only_arrivals: !facts.stages, ..Self::default() }
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        self.events += 1;
        *self.actions.entry(action_name(event.action)).or_insert(0) += 1;
        if let Action::Lost { .. } = event.action {
            self.tracker.event(event, |_| {});
            self.outstanding.none(event.time_ns);
            self.in_device.none(event.time_ns);
        }
        if event.action.is_note() {
            self.notes += 1;
            return;
        }
        self.first_ns.get_or_insert(event.time_ns);
        self.last_ns = self.last_ns.max(event.time_ns);
        self.has_queue |= event.action == Action::Queue;
        if event.action == Action::Queue || (event.action == Action::Issue && !self.has_queue) {
            self.arrive(event);
        }
        match event.action {
            Action::Issue => self.in_device.up(event.time_ns),
            Action::Requeue => self.in_device.down(event.time_ns),
            // The end of a flush sequence is told once more, with no bytes; only what was issued comes back.
            Action::Complete if event.bytes > 0 || event.op == Op::Flush => {
                self.in_device.down(event.time_ns);
            }
            _ => {}
        }
        self.follow(event);
    }

    fn arrive(&mut self, event: &Event) {
        self.all.arrive(event);
        let who = Who { pid: event.pid, comm: event.comm };
        load(&mut self.processes, who, Self::PROCESSES_MAX).arrive(event);
        load(&mut self.devices, event.device, Self::DEVICES_MAX).arrive(event);
        let Some(response_ns) = event.response_ns else { return };
        self.response.add(response_ns);
        while let Some(&Reverse(done_ns)) = self.pending.peek() {
            if done_ns > event.time_ns {
                break;
            }
            self.pending.pop();
            self.outstanding.down(done_ns);
        }
        if self.pending.len() < Self::PENDING_MAX {
            self.pending.push(Reverse(event.time_ns.saturating_add(response_ns)));
            self.outstanding.up(event.time_ns);
        }
    }

    /// Intervals, for all, the process and the device.
    fn follow(&mut self, event: &Event) {
        if self.only_arrivals || event.response_ns.is_some() {
            return;
        }
        if event.action == Action::Queue && event.bytes > 0 {
            self.outstanding.up(event.time_ns);
        }
        let Self { tracker, all, processes, devices, outstanding, d2c, q2c, .. } = self;
        tracker.event(event, |step| match step {
            Step::Interval(interval, ns, bio) => {
                let who = Who { pid: bio.pid, comm: bio.comm };
                all.intervals[interval as usize].add(ns);
                load(processes, who, Self::PROCESSES_MAX).intervals[interval as usize].add(ns);
                load(devices, bio.device, Self::DEVICES_MAX).intervals[interval as usize].add(ns);
                match interval {
                    Interval::D2C => d2c.add(ns),
                    Interval::Q2C => q2c.add(ns),
                    _ => {}
                }
            }
            Step::Split(bio) if bio.has_queued => outstanding.up(event.time_ns),
            Step::Done(bio, now_ns) if bio.has_queued => outstanding.down(now_ns),
            Step::Arrived(_) | Step::Split(_) | Step::Done(..) => {}
        });
    }

    /// I/Os that were queued and never seen complete, those given up for memory included.
    pub fn unfinished(&self) -> u64 {
        self.tracker.open() as u64 + self.tracker.forgotten()
    }

    /// From the first to the last event, ns.
    pub fn length_ns(&self) -> u64 {
        self.last_ns - self.first_ns.unwrap_or(self.last_ns)
    }
}

/// The entry of `key`, or the default key's when the map is full.
fn load<K: Ord + Default>(map: &mut BTreeMap<K, Load>, key: K, limit: usize) -> &mut Load {
    let key = if map.len() >= limit && !map.contains_key(&key) { K::default() } else { key };
    map.entry(key).or_default()
}

/// blkparse's letter, or a name for what blkparse has not.
pub(crate) fn action_name(action: Action) -> &'static str {
    match action {
        Action::Queue => "Q",
        Action::BackMerge => "M",
        Action::FrontMerge => "F",
        Action::GetRequest => "G",
        Action::SleepRequest => "S",
        Action::Requeue => "R",
        Action::Issue => "D",
        Action::Complete => "C",
        Action::Plug => "P",
        Action::Unplug { by_timer: false, .. } => "U",
        Action::Unplug { by_timer: true, .. } => "UT",
        Action::Insert => "I",
        Action::Split { .. } => "X",
        Action::Bounce => "B",
        Action::Remap { .. } => "A",
        Action::Message => "m",
        Action::Lost { .. } => "lost",
        Action::Process => "process",
        Action::Timestamp { .. } => "timestamp",
        Action::Abort => "abort",
        Action::DriverData => "driver-data",
        Action::ZonePlug => "zone-plug",
        Action::ZoneUnplug => "zone-unplug",
        Action::RequestMerge => "request-merge",
        Action::BioComplete => "bio-complete",
        Action::Error => "error",
        Action::IoStart => "io-start",
        Action::IoDone => "io-done",
        Action::FileAdd => "file-add",
        Action::FileOpen => "file-open",
        Action::FileClose => "file-close",
    }
}
