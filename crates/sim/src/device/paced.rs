//! A device that is faster or slower in all it does: another device with its clock bent.
//!
//! Not modelled: a drive that is slower in one thing only. Rates that are settings (a volume's) change with the rest.

use super::{Command, Completion, Device, Limits};

/// How long things take beside how long they would: `percent` of it.
#[derive(Debug)]
pub(super) struct Paced {
    inner: Box<dyn Device + Send>,
    percent: u32,
    finished: Vec<Completion>,
}

impl Paced {
    pub(super) fn new(inner: Box<dyn Device + Send>, percent: u32) -> Paced {
        Paced { inner, percent: percent.max(1), finished: Vec::new() }
    }

    /// The inner clock at a time outside, rounded down.
    fn inside(&self, ns: u64) -> u64 {
        scaled(ns, 100, self.percent, 0)
    }

    /// The time outside at which the inner clock has come to `ns`, rounded up: never early.
    fn outside(&self, ns: u64) -> u64 {
        scaled(ns, self.percent, 100, 99)
    }
}

fn scaled(ns: u64, by: u32, over: u32, round: u32) -> u64 {
    let product = u128::from(ns) * u128::from(by) + u128::from(round);
    u64::try_from(product / u128::from(over)).unwrap_or(u64::MAX)
}

impl Device for Paced {
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn submit(&mut self, command: Command, now: u64) {
        let now = self.inside(now);
        self.inner.submit(command, now);
    }

    fn next_event(&self) -> Option<u64> {
        self.inner.next_event().map(|at| self.outside(at))
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        let mut finished = std::mem::take(&mut self.finished);
        let inside = self.inside(now);
        self.inner.advance(inside, &mut finished);
        done.extend(finished.drain(..).map(|c| Completion {
            at_ns: self.outside(c.at_ns),
            began_ns: self.outside(c.began_ns),
            ..c
        }));
        self.finished = finished;
    }

    fn busy_ns(&self) -> u64 {
        self.outside(self.inner.busy_ns())
    }

    fn limited_ns(&self) -> u64 {
        self.outside(self.inner.limited_ns())
    }
}

#[cfg(test)]
mod tests {
    use crate::device::{Command, DeviceSpec, Op};

    /// When a read of a device whose commands take 1,000 ns ends, if it is sent at 7.
    fn ends_at(percent: u32) -> u64 {
        let spec = DeviceSpec::load("null").expect("a preset").paced(percent);
        let mut device = spec.build(1);
        let mut done = Vec::new();
        device.advance(7, &mut done);
        device.submit(Command { tag: 3, op: Op::Read, sector: 0, sectors: 8, fua: false }, 7);
        let at = device.next_event().expect("it works on it");
        device.advance(at - 1, &mut done);
        assert!(done.is_empty(), "not before its event");
        device.advance(at, &mut done);
        assert_eq!((done[0].tag, done[0].at_ns), (3, at));
        at
    }

    #[test]
    fn everything_takes_so_many_percent_of_its_time() {
        assert_eq!(ends_at(100), 1007);
        // The inner clock shows 5 at 7; 1005 inside is 1206 outside.
        assert_eq!(ends_at(120), 1206);
        assert_eq!(ends_at(80), 807);
    }
}
