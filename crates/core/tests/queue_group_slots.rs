//! Request slots by group: who gets one, who waits, who is woken; and what is not merged.

mod queue_support;

use fairlift_core::queue::{Admission, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{ContextId, Flags, GroupId, GroupParams, IoPrio, Op};
use queue_support::*;

/// A queue with `N` groups of equal weight and a task in each.
fn tenants<const N: usize>(
    admission: Admission,
    nr_group_requests: &str,
) -> (RequestQueue, [(GroupId, ContextId); N]) {
    let config = QueueConfig { admission, groups_max: N, ..unplugged() };
    let mut q = queue(config, "noop");
    q.groups_mut().set("nr_group_requests", nr_group_requests).unwrap();
    // Who ran dry is not waited for: these tests are not about turns.
    q.groups_mut().set("group_idle", "0").unwrap();
    let tenants = [(); N].map(|()| {
        let group = q.groups_mut().create(GroupId::ROOT, GroupParams::default()).unwrap();
        (group, q.contexts_mut().create_in(group, IoPrio::DEFAULT))
    });
    (q, tenants)
}

/// Reads that merge with nothing, until one is refused; how many were taken.
fn fill(q: &mut RequestQueue, task: ContextId) -> u32 {
    (0..).find(|_| send(q, task) == Submitted::Full).unwrap()
}

fn send(q: &mut RequestQueue, task: ContextId) -> Submitted {
    q.submit(bio(Op::Read, Flags::NOMERGE, task, 100 * u64::from(task_number(task)), 8), 0)
}

fn task_number(task: ContextId) -> u32 {
    use fairlift_core::collections::Id;
    task.index() as u32
}

fn finish_one(q: &mut RequestQueue) {
    let rq = issue(q, 0);
    complete(q, rq, 0);
}

const POOLS: Admission = Admission::Pools { nr_requests: 64 };

/// Whose request it became part of would pay for it.
#[test]
fn nothing_joins_a_request_of_another_group() {
    let (mut q, [(_, one), (_, other)]) = tenants(POOLS, "16");
    queued(q.submit(read(one, 1000, 8), 0));
    queued(q.submit(read(other, 1008, 8), 0));
    queued(q.submit(read(other, 992, 8), 0));
    // Nor do two requests become one where they meet.
    queued(q.submit(read(one, 1024, 8), 0));
    merged(q.submit(read(one, 1032, 8), 0));
    merged(q.submit(read(other, 1016, 8), 0));
    assert_eq!(q.pending(), 4);
}

/// 16 slots: the task that fills them may take its batch of them beyond, to 24; the other group has its own 24 all the same.
#[test]
fn one_groups_flood_leaves_the_others_slots_alone() {
    let (mut q, [(_, greedy), (_, modest)]) = tenants(POOLS, "16");
    assert_eq!(fill(&mut q, greedy), 24);
    assert_eq!(fill(&mut q, modest), 24);
}

#[test]
fn without_a_limit_one_group_takes_three_quarters() {
    let (mut q, [(_, greedy), (_, modest)]) = tenants(POOLS, "64");
    // Of 96, those beyond the limit included.
    assert_eq!(fill(&mut q, greedy), 72);
    // A task that never waited is no batcher: it gets the next one that is given back.
    assert_eq!(fill(&mut q, modest), 0);
    finish_one(&mut q);
    assert!(q.next_wakeup().is_some());
}

/// 16 slots: congested from the 15th on (16 - 2 + 1), relieved below 12 (16 - 2 - 1 - 1).
#[test]
fn each_group_is_congested_by_itself() {
    let (mut q, [(busy, task), (quiet, _)]) = tenants(POOLS, "16");
    for taken in 0..15 {
        assert!(!q.is_group_congested(busy, true), "after {taken}");
        queued(send(&mut q, task));
    }
    assert!(q.is_group_congested(busy, true));
    assert!(
        !q.is_group_congested(quiet, true) && !q.is_group_congested(busy, false) && !q.is_congested(true)
    );
    for taken in (12..15).rev() {
        assert!(q.is_group_congested(busy, true), "at {}", taken + 1);
        finish_one(&mut q);
    }
    assert!(q.is_group_congested(busy, true), "at 12");
    finish_one(&mut q);
    assert!(!q.is_group_congested(busy, true));
}

#[test]
fn a_request_of_the_group_wakes_one_of_its_waiters() {
    let tags = Admission::Tags { nr_requests: 64 };
    let (mut q, [(greedy, task), (_, modest)]) = tenants(tags, "4");
    assert_eq!(fill(&mut q, task), 4);
    assert_eq!(send(&mut q, task), Submitted::Full);
    queued(send(&mut q, modest));
    let mut woken = Vec::new();
    for _ in 0..5 {
        finish_one(&mut q);
        woken.extend(q.next_wakeup());
    }
    assert_eq!(woken, [(greedy, true); 2], "two waited");
}

/// The device's slots are short: three groups of which one holds all of them.
#[test]
fn groups_take_turns_for_the_devices_slots() {
    let (mut q, [(_, holder), (first, one), (second, other)]) =
        tenants(Admission::Tags { nr_requests: 8 }, "8");
    // Three quarters of the device's are one group's at most; the root's own are not bounded.
    assert_eq!(fill(&mut q, holder), 6);
    let root = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(fill(&mut q, root), 2);
    for task in [one, one, one, other] {
        assert_eq!(send(&mut q, task), Submitted::Full);
    }
    let mut woken = Vec::new();
    for _ in 0..4 {
        finish_one(&mut q);
        while let Some((group, _)) = q.next_wakeup() {
            woken.push(group);
        }
    }
    woken.retain(|group| [first, second].contains(group));
    assert_eq!(woken, [first, second, first, first]);
}

/// They do not need a slot of this group any more, so that none of them would wake the next.
#[test]
fn a_group_that_runs_empty_wakes_all_who_wait_for_it() {
    let (mut q, [(old, task), (new, _)]) = tenants(Admission::Tags { nr_requests: 64 }, "2");
    assert_eq!(fill(&mut q, task), 2);
    for _ in 0..4 {
        assert_eq!(send(&mut q, task), Submitted::Full);
    }
    q.move_context(task, new, 0);
    finish_one(&mut q);
    assert_eq!(q.next_wakeup(), Some((old, true)));
    assert_eq!(q.next_wakeup(), None);
    finish_one(&mut q);
    let mut all = 0;
    while let Some(woken) = q.next_wakeup() {
        assert_eq!(woken, (old, true));
        all += 1;
    }
    assert_eq!(all, 4, "five waited");
}
