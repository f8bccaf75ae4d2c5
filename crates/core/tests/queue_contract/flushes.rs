//! A flush that one request sends is that of all who wait for one, whichever groups they are in and whether or not the elevator
//! knows groups.

use fairlift_core::elevator;
use fairlift_core::queue::QueueConfig;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, MS, Op};

use super::rig::*;

/// They have one queue for the requests of all groups.
const BLIND: [(&str, &str); 4] = [("none", ""), ("mq-deadline", ""), ("kyber", ""), ("bfq", "")];

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ELEVATORS.into_iter().chain(BLIND)
}

fn config() -> QueueConfig {
    QueueConfig { ordering: sequences(), groups_max: 2, ..unplugged() }
}

fn flush_of(task: ContextId, cookie: u64) -> Bio {
    Bio { cookie, ..flush(task) }
}

fn durable_write(task: ContextId, sector: u64) -> Bio {
    bio(Op::Write, Flags::PREFLUSH, task, sector, 8)
}

/// A request that waits for a flush is listed until its group's turn. Another group's flush serves it first: it is answered,
/// and its slot is another request's. It may not go to the device any more.
#[test]
fn whoever_was_served_by_anothers_flush_does_not_go_to_the_device() {
    for elevator in all() {
        let (mut q, [(_, one), (_, other)]) = with_groups(config(), elevator, [100, 100]);
        let mut now = T;
        for (cookie, task) in [(1, one), (2, other), (3, one)] {
            queued(q.submit(flush_of(task, cookie), now));
        }
        let command = next(&mut q, &mut now);
        assert_eq!(q.requests()[command].op, Op::Flush, "{elevator:?}");
        now += MS;
        let mut done = complete(&mut q, command, now);
        done.sort_unstable();
        assert_eq!(done, [1, 2, 3], "{elevator:?}: one flush is everybody's");
        assert_eq!(q.dispatch(now), Dispatch::Empty, "{elevator:?}: a request that was answered is sent");
        assert_empty(&q);
        // Their slots are in use again.
        let next_ones: Vec<u64> = (0..4).map(|at| 1000 * at).collect();
        for sector in &next_ones {
            queued(q.submit(read(one, *sector, 8), now));
        }
        let mut done = serve(&mut q, &mut now);
        done.sort_unstable();
        assert_eq!(done, next_ones, "{elevator:?}: each once");
        assert_empty(&q);
    }
}

/// The same where data follows the flush: it goes once, after it.
#[test]
fn data_behind_a_shared_flush_goes_once() {
    for elevator in all() {
        let (mut q, [(_, one), (_, other)]) = with_groups(config(), elevator, [100, 300]);
        let mut now = T;
        let sectors = [100, 500, 900];
        for (task, sector) in [one, other, one].into_iter().zip(sectors) {
            queued(q.submit(durable_write(task, sector), now));
        }
        let (mut flushes, mut sent, mut done) = (0, Vec::new(), Vec::new());
        while q.pending() > 0 {
            let rq = next(&mut q, &mut now);
            match q.requests()[rq].op {
                Op::Flush => flushes += 1,
                _ => sent.push(q.requests()[rq].sector),
            }
            now += MS;
            done.extend(complete(&mut q, rq, now));
        }
        for list in [&mut sent, &mut done] {
            list.sort_unstable();
            assert_eq!(*list, sectors, "{elevator:?}: each once");
        }
        assert_eq!(flushes, 1, "{elevator:?}");
        assert_empty(&q);
    }
}

/// One that waits for a flush on the list all groups share stays there when an elevator with queues of groups takes over: another
/// one's flush finds it there.
#[test]
fn a_flush_serves_those_that_came_under_an_elevator_without_groups() {
    for elevator in BLIND {
        for heir in all() {
            let (mut q, [(_, one), (_, other)]) = with_groups(config(), elevator, [100, 100]);
            let mut now = T;
            for (cookie, task) in [(1, one), (2, other), (3, one)] {
                queued(q.submit(flush_of(task, cookie), now));
            }
            q.switch((elevator::find(heir.0).expect("known").build)(&config().elevator(), heir.1), now);
            queued(q.submit(flush_of(other, 4), now));
            let command = next(&mut q, &mut now);
            now += MS;
            let mut done = complete(&mut q, command, now);
            done.sort_unstable();
            assert_eq!(done, [1, 2, 3, 4], "{elevator:?}, then {heir:?}");
            assert_eq!(q.dispatch(now), Dispatch::Empty, "{elevator:?}, then {heir:?}");
            assert_empty(&q);
        }
    }
}
