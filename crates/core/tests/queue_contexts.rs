//! io contexts: a table that never refuses, tasks that leave before their I/O, slots used again.

mod queue_support;

use fairlift_core::queue::{Plugging, QueueConfig};
use fairlift_core::{Bio, ContextId, Flags, IoPrio, Op};
use queue_support::*;

fn small(contexts_max: usize) -> QueueConfig {
    QueueConfig { contexts_max, ..unplugged() }
}

#[test]
fn beyond_its_capacity_everybody_shares_the_overflow_context() {
    let mut q = queue(small(2), "noop");
    let ids: Vec<_> = (0..5).map(|_| q.contexts_mut().create(IoPrio::DEFAULT)).collect();
    assert_ne!(ids[0], ids[1]);
    assert!(ids[..2].iter().all(|id| *id != ContextId::OVERFLOW));
    assert!(ids[2..].iter().all(|id| *id == ContextId::OVERFLOW));
    for (n, id) in ids.iter().enumerate() {
        queued(q.submit(read(*id, n as u64 * 1000, 8), 0));
    }
    assert_eq!(serve_all(&mut q, 0).len(), 5);
    for id in ids {
        q.context_exit(id, 0);
    }
    assert_eq!(q.contexts().iter().count(), 1, "the overflow context never goes");
    assert_ne!(q.contexts_mut().create(IoPrio::DEFAULT), ContextId::OVERFLOW, "there is room again");
}

#[test]
fn the_queue_serves_without_any_context_at_all() {
    let mut q = queue(small(0), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(task, ContextId::OVERFLOW);
    queued(q.submit(read(task, 0, 8), 0));
    assert_eq!(serve_all(&mut q, 0), [(0, 8)]);
}

#[test]
fn a_context_without_requests_is_free_as_soon_as_its_task_leaves() {
    let mut q = queue(small(1), "noop");
    let first = q.contexts_mut().create(IoPrio::DEFAULT);
    q.context_exit(first, 0);
    assert_eq!(q.contexts_mut().create(IoPrio::DEFAULT), first);
}

#[test]
fn a_context_with_requests_is_free_only_after_the_last_of_them() {
    let mut q = queue(small(1), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 1000, 8), 0));
    q.context_exit(task, 0);
    assert!(!q.contexts()[task].alive);
    for _ in 0..2 {
        assert_eq!(q.contexts_mut().create(IoPrio::DEFAULT), ContextId::OVERFLOW, "still in use");
        let rq = issue(&mut q, 0);
        complete(&mut q, rq, 0);
    }
    assert_eq!(q.contexts_mut().create(IoPrio::DEFAULT), task);
}

#[test]
fn a_new_tenant_has_its_own_epoch_and_priority() {
    let mut q = queue(small(1), "noop");
    let old = q.contexts_mut().create(IoPrio::RealTime(0));
    let epoch = q.contexts()[old].epoch;
    q.context_exit(old, 0);
    let new = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_eq!(new, old, "the slot is the same");
    assert_ne!(q.contexts()[new].epoch, epoch);
    assert_eq!(q.contexts()[new].ioprio, IoPrio::DEFAULT);
}

#[test]
fn leaving_twice_frees_the_slot_once() {
    let (mut q, orders, task) = probed(small(2));
    q.context_exit(task, 0);
    q.context_exit(task, 0);
    assert_eq!(count(&orders, "context_exit"), 1);
    let (a, b) = (q.contexts_mut().create(IoPrio::DEFAULT), q.contexts_mut().create(IoPrio::DEFAULT));
    assert_ne!(a, b);
    assert_eq!(q.contexts_mut().create(IoPrio::DEFAULT), ContextId::OVERFLOW);
}

#[test]
fn a_stale_or_foreign_id_is_served_as_overflow() {
    let mut q = queue(small(2), "noop");
    let mut large = queue(small(50), "noop");
    let foreign = (0..50).map(|_| large.contexts_mut().create(IoPrio::DEFAULT)).next_back().unwrap();
    let stale = q.contexts_mut().create(IoPrio::DEFAULT);
    q.context_exit(stale, 0);
    for id in [foreign, stale] {
        let rq = queued(q.submit(read(id, 0, 8), 0));
        assert_eq!(q.requests()[rq].context, ContextId::OVERFLOW);
        serve_all(&mut q, 0);
        q.open_plug(id);
        q.close_plug(id, 0);
        q.set_ioprio(id, IoPrio::Idle, 0);
        q.yield_to(id, Some(id), 0);
        q.context_exit(id, 0);
    }
    assert_eq!(q.contexts()[ContextId::OVERFLOW].ioprio, IoPrio::DEFAULT);
    assert_empty(&q);
}

#[test]
fn a_leaving_task_takes_nothing_with_it_from_its_plug() {
    let (mut q, orders, task) = probed(QueueConfig { plugging: Plugging::Task, ..unplugged() });
    q.open_plug(task);
    queued(q.submit(read(task, 0, 8), 0));
    q.context_exit(task, 0);
    let hooks: Vec<_> = orders.lock().unwrap().hooks.iter().map(|(hook, _)| *hook).collect();
    assert_eq!(hooks, ["insert", "context_exit"], "its I/O first, then its end");
    assert_eq!(serve_all(&mut q, 0), [(0, 8)]);
    let next = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(next, 0, 8), 0));
    assert_eq!(serve_all(&mut q, 0), [(0, 8)], "the next tenant finds no open plug");
}

#[test]
fn requests_absorbed_by_another_contexts_request_let_go_of_their_own() {
    let (mut q, _, a) = probed(small(4));
    let b = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(b, 16, 8), 0));
    let low = queued(q.submit(read(a, 0, 8), 0));
    assert_eq!(merged(q.submit(read(a, 8, 8), 0)), low);
    q.context_exit(b, 0);
    assert_eq!(q.contexts_mut().create(IoPrio::DEFAULT), b, "nothing of it is left");
    assert_eq!(serve_all(&mut q, 0), [(0, 24)]);
}

#[test]
fn a_bio_has_its_own_priority_or_its_contexts() {
    let mut q = queue(small(4), "noop");
    let task = q.contexts_mut().create(IoPrio::BestEffort(6));
    let plain = queued(q.submit(read(task, 0, 8), 0));
    let own = queued(q.submit(Bio { ioprio: Some(IoPrio::RealTime(2)), ..read(task, 1000, 8) }, 0));
    q.set_ioprio(task, IoPrio::Idle, 0);
    let later = queued(q.submit(bio(Op::Write, Flags::NONE, task, 2000, 8), 0));
    let prio = |rq| q.requests()[rq].ioprio;
    assert_eq!(
        [prio(plain), prio(own), prio(later)],
        [IoPrio::BestEffort(6), IoPrio::RealTime(2), IoPrio::Idle]
    );
}
