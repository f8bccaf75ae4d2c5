//! Room in front of the queue. (That in the device for the other direction: `fair_loads` of the command's tests.)

use super::machine::build;
use crate::context::IoPrio;
use crate::group::GroupId;
use crate::queue::ElevatorQueue;
use crate::request::{Bio, Flags, Op, request};
use crate::{MS, SECOND};

const TAGS: u32 = 64;

fn bio(context: crate::ContextId) -> Bio {
    let (op, flags, ioprio, group) = (Op::Read, Flags::NONE, None, Some(GroupId::ROOT));
    Bio { cookie: 0, op, flags, sector: 0, sectors: 8, segments: 1, context, ioprio, group }
}

/// A flow that has most of the slots leaves a quarter of them to the others; alone it may have them all.
#[test]
fn a_deep_flow_leaves_slots_to_others() {
    let mut q = ElevatorQueue::new(TAGS as usize, 8, false, build());
    let [deep, other] = [0, 1].map(|_| q.contexts_mut().create(IoPrio::DEFAULT));
    let send = |q: &mut ElevatorQueue, context, sector, now| {
        let rq = q.take(request(Op::Read, Flags::NONE, sector, 8, context, now)).expect("a slot");
        q.insert(rq, now);
    };
    for at in 0..40 {
        send(&mut q, deep, at * 1000, MS);
    }
    assert_eq!(q.tags_for(&bio(deep), TAGS, MS), TAGS, "no other flow wants the device");
    send(&mut q, other, 1 << 20, MS);
    // 40 of 40 + 23, then 48 of 48 + 15: three quarters.
    assert_eq!(q.tags_for(&bio(deep), TAGS, MS), TAGS);
    for at in 40..48 {
        send(&mut q, deep, at * 1000, MS);
    }
    assert_eq!(q.tags_for(&bio(deep), TAGS, MS), TAGS * 3 / 4);
    assert_eq!(q.tags_for(&bio(other), TAGS, MS), TAGS);
    // The other one is long gone.
    assert_eq!(q.tags_for(&bio(deep), TAGS, 10 * SECOND), TAGS);
}
