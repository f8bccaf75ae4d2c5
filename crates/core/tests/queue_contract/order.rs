//! Order and durability, while other things happen.

use fairlift_core::elevator;
use fairlift_core::queue::{Ordering, QueueConfig, Submitted};
use fairlift_core::request::RequestState;
use fairlift_core::{Bio, Dispatch, Flags, GroupId, GroupParams, IoPrio, MS, Op};

use super::rig::*;

#[test]
fn a_switch_keeps_everybodys_queue_going() {
    for elevator in ELEVATORS {
        for next in ELEVATORS {
            let (mut q, [(_, one), (_, other)]) = with_groups(grouped(), elevator, [100, 100]);
            for at in 0..3 {
                queued(q.submit(bio(Op::Write, Flags::NOMERGE, one, 100 * at, 8), T));
                queued(q.submit(bio(Op::Write, Flags::NOMERGE, other, 5000 + 100 * at, 8), T));
            }
            let built = (elevator::find(next.0).expect("known").build)(&q.config().elevator(), next.1);
            q.switch(built, T);
            let mut now = T;
            assert_eq!(
                run_dry(&mut q, &mut now),
                [0, 100, 200, 5000, 5100, 5200],
                "from {elevator:?} to {next:?}"
            );
            assert_empty(&q);
        }
    }
}

/// A light group has the device alone when a heavy one comes. Its turn is cut to what is its due now (16 ms, of which it has had 20), so
/// the newcomer is next, though the turn could have gone on for 80 ms.
#[test]
fn a_turn_that_is_cut_ends_when_it_was_cut_to() {
    for elevator in [("noop", ""), ("deadline", "")] {
        let (mut q, [(_, light), (_, heavy)]) = with_groups(grouped(), elevator, [1, 1000]);
        for at in 0..40 {
            queued(q.submit(read(light, 100 * at, 8), T));
        }
        let mut now = T;
        for _ in 0..20 {
            let rq = issue(&mut q, now);
            now += MS;
            complete(&mut q, rq, now);
        }
        let newcomer = queued(q.submit(read(heavy, 50_000, 8), now));
        assert_eq!(issue(&mut q, now), newcomer, "{elevator:?}");
    }
}

#[test]
fn a_switch_keeps_what_goes_before_the_others_of_its_group() {
    for elevator in ELEVATORS {
        for next in ELEVATORS {
            let what = format!("from {elevator:?} to {next:?}");
            let config = QueueConfig { ordering: sequences(), ..grouped() };
            let (mut q, [(_, one), (_, other)]) = with_groups(config, elevator, [100, 100]);
            let of = |cookie, task| Bio { cookie, ..flush(task) };
            queued(q.submit(of(1, one), T));
            queued(q.submit(write(one, 100, 8), T));
            queued(q.submit(of(2, one), T));
            queued(q.submit(of(3, other), T));
            let back = queued(q.submit(write(other, 5000, 8), T));
            let built = (elevator::find(next.0).expect("known").build)(&q.config().elevator(), next.1);
            q.switch(built, T);
            // And while they wait, more come to a group that has nothing but those.
            queued(q.submit(write(one, 900, 8), T));
            let mut now = T;
            assert_eq!(run_dry(&mut q, &mut now), [1, 2, 3, 100, 900, 5000], "{what}");
            assert_empty(&q);
            assert_eq!(q.requests()[back].state, RequestState::Free, "{what}");
        }
    }
}

/// cfq counts what it gave away until it is done: nothing may be left of what was taken aside.
#[test]
fn flushes_and_barriers_again_and_again_leave_nothing_behind() {
    for ordering in [sequences(), Ordering::DrainFlush, Ordering::DrainFua] {
        everywhere(QueueConfig { ordering, ..grouped() }, |mut q, [one, other], what| {
            let mut now = T;
            for round in 0..50 {
                queued(q.submit(Bio { cookie: 1, ..flush(one) }, now));
                let durable = if ordering == sequences() { Flags::PREFLUSH } else { Flags::BARRIER };
                queued(q.submit(Bio { cookie: 2, ..bio(Op::Write, durable, one, 100, 8) }, now));
                queued(q.submit(Bio { cookie: 3, ..read(one, 5000, 8) }, now));
                queued(q.submit(Bio { cookie: 4, ..read(other, 9000, 8) }, now));
                assert_eq!(run_dry(&mut q, &mut now), [1, 2, 3, 4], "{what}, {ordering:?}, round {round}");
                assert_empty(&q);
            }
        });
    }
}

/// For the device without a volatile cache it costs nothing, and there may be no completion that would end it.
#[test]
fn an_empty_barrier_without_a_volatile_cache_ends_whoever_is_served_last() {
    everywhere(QueueConfig { ordering: Ordering::Drain, ..grouped() }, |mut q, [one, other], what| {
        let of = |cookie, task| Bio { cookie, ..flush(task) };
        queued(q.submit(write(one, 100, 8), T));
        // With groups it waits for its own group's I/O, of which there is none.
        let at_once = q.submit(of(1, other), T) == Submitted::Done;
        queued(q.submit(of(2, one), T));
        queued(q.submit(write(other, 5000, 8), T));
        let mut now = T;
        let expected: &[u64] = if at_once { &[2, 100, 5000] } else { &[1, 2, 100, 5000] };
        assert_eq!(run_dry(&mut q, &mut now), expected, "{what}");
        assert_empty(&q);
    });
}

#[test]
fn a_barrier_comes_up_when_what_the_device_gave_back_before_it_is_done() {
    for elevator in ELEVATORS {
        let config = QueueConfig { ordering: Ordering::DrainFua, ..grouped() };
        let (mut q, [(_, one), (_, other)]) = with_groups(config, elevator, [100, 100]);
        queued(q.submit(write(other, 5000, 8), T));
        let back = issue(&mut q, T);
        queued(q.submit(bio(Op::Write, Flags::BARRIER, one, 100, 8), T));
        // Its turn comes; it waits for the device.
        let mut now = T;
        while let Dispatch::Idle { until } = q.dispatch(now) {
            now = until;
        }
        q.requeue(back, now);
        queued(q.submit(bio(Op::Write, Flags::BARRIER, other, 6000, 8), now));
        assert_eq!(run_dry(&mut q, &mut now), [100, 5000, 6000], "{elevator:?}");
        assert_empty(&q);
    }
}

/// The first group is made while a barrier or a flush is at every possible step.
#[test]
fn groups_may_come_while_a_barrier_or_a_flush_is_under_way() {
    for elevator in ELEVATORS {
        for ordering in [sequences(), Ordering::Drain, Ordering::DrainFlush, Ordering::DrainFua] {
            for steps in 0..6 {
                let mut q = made(QueueConfig { ordering, ..grouped() }, elevator);
                let task = q.contexts_mut().create(IoPrio::DEFAULT);
                let durable = if ordering == sequences() { Flags::PREFLUSH } else { Flags::BARRIER };
                queued(q.submit(Bio { cookie: 1, ..write(task, 100, 8) }, T));
                queued(q.submit(Bio { cookie: 2, ..flush(task) }, T));
                queued(q.submit(Bio { cookie: 3, ..bio(Op::Write, durable, task, 5000, 8) }, T));
                queued(q.submit(Bio { cookie: 4, ..write(task, 9000, 8) }, T));
                let (mut now, mut done, mut issued) = (T, Vec::new(), Vec::new());
                for step in 0..steps {
                    match q.dispatch(now) {
                        Dispatch::Issue(rq) => issued.push(rq),
                        Dispatch::Idle { until } => now = until,
                        Dispatch::Busy | Dispatch::Empty => {}
                    }
                    if step % 2 == 1 && !issued.is_empty() {
                        now += MS;
                        done.extend(complete(&mut q, issued.remove(0), now));
                    }
                }
                q.groups_mut().create(GroupId::ROOT, GroupParams::default()).expect("room");
                for rq in issued {
                    now += MS;
                    done.extend(complete(&mut q, rq, now));
                }
                done.extend(run_dry(&mut q, &mut now));
                done.sort_unstable();
                assert_eq!(done, [1, 2, 3, 4], "{elevator:?} {ordering:?} after {steps} steps");
                assert_empty(&q);
            }
        }
    }
}

/// What a group sent before a barrier of its own is done before it, and what it sent behind, after it; whatever others do, and
/// although the device would take them all at once.
#[test]
fn a_barrier_keeps_its_groups_order() {
    for elevator in ELEVATORS {
        for ordering in [Ordering::Drain, Ordering::DrainFlush, Ordering::DrainFua] {
            let config = QueueConfig { ordering, ..grouped() };
            let (mut q, [(_, one), (_, other)]) = with_groups(config, elevator, [100, 100]);
            for sector in [9000, 300, 6000] {
                queued(q.submit(write(one, sector, 8), T));
                queued(q.submit(read(other, 50_000 + sector, 8), T));
            }
            queued(q.submit(Bio { cookie: 1, ..bio(Op::Write, Flags::BARRIER, one, 5000, 8) }, T));
            for sector in [200, 7000] {
                queued(q.submit(write(one, sector, 8), T));
                queued(q.submit(read(other, 50_000 + sector, 8), T));
            }
            let (mut now, mut under_way, mut done) = (T, Vec::new(), Vec::new());
            while q.pending() > 0 || !under_way.is_empty() {
                match q.dispatch(now) {
                    // The device is done last with what it got first.
                    Dispatch::Issue(rq) => under_way.insert(0, rq),
                    Dispatch::Idle { until } if under_way.is_empty() => now = until,
                    _ => {
                        now += MS;
                        done.extend(complete(&mut q, under_way.remove(0), now));
                    }
                }
            }
            done.retain(|cookie| *cookie < 50_000);
            let at = done.iter().position(|cookie| *cookie == 1).expect("the barrier is done");
            let (mut before, mut behind) = (done[..at].to_vec(), done[at + 1..].to_vec());
            before.sort_unstable();
            behind.sort_unstable();
            let kept = (before, behind);
            assert_eq!(kept, (vec![300, 6000, 9000], vec![200, 7000]), "{elevator:?} {ordering:?}");
            assert_empty(&q);
        }
    }
}

/// Whoever comes first of its group may not go before what the device gave back of a barrier at work: that waits for it.
#[test]
fn another_groups_barrier_stays_behind_what_a_barrier_at_work_waits_for() {
    for elevator in ["none", "mq-deadline", "kyber", "bfq"] {
        let config = QueueConfig { ordering: Ordering::DrainFlush, ..grouped() };
        let mut q = made(config, (elevator, ""));
        let task = q.contexts_mut().create(IoPrio::DEFAULT);
        queued(q.submit(bio(Op::Write, Flags::BARRIER, task, 100, 8), T));
        let step = issue(&mut q, T);
        q.requeue(step, T);
        let group = q.groups_mut().create(GroupId::ROOT, GroupParams::default()).expect("room");
        let other = q.contexts_mut().create_in(group, IoPrio::DEFAULT);
        queued(q.submit(bio(Op::Write, Flags::BARRIER, other, 500, 8), T));
        let mut now = T;
        assert_eq!(run_dry(&mut q, &mut now), [100, 500], "{elevator}");
        assert_empty(&q);
    }
}
