//! How many requests of one direction the device gains from at a time, found by trying.
//!
//! While the device holds as many as it may, the work it does per time is measured; work is bytes, and 64 KiB for each request besides. Then it is given more, or now and then fewer. The larger of two depths is kept if the work grows by at least
//! half the part by which the depth grew: a device that serves one after the other does the same work at any depth, one of
//! sixteen dies twice as much at two as at one, and next to nothing more once a link or all its dies are busy. In the beginning
//! the depth doubles while that pays, afterwards it grows in quarters. One that did not pay is tried again
//! after half a second, and later every ten.

use crate::MS;
use crate::SECOND;

const DEPTH_MAX: u32 = 1024;
/// A larger depth has to give this part of what it would if each place were worth as much as the others, per cent: it trades the latency
/// of flows that send little for the bandwidth of those that send much.
const PAYS: u64 = 50;
/// A depth that did not pay is tried again after this long, and then after twice as long each time, up to the second.
const RETRY_NS: [u64; 2] = [SECOND / 2, 10 * SECOND];
/// A smaller one is tried after this long.
const LOWER_NS: u64 = SECOND;
/// A depth is judged after so many requests a place and no fewer than the second figure, in the beginning and later; or after
/// fewer that took this long.
const JUDGED: [[u32; 2]; 2] = [[16, 64], [4, 16]];
const JUDGED_LEAST: u32 = 8;
const JUDGED_NS: u64 = 100 * MS;
/// Work per time is kept in parts of 2^-20.
const RATE_SHIFT: u32 = 20;
/// Requests in the device are kept in parts of 2^-4.
const HELD_SHIFT: u32 = 4;
/// The most that is summed up, so that a product of a sum and 2^20 fits.
const SUM_MAX: u64 = 1 << 43;

/// Work done while the device was full.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    work: u64,
    busy_ns: u64,
    requests: u32,
    /// In the device, summed over them.
    held: u64,
}

/// A depth and what was measured at it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: u32,
    rate: u64,
    /// Requests that were really in the device: a flow that has none there may go beyond the depth.
    held: u64,
    /// When that was measured, and how long it took.
    at_ns: u64,
    busy_ns: u64,
}

/// How many at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// What it is now.
    pub(super) now: u32,
    window: Window,
    /// Requests that were sent before the depth was changed.
    skip: u32,
    trial: Option<Trial>,
    /// Nothing was in vain yet.
    doubles: bool,
    /// The depth that did not pay, and until when that is believed.
    ceiling: (u32, u64),
    retry_ns: u64,
    /// When a smaller one is tried.
    lower_at_ns: u64,
    /// It is never smaller.
    least: u32,
}

impl Depth {
    pub(super) const NEW: Depth = Depth {
        now: 1,
        window: Window { work: 0, busy_ns: 0, requests: 0, held: 0 },
        skip: 0,
        trial: None,
        doubles: true,
        ceiling: (u32::MAX, 0),
        retry_ns: RETRY_NS[0],
        lower_at_ns: 0,
        least: 1,
    };

    /// A request was done, one of so many that were in the device; it did so much `work` and took `busy_ns` of its time.
    pub(super) fn done(&mut self, in_device: u32, work: u64, busy_ns: u64, now: u64) {
        if self.trial.is_some_and(|trial| now.saturating_sub(trial.at_ns) > 4 * (trial.busy_ns + JUDGED_NS)) {
            // Nobody sends so many, or much else may have changed since.
            self.give_up(now);
        }
        // Not full, or beyond it, because nobody else wants the device.
        if 4 * in_device < 3 * self.now || in_device > 2 * self.now {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        let window = &mut self.window;
        window.work = (window.work + work).min(SUM_MAX);
        window.busy_ns = (window.busy_ns + busy_ns).min(SUM_MAX);
        window.requests += 1;
        window.held += u64::from(in_device);
        let [a_place, least] = JUDGED[usize::from(self.doubles)];
        let enough = window.requests >= least.max(a_place * self.now)
            || window.requests >= JUDGED_LEAST.max(2 * self.now) && window.busy_ns >= JUDGED_NS;
        if enough {
            self.judge(now);
        }
    }

    #[inline]
    pub(super) fn is_at_least(&mut self, least: u32) {
        self.least = least;
        if self.now < least {
            (self.trial, self.window) = (None, Window::default());
            self.change(least);
        }
    }

    fn judge(&mut self, now: u64) {
        let Window { work, busy_ns, requests, held } = core::mem::take(&mut self.window);
        let rate = (work << RATE_SHIFT) / busy_ns.max(1);
        let held = (held << HELD_SHIFT) / u64::from(requests.max(1));
        let now_is = Trial { before: self.now, rate, held, at_ns: now, busy_ns };
        let Some(trial) = self.trial.take() else { return self.try_another(now_is, now) };
        if now.saturating_sub(trial.at_ns) > 2 * (trial.busy_ns + busy_ns) {
            self.trial = Some(trial);
            return self.give_up(now);
        }
        if self.doubles && trial.before < self.now && self.now < 4 * trial.before && 4 * held < 5 * trial.held
        {
            // It holds no more than before.
            self.trial = Some(trial);
            return self.change(2 * self.now);
        }
        let (deep, shallow) = if trial.before > self.now { (trial, now_is) } else { (now_is, trial) };
        let more = deep.held.saturating_sub(shallow.held);
        let pays = 8 * more >= shallow.held
            && (100 * shallow.held).saturating_mul(deep.rate.saturating_sub(shallow.rate))
                > (PAYS * more).saturating_mul(shallow.rate);
        let (deep, shallow) = (deep.before, shallow.before);
        if !pays {
            let in_steps = !core::mem::take(&mut self.doubles);
            self.believe(if in_steps { shallow + 1 } else { deep }, now);
        } else if trial.before < self.now {
            self.retry_ns = RETRY_NS[0];
        }
        let next = if pays { deep } else { shallow };
        let went_on = next != trial.before;
        self.change(next);
        match () {
            () if !went_on => {}
            () if next > trial.before => self.try_up(now_is, now),
            () => self.try_down(now_is),
        }
    }

    fn try_another(&mut self, measured: Trial, now: u64) {
        self.try_up(measured, now);
        if self.trial.is_none() && now >= self.lower_at_ns {
            self.lower_at_ns = now.saturating_add(LOWER_NS);
            self.try_down(measured);
        }
    }

    fn try_up(&mut self, measured: Trial, now: u64) {
        let (ceiling, until_ns) = self.ceiling;
        let most = if now < until_ns { ceiling - 1 } else { DEPTH_MAX };
        let up = if self.doubles { 2 * self.now } else { self.now + self.quarter() };
        if up <= most {
            self.trial = Some(measured);
            self.change(up);
        }
    }

    fn try_down(&mut self, measured: Trial) {
        if self.now > self.least {
            self.trial = Some(measured);
            self.change((self.now - self.quarter()).max(self.least));
        }
    }

    fn quarter(&self) -> u32 {
        (self.now / 4).max(1)
    }

    /// A trial that says nothing.
    #[cold]
    fn give_up(&mut self, now: u64) {
        let Some(trial) = self.trial.take() else { return };
        self.window = Window::default();
        if trial.before < self.now {
            self.believe(self.now, now);
        }
        self.change(trial.before);
    }

    /// `depth` does not pay.
    fn believe(&mut self, depth: u32, now: u64) {
        self.ceiling = (depth, now.saturating_add(self.retry_ns));
        self.retry_ns = (2 * self.retry_ns).min(RETRY_NS[1]);
    }

    fn change(&mut self, depth: u32) {
        self.skip = self.now.max(depth);
        self.now = depth;
    }
}
