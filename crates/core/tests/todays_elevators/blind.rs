//! Elevators that know no groups have one queue for everybody: a group that begins to send changes nothing for the others.

use fairlift_core::context::IoPrio;
use fairlift_core::elevator::{self, Config};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::request::request;
use fairlift_core::{Dispatch, Flags, GroupParams, Op};

#[test]
fn a_group_that_begins_to_send_takes_nothing_from_the_others() {
    for name in ["none", "mq-deadline", "kyber", "bfq"] {
        let config = Config::for_queue(16, 4, 4, 0);
        let built = (elevator::find(name).expect(name).build)(&config, "");
        let mut queue = ElevatorQueue::new(16, 4, false, built).with_groups(4);
        let mut inserted = Vec::new();
        let mut now = 0;
        for sector in [800, 16, 400] {
            now += 1000;
            let parent = fairlift_core::GroupId::ROOT;
            let group = queue.groups_mut().create(parent, GroupParams::default()).expect("there is room");
            let context = queue.contexts_mut().create_in(group, IoPrio::DEFAULT);
            for part in 0..2 {
                let mut new = request(Op::Write, Flags::NONE, sector + 1000 * part, 8, context, now);
                new.group = group;
                let rq = queue.take(new).expect("a slot");
                queue.insert(rq, now);
                inserted.push(rq);
            }
        }
        let mut issued = Vec::new();
        while issued.len() < inserted.len() {
            now += 10_000_000;
            match queue.dispatch(now) {
                Dispatch::Issue(rq) => {
                    queue.complete(rq, now + 1000);
                    queue.release(rq);
                    issued.push(rq);
                }
                Dispatch::Idle { until } => now = now.max(until),
                other => panic!("{name}: {other:?} with {} of {} served", issued.len(), inserted.len()),
            }
        }
        issued.sort();
        inserted.sort();
        assert_eq!(issued, inserted, "{name}");
    }
}
