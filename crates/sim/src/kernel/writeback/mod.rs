//! Writeback: who sends dirty pages to the device, and when.

mod by_cgroup;
mod by_share;
mod domain;
mod fair;
mod flusher;
mod rate;
mod share;
mod sync_all;
mod throttle;

use super::cache::PageCache;
use crate::engine::{Machine, Simulation, TaskId};
use crate::group::Cgroup;
pub(crate) use by_cgroup::CgroupWriteback;
pub(crate) use by_share::has_group_over_background;
pub(crate) use fair::FairWriteback;
use fairlift_core::IoPrio;
use rate::RateControl;
use share::Shares;

/// What the kernel keeps for writeback.
#[derive(Debug)]
pub(crate) struct Writeback {
    /// The kernel's threads for it; with pdflush the first does the background work, the second the periodic.
    threads: Vec<TaskId>,
    /// Pages dirtied since a task last looked at the limits.
    unchecked: u64,
    /// The limit was exceeded at the last look: the next one comes soon.
    exceeded: bool,
    /// Who dirties how much (until 3.1).
    shares: Shares,
    rate: RateControl,
    /// By groups' weights, if that is wanted.
    pub(crate) fair: Option<FairWriteback>,
    /// By group, as Linux has it with cgroup v2.
    pub(crate) cgroups: Option<CgroupWriteback>,
    /// The first thread wants to know when pages reach the device.
    woken_by_writes: bool,
    /// Dirty pages that `sync` asked the flusher to write, and who waits for it.
    work: Vec<flusher::Work>,
}

impl Writeback {
    pub(crate) fn new(cache: &PageCache) -> Writeback {
        Writeback {
            threads: Vec::new(),
            unchecked: 0,
            exceeded: false,
            shares: Shares::new(cache.limits().1),
            rate: RateControl::new(cache.limits()),
            fair: None,
            cgroups: None,
            woken_by_writes: false,
            work: Vec::new(),
        }
    }

    /// Who is to be woken when pages reached the device.
    pub(crate) fn woken_by_writes(&self) -> Option<TaskId> {
        self.threads.first().copied().filter(|_| self.woken_by_writes)
    }
}

/// `task` made `pages` of the cache dirty that were not.
pub(crate) fn count_dirtied(machine: &mut Machine, task: TaskId, pages: u64) {
    machine.kernel.writeback.shares.add(task.0, pages);
}

/// Let the flushers look what there is to do: that of `group`, if each group has its own.
pub(crate) fn wake_flushers(machine: &mut Machine, group: Cgroup) {
    by_cgroup::wake(machine, group);
    for index in 0..machine.kernel.writeback.threads.len() {
        let thread = machine.kernel.writeback.threads[index];
        machine.wake(thread);
    }
}

/// Start the kernel's writeback threads.
pub(crate) fn start(simulation: &mut Simulation) {
    let pdflush = simulation.with_machine(|m| m.kernel.rules.writeback.pdflush);
    let duties: &[flusher::Duty] =
        if pdflush { &[flusher::Duty::Background, flusher::Duty::Periodic] } else { &[flusher::Duty::Both] };
    for duty in duties {
        let task = simulation.spawn_daemon(IoPrio::DEFAULT, |sys| flusher::run(sys, *duty));
        simulation.with_machine(|m| {
            m.set_name(task, if pdflush { "pdflush" } else { "flush" });
            m.kernel.writeback.threads.push(task);
            if let Some(cgroups) = &mut m.kernel.writeback.cgroups {
                cgroups.flusher(Cgroup::ROOT).task = Some(task);
            }
        });
    }
}
