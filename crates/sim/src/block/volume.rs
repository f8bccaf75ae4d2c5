//! A volume over several disks: a bio goes to the disk its sector lies on, which has a request queue, a scheduler, io contexts and
//! groups of its own. As in Linux' device mapper the volume itself has no queue: nothing above the disks shares anything out.
//!
//! Every disk gets the same contexts and groups in the same order, so that a number means the same on all of them.
//!
//! Not modelled: the order of a barrier on one disk after what the others hold. A write with a barrier or a flush before it
//! sends a flush to each of the others at the same time.

use fairlift_core::queue::{Admission, RequestQueue};
use fairlift_core::{Bio, ContextId, Flags, IoPrio, Op};

use super::operations::Done;
use super::{Attempt, BlockLayer, BlockStats, Owner, Passes, Submitter, Taken, TraceEvent};
use crate::device::Limits;
use crate::engine::{OpId, TaskId, earlier};
use crate::group::{Cgroup, GroupFigures};

/// How a volume is laid over its disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Number of disks, all alike.
    pub disks: usize,
    /// Sectors on one disk before the next one follows.
    pub stripe_sectors: u64,
}

impl Volume {
    /// Fewest and most disks.
    pub const DISKS: (usize, usize) = (2, 16);

    /// The volume's limits over disks with these.
    pub fn limits(&self, disk: &Limits) -> Limits {
        let stripes = disk.sectors / self.stripe_sectors;
        Limits { sectors: stripes * self.stripe_sectors * self.disks as u64, ..*disk }
    }

    /// The disk a sector lies on, and its sector there.
    pub fn place(&self, sector: u64) -> (usize, u64) {
        let (stripe, within) = (sector / self.stripe_sectors, sector % self.stripe_sectors);
        let disks = self.disks as u64;
        ((stripe % disks) as usize, stripe / disks * self.stripe_sectors + within)
    }

    /// Sectors up to the end of the stripe that `sector` lies in.
    pub fn room(&self, sector: u64) -> u64 {
        self.stripe_sectors - sector % self.stripe_sectors
    }
}

/// The disks below a volume.
#[derive(Debug)]
pub(super) struct Disks {
    volume: Volume,
    layers: Vec<BlockLayer>,
}

/// How far a bio has come that goes to several disks, and its operation on the disk that it has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OnDisk {
    disk: u8,
    op: OpId,
}

impl Disks {
    /// The queue of the disk that `sector` lies on.
    pub(super) fn queue_at(&mut self, sector: u64) -> &mut RequestQueue {
        &mut self.layers[self.volume.place(sector).0].queue
    }

    /// The part of a bio for a disk, if it has one.
    fn part(&self, disk: usize, bio: &Bio) -> Option<Bio> {
        if bio.op == Op::Flush {
            return Some(*bio);
        }
        let (own, sector) = self.volume.place(bio.sector);
        if own == disk {
            return Some(Bio { sector, ..*bio });
        }
        let orders = bio.flags.contains(Flags::BARRIER) || bio.flags.contains(Flags::PREFLUSH);
        orders.then_some(Bio {
            op: Op::Flush,
            flags: Flags::SYNC,
            sector: 0,
            sectors: 0,
            segments: 0,
            ..*bio
        })
    }
}

impl BlockLayer {
    /// Put `layers`, one a disk, below this one: no bio reaches its own queue and device any more.
    pub(crate) fn set_disks(&mut self, volume: Volume, layers: Vec<BlockLayer>) {
        debug_assert_eq!(volume.disks, layers.len());
        self.disks = Some(Box::new(Disks { volume, layers }));
    }

    /// The layers of the disks below; none if this is a disk's.
    pub fn disks(&self) -> &[BlockLayer] {
        self.disks.as_deref().map_or(&[], |disks| &disks.layers)
    }

    pub(super) fn disks_mut(&mut self) -> &mut [BlockLayer] {
        self.disks.as_deref_mut().map_or(&mut [], |disks| &mut disks.layers)
    }

    /// Most sectors of a bio that begins at `sector`.
    pub(crate) fn room_at(&self, sector: u64) -> u64 {
        self.disks.as_deref().map_or(u64::MAX, |disks| disks.volume.room(sector))
    }

    /// Would a submitter of reads (`sync`) or writes be told that the queue, or one of those below, is congested?
    pub(crate) fn is_congested(&mut self, sync: bool) -> bool {
        match self.disks.is_some() {
            false => self.queue.is_congested(sync),
            true => self.disks_mut().iter_mut().any(|layer| layer.is_congested(sync)),
        }
    }

    /// Submit one bio of `op` to the disks it concerns.
    #[cold]
    pub(super) fn submit_below(
        &mut self,
        op: OpId,
        bio: Bio,
        by: Submitter,
        attempt: Attempt,
        now: u64,
    ) -> Taken {
        let Some(mut disks) = self.disks.take() else { return Taken::Yes };
        let (mut resumed, mut attempt) = (attempt.passes().on_disk, attempt);
        let first = resumed.map_or(0, |on| usize::from(on.disk));
        let mut taken = Taken::Yes;
        for disk in first..disks.layers.len() {
            let Some(part) = disks.part(disk, &bio) else { continue };
            let layer = &mut disks.layers[disk];
            let below = match resumed.take() {
                Some(on) => on.op,
                None => {
                    self.ops[op.0 as usize].left += 1;
                    layer.open_op(Owner::Volume(op))
                }
            };
            match layer.submit(below, &part, by, attempt, now) {
                Taken::Yes => layer.close_op(below, now),
                Taken::Wait(then) => {
                    taken = Taken::Wait(then.on_disk(OnDisk { disk: disk as u8, op: below }));
                }
                Taken::Sleep(at, then) => {
                    taken = Taken::Sleep(at, then.on_disk(OnDisk { disk: disk as u8, op: below }));
                }
            }
            if taken != Taken::Yes {
                break;
            }
            attempt = Attempt::New;
        }
        self.disks = Some(disks);
        self.collect();
        taken
    }

    /// Take from the disks what is done and who may go on.
    #[cold]
    pub(super) fn collect(&mut self) {
        let Some(mut disks) = self.disks.take() else { return };
        for layer in &mut disks.layers {
            while let Some(Done { op, owner, at_ns }) = layer.pop_done() {
                layer.forget_op(op);
                if let Owner::Volume(above) = owner {
                    self.one_less(above, at_ns);
                }
            }
            self.woken.extend(layer.woken.drain(..));
        }
        self.disks = Some(disks);
    }

    #[cold]
    pub(super) fn pump_disks(&mut self, now: u64) {
        self.disks_mut().iter_mut().for_each(|layer| layer.pump(now));
        self.collect();
    }

    /// Let the disks work up to `now`.
    #[cold]
    pub(super) fn advance_disks(&mut self, now: u64) {
        self.disks_mut().iter_mut().for_each(|layer| layer.advance(now));
        self.collect();
    }

    pub(super) fn next_event_below(&self) -> Option<u64> {
        self.disks().iter().map(BlockLayer::next_event).fold(None, earlier)
    }

    pub(super) fn create_context_below(
        &mut self,
        own: ContextId,
        ioprio: IoPrio,
        task: TaskId,
        cgroup: Cgroup,
    ) {
        for layer in self.disks_mut() {
            let context = layer.create_context(ioprio, task, cgroup);
            debug_assert_eq!(own, context, "a task has one number on all disks");
        }
    }

    /// What the disks together did, in order of time.
    pub(super) fn take_traces(&mut self) -> Vec<TraceEvent> {
        let mut all = Vec::new();
        for (disk, layer) in self.disks_mut().iter_mut().enumerate() {
            all.extend(layer.take_trace().into_iter().map(|event| TraceEvent { disk: disk as u8, ..event }));
        }
        all.sort_by_key(|event| event.at_ns);
        all
    }

    /// What was counted so far, of all disks together.
    pub fn stats_of_all(&self) -> BlockStats {
        let mut sum = self.stats.clone();
        self.disks().iter().for_each(|layer| sum.add(&layer.stats));
        sum
    }

    /// Requests that the queue, or each disk's, has room for (`nr_requests`).
    pub(crate) fn nr_requests(&self) -> u32 {
        let (Admission::Pools { nr_requests } | Admission::Tags { nr_requests }) =
            self.queue.config().admission;
        nr_requests
    }

    /// Time that the device worked and that its limits cost, or all disks together, nanoseconds.
    pub(crate) fn device_times_ns(&self) -> (u64, u64) {
        let of = |layer: &BlockLayer| (layer.device.busy_ns(), layer.device.limited_ns());
        let add = |sum: (u64, u64), more: (u64, u64)| (sum.0 + more.0, sum.1 + more.1);
        self.disks().iter().map(of).fold(of(self), add)
    }

    /// Time of the device, or of all disks together, for a context, nanoseconds.
    pub(crate) fn device_time_of(&self, context: usize) -> u64 {
        let of = |layer: &BlockLayer| layer.stats.device_time_ns[context];
        of(self) + self.disks().iter().map(of).sum::<u64>()
    }

    /// What the groups' requests cost and got on the disks, by [`Cgroup`].
    pub(crate) fn figures_below(
        &self,
        group: Cgroup,
        backlog_since_ns: Option<u64>,
        now: u64,
    ) -> GroupFigures {
        let mut sum = GroupFigures::default();
        for meter in self.disks().iter().filter_map(|layer| layer.meter.as_deref()) {
            sum.add(&meter.figures(group, backlog_since_ns, now));
        }
        sum
    }
}

impl Attempt {
    /// What the bio is known by.
    fn passes(&self) -> Passes {
        match self {
            Attempt::New => Passes::default(),
            Attempt::Passed(passes) | Attempt::ForSlot(passes, ..) => *passes,
        }
    }

    /// The same, to be taken up at this disk.
    fn on_disk(self, on: OnDisk) -> Attempt {
        let on_disk = Some(on);
        match self {
            Attempt::New => Attempt::Passed(Passes { on_disk, ..Passes::default() }),
            Attempt::Passed(passes) => Attempt::Passed(Passes { on_disk, ..passes }),
            Attempt::ForSlot(passes, place, limit) => {
                Attempt::ForSlot(Passes { on_disk, ..passes }, place, limit)
            }
        }
    }
}
