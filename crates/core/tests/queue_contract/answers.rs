//! What `dispatch` answers: `Issue`, `Idle`, `Busy` and `Empty`, each where it is due.

use fairlift_core::queue::{Ordering, QueueConfig};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, IoPrio, MS, Op, SECOND};

use super::rig::*;

#[test]
fn nothing_queued_is_empty() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        assert_eq!(q.dispatch(T), Dispatch::Empty, "{what}");
        queued(q.submit(read(task, 100, 8), T));
        let rq = issue(&mut q, T);
        assert_eq!(q.dispatch(T), Dispatch::Empty, "{what}: all there was is in the device");
        complete(&mut q, rq, T + MS);
        assert_eq!(q.dispatch(T + MS), Dispatch::Empty, "{what}");
        assert_empty(&q);
    });
}

#[test]
fn what_waits_for_a_completion_is_busy() {
    for elevator in ELEVATORS {
        // One group's requests at a time in the device.
        let (mut q, [(_, one), (_, other)]) = with_groups(grouped(), elevator, [100, 100]);
        q.groups_mut().set("fairness", "2").unwrap();
        q.groups_mut().set("group_idle", "0").unwrap();
        queued(q.submit(write(one, 100, 8), T));
        queued(q.submit(write(other, 5000, 8), T));
        let first = issue(&mut q, T);
        assert_eq!(q.dispatch(T), Dispatch::Busy, "{elevator:?}");
        complete(&mut q, first, T + MS);
        let mut now = T + MS;
        let second = next(&mut q, &mut now);
        assert_ne!(q.requests()[second].context, if second == first { ContextId::OVERFLOW } else { one });
        assert_eq!(q.dispatch(now), Dispatch::Empty, "{elevator:?}");
    }
}

#[test]
fn a_group_that_has_as_many_in_the_device_as_it_may_is_busy() {
    for elevator in [("noop", ""), ("deadline", "")] {
        let (mut q, [(_, one), (_, other)]) = with_groups(grouped(), elevator, [100, 100]);
        q.groups_mut().set("group_depth", "1").unwrap();
        for sector in [100, 200, 300] {
            queued(q.submit(read(one, sector, 8), T));
            queued(q.submit(read(other, 10_000 + sector, 8), T));
        }
        let rq = issue(&mut q, T);
        assert_eq!(q.dispatch(T), Dispatch::Busy, "{elevator:?}");
        complete(&mut q, rq, T + MS);
        issue(&mut q, T + MS);
    }
}

#[test]
fn writes_behind_reads_in_the_device_are_busy_under_anticipatory() {
    let mut q = made(unplugged(), ("anticipatory", ""));
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 100, 8), T));
    let first = issue(&mut q, T);
    queued(q.submit(write(task, 5000, 8), T));
    assert_eq!(q.dispatch(T), Dispatch::Busy);
    complete(&mut q, first, T + MS);
    let mut now = T + MS;
    next(&mut q, &mut now);
}

#[test]
fn what_waits_for_a_barrier_is_busy_and_so_is_the_barrier() {
    for elevator in ELEVATORS {
        for ordering in [Ordering::Drain, Ordering::DrainFlush, Ordering::DrainFua] {
            for (mut q, [task, _]) in both(elevator, QueueConfig { ordering, ..grouped() }) {
                let what = format!("{elevator:?} {ordering:?}, {} groups", q.groups().slots());
                queued(q.submit(write(task, 100, 8), T));
                let before = issue(&mut q, T);
                queued(q.submit(bio(Op::Write, Flags::BARRIER, task, 500, 8), T));
                assert_eq!(q.dispatch(T), Dispatch::Busy, "{what}: the barrier waits for the device");
                queued(q.submit(write(task, 900, 8), T));
                assert_eq!(q.dispatch(T), Dispatch::Busy, "{what}: and so does what came behind it");
                complete(&mut q, before, T + MS);
                let mut now = T + MS;
                let step = next(&mut q, &mut now);
                assert_eq!(q.dispatch(now), Dispatch::Busy, "{what}: one step at a time");
                complete(&mut q, step, now);
                serve(&mut q, &mut now);
                assert_empty(&q);
            }
        }
    }
}

#[test]
fn what_waits_for_the_flush_in_the_device_is_busy() {
    for elevator in ELEVATORS {
        for (mut q, [task, _]) in both(elevator, QueueConfig { ordering: sequences(), ..grouped() }) {
            let what = format!("{elevator:?}, {} groups", q.groups().slots());
            queued(q.submit(flush(task), T));
            let command = issue(&mut q, T);
            assert_eq!(q.requests()[command].op, Op::Flush, "{what}");
            queued(q.submit(Bio { cookie: 7, ..flush(task) }, T));
            assert_eq!(q.dispatch(T), Dispatch::Busy, "{what}: one flush at a time");
            assert_eq!(complete(&mut q, command, T + MS), [999_999], "{what}");
            let mut now = T + MS;
            assert_eq!(serve(&mut q, &mut now), [7], "{what}");
        }
    }
}

#[test]
fn the_flush_timeout_makes_idle_of_busy() {
    let mut q = made(QueueConfig { ordering: sequences(), ..unplugged() }, ("noop", ""));
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(bio(Op::Write, Flags::FUA, task, 100, 8), T));
    issue(&mut q, T);
    queued(q.submit(flush(task), T));
    assert_eq!(q.dispatch(T), Dispatch::Idle { until: T + 5 * SECOND });
}

#[test]
fn waiting_for_somebodys_next_request_is_idle_and_says_until_when() {
    for elevator in [("anticipatory", ""), ("cfq", "2.6.31"), ("cfq", "2.6.34")] {
        let mut q = made(unplugged(), elevator);
        let [one, other] = [(); 2].map(|()| q.contexts_mut().create(IoPrio::DEFAULT));
        let mut now = T;
        // Reads near each other, so that there is something to hope for.
        for at in 0..4 {
            queued(q.submit(read(one, 1000 + 8 * at, 8), now));
            let rq = next(&mut q, &mut now);
            now += MS / 10;
            complete(&mut q, rq, now);
        }
        queued(q.submit(read(other, 50_000_000, 8), now));
        let Dispatch::Idle { until } = q.dispatch(now) else { panic!("{elevator:?}: no wait") };
        assert!(until > now && until <= now + 20 * MS, "{elevator:?}");
        next(&mut q, &mut now);
    }
}

#[test]
fn waiting_for_a_groups_next_request_is_idle_until_its_patience_ends() {
    let (mut q, [(_, one), (_, other)]) = with_groups(grouped(), ("noop", ""), [100, 100]);
    queued(q.submit(read(one, 100, 8), T));
    let rq = issue(&mut q, T);
    queued(q.submit(read(other, 5000, 8), T));
    complete(&mut q, rq, T + MS);
    assert_eq!(q.dispatch(T + MS), Dispatch::Idle { until: T + 9 * MS });
    assert!(matches!(q.dispatch(T + 9 * MS), Dispatch::Issue(_)));
}

#[test]
fn busy_and_empty_are_told_apart_in_random_streams() {
    for elevator in ELEVATORS {
        for (number, ordering) in [sequences(), Ordering::DrainFlush].into_iter().enumerate() {
            for (mut q, tasks) in both(elevator, QueueConfig { ordering, ..grouped() }) {
                let what = format!("{elevator:?} {ordering:?}, {} groups", q.groups().slots());
                let mut random = Random(number as u64);
                let (mut now, mut issued) = (T, Vec::new());
                for step in 0..2000_u64 {
                    match random.below(4) {
                        0 => drop(q.submit(random.any(&tasks, step), now)),
                        1 if !issued.is_empty() => {
                            let at = random.below(issued.len() as u64) as usize;
                            complete(&mut q, issued.swap_remove(at), now);
                        }
                        2 => now += random.below(3 * MS),
                        _ => {
                            let answer = q.dispatch(now);
                            assert_answer(&q, answer, &format!("{what}, step {step}"));
                            if let Dispatch::Issue(rq) = answer {
                                issued.push(rq);
                            }
                        }
                    }
                }
            }
        }
    }
}
