//! What `cancel` forgets, and what it may not.

use fairlift_core::queue::{Admission, Ordering, QueueConfig, Submitted};
use fairlift_core::request::RequestState;
use fairlift_core::{Dispatch, Flags, MS, Op, SECOND};

use super::rig::*;

#[test]
fn cancel_gives_the_cookies_of_a_queued_request_back_in_order_of_sectors() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        let rq = queued(q.submit(write(task, 108, 8), T));
        assert_eq!(merged(q.submit(write(task, 116, 8), T)), rq, "{what}");
        assert_eq!(cancel(&mut q, rq, T), Some(vec![108, 116]), "{what}");
        assert_empty(&q);
        assert_eq!(q.dispatch(T), Dispatch::Empty, "{what}: nobody has it any more");
        let again = queued(q.submit(write(task, 124, 8), T + MS));
        let mut now = T + MS;
        assert_eq!(next(&mut q, &mut now), again, "{what}: nothing joins what is gone");
    });
}

#[test]
fn cancel_frees_the_slot_and_wakes_who_waits_for_it() {
    let config = QueueConfig { admission: Admission::Pools { nr_requests: 4 }, ..unplugged() };
    everywhere(config, |mut q, [task, _], what| {
        let mut taken = Vec::new();
        let refused = loop {
            let bio = bio(Op::Read, Flags::NOMERGE, task, 1000 * taken.len() as u64, 8);
            match q.submit(bio, T) {
                Submitted::Queued(rq) => taken.push(rq),
                Submitted::Full => break bio,
                other => panic!("{what}: {other:?}"),
            }
        };
        let count = q.pending();
        for rq in &taken {
            assert!(cancel(&mut q, *rq, T).is_some(), "{what}");
        }
        assert_eq!(q.pending(), count - taken.len(), "{what}");
        match q.config().groups_max {
            0 => assert!(q.take_wakeups()[1] > 0, "{what}: nobody is woken"),
            _ => assert!(q.next_wakeup().is_some_and(|(_, sync)| sync), "{what}: nobody is woken"),
        }
        queued(q.resubmit(refused, T));
        let mut now = T;
        assert_eq!(serve(&mut q, &mut now).len(), 1, "{what}");
    });
}

#[test]
fn cancel_of_an_issued_request_is_refused() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        let rq = queued(q.submit(read(task, 100, 8), T));
        assert_eq!(issue(&mut q, T), rq);
        assert_eq!(cancel(&mut q, rq, T), None, "{what}");
        assert_eq!(complete(&mut q, rq, T + MS), [100], "{what}");
        assert_empty(&q);
    });
}

#[test]
fn cancel_of_a_request_the_device_gave_back_is_refused_or_complete() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        let rq = queued(q.submit(read(task, 100, 8), T));
        assert_eq!(issue(&mut q, T), rq);
        q.requeue(rq, T);
        let mut now = T;
        match cancel(&mut q, rq, T) {
            Some(done) => assert_eq!(done, [100], "{what}"),
            None => assert_eq!(serve(&mut q, &mut now), [100], "{what}"),
        }
        assert_empty(&q);
    });
}

#[test]
fn cancel_of_a_part_of_a_flush_sequence_is_refused() {
    let config = QueueConfig { ordering: sequences(), ..grouped() };
    everywhere(config, |mut q, [task, _], what| {
        let durable = queued(q.submit(bio(Op::Write, Flags::PREFLUSH | Flags::FUA, task, 100, 8), T));
        let forced = queued(q.submit(bio(Op::Write, Flags::FUA, task, 500, 8), T));
        let empty = queued(q.submit(flush(task), T));
        let mut now = T;
        let mut done = Vec::new();
        while q.pending() > 0 {
            for rq in [durable, forced, empty] {
                assert_eq!(cancel(&mut q, rq, now), None, "{what}");
            }
            let rq = next(&mut q, &mut now);
            now += MS;
            done.extend(complete(&mut q, rq, now));
            if done.len() == 3 {
                break;
            }
        }
        done.sort_unstable();
        assert_eq!(done, [100, 500, 999_999], "{what}");
        assert_empty(&q);
    });
}

/// With a request before a barrier and one behind it, of which one is cancelled: everything comes to its end.
fn cancel_around_a_barrier(which: usize) {
    for ordering in [Ordering::Drain, Ordering::DrainFlush, Ordering::DrainFua] {
        everywhere(QueueConfig { ordering, ..grouped() }, |mut q, [task, other], what| {
            let before = queued(q.submit(write(task, 100, 8), T));
            let barrier = queued(q.submit(bio(Op::Write, Flags::BARRIER, task, 500, 8), T));
            let behind = queued(q.submit(write(task, 900, 8), T));
            queued(q.submit(write(other, 5000, 8), T));
            let mut done = cancel(&mut q, [before, barrier, behind][which], T).unwrap_or_default();
            let mut now = T;
            done.extend(run_dry(&mut q, &mut now));
            done.sort_unstable();
            assert_eq!(done, [100, 500, 900, 5000], "{what}, {ordering:?}: somebody waits for ever");
            assert_empty(&q);
        });
    }
}

#[test]
fn cancel_of_the_last_request_before_a_barrier_lets_the_barrier_go() {
    cancel_around_a_barrier(0);
}

#[test]
fn cancel_of_a_barrier_is_refused_or_lets_those_behind_it_go() {
    cancel_around_a_barrier(1);
}

/// The same once everything before it is in the device, so that it is with the elevator, if any.
#[test]
fn cancel_of_a_barrier_that_waits_for_the_device_is_refused_or_lets_those_behind_it_go() {
    for ordering in [Ordering::Drain, Ordering::DrainFlush, Ordering::DrainFua] {
        everywhere(QueueConfig { ordering, ..grouped() }, |mut q, [task, _], what| {
            queued(q.submit(write(task, 100, 8), T));
            let before = issue(&mut q, T);
            let barrier = queued(q.submit(bio(Op::Write, Flags::BARRIER, task, 500, 8), T));
            queued(q.submit(write(task, 900, 8), T));
            let mut done = cancel(&mut q, barrier, T).unwrap_or_default();
            let mut now = T + MS;
            done.extend(complete(&mut q, before, now));
            while let Dispatch::Issue(rq) = q.dispatch(now) {
                now += MS;
                done.extend(complete(&mut q, rq, now));
            }
            done.sort_unstable();
            assert_eq!(done, [100, 500, 900], "{what}, {ordering:?}: somebody waits for ever");
        });
    }
}

#[test]
fn cancel_behind_a_barrier_leaves_nobody_waiting() {
    cancel_around_a_barrier(2);
}

/// Batches, sweeps and slices remember which request they go on with.
#[test]
fn cancel_of_the_request_a_batch_would_go_on_with() {
    for op in [Op::Read, Op::Write] {
        for gone in 1..6_usize {
            everywhere(unplugged(), |mut q, [task, _], what| {
                let mut rqs = Vec::new();
                for at in 0..6 {
                    rqs.push(queued(q.submit(bio(op, Flags::NOMERGE, task, 1000 + 100 * at, 8), T)));
                }
                let mut now = T;
                let first = next(&mut q, &mut now);
                assert_eq!(first, rqs[0], "{what}");
                assert_eq!(cancel(&mut q, rqs[gone], now), Some(vec![1000 + 100 * gone as u64]), "{what}");
                now += MS;
                complete(&mut q, first, now);
                let rest: Vec<u64> =
                    (1..6).filter(|at| *at != gone as u64).map(|at| 1000 + 100 * at).collect();
                assert_eq!(serve(&mut q, &mut now), rest, "{what}: without {gone}");
                assert_empty(&q);
            });
        }
    }
}

#[test]
fn cancel_of_all_that_a_group_or_a_task_has_stops_nobody_else() {
    everywhere(unplugged(), |mut q, [one, other], what| {
        let gone: Vec<_> = (0..4).map(|at| queued(q.submit(read(one, 100 * at, 8), T))).collect();
        let stays = queued(q.submit(read(other, 50_000, 8), T));
        let mut now = T;
        let first = next(&mut q, &mut now);
        for rq in gone.iter().filter(|rq| **rq != first) {
            assert!(cancel(&mut q, *rq, now).is_some(), "{what}");
        }
        now += MS;
        complete(&mut q, first, now);
        let second = next(&mut q, &mut now);
        assert_eq!(second, stays, "{what}");
        complete(&mut q, second, now);
        assert_empty(&q);
    });
}

#[test]
fn cancel_leaves_the_groups_counts_right() {
    for elevator in ELEVATORS {
        let (mut q, [(group, task), _]) = with_groups(grouped(), elevator, [100, 100]);
        let rqs = [100, 500, 900].map(|sector| queued(q.submit(read(task, sector, 8), T)));
        assert_eq!(q.groups().queued(group), 3, "{elevator:?}");
        assert!(cancel(&mut q, rqs[1], T).is_some());
        assert_eq!((q.groups().queued(group), q.groups().in_flight(group)), (2, 0), "{elevator:?}");
        q.context_exit(task, T);
        for rq in [rqs[0], rqs[2]] {
            assert!(cancel(&mut q, rq, T).is_some());
        }
        assert_eq!(q.groups().queued(group), 0, "{elevator:?}");
        q.remove_group(group, T).expect("there");
        assert_eq!(q.dispatch(T + SECOND), Dispatch::Empty, "{elevator:?}");
        assert_eq!(q.groups().totals().billed_ns, 0, "{elevator:?}: nothing was served");
    }
}

#[test]
fn every_bio_is_done_once_with_cancels_in_between() {
    everywhere(grouped(), |mut q, tasks, what| {
        let mut random = Random(3);
        let (mut now, mut issued) = (T, Vec::new());
        let mut open = std::collections::BTreeSet::new();
        for cookie in 0..3000_u64 {
            let bio = random.plain(&tasks, cookie);
            if matches!(q.submit(bio, now), Submitted::Queued(_) | Submitted::Merged(_)) {
                open.insert(cookie);
            }
            for _ in 0..random.below(3) {
                if let Dispatch::Issue(rq) = q.dispatch(now) {
                    issued.push(rq);
                }
            }
            let mut done = Vec::new();
            if random.below(3) == 0 {
                let all: Vec<_> = q.requests().iter().map(|(rq, _)| rq).collect();
                if let Some(rq) = all.get(random.below(all.len().max(1) as u64) as usize) {
                    let is_out = q.requests()[*rq].state == RequestState::Issued;
                    let cancelled = cancel(&mut q, *rq, now);
                    assert!(!(is_out && cancelled.is_some()), "{what}: it is in the device");
                    done.extend(cancelled.unwrap_or_default());
                }
            }
            if !issued.is_empty() && random.below(3) > 0 {
                done.extend(complete(&mut q, issued.remove(0), now));
            }
            for cookie in done {
                assert!(open.remove(&cookie), "{what}: {cookie} twice");
            }
            now += random.below(2 * MS);
        }
        for rq in issued {
            complete(&mut q, rq, now).iter().for_each(|cookie| assert!(open.remove(cookie)));
        }
        serve(&mut q, &mut now).iter().for_each(|cookie| assert!(open.remove(cookie)));
        assert!(open.is_empty(), "{what}");
        assert_empty(&q);
    });
}
