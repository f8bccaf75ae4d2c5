//! The flusher's work and the dirtiers' pauses when writeback keeps to groups' weights: [`super::fair`] decides, this does.

use fairlift_core::{Flags, SECOND};

use super::fair::{FairWriteback, Seen};
use crate::anatomy::{Cause, Why};
use crate::engine::{Machine, Sys};
use crate::group::Cgroup;
use crate::kernel::buffered::Which;
use crate::kernel::cache::{NextPages, PageCache};

/// How long the flusher sleeps at most when every group has its quota with the queue: HZ/10. The end of a write wakes it.
const SLEEP_NS: u64 = SECOND / 10;

/// Look at the groups' counters if it is time to, or if `group` is new.
pub(super) fn look(machine: &mut Machine, group: Option<Cgroup>) {
    let now = machine.now();
    let Some(fair) = &mut machine.kernel.writeback.fair else { return };
    let Some(meter) = machine.block.meter().filter(|_| fair.is_due(group, now)) else { return };
    let cache = &machine.kernel.cache;
    let seen = |group: Cgroup| {
        let (device_ns, write_ns) = meter.device_times(group);
        let (written, unwritten) = (cache.written_of(group), cache.unwritten_of(group));
        Seen { device_ns, write_ns, written, unwritten, requests: meter.has_requests(group) }
    };
    fair.update(seen, now);
}

/// Does a group have more dirty pages than its part of the background limit?
pub(crate) fn has_group_over_background(fair: &FairWriteback, cache: &PageCache) -> bool {
    cache.dirty_groups().any(|group| fair.is_over_background(group, cache.dirty_of(group)))
}

/// Pages that the flusher should send now: of the group that has had least and has room, the next in its turn. Of all groups
/// when too much is dirty in all, else of those of which too much is.
fn choose(machine: &mut Machine) -> Option<NextPages> {
    look(machine, None);
    let kernel = &mut machine.kernel;
    let fair: &FairWriteback = kernel.writeback.fair.as_ref()?;
    let cache = &kernel.cache;
    let too_much =
        |group: &Cgroup| cache.over_background() || fair.is_over_background(*group, cache.dirty_of(*group));
    let has_room = |group: &Cgroup| fair.has_room(*group, cache.writes_of(*group));
    let mut line: Vec<Cgroup> = cache.dirty_groups().filter(too_much).filter(has_room).collect();
    line.sort_by(|a, b| fair.virtual_ns(*a).total_cmp(&fair.virtual_ns(*b)));
    line.into_iter().find_map(|group| kernel.cache.next_pages_of(group))
}

impl Sys {
    /// Does writeback keep to groups' weights?
    pub(super) fn writes_by_share(&self) -> bool {
        self.machine.borrow().kernel.writeback.fair.is_some()
    }

    /// Write until no more is dirty than the background limits, group by group.
    pub(super) async fn write_background_by_share(&self) {
        while self.machine.borrow().kernel.has_too_much_dirty() {
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
