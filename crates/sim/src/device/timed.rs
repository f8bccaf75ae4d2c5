//! A device whose every service time is known: channels that serve commands in order of arrival. What `real/timing-device.c` is
//! under a kernel, to the nanosecond, so that lab and kernel can be compared on the same device.
//!
//! Not modelled: everything else. A real device with such a table is not meant.

use super::events::{BusyClock, Events};
use super::spec::{Facts, Fields, SpecError, limits};
use super::{Command, Completion, Device, Limits, Op};

/// Parameters of a timed device.
#[derive(Clone, Debug)]
pub(super) struct TimedSpec {
    limits: Limits,
    channels: usize,
    timing: Timing,
}

#[derive(Clone, Copy, Debug)]
struct Timing {
    fixed_ns: u64,
    /// 10^6 bytes a second; 0: bytes take no time.
    rate_mb: u64,
    /// A seek of no distance, and one of the whole device; 0: none takes time.
    near_ns: u64,
    far_ns: u64,
    flush_ns: u64,
    /// On the way there and back; no channel is busy with it.
    path_ns: u64,
    /// Of the device.
    bytes: u64,
}

impl TimedSpec {
    pub(super) fn read(fields: &mut Fields) -> Result<TimedSpec, SpecError> {
        let sectors = fields.integer("sectors", 8, 1 << 31)?;
        let limits = limits(fields, sectors, Facts { write_cache: true, ..Facts::default() })?;
        let mut us = |path: &str| Ok(fields.integer(path, 0, 10_000_000)? * 1000);
        let (fixed_ns, near_ns) = (us("timing.fixed_us")?, us("timing.near_us")?);
        let (far_ns, flush_ns) = (us("timing.far_us")?, us("timing.flush_us")?);
        if far_ns != 0 && far_ns < near_ns {
            return Err(fields.error(
                "timing.far_us",
                "timing.far_us must be 0 (no seeks) or at least timing.near_us".to_string(),
            ));
        }
        let path = fields.has("timing.path_us");
        let path_ns = if path { fields.integer("timing.path_us", 0, 10_000_000)? * 1000 } else { 0 };
        let channels = fields.integer("timing.channels", 1, 256)? as usize;
        let rate_mb = fields.integer("timing.rate_mb_per_s", 0, 1_000_000)?;
        let timing = Timing { fixed_ns, rate_mb, near_ns, far_ns, flush_ns, path_ns, bytes: sectors * 512 };
        Ok(TimedSpec { limits, channels, timing })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn build(&self) -> Timed {
        Timed {
            limits: self.limits,
            timing: self.timing,
            channels: vec![Channel::default(); self.channels],
            under_way: Events::with_capacity(self.limits.queue_depth as usize),
            commands: 0,
            busy: BusyClock::default(),
        }
    }
}

impl Timing {
    /// What a command takes that begins at byte `at`, after one that ended at `from`.
    fn ns(&self, command: &Command, from: u64) -> u64 {
        let (at, bytes) = (command.sector * 512, u64::from(command.sectors) * 512);
        let transfer = (bytes * 1000).checked_div(self.rate_mb).unwrap_or(0);
        self.fixed_ns + self.seek_ns(at.abs_diff(from)) + transfer
    }

    fn seek_ns(&self, distance: u64) -> u64 {
        if distance == 0 || self.far_ns == 0 {
            return 0;
        }
        let more = u128::from(self.far_ns - self.near_ns) * u128::from(distance) / u128::from(self.bytes);
        self.near_ns + more as u64 // at most far_ns: the distance is within the device
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    free_at: u64,
    /// The byte behind what it served last.
    position: u64,
}

/// Serves commands in order of arrival, as many at a time as it has channels; a flush alone.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    limits: Limits,
    timing: Timing,
    channels: Vec<Channel>,
    /// Tags, and when their service began.
    under_way: Events<(u32, u64)>,
    commands: u32,
    busy: BusyClock,
}

impl Timed {
    /// A flush begins when all before it are done, and what comes behind it waits.
    fn place_flush(&mut self, now: u64) -> (u64, u64) {
        let start = self.channels.iter().map(|channel| channel.free_at).fold(now, u64::max);
        let end = start + self.timing.flush_ns;
        self.channels.iter_mut().for_each(|channel| channel.free_at = end);
        (start, end)
    }

    /// Beginning and end of a command's service.
    fn place(&mut self, command: &Command, now: u64) -> (u64, u64) {
        let Some(first) = self.channels.iter_mut().min_by_key(|channel| channel.free_at) else {
            return (now, now);
        };
        let start = now.max(first.free_at);
        let end = start + self.timing.ns(command, first.position);
        *first = Channel { free_at: end, position: (command.sector + u64::from(command.sectors)) * 512 };
        (start, end)
    }
}

impl Device for Timed {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&mut self, command: Command, now: u64) {
        let (start, end) = match command.op {
            Op::Flush => self.place_flush(now),
            Op::Discard => (now, now),
            Op::Read | Op::Write => self.place(&command, now),
        };
        self.busy.set(true, now);
        self.under_way.push(end + self.timing.path_ns, (command.tag, if start > now { start } else { 0 }));
        self.commands += 1;
    }

    fn next_event(&self) -> Option<u64> {
        self.under_way.next_at()
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some((at_ns, (tag, began_ns))) = self.under_way.pop_until(now) {
            self.commands -= 1;
            self.busy.set(self.commands > 0, at_ns);
            done.push(Completion { tag, at_ns, began_ns });
        }
        self.busy.set(self.commands > 0, now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}
