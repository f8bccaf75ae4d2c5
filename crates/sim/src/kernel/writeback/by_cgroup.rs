//! Writeback by cgroup, as Linux has it since 4.2 with cgroup v2: each group's files have a flusher of their own, a part of the dirty
//! limits by what the flusher wrote of late, and, with `memory.max`, limits of that memory.
//!
//! Weights are not in it: each flusher writes what it can, and whose bios go first is the scheduler's affair, or that of
//! [`crate::block`]'s lines where it is the module's.
//!
//! Source: Linux 6.12 `mm/page-writeback.c` (`balance_dirty_pages`, `wb_over_bg_thresh`), `lib/flex_proportions.c`; the file's owner is
//! [`super::super::cache`]'s.

use fairlift_core::SECOND;

use super::domain::Domain;
use super::rate::RateControl;
use crate::engine::{Machine, Sys, TaskId};
use crate::group::{Cgroup, GroupTree};
use crate::kernel::Kernel;
use crate::kernel::cache::PageCache;
use crate::kernel::files::{FileId, PAGE};

/// After this time what a flusher wrote counts half.
const PERIOD_NS: u64 = 3 * SECOND;

/// What is known of a group's writeback.
#[derive(Debug)]
pub(super) struct Flusher {
    /// Pauses the tasks that write to the group's files.
    pub(super) rate: RateControl,
    pub(super) task: Option<TaskId>,
    /// The least `memory.max` of the group and those above it, pages.
    memory_pages: Option<u64>,
    /// Pages written up to the last look, and those that count of them.
    seen: u64,
    counted: f64,
}

/// All groups' writeback.
#[derive(Debug)]
pub(crate) struct CgroupWriteback {
    flushers: Vec<Flusher>,
    /// Number of the present period.
    period: u64,
}

impl CgroupWriteback {
    pub(crate) fn new(tree: &GroupTree, limits: (u64, u64)) -> CgroupWriteback {
        let flusher = |group: Cgroup| {
            let path = std::iter::successors(Some(group), |at| tree.parent(*at));
            let memory = path.map(|at| tree.limits(at).memory_max.0).filter(|bytes| *bytes > 0).min();
            Flusher {
                rate: RateControl::new(limits),
                task: None,
                memory_pages: memory.map(|bytes| bytes / PAGE),
                seen: 0,
                counted: 0.0,
            }
        };
        CgroupWriteback { flushers: tree.numbers().map(flusher).collect(), period: 0 }
    }

    pub(super) fn flusher(&mut self, group: Cgroup) -> &mut Flusher {
        &mut self.flushers[group.index()]
    }

    /// Count what was written since the last look.
    pub(super) fn look(&mut self, cache: &PageCache, now: u64) {
        let periods = now / PERIOD_NS - self.period;
        self.period += periods;
        let half = 0.5_f64.powi(i32::try_from(periods).unwrap_or(i32::MAX));
        for (place, flusher) in self.flushers.iter_mut().enumerate() {
            let written = cache.owned_by(Cgroup(place as u16)).written;
            flusher.counted = flusher.counted * half + (written - flusher.seen) as f64;
            flusher.seen = written;
        }
    }

    /// The part of all that was written of late which `group` wrote.
    fn fraction(&self, group: Cgroup) -> f64 {
        let all: f64 = self.flushers.iter().map(|flusher| flusher.counted).sum();
        if all > 0.0 { self.flushers[group.index()].counted / all } else { 0.0 }
    }

    /// The computer's memory, as `group`'s flusher sees it.
    fn all(&self, cache: &PageCache, group: Cgroup) -> Domain {
        let (background, limit) = cache.limits();
        let (background, limit) = (background as f64, limit as f64);
        Domain {
            background,
            limit,
            dirty: cache.unwritten_pages() as f64,
            own_limit: limit * self.fraction(group),
            own_dirty: cache.owned_by(group).unwritten() as f64,
        }
    }

    /// The group's own memory: what others have dirty is none of it.
    fn own(&self, cache: &PageCache, group: Cgroup) -> Option<Domain> {
        if group == Cgroup::ROOT {
            return None;
        }
        let unwritten = cache.owned_by(group).unwritten();
        let free = cache.max_pages().saturating_sub(cache.unwritten_pages() - unwritten);
        let pages = self.flushers[group.index()].memory_pages.map_or(free, |memory| memory.min(free)) as f64;
        let (background, limit) = cache.limits();
        let of_memory = |limit: u64| limit as f64 / cache.max_pages() as f64;
        let limit_pages = (pages * of_memory(limit)).max(1.0);
        Some(Domain {
            background: pages * of_memory(background),
            limit: limit_pages,
            dirty: unwritten as f64,
            own_limit: limit_pages,
            own_dirty: unwritten as f64,
        })
    }

    /// Has the group's flusher to work: is too much dirty anywhere that it can help?
    pub(super) fn is_over_background(&self, cache: &PageCache, group: Cgroup) -> bool {
        let dirty = cache.owned_by(group).dirty as f64;
        if dirty == 0.0 {
            return false;
        }
        let (all, own) = (self.all(cache, group), self.own(cache, group));
        cache.over_background()
            || dirty > all.background * self.fraction(group)
            || own.is_some_and(|own| dirty > own.background)
    }
}

/// What decides about the next pause of a task that writes to files of `group`.
pub(super) struct Look {
    /// It is not held back.
    pub(super) free: bool,
    pub(super) position: f64,
    /// Nothing may be dirtied at all.
    pub(super) full: bool,
    /// Pages of the flusher.
    pub(super) dirty: f64,
}

/// Look at the limits, and estimate the rates anew if it is time to.
pub(super) fn look(kernel: &mut Kernel, group: Cgroup, now: u64) -> Look {
    let cache = &kernel.cache;
    let Some(writeback) = &mut kernel.writeback.cgroups else {
        return Look { free: true, position: 1.0, full: false, dirty: 0.0 };
    };
    writeback.look(cache, now);
    let domains: Vec<Domain> =
        std::iter::once(writeback.all(cache, group)).chain(writeback.own(cache, group)).collect();
    let owned = cache.owned_by(group);
    let dirty = owned.unwritten() as f64;
    let free = domains.iter().all(|domain| domain.dirty <= domain.freerun());
    let rate = &mut writeback.flushers[group.index()].rate;
    let bandwidth = rate.write_bandwidth() as f64;
    if !free && let Some(dirty_rate) = rate.measure(owned.written, now) {
        for domain in &domains {
            let below = domain.dirty < domain.setpoint();
            rate.move_ratelimit(domain.position(bandwidth), below, dirty_rate);
        }
    }
    let position = domains.iter().map(|domain| domain.position(bandwidth)).fold(f64::INFINITY, f64::min);
    let full = domains.iter().any(|domain| domain.dirty >= domain.limit);
    Look { free, position, full, dirty }
}

/// Wake the flusher of a group, if it has one.
pub(super) fn wake(machine: &mut Machine, group: Cgroup) {
    let task = machine.kernel.writeback.cgroups.as_ref().and_then(|all| all.flushers[group.index()].task);
    if let Some(task) = task {
        machine.wake(task);
    }
}

impl Sys {
    /// Pages of `file` became dirty, the first ones of its group's files perhaps: its flusher has to know when.
    pub(crate) fn wake_flusher_of(&self, file: FileId, first: bool) {
        let (group, missing) = {
            let kernel = &self.machine.borrow().kernel;
            let group = kernel.cache.owner_of(file);
            let Some(writeback) = &kernel.writeback.cgroups else { return };
            (group, writeback.flushers[group.index()].task.is_none())
        };
        if missing {
            let task = self.spawn_kernel("flush", move |sys| super::flusher::run_for(sys, group));
            let kernel = &mut self.machine.borrow_mut().kernel;
            if let Some(writeback) = &mut kernel.writeback.cgroups {
                writeback.flusher(group).task = Some(task);
            }
        } else if first {
            wake(&mut self.machine.borrow_mut(), group);
        }
    }
}
