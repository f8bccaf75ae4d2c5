//! Tenants: groups of the device's tree, their shares and limits, what they got, and the elevator, all of which may change live.

use std::io;
use std::path::Path;

use fairlift_core::group::limit::{BURST_NS, Direction};
use fairlift_core::group::{GroupError, GroupStats};
use fairlift_core::{GroupId, GroupParams};
use fairlift_sim::group::limits::Max;
use fairlift_sim::group::{GroupClass, GroupSpec};
use fairlift_sim::kernel::version;
use fairlift_sim::scheduler::SchedulerSpec;

use super::Device;
use super::machine::Machine;
use super::trace::Trace;

/// What a tenant is entitled to, and no more than what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Its weight beside others.
    pub weight: u32,
    /// Strict among tenants.
    pub class: GroupClass,
    /// Limits.
    pub max: Max,
    /// Per cent of the device that it gets before weights divide the rest; strict classes come before it.
    pub reserve: u32,
    /// A read or write that a client waits for should take no longer, nanoseconds; 0: no goal. Its turns come earlier for that, within
    /// its due.
    pub goal_ns: u64,
    /// How much unused time of its limits is kept, nanoseconds: after so long without I/O it may do at once what they allow in it.
    pub burst_ns: u64,
}

impl Default for Share {
    fn default() -> Share {
        Share {
            weight: fairlift_core::group::WEIGHT_DEFAULT,
            class: GroupClass::Be,
            reserve: 0,
            goal_ns: 0,
            max: Max::default(),
            burst_ns: BURST_NS,
        }
    }
}

/// What a tenant got: of its own group, and of those below it that are left.
#[derive(Clone, Copy, Debug, Default)]
pub struct TenantFigures {
    /// Counted by the core.
    pub stats: GroupStats,
    /// The share of the device that is due to it while those are busy that are now, 0 to 1.
    pub due: f64,
    /// Requests queued, and in the back end.
    pub depths: (u32, u32),
}

fn params(share: &Share) -> GroupParams {
    let of_weight = GroupSpec { weight: share.weight, class: share.class, ..GroupSpec::new("") }.params();
    GroupParams { reserve: share.reserve, latency_ns: share.goal_ns, ..of_weight }
}

fn sentence(error: GroupError) -> String {
    let text = match error {
        GroupError::Weight => "the weight is not from 1 to 10000",
        GroupError::Full => "there is no group left",
        GroupError::Depth => "the groups are too deep",
        GroupError::Unknown => "there is no such group any more",
        GroupError::Reserve { free } => {
            return format!("the reserves of a device cannot all be kept: {free} % are left for this one");
        }
        GroupError::Root => "the root stays",
    };
    text.to_owned()
}

impl Device {
    /// A new tenant.
    ///
    /// # Errors
    /// As a sentence.
    pub fn add_tenant(&self, share: &Share) -> Result<GroupId, String> {
        let parent = GroupId::ROOT;
        let group = self.change(|machine, _| machine.queue.groups_mut().create(parent, params(share)));
        let group = group.map_err(sentence)?;
        self.set_share(group, share).map(|()| group)
    }

    /// Change what it is entitled to; what is in flight counts.
    ///
    /// # Errors
    /// As a sentence; nothing changed.
    pub fn set_share(&self, group: GroupId, share: &Share) -> Result<(), String> {
        let answer = self.change(|machine, now| {
            machine.queue.groups_mut().set_params(group, params(share))?;
            machine.set_goal_below(group, share.goal_ns);
            for (direction, rates) in Direction::ALL.into_iter().zip(share.max.rates()) {
                machine.queue.set_limit(group, direction, rates, now)?;
                machine.queue.set_burst(group, direction, share.burst_ns)?;
            }
            Ok(())
        });
        answer.map_err(sentence)
    }

    /// It is gone; what it has in flight is served.
    pub fn remove_tenant(&self, group: GroupId) {
        // One that is gone already is what was asked for.
        let _ = self.change(|machine, now| machine.queue.remove_group(group, now));
    }

    /// What it got so far. The reads and writes of its connections that are tenants by themselves are not among those that met its goal
    /// or did not.
    pub fn tenant(&self, group: GroupId) -> TenantFigures {
        self.look(|machine| {
            let groups = machine.queue.groups();
            TenantFigures {
                stats: *groups[group].stats(),
                due: groups.share(group) as f64 / f64::from(1 << 20),
                depths: (groups.queued(group), groups.in_flight(group)),
            }
        })
    }

    /// The elevator with its settings.
    pub fn elevator(&self) -> String {
        self.look(|machine| machine.elevator.to_string())
    }

    /// Another elevator, or the same one with other settings; what is queued goes in the old one's order.
    pub fn set_elevator(&self, spec: &SchedulerSpec) {
        self.change(|machine, now| {
            let config = machine.queue.config().elevator();
            machine.queue.switch(spec.build(&config, version::TODAY.profile), now);
            spec.host().apply(machine.queue.groups_mut());
            machine.elevator = spec.clone();
        });
    }

    /// Write what is asked for and done from now on to this file, in blktrace's format; `None`: no more. A trace that was written
    /// before is whole afterwards.
    ///
    /// # Errors
    /// The system's.
    pub fn trace(&self, path: Option<&Path>) -> io::Result<()> {
        let trace = path.map(Trace::start).transpose()?;
        // Its end waits for the file, and nobody else is to wait for that.
        drop(self.change(|machine, _| machine.set_trace(trace)));
        Ok(())
    }

    /// Bios not answered yet.
    pub fn unfinished(&self) -> usize {
        self.look(Machine::unfinished)
    }

    /// Requests in the back end, and bios that wait to become requests.
    pub fn depths(&self) -> (u32, usize) {
        self.look(Machine::depths)
    }

    /// Jobs that the back end did, and that failed.
    pub fn jobs(&self) -> [u64; 2] {
        self.look(|machine| machine.jobs)
    }
}
