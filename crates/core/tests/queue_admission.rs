//! Admission through the queue: who gets a request slot, who waits, who is woken.

mod queue_support;

use fairlift_core::elevator::MayQueue;
use fairlift_core::queue::{Admission, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{ContextId, Flags, IoPrio, MS, Op};
use queue_support::*;

fn pools(nr_requests: u32) -> QueueConfig {
    QueueConfig { admission: Admission::Pools { nr_requests }, ..unplugged() }
}

fn tags(nr_requests: u32) -> QueueConfig {
    QueueConfig { admission: Admission::Tags { nr_requests }, ..unplugged() }
}

/// Submit unmergeable requests until one is refused; how many were taken.
fn fill(q: &mut RequestQueue, task: ContextId, op: Op, now: u64) -> u32 {
    for n in 0.. {
        match q.submit(bio(op, Flags::NOMERGE, task, u64::from(n) * 100, 8), now) {
            Submitted::Queued(_) => {}
            Submitted::Full => return n,
            other => panic!("{other:?}"),
        }
    }
    unreachable!()
}

fn free_one(q: &mut RequestQueue, now: u64) {
    let rq = issue(q, now);
    complete(q, rq, now);
}

#[test]
fn congestion_goes_on_at_113_of_128_and_off_below_103_per_class() {
    let mut q = queue(pools(128), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    for n in 1..=113 {
        assert!(!q.is_congested(true), "before {n}");
        queued(q.submit(bio(Op::Read, Flags::NOMERGE, task, n * 100, 8), 0));
    }
    assert!(q.is_congested(true));
    assert!(!q.is_congested(false), "the other class is not");
    for left in (103..=112).rev() {
        free_one(&mut q, 0);
        assert!(q.is_congested(true), "at {left}");
    }
    free_one(&mut q, 0);
    assert!(!q.is_congested(true));
}

#[test]
fn reads_and_sync_writes_share_a_pool_and_async_writes_have_their_own() {
    let mut q = queue(pools(4), "noop");
    let a = q.contexts_mut().create(IoPrio::DEFAULT);
    let b = q.contexts_mut().create(IoPrio::DEFAULT);
    fill(&mut q, a, Op::Read, 0);
    assert_eq!(q.submit(bio(Op::Write, Flags::SYNC, b, 9000, 8), 0), Submitted::Full);
    queued(q.submit(write(b, 9100, 8), 0));
}

#[test]
fn the_task_that_fills_the_pool_may_go_on_to_three_halves() {
    let mut q = queue(pools(128), "noop");
    let first = q.contexts_mut().create(IoPrio::DEFAULT);
    let second = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(fill(&mut q, first, Op::Write, 0), 127 + 32, "a batch of 32 from the last slot on");
    assert_eq!(q.submit(write(second, 50_001, 8), 0), Submitted::Full);
    // One woken after another is a batcher; nobody passes 192.
    let mut taken = 159;
    while let Submitted::Queued(_) = q.resubmit(bio(Op::Write, Flags::NOMERGE, second, taken * 100, 8), 0) {
        taken += 1;
    }
    assert_eq!(taken, 192);
}

#[test]
fn a_batch_ends_after_twenty_milliseconds() {
    let mut q = queue(pools(4), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    for n in 0..4 {
        queued(q.submit(bio(Op::Read, Flags::NOMERGE, task, n * 100, 8), 0));
    }
    assert_eq!(q.submit(read(task, 9000, 8), 20 * MS), Submitted::Full);
    queued(q.submit(read(task, 9000, 8), 20 * MS - 1));
}

#[test]
fn the_awaited_task_passes_a_full_pool() {
    let (mut q, orders, first) = probed(pools(64));
    let awaited = q.contexts_mut().create(IoPrio::DEFAULT);
    let taken = fill(&mut q, first, Op::Read, 0);
    assert_eq!(q.submit(read(awaited, 90_000, 8), 0), Submitted::Full);
    orders.lock().unwrap().may_queue = Some(MayQueue::Must);
    let more = fill(&mut q, awaited, Op::Read, 0);
    assert_eq!(taken + more, 96, "but not 3/2 of it");
}

#[test]
fn the_elevator_may_refuse_a_slot_and_the_other_class_wakes_the_refused() {
    let (mut q, orders, task) = probed(pools(4));
    queued(q.submit(read(task, 0, 8), 0));
    orders.lock().unwrap().may_queue = Some(MayQueue::No);
    assert_eq!(q.submit(write(task, 100, 8), 0), Submitted::Full);
    free_one(&mut q, 0);
    assert_eq!(q.take_wakeups(), [1, 1], "async has no request whose end could wake it");
}

#[test]
fn a_freed_slot_wakes_one_waiter_of_its_class_below_the_limit() {
    let mut q = queue(pools(4), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(fill(&mut q, task, Op::Read, 0), 6);
    for expected in [[0, 0], [0, 0], [0, 1], [0, 1]] {
        free_one(&mut q, 0);
        assert_eq!(q.take_wakeups(), expected);
    }
}

#[test]
fn a_request_absorbed_by_another_frees_its_slot_and_wakes() {
    let mut q = queue(pools(4), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 16, 8), 0));
    merged(q.submit(read(task, 8, 8), 0));
    assert_eq!(q.take_wakeups(), [0, 1]);
    assert_eq!(q.pending(), 1);
}

#[test]
fn a_woken_bio_is_not_tried_for_merging_again() {
    let mut q = queue(tags(1), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    let other = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 500, 8), 0));
    assert_eq!(q.submit(read(other, 108, 8), 0), Submitted::Full);
    free_one(&mut q, 0);
    assert_ne!(q.take_wakeups(), [0, 0]);
    let mut q = queue(pools(4), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 100, 8), 0));
    queued(q.resubmit(read(task, 108, 8), 0)); // submit() would have merged it
}

#[test]
fn with_tags_a_free_one_suits_a_waiter_of_either_class() {
    let mut q = queue(tags(1), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 0, 8), 0));
    assert_eq!(q.submit(write(task, 100, 8), 0), Submitted::Full);
    free_one(&mut q, 0);
    assert!(q.take_wakeups()[0] >= 1, "the async waiter must hear of the sync request's tag");
    queued(q.resubmit(write(task, 100, 8), 0));
}

#[test]
fn tags_know_no_batches() {
    let mut q = queue(tags(8), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(fill(&mut q, task, Op::Read, 0), 8);
    assert_eq!(q.resubmit(read(task, 90_000, 8), 0), Submitted::Full);
}

#[test]
fn limits_below_the_kernels_minimum_are_raised_to_it() {
    for nr in 0..4 {
        let mut q = queue(pools(nr), "noop");
        let task = q.contexts_mut().create(IoPrio::DEFAULT);
        assert_eq!(fill(&mut q, task, Op::Read, 0), 6, "nr_requests {nr} counts as 4");
        assert_eq!(fill(&mut q, task, Op::Write, 0), 6);
    }
    let mut q = queue(tags(0), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(fill(&mut q, task, Op::Read, 0), 1);
}

#[test]
fn every_waiter_gets_its_turn() {
    // 40 tasks with one bio each through 4 slots: waiters are woken first come, first served, until all are done.
    for config in [pools(4), tags(4)] {
        let mut q = queue(config, "noop");
        let task = q.contexts_mut().create(IoPrio::DEFAULT);
        let mut waiting: Vec<std::collections::VecDeque<u64>> = vec![Default::default(); 2];
        let bio_of = |n: u64| {
            bio(if n.is_multiple_of(3) { Op::Write } else { Op::Read }, Flags::NOMERGE, task, n * 100, 8)
        };
        for n in 0..40 {
            if q.submit(bio_of(n), 0) == Submitted::Full {
                waiting[usize::from(n % 3 != 0)].push_back(n);
            }
        }
        let mut done = 0;
        for now in 0..1000 {
            if q.pending() == 0 {
                break;
            }
            let rq = issue(&mut q, now);
            done += complete(&mut q, rq, now).len();
            let wakeups = q.take_wakeups();
            for class in 0..2 {
                for _ in 0..wakeups[class] {
                    let Some(n) = waiting[class].pop_front() else { break };
                    if q.resubmit(bio_of(n), now) == Submitted::Full {
                        waiting[class].push_front(n);
                    }
                }
            }
        }
        assert_eq!(done, 40, "{config:?}");
    }
}
