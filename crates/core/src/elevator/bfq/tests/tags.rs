//! Who may take how many scheduler tags: 64 of them.

use std::vec::Vec;

use super::*;
use crate::request::Bio;

const TAGS: u32 = 64;

fn plain() -> Rig {
    let mut rig = Rig::on(false);
    rig.set("low_latency", "0");
    rig
}

impl Rig {
    fn tags_for(&mut self, op: Op, flags: Flags, context: ContextId) -> u32 {
        let bio = Bio {
            cookie: 0,
            op,
            flags,
            sector: 0,
            sectors: 8,
            segments: 1,
            context,
            ioprio: None,
            group: None,
        };
        self.q.tags_for(&bio, TAGS, self.now)
    }

    fn read_tags(&mut self, context: ContextId) -> u32 {
        self.tags_for(Op::Read, Flags::NONE, context)
    }
}

/// Nobody has anything: reads 64, sync writes 3/4, async ones 1/2.
#[test]
fn writes_leave_tags_to_reads() {
    let mut rig = plain();
    let a = rig.context();
    let of = |rig: &mut Rig, op, flags| rig.tags_for(op, flags, a);
    assert_eq!(of(&mut rig, Op::Read, Flags::NONE), 64);
    assert_eq!(of(&mut rig, Op::Write, Flags::SYNC), 48);
    assert_eq!(of(&mut rig, Op::Write, Flags::NONE), 32);
}

/// Two new queues on a queue with low_latency are raised: 3/8 and 3/16.
#[test]
fn while_a_queue_is_raised_writes_have_less() {
    let mut rig = Rig::on(false);
    let a = rig.context();
    rig.read(a, FAR);
    let b = rig.context();
    assert_eq!(rig.tags_for(Op::Write, Flags::SYNC, b), 24);
    assert_eq!(rig.tags_for(Op::Write, Flags::NONE, b), 12);
}

/// Levels 0 and 7 weigh 80 and 10: 64 x 10 / 90 = 7.1 are the lighter one's.
#[test]
fn a_queue_with_its_part_gets_the_first_tag_or_none() {
    let mut rig = plain();
    let heavy = rig.context_at(IoPrio::BestEffort(0));
    let light = rig.context_at(IoPrio::BestEffort(7));
    rig.read(heavy, 9 * FAR);
    let mut sent = Vec::new();
    for i in 0..7 {
        assert_eq!(rig.read_tags(light), 64, "{i}");
        sent.push(rig.read(light, FAR + 80 * i));
    }
    assert_eq!(rig.read_tags(light), 1);
    assert_eq!(rig.read_tags(heavy), 64);
}

/// What is in the device counts until it is done.
#[test]
fn requests_in_the_device_count() {
    let mut rig = plain();
    let [a, b] = [rig.context(), rig.context()];
    let own: Vec<_> = (0..32).map(|i| rig.read(a, FAR + 80 * i)).collect();
    // Not within 180 ms, or they become one queue.
    rig.pass(200);
    rig.read(b, 9 * FAR);
    assert_eq!(rig.read_tags(a), 1, "half of 64 are its");
    rig.issues(own[0]);
    assert_eq!(rig.read_tags(a), 1);
    rig.complete(own[0]);
    assert_eq!(rig.read_tags(a), 64);
}

/// Weights 300 and 100: the light group's tasks have 16 tags together.
#[test]
fn a_groups_part_is_its_tasks_together() {
    let mut rig = plain();
    let (one, other) = (rig.group(GroupId::ROOT, 300), rig.group(GroupId::ROOT, 100));
    let heavy = rig.context_in(one);
    let [a, b] = [rig.context_in(other), rig.context_in(other)];
    rig.read(heavy, 20 * FAR);
    for i in 0..8 {
        rig.read(a, FAR + 80 * i);
        rig.read(b, 5 * FAR + 80 * i);
    }
    assert_eq!([rig.read_tags(a), rig.read_tags(b), rig.read_tags(heavy)], [1, 1, 64]);
}

/// A real-time queue of the least level weighs 10, a best-effort one 80; classes count eightfold: 80 of 160.
#[test]
fn higher_classes_count_eightfold() {
    let mut rig = plain();
    let rt = rig.context_at(IoPrio::RealTime(7));
    let be = rig.context_at(IoPrio::BestEffort(0));
    rig.read(rt, 9 * FAR);
    for i in 0..32 {
        assert_eq!(rig.read_tags(be), 64, "{i}");
        rig.read(be, FAR + 80 * i);
    }
    assert_eq!(rig.read_tags(be), 1);
}
