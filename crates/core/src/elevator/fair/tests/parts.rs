//! How large a request may be that keeps others waiting.

use super::super::costs::Costs;
use std::vec::Vec;

use super::machine::build;
use crate::context::{ContextId, IoPrio};
use crate::group::GroupId;
use crate::queue::{Admission, MergeLimits, Ordering, Plugging, QueueConfig, RequestQueue, Submitted};
use crate::request::{Bio, Flags, Op};
use crate::{Dispatch, MS, RequestId, SECOND};

const KIB_64: u32 = 128;
const KIB_256: u32 = 512;
const MIB: u32 = 2048;

/// Sectors of a part after so many seconds of a device that is busy with them, when one of so many sectors costs `cost_ns`.
fn found(seconds: u64, cost_ns: impl Fn(u32) -> u64) -> Vec<u32> {
    let (mut costs, mut now, mut sizes) = (Costs::NEW, 0, Vec::new());
    while now < seconds * SECOND {
        let sectors = costs.part_sectors(false).min(MIB);
        now += cost_ns(sectors);
        costs.done(false, sectors.ilog2() as usize, cost_ns(sectors), now);
        if sizes.last() != Some(&sectors) {
            sizes.push(sectors);
        }
    }
    sizes
}

/// Where a byte costs the same in parts of any size, or hardly more in small ones, they stay small; twice the size is tried now and then.
#[test]
fn parts_are_small_where_that_costs_nothing() {
    for request_ns in [0, 10_000] {
        let sizes = found(30, |sectors| request_ns + u64::from(sectors) * 1000);
        assert!(sizes.iter().step_by(2).all(|sectors| *sectors == KIB_64), "{sizes:?}");
        assert!(sizes[1..].iter().step_by(2).all(|sectors| *sectors == 2 * KIB_64), "{sizes:?}");
    }
}

/// A cloud volume counts what goes beyond 256 KiB as several operations: parts are of that size within two seconds.
#[test]
fn parts_are_as_large_as_what_counts_as_one_operation() {
    let sizes = found(2, |sectors| u64::from(sectors.div_ceil(KIB_256)) * MS / 8);
    assert_eq!(sizes[..3], [KIB_64, 2 * KIB_64, KIB_256], "{sizes:?}");
    assert!(sizes[3..].iter().all(|sectors| (KIB_256 / 2..=2 * KIB_256).contains(sectors)), "{sizes:?}");
    let sizes = found(30, |_| MS / 8);
    assert!(sizes.contains(&MIB), "where any size is one operation, nothing is split: {sizes:?}");
}

/// A device that changes: what was large becomes small again.
#[test]
fn parts_shrink_when_operations_are_not_scarce_any_more() {
    let (mut costs, mut now) = (Costs::NEW, 0);
    let mut run = |costs: &mut Costs, seconds: u64, cost_ns: &dyn Fn(u32) -> u64| {
        let end = now + seconds * SECOND;
        while now < end {
            let sectors = costs.part_sectors(false).min(MIB);
            now += cost_ns(sectors);
            costs.done(false, sectors.ilog2() as usize, cost_ns(sectors), now);
        }
    };
    run(&mut costs, 5, &|sectors| u64::from(sectors.div_ceil(KIB_256)) * MS / 8);
    assert!(costs.part_sectors(false) >= KIB_256);
    run(&mut costs, 120, &|sectors| u64::from(sectors) * 1000);
    assert!(costs.part_sectors(false) <= 2 * KIB_64);
    assert_eq!(costs.part_sectors(true), KIB_64, "nothing was written");
}

struct Rig {
    q: RequestQueue,
    cookie: u64,
    now: u64,
    in_device: Vec<RequestId>,
}

impl Rig {
    fn new() -> Rig {
        let config = QueueConfig {
            rotational: false,
            admission: Admission::Tags { nr_requests: 256 },
            plugging: Plugging::Off,
            ordering: Ordering::Sequences { write_cache: true, fua: true },
            limits: MergeLimits { max_sectors: MIB, max_segments: 512 },
            ..QueueConfig::default()
        };
        Rig { q: RequestQueue::new(config, build()), cookie: 0, now: 1, in_device: Vec::new() }
    }

    fn bio(&mut self, op: Op, context: ContextId, sectors: u32) -> Bio {
        self.cookie += 1;
        let (flags, group) = (Flags::SYNC, Some(GroupId::ROOT));
        let sector = self.cookie * 1_000_003 * 8 % (1 << 30);
        Bio { cookie: self.cookie, op, flags, sector, sectors, segments: 1, context, ioprio: None, group }
    }

    fn send(&mut self, context: ContextId, sectors: u32) {
        let bio = self.bio(Op::Read, context, sectors);
        assert!(matches!(self.q.submit(bio, self.now), Submitted::Queued(_) | Submitted::Merged(_)));
    }

    /// All that the queue lets go at once is done after a millisecond, the last first: a device that serves many at a time.
    fn step(&mut self) {
        while let Dispatch::Issue(rq) = self.q.dispatch(self.now) {
            self.in_device.push(rq);
        }
        self.now += MS;
        for rq in core::mem::take(&mut self.in_device).into_iter().rev() {
            self.q.complete(rq, self.now, |_| {});
        }
    }
}

/// What fills the device is split while another flow wants it; what comes from a flow that is behind its due is not, nor what has to be
/// durable at once or carries no data. A larger bio is accepted all the same.
#[test]
fn what_is_behind_its_due_or_ordered_is_not_split() {
    let mut rig = Rig::new();
    let [deep, light] = [0, 1].map(|_| rig.q.contexts_mut().create(IoPrio::DEFAULT));
    for step in 0..200 {
        for _ in rig.q.pending()..32 {
            rig.send(deep, KIB_64);
        }
        if step % 4 == 0 {
            rig.send(light, 8);
        }
        rig.step();
    }
    rig.send(deep, KIB_64);
    let wants = |rig: &mut Rig, op, context, flags| {
        let bio = rig.bio(op, context, MIB);
        let bio = Bio { flags: bio.flags | flags, ..bio };
        rig.q.bio_sectors_max(&bio, rig.now)
    };
    let part = wants(&mut rig, Op::Read, deep, Flags::NONE);
    assert!(part == KIB_64 || part == 2 * KIB_64, "{part}");
    assert_eq!(wants(&mut rig, Op::Write, deep, Flags::NONE), KIB_64);
    assert_eq!(wants(&mut rig, Op::Read, light, Flags::NONE), MIB);
    for (op, flags) in [(Op::Write, Flags::FUA), (Op::Write, Flags::PREFLUSH), (Op::Discard, Flags::NONE)] {
        assert_eq!(wants(&mut rig, op, deep, flags), MIB, "{op:?} {flags:?}");
    }
    rig.send(deep, MIB);
    rig.now += SECOND;
    assert_eq!(wants(&mut rig, Op::Read, deep, Flags::NONE), MIB, "no other flow wants the device");
}
