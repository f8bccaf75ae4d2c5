//! From the events of a trace to I/Os by process, in one pass.
//!
//! What a process waited for is recovered from the completions: for each I/O how many of the process's I/Os were in flight
//! when it arrived, and how long after the last completion (or after the I/O before, if none lay between) that was.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use fairlift_core::{IoPrio, Op};
use rustc_hash::{FxHashMap, FxHashSet};

use fairlift_trace::{Action, Device, Event, Facts, Flags, Names, Step, Text, Tracker};

use super::groups;
use super::notes::{self, Found};
use super::packed::{Io, Packed};
use super::stamps::WholeSeconds;
use super::{Replay, Traced, TracedDevice};

/// Processes told apart; more share one.
pub const PROCESSES_MAX: usize = 4096;
/// Devices told apart; more are left out.
const DEVICES_MAX: usize = 4096;
/// I/Os in flight at a time whose completion is looked for.
const OPEN_MAX: usize = 1 << 18;
/// Largest bio there is: its size is a 32-bit number of bytes.
const BIO_BYTES_MAX: u64 = u32::MAX as u64;

/// Whose an I/O is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    pid: Option<u32>,
    group: Group,
}

/// What a process belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Group {
    None,
    Cgroup(u64),
    Volume(Device),
    /// Too many processes.
    Other,
}

/// A process while the trace is read.
#[derive(Debug)]
struct Building {
    key: Key,
    comm: Option<Text>,
    ios: Packed,
    count: u64,
    last_ns: u64,
    /// When its last I/O was done that was done since its last arrival.
    done_ns: Option<u64>,
    outstanding: u32,
    /// Times at which I/Os with recorded response times are done.
    pending: BinaryHeap<Reverse<u64>>,
}

/// An arrival, whatever the format tells it by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at_ns: u64,
    key: Key,
    comm: Option<Text>,
    ioprio: Option<IoPrio>,
    response_ns: Option<u64>,
    joins: bool,
    op: Op,
    flags: Flags,
    device: u32,
    sector: u64,
    sectors: u32,
}

/// Takes a trace's events in order of time and makes a [`Replay`] of them.
#[derive(Debug)]
pub struct Loader {
    facts: Facts,
    tracker: Tracker,
    arrivals: Arrivals,
    /// Whose each bio is that the tracker follows.
    open: OpenBios,
    /// Flushes carry no sectors: the first that is done is the oldest of its device.
    flushes: FxHashMap<u32, VecDeque<usize>>,
    plugged: FxHashSet<u32>,
    stamps: WholeSeconds,
}

/// What arrived.
#[derive(Debug, Default)]
struct Arrivals {
    processes: Vec<Building>,
    by_key: FxHashMap<Key, usize>,
    devices: Vec<TracedDevice<Device>>,
    by_device: FxHashMap<Device, u32>,
    /// The devices to replay, by name or `major:minor`; empty: all.
    only: Vec<String>,
    /// Which devices were seen, chosen or not.
    is_chosen: BTreeMap<Device, bool>,
    origin_ns: Option<u64>,
    found: Found,
}

impl Loader {
    /// For a trace of a format of these `facts`; `only` these of its devices (by name or `major:minor`), all if empty.
    pub fn new(facts: Facts, only: Vec<String>) -> Loader {
        Loader {
            facts,
            tracker: Tracker::new(OPEN_MAX),
            arrivals: Arrivals { only, ..Arrivals::default() },
            open: OpenBios::default(),
            flushes: FxHashMap::default(),
            plugged: FxHashSet::default(),
            stamps: WholeSeconds::default(),
        }
    }

    /// Take the next event.
    pub fn event(&mut self, event: &Event, names: &Names) {
        if let Action::Lost { .. } = event.action {
            return self.gap(event);
        }
        if !self.arrivals.chooses(event.device, names) {
            return;
        }
        if !self.facts.stages || event.response_ns.is_some() {
            if event.action == Action::Queue
                && let Some(arrival) = self.arrivals.arrival(event, event.op, event.sector, event.bytes)
            {
                let arrivals = &mut self.arrivals;
                self.stamps.take(arrival, &mut |arrival| _ = arrivals.add(&arrival));
            }
            return;
        }
        match (event.action, event.pid) {
            (Action::Plug, Some(pid)) => _ = self.plugged.insert(pid),
            (Action::Unplug { .. }, Some(pid)) => _ = self.plugged.remove(&pid),
            _ => {}
        }
        self.follow(event);
    }

    /// The recorder lost events: what was in flight counts as done here, since its completion may be among them.
    fn gap(&mut self, event: &Event) {
        self.tracker.event(event, |_| {});
        let flushes = self.flushes.drain().flat_map(|(_, waiting)| waiting);
        for process in self.open.give_up().chain(flushes) {
            self.arrivals.over(process, event.time_ns);
        }
        self.plugged.clear();
    }

    /// A trace of all stages: arrivals and completions as the tracker tells them.
    fn follow(&mut self, event: &Event) {
        let Loader { tracker, arrivals, open, plugged, flushes, .. } = self;
        arrivals.found.queue_events |= event.action == Action::Queue;
        let joins = event.pid.is_some_and(|pid| plugged.contains(&pid));
        if fairlift_trace::Op::Flush == event.op && event.bytes == 0 {
            match event.action {
                Action::Queue => {
                    let Some(arrival) = arrivals.arrival(event, event.op, 0, 0) else { return };
                    let process = arrivals.add(&arrival);
                    flushes.entry(arrival.device).or_default().push_back(process);
                }
                Action::Complete => {
                    let device = arrivals.by_device.get(&event.device);
                    if let Some(process) = device.and_then(|d| flushes.get_mut(d)?.pop_front()) {
                        arrivals.done(process, event.time_ns);
                    }
                }
                _ => {}
            }
            return;
        }
        tracker.event(event, |step| match step {
            Step::Arrived(bio) => {
                let arrival = arrivals.arrival(event, bio.op, bio.sector, bio.bytes);
                let process = arrival.map(|arrival| arrivals.add(&Arrival { joins, ..arrival }));
                open.arrived(bio.number, process);
            }
            Step::Split(bio) => open.split(bio.number),
            Step::Done(bio, at_ns) => {
                if let Some(process) = open.part_done(bio.number) {
                    arrivals.done(process, at_ns);
                }
            }
            Step::Interval(..) => {}
        });
    }

    /// All events were taken.
    pub fn finish(mut self, names: &Names) -> Replay {
        let arrivals = &mut self.arrivals;
        let is_coarse = self.facts.resolution_ns >= 1_000_000_000;
        arrivals.found.spread = self.stamps.finish(is_coarse, &mut |arrival| _ = arrivals.add(&arrival));
        let Arrivals { processes, devices, found, is_chosen, .. } = self.arrivals;
        let traced = with_groups(processes, &devices, &found, self.facts, names);
        let name_of = |device| device_name(device, names).unwrap_or_default();
        let devices: Vec<TracedDevice<String>> = devices
            .into_iter()
            .map(|d| TracedDevice { name: name_of(d.name), end_sector: d.end_sector })
            .collect();
        let left_aside = is_chosen.iter().filter(|(_, chosen)| !**chosen);
        let notes = notes::of_trace(&found, self.facts, &traced, devices.len());
        Replay {
            has_completions: found.completions > 0,
            length_ns: found.length_ns,
            ios: traced.iter().map(|p| p.ios).sum(),
            processes: traced,
            devices,
            left_aside: left_aside.filter_map(|(device, _)| device_name(*device, names)).collect(),
            notes,
        }
    }
}

/// The processes under their names and in their groups: cgroups, else volumes where neither these nor processes are recorded.
fn with_groups(
    processes: Vec<Building>,
    devices: &[TracedDevice<Device>],
    found: &Found,
    facts: Facts,
    names: &Names,
) -> Vec<Traced> {
    let by_volume = facts.volumes && found.with_pid == 0 && found.with_cgroup == 0 && devices.len() > 1;
    let group = |group: Group| match group {
        Group::Cgroup(id) => groups::of_cgroup(id),
        Group::Volume(device) if by_volume => {
            let number = devices.iter().position(|d| d.name == device).unwrap_or(0);
            Some(groups::of_volume(&device_name(device, names).unwrap_or_default(), number))
        }
        Group::None | Group::Other | Group::Volume(_) => None,
    };
    let traced = |process: Building| {
        let comm = process.comm.map(|comm| names.get(comm).to_owned());
        Traced {
            pid: process.key.pid,
            name: match (comm, process.key) {
                (Some(comm), _) if !comm.is_empty() => comm,
                (_, Key { pid: Some(pid), .. }) => format!("pid {pid}"),
                (_, Key { group: Group::Volume(device), .. }) => {
                    device_name(device, names).unwrap_or_else(|| "trace".to_owned())
                }
                (_, Key { group: Group::Other, .. }) => "(other)".to_owned(),
                _ => "trace".to_owned(),
            },
            group: group(process.key.group),
            ios: process.count,
            packed: process.ios,
        }
    };
    processes.into_iter().map(traced).collect()
}

fn device_name(device: Device, names: &Names) -> Option<String> {
    match device {
        Device::None => None,
        Device::Number(number) => Some(format!("{}:{}", number.major(), number.minor())),
        Device::Name(name) => Some(names.get(name).to_owned()),
    }
}

impl Arrivals {
    /// Is this device to be replayed? Events of no device (plugs) are always taken.
    fn chooses(&mut self, device: Device, names: &Names) -> bool {
        if self.only.is_empty() || device == Device::None {
            return true;
        }
        if let Some(known) = self.is_chosen.get(&device) {
            return *known;
        }
        let chosen = device_name(device, names).is_some_and(|name| self.only.contains(&name));
        if self.is_chosen.len() < DEVICES_MAX {
            self.is_chosen.insert(device, chosen);
        }
        chosen
    }

    /// What an event is to the replay; `None`, and counted, when it is nothing a device does.
    fn arrival(&mut self, event: &Event, op: fairlift_trace::Op, sector: u64, bytes: u64) -> Option<Arrival> {
        use fairlift_trace::Op as T;
        let mut leave_out = |what| {
            *self.found.left_out.entry(what).or_insert(0) += 1;
            None
        };
        let op = match op {
            T::Read => Op::Read,
            T::Write | T::ZoneAppend => Op::Write,
            T::Discard | T::SecureErase | T::WriteZeroes => Op::Discard,
            T::Flush | T::Sync | T::DataSync => Op::Flush,
            T::None => return leave_out(notes::NO_OPERATION),
            T::ZoneReset | T::ZoneResetAll | T::ZoneFinish | T::ZoneOpen | T::ZoneClose => {
                return leave_out(notes::ZONES);
            }
        };
        if bytes == 0 && op != Op::Flush {
            return leave_out(notes::EMPTY);
        }
        if bytes > BIO_BYTES_MAX {
            return leave_out(notes::TOO_LARGE);
        }
        let (sector, sectors) = match op {
            Op::Flush => (0, 0),
            // Below 2^32 / 512 + 2.
            _ => (sector, (bytes + u64::from(event.skew_bytes)).div_ceil(512) as u32),
        };
        let Some(device) = self.device(event.device, sector.saturating_add(u64::from(sectors))) else {
            *self.found.left_out.entry(notes::DEVICES).or_insert(0) += 1;
            return None;
        };
        let found = &mut self.found;
        found.write_zeroes += u64::from(event.op == T::WriteZeroes);
        found.with_pid += u64::from(event.pid.is_some());
        found.with_cgroup += u64::from(event.cgroup.is_some());
        found.with_response += u64::from(event.response_ns.is_some());
        let group = match (event.cgroup, event.pid) {
            (Some(id), _) => Group::Cgroup(id),
            (None, Some(_)) => Group::None,
            (None, None) => Group::Volume(event.device),
        };
        Some(Arrival {
            at_ns: event.time_ns,
            key: Key { pid: event.pid, group },
            comm: event.comm,
            ioprio: event.ioprio.and_then(ioprio),
            response_ns: event.response_ns,
            joins: false,
            op,
            flags: event.flags,
            device,
            sector,
            sectors,
        })
    }

    /// The device's number, new or old; its end is at `end_sector` or behind.
    fn device(&mut self, device: Device, end_sector: u64) -> Option<u32> {
        let number = match self.by_device.get(&device) {
            Some(number) => *number,
            None if self.devices.len() >= DEVICES_MAX => return None,
            None => {
                self.devices.push(TracedDevice { name: device, end_sector: 0 });
                self.by_device.insert(device, self.devices.len() as u32 - 1);
                self.devices.len() as u32 - 1
            }
        };
        let end = &mut self.devices[number as usize].end_sector;
        *end = (*end).max(end_sector);
        Some(number)
    }

    fn process(&mut self, key: Key) -> usize {
        if let Some(process) = self.by_key.get(&key) {
            return *process;
        }
        let is_full = self.processes.len() + 1 >= PROCESSES_MAX;
        let kept = if is_full { Key { pid: None, group: Group::Other } } else { key };
        let process = match self.by_key.get(&kept) {
            Some(process) => *process,
            None => {
                self.processes.push(Building {
                    key: kept,
                    comm: None,
                    ios: Packed::default(),
                    count: 0,
                    last_ns: 0,
                    done_ns: None,
                    outstanding: 0,
                    pending: BinaryHeap::new(),
                });
                self.by_key.insert(kept, self.processes.len() - 1);
                self.processes.len() - 1
            }
        };
        self.found.sharing += u64::from(is_full && kept != key);
        process
    }

    /// An I/O of a process; which one.
    fn add(&mut self, arrival: &Arrival) -> usize {
        let number = self.process(arrival.key);
        let origin_ns = *self.origin_ns.get_or_insert(arrival.at_ns);
        let at_ns = arrival.at_ns.saturating_sub(origin_ns);
        self.found.length_ns = self.found.length_ns.max(at_ns);
        let process = &mut self.processes[number];
        while let Some(&Reverse(done_ns)) = process.pending.peek()
            && done_ns <= arrival.at_ns
        {
            process.pending.pop();
            process.outstanding = process.outstanding.saturating_sub(1);
            process.done_ns = Some(done_ns);
        }
        let before_ns = process.done_ns.filter(|done_ns| *done_ns >= process.last_ns && process.count > 0);
        process.ios.push(&Io {
            at_ns,
            gap_ns: arrival.at_ns - before_ns.unwrap_or(arrival.at_ns),
            after_completion: before_ns.is_some(),
            outstanding: process.outstanding,
            joins: arrival.joins,
            op: arrival.op,
            flags: arrival.flags,
            ioprio: arrival.ioprio,
            device: arrival.device,
            sector: arrival.sector,
            sectors: arrival.sectors,
        });
        process.count += 1;
        process.comm = arrival.comm.or(process.comm);
        process.last_ns = arrival.at_ns;
        process.done_ns = None;
        process.outstanding = process.outstanding.saturating_add(1);
        if let Some(response_ns) = arrival.response_ns
            && process.pending.len() < OPEN_MAX
        {
            self.found.completions += 1;
            process.pending.push(Reverse(arrival.at_ns.saturating_add(response_ns)));
        }
        number
    }

    fn done(&mut self, process: usize, at_ns: u64) {
        self.found.completions += 1;
        self.over(process, at_ns);
    }

    /// No longer in flight, seen to be done or not.
    fn over(&mut self, process: usize, at_ns: u64) {
        let process = &mut self.processes[process];
        process.outstanding = process.outstanding.saturating_sub(1);
        process.done_ns = Some(at_ns);
    }
}

/// The kernel's 16 bits of priority: class in the top three, level in the low three; class 0: none was asked for.
fn ioprio(bits: u16) -> Option<IoPrio> {
    let level = (bits & 7) as u8;
    match bits >> 13 {
        1 => Some(IoPrio::RealTime(level)),
        2 => Some(IoPrio::BestEffort(level)),
        3 => Some(IoPrio::Idle),
        _ => None,
    }
}

/// Processes of bios by the bios' running numbers.
#[derive(Debug, Default)]
struct OpenBios {
    first: u64,
    bios: VecDeque<OpenBio>,
}

#[derive(Clone, Copy, Debug)]
struct OpenBio {
    process: Option<usize>,
    /// Parts not done.
    parts: u32,
}

impl OpenBios {
    fn arrived(&mut self, number: u64, process: Option<usize>) {
        while self.bios.front().is_some_and(|bio| bio.parts == 0) || self.bios.len() >= OPEN_MAX {
            self.bios.pop_front();
            self.first += 1;
        }
        debug_assert_eq!(number, self.first + self.bios.len() as u64, "numbers run on");
        self.bios.push_back(OpenBio { process, parts: 1 });
    }

    fn get(&mut self, number: u64) -> Option<&mut OpenBio> {
        self.bios.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn split(&mut self, number: u64) {
        if let Some(bio) = self.get(number) {
            bio.parts = bio.parts.saturating_add(1);
        }
    }

    /// The processes of all that are not done; none of them is followed any further.
    fn give_up(&mut self) -> impl Iterator<Item = usize> {
        let open = self.bios.iter_mut().filter(|bio| bio.parts > 0);
        open.filter_map(|bio| {
            bio.parts = 0;
            bio.process
        })
    }

    /// The process, if that was the last part.
    fn part_done(&mut self, number: u64) -> Option<usize> {
        let bio = self.get(number)?;
        bio.parts = bio.parts.saturating_sub(1);
        bio.process.filter(|_| bio.parts == 0)
    }
}
