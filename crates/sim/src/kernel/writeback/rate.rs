//! Pausing tasks that dirty pages by a rate that follows the device's (`balance_dirty_pages` since 3.2): no task but the flusher
//! writes, and every task sleeps just as long as its pages would take.
//!
//! Source: Linux 6.12 `mm/page-writeback.c`. One device. The same control serves each group by itself in [`super::fair`] and, with other
//! limits, in [`super::by_cgroup`].

use fairlift_core::{MS, SECOND};

use crate::anatomy::{Cause, Why};
use crate::engine::Sys;
use crate::group::Cgroup;
use crate::kernel::Kernel;
use crate::kernel::files::FileId;

use super::by_cgroup::{self, Look};

/// How often the rates are estimated anew.
const UPDATE_NS: u64 = 200 * MS;
/// Longest pause.
const PAUSE_MAX_NS: f64 = 200e6;
/// What a pause should be.
const PAUSE_TARGET_NS: f64 = 10e6;
/// Pages between two looks, if possible.
const PAGES_BETWEEN: u64 = 32;
/// Pages per second that a device is taken to write until it is known: 100 MB/s.
const FIRST_BANDWIDTH: f64 = 25_600.0;
/// Time over which the device's bandwidth is averaged, seconds.
const BANDWIDTH_SECONDS: f64 = 3.0;

#[derive(Debug)]
pub(super) struct RateControl {
    /// Pages per second the device writes, averaged, and averaged again.
    bandwidth: f64,
    average_bandwidth: f64,
    /// Pages per second a task may dirty, before the position's correction.
    ratelimit: f64,
    dirtied: u64,
    updated_ns: u64,
    dirtied_then: u64,
    written_then: u64,
    freerun: f64,
    limit: f64,
    /// By task: pages dirtied since its last pause, and when that ended.
    tasks: std::collections::BTreeMap<usize, (u64, u64)>,
}

impl RateControl {
    pub(super) fn new((background, limit): (u64, u64)) -> RateControl {
        RateControl {
            bandwidth: FIRST_BANDWIDTH,
            average_bandwidth: FIRST_BANDWIDTH,
            ratelimit: FIRST_BANDWIDTH,
            dirtied: 0,
            updated_ns: 0,
            dirtied_then: 0,
            written_then: 0,
            freerun: (background + limit) as f64 / 2.0,
            limit: limit as f64,
            tasks: std::collections::BTreeMap::new(),
        }
    }

    /// Let the limits come so far (0 to 1) towards these.
    pub(super) fn move_limits(&mut self, background: f64, limit: f64, way: f64) {
        self.freerun += (f64::midpoint(background, limit) - self.freerun) * way;
        self.limit += (limit.max(1.0) - self.limit) * way;
    }

    /// Dirty pages above which the flusher works.
    pub(super) fn background(&self) -> f64 {
        2.0 * self.freerun - self.limit
    }

    /// Pages per second the device writes.
    pub(super) fn write_bandwidth(&self) -> u64 {
        self.average_bandwidth as u64
    }

    /// By how much the rate is corrected at `dirty` pages: 2 where no task is held back yet, 1 at the set point, 0 at the limit.
    fn position(&self, dirty: f64) -> f64 {
        if dirty >= self.limit {
            return 0.0;
        }
        let setpoint = f64::midpoint(self.freerun, self.limit);
        let x = (setpoint - dirty) / (self.limit - setpoint);
        (1.0 + x * x * x).clamp(0.0, 2.0)
    }

    /// Estimate the rates anew, if it is time to.
    fn update(&mut self, dirty: f64, written: u64, now: u64) {
        if let Some(dirty_rate) = self.measure(written, now) {
            let setpoint = f64::midpoint(self.freerun, self.limit);
            self.move_ratelimit(self.position(dirty), dirty < setpoint, dirty_rate);
        }
    }

    /// Estimate how fast the device writes, if it is time to: pages that tasks dirtied a second since the last time.
    pub(super) fn measure(&mut self, written: u64, now: u64) -> Option<f64> {
        let elapsed = now - self.updated_ns;
        if elapsed < UPDATE_NS {
            return None;
        }
        let mut measured = None;
        if elapsed < SECOND {
            let seconds = elapsed as f64 / 1e9;
            let write_rate = (written - self.written_then) as f64 / seconds;
            let dirty_rate = (self.dirtied - self.dirtied_then) as f64 / seconds;
            let weight = (seconds / BANDWIDTH_SECONDS).min(1.0);
            self.bandwidth += (write_rate - self.bandwidth) * weight;
            self.average_bandwidth += (self.bandwidth - self.average_bandwidth) / 8.0;
            measured = Some(dirty_rate);
        }
        // A pause in dirtying says nothing about the device: begin anew.
        self.updated_ns = now;
        self.dirtied_then = self.dirtied;
        self.written_then = written;
        measured
    }

    /// Move the rate a part of the way to the balanced one, and only if the position asks for the same direction; `below`: less is
    /// dirty than the set point.
    pub(super) fn move_ratelimit(&mut self, position: f64, below: bool, dirty_rate: f64) {
        let task_rate = self.ratelimit * position;
        let bandwidth = self.average_bandwidth.max(1.0);
        let balanced = (task_rate * bandwidth / dirty_rate.max(1.0)).min(bandwidth);
        let step = if below {
            let target = balanced.min(task_rate);
            if self.ratelimit < target { target - self.ratelimit } else { 0.0 }
        } else {
            let target = balanced.max(task_rate);
            if self.ratelimit > target { target - self.ratelimit } else { 0.0 }
        };
        self.ratelimit = (self.ratelimit + step / 8.0).max(1.0);
    }
}

/// What decides about a task's pauses: one for all, that of its group when writeback keeps to weights, or that of the group whose file it
/// writes to.
fn control(kernel: &mut Kernel, group: Cgroup) -> &mut RateControl {
    let writeback = &mut kernel.writeback;
    match (&mut writeback.fair, &mut writeback.cgroups) {
        (Some(fair), _) => fair.rate(group),
        (None, Some(cgroups)) => &mut cgroups.flusher(group).rate,
        (None, None) => &mut writeback.rate,
    }
}

/// How the limits are kept, and estimate the rates anew if it is time to.
fn look(kernel: &mut Kernel, group: Cgroup, now: u64) -> Look {
    if kernel.writeback.cgroups.is_some() {
        return by_cgroup::look(kernel, group, now);
    }
    let full = kernel.cache.unwritten_pages() >= kernel.cache.limits().1;
    let cache = &kernel.cache;
    let (dirty, written) = match &kernel.writeback.fair {
        Some(_) => (cache.unwritten_of(group) as f64, cache.written_of(group)),
        None => (cache.unwritten_pages() as f64, cache.written_pages()),
    };
    let rate = control(kernel, group);
    if dirty <= rate.freerun {
        return Look { free: true, position: 2.0, full, dirty };
    }
    rate.update(dirty, written, now);
    Look { free: false, position: rate.position(dirty), full: full || dirty >= rate.limit, dirty }
}

impl Sys {
    /// The caller has dirtied `pages` of `file`: let it sleep as long as the device needs for them.
    pub(super) async fn balance_by_rate(&self, file: FileId, pages: u64) {
        let group = {
            let machine = self.machine.borrow();
            let by_owner = machine.kernel.writeback.cgroups.is_some();
            if by_owner { machine.kernel.cache.owner_of(file) } else { machine.cgroup_of(self.task) }
        };
        control(&mut self.machine.borrow_mut().kernel, group).dirtied += pages;
        loop {
            let Some(pause) = self.next_pause(group, pages) else { return };
            let now = self.now();
            let until = now + pause.ns;
            self.machine.borrow_mut().block.dirtier_pauses(now);
            self.unplug();
            self.pause_until(until, Why::Because(Cause::Throttle)).await;
            let kernel = &mut self.machine.borrow_mut().kernel;
            control(kernel, group).tasks.insert(self.task.0, (0, until));
            if !pause.again {
                return;
            }
        }
    }

    fn next_pause(&self, group: Cgroup, pages: u64) -> Option<Pause> {
        let mut machine = self.machine.borrow_mut();
        super::by_share::look(&mut machine, Some(group));
        let now = machine.now();
        let kernel = &mut machine.kernel;
        let Look { free, position, full, dirty } = look(kernel, group, now);
        let rate = control(kernel, group);
        let (dirtied, ended) = rate.tasks.get(&self.task.0).copied().unwrap_or((0, now));
        let dirtied = dirtied + pages;
        if free {
            rate.tasks.remove(&self.task.0);
            let over = kernel.has_too_much_dirty();
            if over {
                super::wake_flushers(&mut machine, group);
            }
            return None;
        }
        let longest = PAUSE_MAX_NS.min(dirty / rate.average_bandwidth.max(1.0) * 1e9 / 8.0);
        let task_rate = rate.ratelimit * position;
        let pause = if task_rate < 1.0 || full {
            Some(longest)
        } else {
            let period = dirtied as f64 / task_rate * 1e9;
            // Time the task spent otherwise since its last pause counts, up to a second.
            let thought = (now - ended).min(SECOND) as f64;
            let pause = period - thought;
            let enough = dirtied >= PAGES_BETWEEN && pause >= PAUSE_TARGET_NS / 2.0;
            (enough || pause >= PAUSE_TARGET_NS).then_some(pause.min(longest))
        };
        rate.tasks.insert(self.task.0, (dirtied, ended));
        super::wake_flushers(&mut machine, group);
        pause.map(|ns| Pause { ns: (ns as u64).max(MS), again: full })
    }
}

/// How long to sleep, and whether the limits have to be looked at again then.
struct Pause {
    ns: u64,
    again: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_two_one_and_zero_at_its_marks() {
        let rate = RateControl::new((1000, 2000));
        assert_eq!(rate.freerun, 1500.0);
        assert_eq!(rate.position(1500.0), 2.0);
        assert_eq!(rate.position(1750.0), 1.0);
        assert_eq!(rate.position(2000.0), 0.0);
        assert!(rate.position(1800.0) < 1.0 && rate.position(1700.0) > 1.0);
    }

    /// Twice the device's rate is dirtied at the set point: the rate falls towards half of what it was, an eighth of the way at a
    /// time.
    #[test]
    fn the_rate_moves_an_eighth_of_the_way() {
        let mut rate = RateControl::new((1000, 2000));
        rate.ratelimit = 200.0;
        rate.average_bandwidth = 1000.0;
        rate.move_ratelimit(rate.position(1750.0), false, 2000.0);
        assert_eq!(rate.ratelimit, 200.0, "the set point itself asks for no change");
        rate.move_ratelimit(rate.position(1850.0), false, 2000.0);
        let task = 200.0 * rate.position(1850.0);
        assert_eq!(rate.ratelimit, 200.0 + (task.max(task / 2.0) - 200.0) / 8.0);
    }
}
