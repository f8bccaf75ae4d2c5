//! What a host may rely on, statement by statement, under every elevator: what `dispatch` answers, what `cancel` forgets, what
//! a failed request costs, and who pays for I/O that somebody waits for.

mod queue_support;

use fairlift_core::elevator;
use fairlift_core::queue::{Admission, ElevatorQueue, Ordering, QueueConfig, RequestQueue, Submitted};
use fairlift_core::request::{RequestState, Status, request};
use fairlift_core::{
    Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoClass, IoPrio, MS, Op, RequestId, SECOND,
};
use queue_support::*;

const ELEVATORS: [(&str, &str); 5] =
    [("noop", ""), ("deadline", ""), ("anticipatory", ""), ("cfq", "2.6.31"), ("cfq", "2.6.34")];
/// After the beginning of time, which some rules take for *never*.
const T: u64 = 1000 * MS;

fn made(config: QueueConfig, (name, profile): (&str, &str)) -> RequestQueue {
    let built = (elevator::find(name).expect("known").build)(&config.elevator(), profile);
    RequestQueue::new(config, built)
}

/// Room for three groups.
fn grouped() -> QueueConfig {
    QueueConfig { groups_max: 3, ..unplugged() }
}

fn sequences() -> Ordering {
    Ordering::Sequences { write_cache: true, fua: false }
}

/// With a group of each weight below the root, and a task in each.
fn with_groups<const N: usize>(
    config: QueueConfig,
    elevator: (&str, &str),
    weights: [u32; N],
) -> (RequestQueue, [(GroupId, ContextId); N]) {
    let mut q = made(QueueConfig { groups_max: N, ..config }, elevator);
    let tenants = weights.map(|weight| {
        let group = q.groups_mut().create(GroupId::ROOT, GroupParams::weight(weight)).expect("room");
        (group, q.contexts_mut().create_in(group, IoPrio::DEFAULT))
    });
    (q, tenants)
}

/// A queue with two tasks, once without groups and once in two groups.
fn both(elevator: (&str, &str), config: QueueConfig) -> [(RequestQueue, [ContextId; 2]); 2] {
    let mut flat = made(QueueConfig { groups_max: 0, ..config }, elevator);
    let tasks = [(); 2].map(|()| flat.contexts_mut().create(IoPrio::DEFAULT));
    let (grouped, [(_, one), (_, other)]) = with_groups(config, elevator, [100, 100]);
    [(flat, tasks), (grouped, [one, other])]
}

/// The next request, however long the queue wants to wait for a better one.
fn next(q: &mut RequestQueue, now: &mut u64) -> RequestId {
    for _ in 0..100 {
        match q.dispatch(*now) {
            Dispatch::Issue(rq) => return rq,
            Dispatch::Idle { until } => {
                assert!(until > *now, "no time to wait");
                *now = until;
            }
            other => panic!("{other:?} although {} wait", q.pending()),
        }
    }
    panic!("only ever Idle");
}

/// Serve all there is, one by one; the cookies in the order they were done.
fn serve(q: &mut RequestQueue, now: &mut u64) -> Vec<u64> {
    let mut done = Vec::new();
    while q.pending() > 0 {
        let rq = next(q, now);
        *now += MS / 2;
        done.extend(complete(q, rq, *now));
    }
    done
}

fn cancel(q: &mut RequestQueue, rq: RequestId, now: u64) -> Option<Vec<u64>> {
    let mut done = Vec::new();
    q.cancel(rq, now, |cookie| done.push(cookie)).then_some(done)
}

/// Every elevator, with and without groups.
fn everywhere(config: QueueConfig, test: impl Fn(RequestQueue, [ContextId; 2], &str)) {
    for elevator in ELEVATORS {
        for ((q, tasks), how) in both(elevator, config).into_iter().zip(["flat", "in groups"]) {
            test(q, tasks, &format!("{elevator:?} {how}"));
        }
    }
}

// ---- what dispatch answers -------------------------------------------------------------------------------------------------

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

/// `Busy` says that a completion will bring more, `Empty` that only an arrival will.
fn assert_answer(q: &RequestQueue, answer: Dispatch, what: &str) {
    let in_device = q.in_flight().iter().sum::<u32>() as usize;
    match answer {
        Dispatch::Busy => assert!(in_device > 0 && q.pending() > in_device, "{what}: nothing to wait for"),
        Dispatch::Empty => {
            // Those whose flush is in the device are as good as there themselves.
            let flushing =
                q.requests().iter().any(|(_, r)| r.op == Op::Flush && r.state == RequestState::Issued);
            let served = |state| state == RequestState::Issued || flushing && state == RequestState::Held;
            assert!(q.requests().iter().all(|(_, r)| served(r.state)), "{what}: something waits");
        }
        Dispatch::Issue(_) | Dispatch::Idle { .. } => {}
    }
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

// ---- dispatch_many ---------------------------------------------------------------------------------------------------------

#[test]
fn dispatch_many_is_dispatch_again_and_again() {
    for elevator in ELEVATORS {
        let ordering = sequences();
        let [one, same] = [(); 2].map(|()| both(elevator, QueueConfig { ordering, ..grouped() }));
        for ((mut q, tasks), (mut twin, _)) in one.into_iter().zip(same) {
            let mut random = Random(7);
            let (mut now, mut issued) = (T, Vec::new());
            for step in 0..1000_u64 {
                for _ in 0..random.below(4) {
                    let bio = random.any(&tasks, step);
                    assert_eq!(q.submit(bio, now), twin.submit(bio, now));
                }
                let most = random.below(5) as usize;
                let (mut by_one, mut last) = (Vec::new(), Dispatch::Empty);
                while by_one.len() < most {
                    last = q.dispatch(now);
                    let Dispatch::Issue(rq) = last else { break };
                    by_one.push(rq);
                }
                let mut at_once = Vec::new();
                let answer = twin.dispatch_many(now, most, |rq| at_once.push(rq));
                assert_eq!((at_once, answer), (by_one.clone(), last), "{elevator:?} at step {step}");
                issued.extend(by_one);
                now += random.below(4 * MS);
                if !issued.is_empty() && random.below(3) > 0 {
                    let rq = issued.remove(0);
                    assert_eq!(complete(&mut q, rq, now), complete(&mut twin, rq, now));
                }
            }
        }
    }
}

#[test]
fn dispatch_many_stops_at_most_and_says_why_there_are_no_more() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        for sector in 0..5 {
            queued(q.submit(bio(Op::Write, Flags::NOMERGE, task, sector * 100, 8), T));
        }
        let mut out = Vec::new();
        assert_eq!(q.dispatch_many(T, 0, |rq| out.push(rq)), Dispatch::Empty, "{what}: nobody was asked");
        assert_eq!((out.len(), q.in_flight()), (0, [0, 0]), "{what}");
        let answer = q.dispatch_many(T, 2, |rq| out.push(rq));
        assert_eq!(out.len(), 2, "{what}");
        assert_eq!(answer, Dispatch::Issue(out[1]), "{what}: the last of them");
        let answer = q.dispatch_many(T, usize::MAX, |rq| out.push(rq));
        assert!(!matches!(answer, Dispatch::Issue(_)), "{what}: {answer:?}");
        assert_answer(&q, answer, what);
    });
}

#[test]
fn dispatch_many_of_the_lower_half_does_the_same() {
    let mut q = ElevatorQueue::new(16, 0, true, build(&unplugged(), "noop"));
    let mut names = Vec::new();
    for sector in [300, 100, 200] {
        let rq = q.take(request(Op::Read, Flags::NONE, sector, 8, ContextId::OVERFLOW, T)).expect("room");
        q.insert(rq, T);
        names.push(rq);
    }
    let mut out = Vec::new();
    assert_eq!(q.dispatch_many(T, 2, |rq| out.push(rq)), Dispatch::Issue(names[1]));
    assert_eq!(q.dispatch_many(T, 2, |rq| out.push(rq)), Dispatch::Empty);
    assert_eq!(out, names);
}

// ---- cancel ----------------------------------------------------------------------------------------------------------------

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

// ---- failure ---------------------------------------------------------------------------------------------------------------

#[test]
fn a_failed_request_is_done_and_its_slot_is_free() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        let rq = queued(q.submit(read(task, 100, 8), T));
        assert_eq!(merged(q.submit(read(task, 108, 8), T)), rq, "{what}");
        assert_eq!(issue(&mut q, T), rq);
        let mut done = Vec::new();
        q.complete_as(rq, Status::Failed, T + MS, |cookie| done.push(cookie));
        assert_eq!(done, [100, 108], "{what}");
        assert_empty(&q);
    });
}

#[test]
fn a_failed_request_is_billed_like_any_other() {
    for elevator in ELEVATORS {
        let bills = [Status::Done, Status::Failed].map(|status| {
            let (mut q, [(group, task), (_, other)]) = with_groups(grouped(), elevator, [100, 100]);
            let mut now = T;
            for at in 0..20 {
                queued(q.submit(write(task, 100 * at, 8), now));
                queued(q.submit(write(other, 50_000 + 100 * at, 8), now));
                for _ in 0..2 {
                    let rq = next(&mut q, &mut now);
                    now += MS;
                    let status = if q.requests()[rq].group == group { status } else { Status::Done };
                    q.complete_as(rq, status, now, |_| {});
                }
            }
            q.groups_mut().set_params(group, GroupParams::weight(100)).expect("settles");
            let (totals, stats) = (q.groups().totals(), *q.groups()[group].stats());
            assert_eq!(totals.busy_ns, 40 * MS, "{elevator:?} {status:?}");
            assert_eq!(totals.billed_ns, totals.busy_ns + totals.waited_ns, "{elevator:?} {status:?}");
            assert_eq!(stats.total().ios, 20, "{elevator:?} {status:?}");
            assert_eq!(stats.time_ns - stats.idle_ns, 20 * MS, "{elevator:?} {status:?}");
            stats.time_ns - stats.idle_ns
        });
        assert_eq!(bills[0], bills[1], "{elevator:?}");
    }
}

// ---- who pays for what is waited for ---------------------------------------------------------------------------------------

/// Groups of weight 100, 400 and 800, a task in each; and one of weight 100 that wants the device too.
fn unequal(elevator: (&str, &str)) -> (RequestQueue, [(GroupId, ContextId); 3]) {
    let (mut q, [low, mid, high, (_, rival)]) = with_groups(grouped(), elevator, [100, 400, 800, 100]);
    queued(q.submit(Bio { cookie: RIVAL, ..write(rival, 1 << 20, 8) }, T));
    (q, [low, mid, high])
}

const RIVAL: u64 = u64::MAX;

/// The payer of what `task` sends now. Owner and counts are looked at on the way.
fn payer_of(q: &mut RequestQueue, (owner, task): (GroupId, ContextId), sector: u64) -> GroupId {
    let rq = queued(q.submit(bio(Op::Write, Flags::NOMERGE, task, sector, 8), T));
    assert_eq!(q.requests()[rq].group, owner, "it stays the owner's");
    let payer = q.requests()[rq].payer;
    assert_eq!(q.groups().queued(payer), 1, "it waits among the payer's");
    assert!(payer == owner || q.groups().queued(owner) == 0);
    assert!(cancel(q, rq, T).is_some());
    assert_eq!(q.groups().queued(payer), 0);
    payer
}

#[test]
fn what_somebody_waits_for_is_paid_by_who_is_due_more() {
    for elevator in ELEVATORS {
        let (mut q, [low, mid, high]) = unequal(elevator);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}: nobody waits");
        let token = q.wait_begin(high.1, low.1).expect("they are two");
        assert_eq!(payer_of(&mut q, low, 0), high.0, "{elevator:?}");
        assert_eq!(payer_of(&mut q, high, 0), high.0, "{elevator:?}: nobody waits for who waits");
        assert_eq!(payer_of(&mut q, mid, 0), mid.0, "{elevator:?}: nor for others");
        q.wait_end(token);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}: it is over");
        // Who is due less gives nothing: that would slow down what it waits for.
        q.wait_begin(low.1, high.1).expect("they are two");
        assert_eq!(payer_of(&mut q, high, 0), high.0, "{elevator:?}");
    }
}

/// What is due is what would be if both wanted the device: who waits does not, and need not have anything queued.
#[test]
fn who_is_due_more_pays_whoever_else_wants_the_device() {
    for wants in ["nobody", "the owner", "who waits", "both"] {
        let (mut q, [low, high]) = with_groups(grouped(), ("noop", ""), [100, 800]);
        for (group, who) in [(low, "the owner"), (high, "who waits")] {
            if wants == who || wants == "both" {
                queued(q.submit(bio(Op::Write, Flags::NOMERGE, group.1, 9000, 8), T));
            }
        }
        q.wait_begin(high.1, low.1).expect("they are two");
        let rq = queued(q.submit(bio(Op::Write, Flags::NOMERGE, low.1, 100, 8), T));
        assert_eq!(q.requests()[rq].payer, high.0, "while {wants} wants the device");
    }
}

#[test]
fn the_most_entitled_of_those_who_wait_pays() {
    let (mut q, [low, mid, high]) = unequal(("noop", ""));
    q.wait_begin(mid.1, low.1).expect("they are two");
    assert_eq!(payer_of(&mut q, low, 0), mid.0);
    let token = q.wait_begin(high.1, low.1).expect("they are two");
    assert_eq!(payer_of(&mut q, low, 0), high.0);
    q.wait_end(token);
    assert_eq!(payer_of(&mut q, low, 0), mid.0);
    let urgent = GroupParams { class: IoClass::RealTime, ..GroupParams::weight(1) };
    q.groups_mut().set_params(mid.0, urgent).expect("there");
    q.wait_begin(high.1, low.1).expect("they are two");
    assert_eq!(payer_of(&mut q, low, 0), mid.0, "a better class is due more, whatever its weight");
}

#[test]
fn who_waits_for_one_who_waits_pays_for_both() {
    for elevator in ELEVATORS {
        let (mut q, [low, mid, high]) = unequal(elevator);
        let far = q.wait_begin(high.1, mid.1).expect("they are two");
        q.wait_begin(mid.1, low.1).expect("they are two");
        assert_eq!(payer_of(&mut q, low, 0), high.0, "{elevator:?}: over one in between");
        assert_eq!(payer_of(&mut q, mid, 0), high.0, "{elevator:?}");
        q.wait_end(far);
        assert_eq!(payer_of(&mut q, low, 0), mid.0, "{elevator:?}: the rest of the chain holds");
    }
}

#[test]
fn waiting_in_a_circle_is_harmless() {
    for elevator in ELEVATORS {
        let (mut q, all) = unequal(elevator);
        let [low, mid, high] = all;
        let tokens = [(low, mid), (mid, high), (high, low)]
            .map(|(from, whom)| q.wait_begin(from.1, whom.1).expect("they are two"));
        for one in all {
            assert_eq!(payer_of(&mut q, one, 0), high.0, "{elevator:?}: all of them wait for all");
        }
        tokens.into_iter().for_each(|token| q.wait_end(token));
        for one in all {
            assert_eq!(payer_of(&mut q, one, 0), one.0, "{elevator:?}");
        }
    }
}

#[test]
fn a_wait_begun_replaces_the_one_before() {
    let (mut q, [low, mid, high]) = unequal(("noop", ""));
    let first = q.wait_begin(high.1, low.1).expect("they are two");
    q.wait_begin(high.1, mid.1).expect("they are two");
    assert_eq!([payer_of(&mut q, low, 0), payer_of(&mut q, mid, 0)], [low.0, high.0]);
    q.wait_end(first);
    assert_eq!(payer_of(&mut q, mid, 0), high.0, "that token's wait was over already");
}

#[test]
fn a_token_used_twice_ends_nobody_elses_wait() {
    let (mut q, [low, mid, high]) = unequal(("noop", ""));
    let token = q.wait_begin(high.1, low.1).expect("they are two");
    q.wait_end(token);
    q.wait_end(token);
    assert_eq!(payer_of(&mut q, low, 0), low.0);
    q.wait_begin(high.1, mid.1).expect("they are two");
    q.wait_end(token);
    assert_eq!(payer_of(&mut q, mid, 0), high.0);
    // Nor that of the next tenant of its slot.
    let old = q.wait_begin(high.1, low.1).expect("they are two");
    q.context_exit(high.1, T);
    let next = q.contexts_mut().create_in(high.0, IoPrio::DEFAULT);
    assert_eq!(next, high.1, "the same slot");
    q.wait_begin(next, low.1).expect("they are two");
    q.wait_end(old);
    assert_eq!(payer_of(&mut q, low, 0), high.0);
}

#[test]
fn a_wait_ends_with_who_waits() {
    for elevator in ELEVATORS {
        let (mut q, [low, _, high]) = unequal(elevator);
        let token = q.wait_begin(high.1, low.1).expect("they are two");
        q.context_exit(high.1, T);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}");
        q.wait_end(token);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}");
    }
}

#[test]
fn a_wait_ends_with_who_is_waited_for() {
    for elevator in ELEVATORS {
        let (mut q, [low, mid, high]) = unequal(elevator);
        let token = q.wait_begin(high.1, low.1).expect("they are two");
        q.context_exit(low.1, T);
        let next = q.contexts_mut().create_in(low.0, IoPrio::DEFAULT);
        assert_eq!(next, low.1, "the same slot");
        assert_eq!(
            payer_of(&mut q, (low.0, next), 0),
            low.0,
            "{elevator:?}: nobody waits for its next tenant"
        );
        q.wait_end(token);
        q.wait_begin(high.1, mid.1).expect("it is free to wait again");
        assert_eq!(payer_of(&mut q, mid, 0), high.0, "{elevator:?}");
    }
}

/// Its slot is taken until its last request is done, but there is no task any more whose answer anybody could wait for.
#[test]
fn a_wait_ends_with_who_is_waited_for_even_if_it_left_requests() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    q.wait_begin(high.1, low.1).expect("they are two");
    let rq = queued(q.submit(write(low.1, 100, 8), T));
    assert_eq!(q.requests()[rq].payer, high.0);
    q.context_exit(low.1, T);
    assert_eq!(q.requests()[rq].payer, high.0, "what was sent before stays");
    let late = queued(q.submit(write(low.1, 5000, 8), T));
    assert_eq!(q.requests()[late].payer, q.requests()[late].group, "what comes after is not waited for");
}

#[test]
fn what_cannot_wait() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    let shared = q.contexts().shared_by(high.0);
    assert!(q.wait_begin(ContextId::OVERFLOW, low.1).is_none(), "several share it");
    assert!(q.wait_begin(shared, low.1).is_none(), "several share it");
    assert!(q.wait_begin(low.1, low.1).is_none(), "for itself");
    q.context_exit(high.1, T);
    assert!(q.wait_begin(high.1, low.1).is_none(), "it is gone");
    assert_eq!(payer_of(&mut q, low, 0), low.0);
}

#[test]
fn a_shared_context_can_be_waited_for() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    let shared = q.contexts().shared_by(low.0);
    q.wait_begin(high.1, shared).expect("only who waits must be alone");
    assert_eq!(payer_of(&mut q, (low.0, shared), 0), high.0);
}

#[test]
fn the_payer_is_billed_and_the_owner_has_the_counts() {
    for elevator in ELEVATORS {
        let (mut q, [low, _, high]) = unequal(elevator);
        q.wait_begin(high.1, low.1).expect("they are two");
        let rq = queued(q.submit(write(low.1, 100, 8), T));
        let mut now = T;
        loop {
            let first = next(&mut q, &mut now);
            if first == rq {
                break;
            }
            assert_eq!(complete(&mut q, first, now), [RIVAL]);
        }
        assert_eq!([high.0, low.0].map(|group| q.groups().in_flight(group)), [1, 0], "{elevator:?}");
        complete(&mut q, rq, now + 3 * MS);
        q.groups_mut().set_params(high.0, GroupParams::weight(800)).expect("settles");
        let of = |group: GroupId| *q.groups()[group].stats();
        assert_eq!([of(low.0).total().ios, of(high.0).total().ios], [1, 0], "{elevator:?}");
        let paid = |group| of(group).time_ns - of(group).idle_ns;
        assert_eq!([paid(low.0), paid(high.0)], [0, 3 * MS], "{elevator:?}");
    }
}

/// What is sent for others' sake is theirs alone.
#[test]
fn nothing_joins_a_donated_request_but_what_is_donated_too() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    let token = q.wait_begin(high.1, low.1).expect("they are two");
    let donated = queued(q.submit(write(low.1, 100, 8), T));
    q.wait_end(token);
    queued(q.submit(write(low.1, 108, 8), T));
    queued(q.submit(write(high.1, 92, 8), T));
    assert_eq!(q.requests()[donated].sectors, 8);
}

// ---- order and durability, while other things happen -----------------------------------------------------------------------

/// Dispatch and complete until nothing more comes; the cookies that were done.
fn run_dry(q: &mut RequestQueue, now: &mut u64) -> Vec<u64> {
    let mut done = Vec::new();
    for _ in 0..1000 {
        match q.dispatch(*now) {
            Dispatch::Issue(rq) => {
                *now += MS;
                done.extend(complete(q, rq, *now));
            }
            Dispatch::Idle { until } => *now = until,
            Dispatch::Busy | Dispatch::Empty => break,
        }
    }
    done.sort_unstable();
    done
}

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

// ---- tools -----------------------------------------------------------------------------------------------------------------

/// Numbers without pattern; the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn plain(&mut self, tasks: &[ContextId; 2], cookie: u64) -> Bio {
        let task = tasks[self.below(2) as usize];
        let op = [Op::Read, Op::Read, Op::Write][self.below(3) as usize];
        let flags = [Flags::NONE, Flags::SYNC][self.below(2) as usize];
        Bio { cookie, ..bio(op, flags, task, 8 * self.below(400), 8) }
    }

    fn any(&mut self, tasks: &[ContextId; 2], cookie: u64) -> Bio {
        let task = tasks[self.below(2) as usize];
        match self.below(8) {
            0 => Bio { cookie, ..flush(task) },
            1 => Bio { cookie, ..bio(Op::Write, Flags::PREFLUSH, task, 8 * self.below(400), 8) },
            2 => Bio { cookie, ..bio(Op::Write, Flags::FUA, task, 8 * self.below(400), 8) },
            _ => self.plain(tasks, cookie),
        }
    }
}
