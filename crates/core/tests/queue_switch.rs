//! Changing the elevator under load.

mod queue_support;

use fairlift_core::queue::{Ordering, Plugging, QueueConfig};
use fairlift_core::{Dispatch, Flags, IoPrio, MS, Op};
use queue_support::*;

#[test]
fn queued_requests_survive_a_switch_in_one_way_order() {
    let (mut q, _, task) = probed(unplugged());
    for sector in [900, 100, 500] {
        q.submit(write(task, sector, 8), 0);
    }
    let (next, orders) = probe();
    q.switch(next, 0);
    q.submit(write(task, 50, 8), 0);
    let order: Vec<u64> = serve_all(&mut q, 0).iter().map(|(sector, _)| *sector).collect();
    assert_eq!(order, [100, 500, 900, 50], "the new elevator's request comes after the old one's");
    assert_eq!(count(&orders, "insert"), 1);
    assert_eq!(count(&orders, "completed"), 1, "the new one hears only of what it was given");
    assert_empty(&q);
}

#[test]
fn the_old_elevator_gets_no_hook_once_it_is_handed_back() {
    let (mut q, old, task) = probed(unplugged());
    q.submit(write(task, 100, 8), 0);
    let in_flight = issue(&mut q, 0);
    q.submit(write(task, 200, 8), 0);
    let (next, new) = probe();
    q.switch(next, 0);
    let heard = old.lock().unwrap().hooks.len();
    q.submit(write(task, 208, 8), 0);
    q.requeue(in_flight, 0);
    serve_all(&mut q, 0);
    q.set_ioprio(task, IoPrio::Idle, 0);
    q.yield_to(task, None, 0);
    q.context_exit(task, 0);
    assert_eq!(old.lock().unwrap().hooks.len(), heard);
    assert_eq!(count(&new, "requeued") + count(&new, "drain"), 0, "nor the new one for what is not its own");
    assert_eq!(count(&new, "issued"), 1);
    assert_empty(&q);
}

#[test]
fn nothing_merges_into_a_request_of_the_old_elevator() {
    let (mut q, _, task) = probed(unplugged());
    queued(q.submit(write(task, 100, 8), 0));
    q.switch(build(&unplugged(), "noop"), 0);
    let new = queued(q.submit(write(task, 108, 8), 0)); // cache and hash
    assert_eq!(merged(q.submit(write(task, 116, 8), 0)), new, "the cache serves the new elevator");
}

#[test]
fn a_switch_keeps_the_plug_and_its_timer() {
    let config = QueueConfig::default();
    let mut q = queue(config, "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    q.submit(write(task, 100, 8), 0);
    q.switch(build(&config, "noop"), 1);
    assert_eq!(q.dispatch(1), Dispatch::Idle { until: 3 * MS });
    assert_eq!(serve_all(&mut q, 3 * MS), [(100, 8)]);
}

#[test]
fn what_a_task_has_plugged_goes_to_the_new_elevator() {
    let (mut q, old, task) = probed(QueueConfig { plugging: Plugging::Task, ..unplugged() });
    q.open_plug(task);
    q.submit(write(task, 100, 8), 0);
    let (next, new) = probe();
    q.switch(next, 0);
    q.close_plug(task, 0);
    assert_eq!((count(&old, "insert"), count(&new, "insert")), (0, 1));
    assert_eq!(serve_all(&mut q, 0), [(100, 8)]);
}

#[test]
fn a_switch_during_a_barrier_keeps_the_order() {
    let (mut q, _, task) = probed(QueueConfig { ordering: Ordering::DrainFlush, ..unplugged() });
    q.submit(write(task, 100, 8), 0);
    q.submit(bio(Op::Write, Flags::BARRIER, task, 50, 8), 0);
    q.submit(write(task, 20, 8), 0);
    let config = *q.config();
    let mut order = Vec::new();
    // A switch before every single step.
    loop {
        q.switch(build(&config, "noop"), 0);
        let Dispatch::Issue(rq) = q.dispatch(0) else { break };
        q.switch(build(&config, "noop"), 0);
        order.push((q.requests()[rq].op, q.requests()[rq].sector));
        complete(&mut q, rq, 0);
    }
    let (w, f) = (Op::Write, Op::Flush);
    assert_eq!(order, [(w, 100), (f, 0), (w, 50), (f, 0), (w, 20)]);
    assert_empty(&q);
}

#[test]
fn a_switch_during_a_flush_sequence_loses_nothing() {
    let config =
        QueueConfig { ordering: Ordering::Sequences { write_cache: true, fua: false }, ..unplugged() };
    let (mut q, _, task) = probed(config);
    q.submit(bio(Op::Write, Flags::FUA, task, 100, 8), 0);
    q.submit(bio(Op::Write, Flags::PREFLUSH | Flags::FUA, task, 200, 8), 0);
    let mut done = Vec::new();
    loop {
        q.switch(build(&config, "noop"), 0);
        let Dispatch::Issue(rq) = q.dispatch(0) else { break };
        q.switch(build(&config, "noop"), 0);
        done.extend(complete(&mut q, rq, 0));
    }
    done.sort_unstable();
    assert_eq!(done, [100, 200]);
    assert_empty(&q);
}

#[test]
fn two_queues_with_the_same_policy_do_not_know_of_each_other() {
    let mut a = queue(unplugged(), "noop");
    let mut b = queue(unplugged(), "noop");
    let (ta, tb) = (a.contexts_mut().create(IoPrio::DEFAULT), b.contexts_mut().create(IoPrio::DEFAULT));
    a.submit(read(ta, 0, 8), 0);
    assert_eq!(b.dispatch(0), Dispatch::Empty);
    b.submit(read(tb, 8, 8), 0);
    assert_eq!(serve_all(&mut a, 0), [(0, 8)]);
    assert_eq!(serve_all(&mut b, 0), [(8, 8)]);
}
