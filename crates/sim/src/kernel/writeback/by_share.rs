//! The flusher's work and the dirtiers' pauses when writeback keeps to groups' weights: [`super::fair`] decides, this does.

use fairlift_core::{Flags, SECOND};

use super::fair::{FairWriteback, Seen};
use crate::anatomy::{Cause, Why};
use crate::engine::{Machine, Sys};
use crate::group::Cgroup;
use crate::kernel::buffered::Which;
use crate::kernel::cache::NextPages;

/// How long the flusher sleeps at most when every group has its quota with the queue: HZ/10. The end of a write wakes it.
const SLEEP_NS: u64 = SECOND / 10;

/// Look at the groups' counters if it is time to.
pub(super) fn look(machine: &mut Machine) {
    let now = machine.now();
    let Some(fair) = &mut machine.kernel.writeback.fair else { return };
    let Some(meter) = machine.block.meter().filter(|_| fair.is_due(now)) else { return };
    let cache = &machine.kernel.cache;
    let seen = |group: Cgroup| {
        let (device_ns, write_ns) = meter.device_times(group);
        let busy = cache.unwritten_of(group) > 0 || meter.has_requests(group);
        Seen { device_ns, write_ns, written: cache.written_of(group), busy }
    };
    fair.update(seen, now);
}

/// Pages that the flusher should send now: of the group that has had least and has room, the next in its turn.
fn choose(machine: &mut Machine) -> Option<NextPages> {
    look(machine);
    let kernel = &mut machine.kernel;
    let fair: &FairWriteback = kernel.writeback.fair.as_ref()?;
    let cache = &kernel.cache;
    let mut line: Vec<Cgroup> =
        cache.dirty_groups().filter(|group| fair.has_room(*group, cache.writes_of(*group))).collect();
    line.sort_by(|a, b| fair.virtual_ns(*a).total_cmp(&fair.virtual_ns(*b)));
    line.into_iter().find_map(|group| kernel.cache.next_pages_of(group))
}

impl Sys {
    /// Does writeback keep to groups' weights?
    pub(super) fn writes_by_share(&self) -> bool {
        self.machine.borrow().kernel.writeback.fair.is_some()
    }

    /// Write until no more is dirty than the background limit, group by group.
    pub(super) async fn write_background_by_share(&self) {
        while self.machine.borrow().kernel.cache.over_background() {
            if !self.machine.borrow().kernel.writeback.work.is_empty() {
                self.do_work().await;
                continue;
            }
            let next = choose(&mut self.machine.borrow_mut());
            match next {
                Some(NextPages { file, pages, max }) => {
                    let (_, at) = self.write_pages(file, pages, max, Flags::NONE, Which::All).await;
                    self.machine.borrow_mut().kernel.cache.set_write_from(file, at);
                }
                None => self.sleep_until_written().await,
            }
        }
        self.unplug();
    }

    /// Sleep until some pages reached the device.
    async fn sleep_until_written(&self) {
        self.unplug();
        let (before, until) = {
            let mut machine = self.machine.borrow_mut();
            machine.kernel.writeback.woken_by_writes = true;
            let until = machine.now() + SLEEP_NS;
            machine.wake_at(until, self.task);
            (machine.kernel.cache.written_pages(), until)
        };
        self.wait(Why::Because(Cause::Congestion), |machine, _| {
            (machine.kernel.cache.written_pages() != before || machine.now() >= until).then_some(())
        })
        .await;
        self.machine.borrow_mut().kernel.writeback.woken_by_writes = false;
    }
}
