//! How large a request may be that keeps others waiting.

use super::super::costs::Costs;
use super::super::parts::Parts;
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

/// A device that is busy with one flow's reads in parts.
struct Busy {
    costs: Costs,
    parts: [Parts; 2],
    now: u64,
    depth_is_settled: bool,
}

impl Busy {
    fn new() -> Busy {
        Busy { costs: Costs::NEW, parts: [Parts::NEW; 2], now: 0, depth_is_settled: true }
    }

    /// Sizes of the parts, in their order, in so many seconds, when one of so many sectors costs `cost_ns`.
    fn run(&mut self, seconds: u64, cost_ns: impl Fn(u32) -> u64) -> Vec<u32> {
        let (end, mut sizes) = (self.now + seconds * SECOND, Vec::new());
        while self.now < end {
            let sectors = self.parts[0].sectors().min(MIB);
            self.now += cost_ns(sectors);
            self.costs.done(false, sectors.ilog2() as usize, cost_ns(sectors));
            if self.costs.row_ended() {
                for (parts, writes) in self.parts.iter_mut().zip([false, true]) {
                    parts.row(&self.costs, writes, self.depth_is_settled, self.now);
                }
            }
            if sizes.last() != Some(&sectors) {
                sizes.push(sectors);
            }
        }
        sizes
    }
}

fn found(seconds: u64, cost_ns: impl Fn(u32) -> u64) -> Vec<u32> {
    Busy::new().run(seconds, cost_ns)
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
    let mut busy = Busy::new();
    busy.run(5, |sectors| u64::from(sectors.div_ceil(KIB_256)) * MS / 8);
    assert!(busy.parts[0].sectors() >= KIB_256);
    busy.run(120, |sectors| u64::from(sectors) * 1000);
    assert!(busy.parts[0].sectors() <= 2 * KIB_64);
    assert_eq!(busy.parts[1].sectors(), KIB_64, "nothing was written");
}

/// At a depth that is too small for the device, large parts cost less only because more of it is busy with them: no other size is tried.
#[test]
fn no_other_size_is_tried_before_the_depth_is_known() {
    let mut busy = Busy { depth_is_settled: false, ..Busy::new() };
    let sizes = busy.run(5, |sectors| 50_000 + u64::from(sectors) * 100);
    assert_eq!(sizes, [KIB_64]);
    busy.depth_is_settled = true;
    assert!(busy.run(5, |sectors| 50_000 + u64::from(sectors) * 100).contains(&KIB_256));
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
    assert_eq!(wants(&mut rig, Op::Read, deep, Flags::NONE), MIB, "it does not fill the device");
    for _ in rig.q.pending()..100 {
        rig.send(deep, KIB_64);
    }
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
