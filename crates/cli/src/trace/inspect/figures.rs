//! The figures of an inspection, as JSON names them.

use std::collections::BTreeMap;

use fairlift_trace::{Depth, Device, Interval, Load, Moments, Names, Percentiles, Summary, Who};
use serde::Serialize;

use super::Tells;
use super::messages::{Messages, Shown};
use crate::trace::args::InspectArguments;
use crate::trace::input::Input;

/// Everything.
#[derive(Serialize)]
pub struct Inspection {
    pub trace: String,
    pub format: &'static str,
    /// Events of each kind, by blkparse's letter or a name.
    pub events: BTreeMap<&'static str, u64>,
    pub events_total: u64,
    /// From the first event to the last.
    pub length_ns: u64,
    pub all: Part,
    pub in_flight: Flight,
    pub in_device: Flight,
    pub latency: Vec<Latency>,
    /// I/Os that were queued and never seen complete.
    pub unfinished: u64,
    /// The busiest, by I/Os.
    pub processes: Vec<Part>,
    pub processes_total: usize,
    pub devices: Vec<Part>,
    pub devices_total: usize,
    pub messages: Shown,
    /// What the trace does not tell, in sentences.
    pub lacks: Vec<String>,
}

/// What arrived, of all, of a process or of a device.
#[derive(Serialize)]
pub struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub ios: u64,
    pub bytes: u64,
    pub operations: Vec<Operation>,
    pub sizes: Vec<Size>,
    /// Share of I/Os that begin where the one before ended, 0 to 1.
    pub sequential_share: Option<f64>,
    /// Mean distance of the others, sectors.
    pub seek_mean_sectors: f64,
    pub arrivals: Arrivals,
    /// btt's intervals.
    pub intervals: Vec<Stretch>,
    /// Recorded latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Stretch>,
}

/// I/Os of one operation.
#[derive(Serialize)]
pub struct Operation {
    pub op: &'static str,
    pub ios: u64,
    pub bytes: u64,
}

/// I/Os of so many bytes and more, below twice as many.
#[derive(Serialize)]
pub struct Size {
    pub from_bytes: u64,
    pub ios: u64,
}

/// How arrivals are spread over time.
#[derive(Serialize)]
pub struct Arrivals {
    pub gap_mean_ns: f64,
    /// Deviation of the gaps over their mean: 1 for a Poisson stream, more for bursts.
    pub gap_variation: Option<f64>,
    /// Seconds that the next three figures are of.
    pub full_seconds: u64,
    pub per_second_mean: f64,
    pub per_second_max: u64,
    /// Variance of the arrivals of a second over their mean: 1 for a Poisson stream.
    pub per_second_dispersion: Option<f64>,
}

/// I/Os in flight.
#[derive(Serialize)]
pub struct Flight {
    pub mean: f64,
    pub max: u64,
}

/// A stretch of the I/Os' lives.
#[derive(Serialize)]
pub struct Stretch {
    pub name: &'static str,
    pub ios: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub max_ns: u64,
    /// Of all the time from queue to completion, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_q2c: Option<f64>,
}

/// Percentiles.
#[derive(Serialize)]
pub struct Latency {
    pub name: &'static str,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
}

impl Inspection {
    pub fn of(
        arguments: &InspectArguments,
        input: &Input,
        summary: &Summary,
        tells: &Tells,
        messages: Messages,
    ) -> Inspection {
        let names = input.reader().names();
        let processes: Vec<_> = summary.processes.iter().filter(|(who, _)| **who != Who::default()).collect();
        let devices: Vec<_> = summary.devices.iter().filter(|(d, _)| **d != Device::None).collect();
        let flight = |depth: &Depth| Flight { mean: depth.mean(), max: depth.max };
        Inspection {
            trace: arguments.trace.clone(),
            format: input.reader().format().name(),
            events: summary.actions.clone(),
            events_total: summary.events,
            length_ns: summary.length_ns(),
            all: Part::of(&summary.all),
            in_flight: flight(&summary.outstanding),
            in_device: flight(&summary.in_device),
            latency: [("Q2C", &summary.q2c), ("D2C", &summary.d2c), ("response", &summary.response)]
                .into_iter()
                .filter_map(|(name, percentiles)| Latency::of(name, percentiles))
                .collect(),
            unfinished: if tells.completions > 0 { summary.unfinished() } else { 0 },
            processes_total: processes.len(),
            processes: busiest(&processes, arguments.top, |who| {
                (who.comm.map(|comm| names.get(comm).to_owned()), who.pid)
            }),
            devices_total: devices.len(),
            devices: busiest(&devices, arguments.top, |device| (Some(device_name(*device, names)), None)),
            messages: messages.shown(),
            lacks: lacks(tells),
        }
    }
}

fn device_name(device: Device, names: &Names) -> String {
    match device {
        Device::None => "-".to_owned(),
        Device::Number(number) => format!("{}:{}", number.major(), number.minor()),
        Device::Name(name) => names.get(name).to_owned(),
    }
}

/// The `top` ones with the most I/Os.
fn busiest<K>(
    loads: &[(&K, &Load)],
    top: usize,
    name: impl Fn(&K) -> (Option<String>, Option<u32>),
) -> Vec<Part> {
    let mut loads: Vec<_> = loads.iter().map(|(key, load)| (load.total().count, *key, *load)).collect();
    loads.sort_by_key(|(ios, ..)| std::cmp::Reverse(*ios));
    loads
        .into_iter()
        .take(top)
        .map(|(_, key, load)| {
            let (name, pid) = name(key);
            Part { name, pid, ..Part::of(load) }
        })
        .collect()
}

fn lacks(tells: &Tells) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |condition: bool, text: &str| {
        if condition {
            all.push(text.to_owned());
        }
    };
    say(tells.arrivals > 0 && tells.with_pid == 0, "no process numbers");
    say(
        tells.completions == 0 && tells.with_response == 0,
        "no completions: neither latencies nor queue depth are known",
    );
    say(
        !tells.queue_events && tells.arrivals > 0,
        "no queue events: arrivals are those of requests at the device, merged",
    );
    say(tells.whole_seconds && tells.arrivals > 1, "time stamps are whole seconds: gaps say nothing");
    all
}

impl Part {
    fn of(load: &Load) -> Part {
        let total = load.total();
        let q2c = load.interval(Interval::Q2C);
        let stretch = |interval: Interval| {
            let moments = load.interval(interval);
            let share = (q2c.sum > 0).then(|| moments.sum as f64 / q2c.sum as f64);
            (moments.count > 0)
                .then(|| Stretch { share_of_q2c: share, ..Stretch::of(interval.name(), moments) })
        };
        Part {
            name: None,
            pid: None,
            ios: total.count,
            bytes: total.bytes,
            operations: load
                .ops
                .iter()
                .map(|(op, amount)| Operation { op: op.name(), ios: amount.count, bytes: amount.bytes })
                .collect(),
            sizes: load.sizes.iter().map(|(log, ios)| Size { from_bytes: 1 << log, ios: *ios }).collect(),
            sequential_share: load.sequential_share(),
            seek_mean_sectors: load.seeks.mean(),
            arrivals: Arrivals {
                gap_mean_ns: load.gaps.mean(),
                gap_variation: load.gaps.variation(),
                full_seconds: load.per_second.count,
                per_second_mean: load.per_second.mean(),
                per_second_max: load.per_second.max,
                per_second_dispersion: load.per_second.dispersion(),
            },
            intervals: Interval::ALL.into_iter().filter_map(stretch).collect(),
            response: (load.responses.count > 0).then(|| Stretch::of("response", &load.responses)),
        }
    }

    /// The interval of that name.
    pub fn interval(&self, interval: Interval) -> Option<&Stretch> {
        self.intervals.iter().find(|stretch| stretch.name == interval.name())
    }

    /// I/Os of that operation.
    pub fn of_op(&self, op: &str) -> u64 {
        self.operations.iter().find(|o| o.op == op).map_or(0, |o| o.ios)
    }
}

impl Stretch {
    fn of(name: &'static str, moments: &Moments) -> Stretch {
        Stretch {
            name,
            ios: moments.count,
            min_ns: moments.min,
            mean_ns: moments.mean(),
            max_ns: moments.max,
            share_of_q2c: None,
        }
    }
}

impl Latency {
    fn of(name: &'static str, percentiles: &Percentiles) -> Option<Latency> {
        let at = |percent| percentiles.at(percent);
        Some(Latency { name, p50_ns: at(50.0)?, p90_ns: at(90.0)?, p99_ns: at(99.0)?, p999_ns: at(99.9)? })
    }
}
