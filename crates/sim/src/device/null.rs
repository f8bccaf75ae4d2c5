//! A device that does nothing: every command completes after a constant. For benches and tests of what stands above.
//!
//! Not modelled: everything.

use std::collections::VecDeque;

use super::events::BusyClock;
use super::spec::{Facts, Fields, SpecError, limits};
use super::{Command, Completion, Device, Limits};

/// Parameters of the null device.
#[derive(Clone, Debug)]
pub(super) struct NullSpec {
    limits: Limits,
    latency_ns: u64,
}

impl NullSpec {
    pub(super) fn read(fields: &mut Fields) -> Result<NullSpec, SpecError> {
        let sectors = fields.integer("sectors", 1, 1 << 50)?;
        let limits = limits(fields, sectors, Facts::default())?;
        Ok(NullSpec { limits, latency_ns: fields.integer("latency_ns", 0, 1_000_000_000_000)? })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn build(&self) -> Null {
        let waiting = VecDeque::with_capacity(self.limits.queue_depth as usize);
        Null { limits: self.limits, latency_ns: self.latency_ns, waiting, busy: BusyClock::default() }
    }
}

/// Completes every command after the same time, any number in parallel.
#[derive(Clone, Debug)]
pub(super) struct Null {
    limits: Limits,
    latency_ns: u64,
    waiting: VecDeque<Completion>,
    busy: BusyClock,
}

impl Device for Null {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&mut self, command: Command, now: u64) {
        self.busy.set(true, now);
        self.waiting.push_back(Completion { tag: command.tag, at_ns: now + self.latency_ns, began_ns: 0 });
    }

    fn next_event(&self) -> Option<u64> {
        self.waiting.front().map(|first| first.at_ns)
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some(first) = self.waiting.front().copied().filter(|first| first.at_ns <= now) {
            self.waiting.pop_front();
            self.busy.set(!self.waiting.is_empty(), first.at_ns);
            done.push(first);
        }
        self.busy.set(!self.waiting.is_empty(), now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}
