//! A trace as a list of I/Os: when each arrived, was dispatched and was done.

use fairlift_trace::{Action, Event, Flags, Op, Step, Tracker};

use super::messages::Told;
use crate::error::Failure;
use crate::trace::input::Input;
use crate::trace::inspect::messages::{Kind, Messages};

/// One I/O: what a program or the kernel asked for, before any merge.
#[derive(Clone, Debug)]
pub struct Io {
    /// What, where and how much: what makes it the same I/O in another trace.
    pub key: Key,
    /// Which row of the table it belongs to.
    pub class: Class,
    /// When it was queued, ns.
    pub arrived_ns: u64,
    /// When its request went to the device, ns; `None` in a trace without issue events.
    pub dispatched_ns: Option<u64>,
    /// When it was done, ns.
    pub done_ns: u64,
    /// It was merged into a request that was there already.
    pub is_merged: bool,
    /// Who queued it: the name, or the number.
    pub who: String,
}

/// What two traces know an I/O by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// What is done.
    pub op: Op,
    /// Where, in sectors of 512 bytes.
    pub sector: u64,
    /// How much.
    pub bytes: u64,
}

/// What schedulers treat alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Reads.
    Read,
    /// Writes that a program waits for.
    SyncWrite,
    /// Other writes.
    AsyncWrite,
    /// Discards, write zeroes, zone commands.
    Other,
}

impl Class {
    /// Every class, in the order of the table.
    pub const ALL: [Class; 4] = [Class::Read, Class::SyncWrite, Class::AsyncWrite, Class::Other];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Read => "reads",
            Class::SyncWrite => "sync writes",
            Class::AsyncWrite => "async writes",
            Class::Other => "others",
        }
    }

    fn of(op: Op, flags: Flags) -> Class {
        match op {
            Op::Read => Class::Read,
            Op::Write if flags.has(Flags::SYNC) => Class::SyncWrite,
            Op::Write => Class::AsyncWrite,
            _ => Class::Other,
        }
    }
}

/// A trace that was read to its end.
#[derive(Debug)]
pub struct Trace {
    /// Its name.
    pub name: String,
    /// The I/Os that were done, by arrival.
    pub ios: Vec<Io>,
    /// I/Os that were not done when the trace ended, or were forgotten.
    pub open: u64,
    /// Requests that went to the device.
    pub requests: u64,
    /// What the elevator, the kernel or a user wrote into it, by kind.
    pub messages: Vec<Kind>,
    /// The same one by one.
    pub told: Vec<Told>,
}

/// Reads all of it.
pub fn read(mut input: Input, name: &str) -> Result<Trace, Failure> {
    let mut trace = Trace {
        name: name.to_owned(),
        ios: Vec::new(),
        open: 0,
        requests: 0,
        messages: Vec::new(),
        told: Vec::new(),
    };
    let (mut tracker, mut messages) = (Tracker::default(), Messages::default());
    while let Some(event) = input.next()? {
        match event.action {
            Action::Message => {
                let payload = input.reader().payload();
                messages.add(&event, payload);
                let text = String::from_utf8_lossy(payload).trim_end().to_owned();
                trace.told.push(Told { text, at_ns: event.time_ns });
            }
            Action::Issue if event.bytes > 0 => trace.requests += 1,
            _ => {}
        }
        follow(&mut tracker, &event, &input, &mut trace.ios);
    }
    trace.open = tracker.open() as u64 + tracker.forgotten();
    trace.messages = messages.shown().kinds;
    input.finish()?;
    trace.ios.sort_by_key(|io| (io.arrived_ns, io.key.sector));
    Ok(trace)
}

/// Adds what `event` completes.
fn follow(tracker: &mut Tracker, event: &Event, input: &Input, ios: &mut Vec<Io>) {
    tracker.event(event, |step| {
        let Step::Done(bio, done_ns) = step else { return };
        let who = match (bio.comm, bio.pid) {
            (Some(comm), _) => input.reader().names().get(comm).to_owned(),
            (None, Some(pid)) => pid.to_string(),
            (None, None) => String::new(),
        };
        ios.push(Io {
            key: Key { op: bio.op, sector: bio.sector, bytes: bio.bytes },
            class: Class::of(bio.op, bio.flags),
            arrived_ns: bio.queued_ns,
            dispatched_ns: bio.issued_ns,
            done_ns,
            is_merged: bio.merged_ns.is_some(),
            who,
        });
    });
}
