//! How many requests of one direction the device gains from at a time, found by trying.
//!
//! While the device holds as many as it may, the work it does per time is measured; work is bytes, and 64 KiB for each request besides. Then it is given more, or now and then fewer. The larger of two depths is kept if the work grows by at least
//! half the part by which the depth grew: a device that serves one after the other does the same work at any depth, one of
//! sixteen dies twice as much at two as at one, and next to nothing more once a link or all its dies are busy. In the beginning
//! the depth doubles while that pays, afterwards it grows in quarters. One that did not pay is tried again
//! after half a second, and later every ten.
//!
//! A device that serves one after the other and now and then pauses (a virtual machine that stops, a drive that recalibrates) must not be
//! taken for one that serves many at a time: the depth at which the pause fell looks slow beside a larger one. So
//! * a gap between two completions counts for no more than some usual ones, unless such gaps are many: then they are how the device
//!   works (nine reads of ten from its cache, say);
//! * the depths that tell the two kinds of devices apart are measured longer than others, once a trial was in vain;
//! * a depth that would make the device one of the second kind counts only after the smaller one was measured once more.

use crate::MS;
use crate::SECOND;

const DEPTH_MAX: u32 = 1024;
/// A device that gains from so many at a time, or fewer, serves one after the other.
pub(super) const SERIAL: u32 = 3;
/// A larger depth has to give this part of what it would if each place were worth as much as the others, per cent: it trades the latency
/// of flows that send little for the bandwidth of those that send much.
const PAYS: u64 = 50;
/// The same beside the smaller depth measured once more. Less, so that who truly gains does not fail by noise: what a pause pretended
/// gives nothing.
const PAYS_AGAIN: u64 = 25;
/// A trial is in vain, while it is still being measured, below the first (a larger depth) or above the second (a smaller one): half a
/// `PAYS` and more beside what decides at the end.
const IN_VAIN: [u64; 2] = [12, 75];
/// A depth that did not pay is tried again after this long, and then after twice as long each time, up to the second.
const RETRY_NS: [u64; 2] = [SECOND / 2, 10 * SECOND];
/// A smaller one is tried after this long.
const LOWER_NS: u64 = SECOND;

/// A pause is a gap of more than so many usual ones, and of more than twice as many as are in the device, which may all be done at
/// the same time. So what one request in four does, or more, is no pause.
const PAUSE: u32 = 4;
/// So many pauses while a depth was measured are no accident.
const PAUSES_MANY: u32 = 24;
/// The usual gap is a running mean of 2^4.
const USUAL_SHIFT: u32 = 4;
/// Requests from which nothing but the usual gap is learned, as the first may be a pause.
const FIRST: u32 = 64;

/// When a depth is judged.
struct Judged {
    /// After so many requests a place and no fewer than these,
    a_place: u32,
    least: u32,
    /// or after fewer that took [`JUDGED_NS`].
    least_slow: u32,
}

const IN_THE_BEGINNING: Judged = Judged { a_place: 16, least: 64, least_slow: 8 };
/// The same up to the first depth above `SERIAL`, while no trial was in vain: what serves many at a time is to be used soon.
const FIRST_LOW: Judged = Judged { a_place: 16, least: 64, least_slow: 64 };
const LATER: Judged = Judged { a_place: 4, least: 16, least_slow: 8 };
/// And then, and to confirm that depth: so many that noise and pauses seldom decide (64 gaps, one in 20 of them a pause, are known to
/// within a ninth), and that a device where one in 20 reads misses a cache has `PAUSES_MANY`.
const LOW: Judged = Judged { a_place: 16, least: 1024, least_slow: 64 };
/// Without what pauses took, and with it.
const JUDGED_NS: [u64; 2] = [100 * MS, 250 * MS];
/// From so many requests on, and each time they have doubled, a low depth is looked at before that: a trial in vain costs the light flows.
const LOOKED_AT: u32 = 16;
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
    /// Without what pauses took beyond that of the longest gap that is none.
    usual_ns: u64,
    requests: u32,
    pauses: u32,
    /// In the device, summed over them.
    held: u64,
}

/// A depth and what was measured at it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: u32,
    /// Work per time, with pauses and without.
    rate: u64,
    usual_rate: u64,
    pauses: u32,
    /// Requests that were really in the device: a flow that has none there may go beyond the depth.
    held: u64,
    /// When that was measured, and how long it took.
    at_ns: u64,
    busy_ns: u64,
    /// It seemed to pay, and the smaller one is measured once more.
    again: bool,
}

impl Trial {
    /// Does this depth beside a smaller one give so much of what it would if each place were worth as much as the others, per cent?
    fn gives(&self, shallow: &Trial, percent: u64) -> bool {
        let [rate, shallow_rate] = match shallow.pauses < PAUSES_MANY {
            true => [self.usual_rate, shallow.usual_rate],
            false => [self.rate, shallow.rate],
        };
        let more = self.held.saturating_sub(shallow.held);
        8 * more >= shallow.held
            && (100 * shallow.held).saturating_mul(rate.saturating_sub(shallow_rate))
                > (percent * more).saturating_mul(shallow_rate)
    }
}

/// How many at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// What it is now.
    pub(super) now: u32,
    window: Window,
    /// The usual gap, in parts of 2^-4 ns, and how many of the first requests are still to come.
    usual_gap: u64,
    first: u32,
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
        window: Window { work: 0, busy_ns: 0, usual_ns: 0, requests: 0, pauses: 0, held: 0 },
        usual_gap: u64::MAX,
        first: FIRST,
        skip: FIRST,
        trial: None,
        doubles: true,
        ceiling: (u32::MAX, 0),
        retry_ns: RETRY_NS[0],
        lower_at_ns: 0,
        least: 1,
    };

    /// What the device gains from as far as that is known: what is only tried does not count.
    #[inline]
    pub(super) fn known(&self) -> u32 {
        self.trial.filter(|trial| !trial.again).map_or(self.now, |trial| trial.before)
    }

    /// Was a larger depth tried in vain?
    #[inline]
    pub(super) fn was_in_vain(&self) -> bool {
        self.ceiling.1 > 0
    }

    /// Is it neither being tried nor to be tried for now whether a larger one pays?
    pub(super) fn is_settled(&self, now: u64) -> bool {
        let (ceiling, until_ns) = self.ceiling;
        self.trial.is_none() && now < until_ns && self.now + self.quarter() >= ceiling
    }

    /// The size of requests changes: what did not pay with those before may pay with those that follow, and what was measured with them is
    /// not to be compared.
    #[cold]
    pub(super) fn begin_anew(&mut self, now: u64) {
        self.give_up(now);
        self.window = Window::default();
        self.skip = self.now;
        self.ceiling.1 = self.ceiling.1.min(now);
        self.retry_ns = RETRY_NS[0];
    }

    /// A request was done, one of so many that were in the device; it did so much `work` and took `busy_ns` of its time.
    pub(super) fn done(&mut self, in_device: u32, work: u64, busy_ns: u64, now: u64) {
        if self
            .trial
            .is_some_and(|trial| now.saturating_sub(trial.at_ns) > 4 * (trial.busy_ns + JUDGED_NS[0]))
        {
            // Nobody sends so many, or much else may have changed since.
            self.give_up(now);
        }
        // Not full, or beyond it, because nobody else wants the device.
        if 4 * in_device < 3 * self.now || in_device > 2 * self.now {
            return;
        }
        let usual_ns = self.without_pause(in_device, busy_ns.min(SUM_MAX));
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        let was_in_vain = self.was_in_vain();
        let window = &mut self.window;
        window.work = (window.work + work).min(SUM_MAX);
        window.busy_ns = (window.busy_ns + busy_ns).min(SUM_MAX);
        window.usual_ns = (window.usual_ns + usual_ns).min(SUM_MAX);
        window.requests += 1;
        window.pauses += u32::from(usual_ns < busy_ns);
        window.held += u64::from(in_device);
        let is_low = self.now <= SERIAL + 1;
        let is_again = self.trial.is_some_and(|trial| trial.again);
        let judged = match is_low {
            true if !was_in_vain && !is_again => FIRST_LOW,
            true => LOW,
            false if self.doubles => IN_THE_BEGINNING,
            false => LATER,
        };
        let is_slow = window.usual_ns >= JUDGED_NS[0] || window.busy_ns >= JUDGED_NS[1];
        let requests = window.requests;
        if requests >= judged.least.max(judged.a_place * self.now)
            || is_slow && requests >= judged.least_slow.max(2 * self.now)
        {
            self.judge(now);
        } else if is_low && requests >= LOOKED_AT && requests.is_power_of_two() {
            self.look(now);
        }
    }

    /// The gap that ended with this request; of a pause the longest gap that is none.
    #[inline]
    fn without_pause(&mut self, in_device: u32, gap_ns: u64) -> u64 {
        if self.first > 0 {
            self.first -= 1;
            self.one_of_the_first(gap_ns);
        }
        let usual_ns = self.usual_gap >> USUAL_SHIFT;
        let gap_ns = gap_ns.min(usual_ns.saturating_mul(u64::from(PAUSE.max(2 * in_device))).max(1));
        self.usual_gap = self.usual_gap - usual_ns + gap_ns;
        gap_ns
    }

    /// A pause among them is not to be taken for the usual gap. (Those that are done together have none between them.)
    #[cold]
    fn one_of_the_first(&mut self, gap_ns: u64) {
        if gap_ns > 0 && self.first >= FIRST / 2 {
            self.usual_gap = self.usual_gap.min((u64::from(PAUSE) * gap_ns) << USUAL_SHIFT);
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

    fn measured(&self, now: u64) -> Trial {
        let Window { work, busy_ns, usual_ns, requests, pauses, held } = self.window;
        let [rate, usual_rate] = [busy_ns, usual_ns].map(|ns| (work << RATE_SHIFT) / ns.max(1));
        let held = (held << HELD_SHIFT) / u64::from(requests.max(1));
        Trial { before: self.now, rate, usual_rate, pauses, held, at_ns: now, busy_ns, again: false }
    }

    fn judge(&mut self, now: u64) {
        let now_is = self.measured(now);
        self.window = Window::default();
        let Some(trial) = self.trial.take() else { return self.try_another(now_is, now) };
        if now.saturating_sub(trial.at_ns) > 2 * (trial.busy_ns + now_is.busy_ns) {
            self.trial = Some(trial);
            return self.give_up(now);
        }
        if self.goes_on_blind(&trial, &now_is) {
            self.trial = Some(trial);
            return self.change(2 * self.now);
        }
        let (deep, shallow) = if trial.before > self.now { (trial, now_is) } else { (now_is, trial) };
        let pays = deep.gives(&shallow, if trial.again { PAYS_AGAIN } else { PAYS });
        let (deep, shallow) = (deep.before, shallow.before);
        if pays && shallow == trial.before && (shallow..deep).contains(&SERIAL) {
            self.trial = Some(Trial { again: true, ..now_is });
            return self.change(shallow);
        }
        if !pays {
            let in_steps = !self.doubles;
            self.doubles &= trial.again;
            self.believe(if in_steps && !trial.again { shallow + 1 } else { deep }, now);
        } else if trial.before < self.now {
            self.retry_ns = RETRY_NS[0];
        }
        let next = if pays { deep } else { shallow };
        let went_on = next != trial.before && !trial.again;
        self.change(next);
        match () {
            () if !went_on => {}
            () if next > trial.before => self.try_up(now_is, now),
            () => self.try_down(now_is),
        }
    }

    /// Does it hold no more than at the depth before, so that nothing can be said yet?
    fn goes_on_blind(&self, trial: &Trial, now_is: &Trial) -> bool {
        self.doubles
            && trial.before < self.now
            && self.now < 4 * trial.before
            && 4 * now_is.held < 5 * trial.held
    }

    /// Ends a trial before it is measured to the end if it is clear that it will not pay.
    #[cold]
    fn look(&mut self, now: u64) {
        let now_is = self.measured(now);
        let Some(trial) = self.trial else { return };
        let in_vain = match trial.before < self.now {
            true => trial.pauses < PAUSES_MANY && !now_is.gives(&trial, IN_VAIN[0]),
            false => !trial.again && trial.gives(&now_is, IN_VAIN[1]),
        };
        if in_vain && self.goes_on_blind(&trial, &now_is) {
            self.window = Window::default();
            self.change(2 * self.now);
        } else if in_vain {
            self.doubles &= self.now < 4 * trial.before;
            self.give_up(now);
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
        let (kept, other) = if trial.again { (self.now, trial.before) } else { (trial.before, self.now) };
        if kept < other {
            self.believe(other, now);
        }
        self.change(kept);
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
