//! How fast the device is at its best: the largest budget and the length of a raise follow from it.
//!
//! Requests that go out one behind the other, at most 100 ms apart, are an observation. After a second it is evaluated: the sectors
//! over the time it took, taken over into the running rate the more, the longer it lasted and the more of it was sequential.
//! Slower observations count only when they were mostly sequential, since seeks say nothing of the peak.
//!
//! A rate is sectors per microsecond times 2^16. Overflow: an observation has at most as many sectors as 2 s of a device at 2^24
//! sectors/us; `sectors << 16` saturates far beyond.

use super::habits;
use crate::request::Request;

/// Bits behind the point of a rate.
pub(super) const SHIFT: u32 = 16;
const SAMPLES_LEAST: u32 = 32;
const SPAN_LEAST_US: u64 = 300_000;
const SPAN_US: u64 = 1_000_000;
/// A pause in which an idle device says that the observation is over, nanoseconds.
const PAUSE_NS: u64 = 100_000_000;
/// Time without a completion within which requests count as back to back, nanoseconds.
pub(super) const BACK_TO_BACK_NS: u64 = 2_000_000;
/// Rates above are errors of measurement: 20 sectors/us.
const RATE_MAX: u64 = 20 << SHIFT;
/// A rotating and another device of the time the figures were chosen at.
pub(super) const REFERENCE: [u64; 2] = [33_000, 14_000];

/// The running estimate and the observation in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakRate {
    pub(super) rate: u64,
    samples: u32,
    sequential: u32,
    sectors: u64,
    first_dispatch_ns: u64,
    last_dispatch_ns: u64,
    pub(super) last_completion_ns: u64,
    /// The largest request lately, sectors.
    largest: u64,
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> PeakRate {
        PeakRate {
            rate: REFERENCE[usize::from(rotational)] * 2 / 3,
            samples: 0,
            sequential: 0,
            sectors: 0,
            first_dispatch_ns: 0,
            last_dispatch_ns: 0,
            last_completion_ns: 0,
            largest: 0,
        }
    }

    /// What the device does at its best in `time_ns`, sectors.
    pub(super) fn budget(&self, time_ns: u64) -> u64 {
        (self.rate.saturating_mul(time_ns / 1000)) >> SHIFT
    }

    /// A request goes out; `position`: where the last one ended. Did the estimate change?
    pub(super) fn dispatched(
        &mut self,
        now: u64,
        request: &Request,
        position: u64,
        rotational: bool,
        in_driver: u32,
    ) -> bool {
        if self.samples == 0 {
            self.restart(now, request);
            return false;
        }
        let paused = now.saturating_sub(self.last_dispatch_ns) > PAUSE_NS && in_driver == 0;
        if paused {
            let changed = self.evaluate();
            self.restart(now, request);
            return changed;
        }
        self.samples += 1;
        let back_to_back = in_driver > 0 || now.saturating_sub(self.last_completion_ns) < BACK_TO_BACK_NS;
        if back_to_back && !habits::is_jump(position, request, rotational) {
            self.sequential += 1;
        }
        self.sectors += u64::from(request.sectors);
        let size = u64::from(request.sectors);
        self.largest = if self.samples.is_multiple_of(SAMPLES_LEAST) { size } else { size.max(self.largest) };
        self.last_dispatch_ns = now;
        if now.saturating_sub(self.first_dispatch_ns) / 1000 < SPAN_US {
            return false;
        }
        let changed = self.evaluate();
        self.restart(now, request);
        changed
    }

    /// A request is done. Did the estimate change?
    pub(super) fn completed(&mut self, now: u64) -> bool {
        let gap_ns = now.saturating_sub(self.last_completion_ns);
        self.last_completion_ns = now;
        // So slow that even the largest request does not explain it: 1/1024 sector/us.
        if gap_ns <= BACK_TO_BACK_NS || (self.largest << SHIFT) / (gap_ns / 1000) >= 1 << (SHIFT - 10) {
            return false;
        }
        let changed = self.evaluate();
        self.samples = 0;
        changed
    }

    fn restart(&mut self, now: u64, request: &Request) {
        (self.first_dispatch_ns, self.last_dispatch_ns) = (now, now);
        (self.samples, self.sequential) = (1, 0);
        self.sectors = u64::from(request.sectors);
        self.largest = self.sectors;
    }

    fn evaluate(&mut self) -> bool {
        let until = self.last_dispatch_ns.max(self.last_completion_ns);
        let until_dispatch_us = self.last_dispatch_ns.saturating_sub(self.first_dispatch_ns) / 1000;
        if self.samples < SAMPLES_LEAST || until_dispatch_us < SPAN_LEAST_US {
            return false;
        }
        let span_us = until.saturating_sub(self.first_dispatch_ns) / 1000;
        let rate = (self.sectors << SHIFT) / span_us.max(1);
        let samples = u64::from(self.samples);
        let sequential = u64::from(self.sequential);
        let mostly_sequential = 4 * sequential >= 3 * samples;
        if rate > RATE_MAX || (!mostly_sequential && rate <= self.rate) {
            return false;
        }
        let weight = (9 * sequential / samples * span_us / SPAN_US).min(8);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}
