//! Requests with measured response times, from any trace that has them.

use std::collections::BTreeMap;
use std::fs::File;

use fairlift_sim::device::Op;
use fairlift_sim::validate::Measured;
use fairlift_trace::{Action, Device, Event, Format, Op as TraceOp, Options, TraceReader};

use crate::error::{self, Failure};
use crate::number::count;
use crate::output::reason;

/// Most requests that are replayed.
const REQUESTS_MAX: usize = 50_000_000;

/// The requests of a trace in order of arrival.
pub struct Trace {
    pub requests: Vec<Measured>,
    /// Faulty records that are not among them.
    pub left_out: u64,
}

/// Read a trace.
pub fn read(path: &str, format: Option<&str>, keep_going: bool) -> Result<Trace, Failure> {
    let format = match format {
        None => None,
        Some(name) => Some(name.parse::<Format>().map_err(|e| Failure::new(e).at("--format"))?),
    };
    let file = File::open(path)
        .map_err(|e| Failure::new(format!("cannot read '{path}': {}", reason(&e))).at("--trace"))?;
    let options = Options { format, keep_going, ..Options::default() };
    let fail = |e: fairlift_trace::TraceError| Failure::new(&e.message).at(e.place.to_string());
    let mut reader = TraceReader::from_read(path, file, &options).map_err(fail)?;
    let mut found = Found::default();
    for event in reader.by_ref() {
        found.add(&event.map_err(fail)?);
        if found.requests.len() > REQUESTS_MAX {
            return Err(Failure::new(format!("more than {REQUESTS_MAX} requests")).at(path));
        }
    }
    let Found { mut requests, devices, .. } = found;
    if let [first, second, ..] = devices[..] {
        let message = format!("requests to several devices, such as {first:?} and {second:?}");
        return Err(Failure::new(message).at(path).help("'fairlift convert' can take one of them out"));
    }
    requests.sort_by_key(|request| request.arrival_ns);
    if requests.is_empty() {
        let format = reader.format();
        return Err(Failure::new("no request with a measured response time").at(path).help(format!(
            "format {format} was read; such times have DiskSim's validation traces, blktrace, MSR, SYSTOR"
        )));
    }
    let left_out = reader.skipped().faults;
    if left_out > 0 {
        error::warn(&format!("{path}: {left_out} faulty records left out, so there is no score"));
    }
    let gaps = reader.lost().gaps;
    if gaps > 0 {
        error::warn(&format!(
            "{path}: its recorder lost events in {}, requests among them may be missing, so there is no score",
            count(gaps, "place", "places")
        ));
    }
    Ok(Trace { requests, left_out: left_out + gaps })
}

/// The requests so far.
#[derive(Default)]
struct Found {
    requests: Vec<Measured>,
    devices: Vec<Device>,
    /// Issued to the device, by device and first sector: when, and how long.
    issued: BTreeMap<(Device, u64), (u64, u32)>,
}

impl Found {
    fn add(&mut self, event: &Event) {
        if let Action::Lost { .. } = event.action {
            self.issued.clear();
            return;
        }
        let op = match event.op {
            TraceOp::Read => Op::Read,
            TraceOp::Write => Op::Write,
            _ => return,
        };
        let sectors = u32::try_from(event.bytes / 512).unwrap_or(u32::MAX);
        let place = (event.device, event.sector);
        match (event.action, event.response_ns) {
            // The response time stands with the arrival.
            (Action::Queue, Some(response_ns)) => self.push(event, op, sectors, event.time_ns, response_ns),
            // Or it is the time from issue to completion.
            (Action::Issue, None) => {
                self.issued.insert(place, (event.time_ns, sectors));
            }
            (Action::Complete, None) => {
                if let Some((issued_ns, sectors)) = self.issued.remove(&place) {
                    self.push(event, op, sectors, issued_ns, event.time_ns - issued_ns);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, event: &Event, op: Op, sectors: u32, arrival_ns: u64, response_ns: u64) {
        if sectors == 0 {
            return;
        }
        if !self.devices.contains(&event.device) && self.devices.len() < 2 {
            self.devices.push(event.device);
        }
        self.requests.push(Measured { op, sector: event.sector, sectors, arrival_ns, response_ns });
    }
}
