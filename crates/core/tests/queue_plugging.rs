//! Plugging: I/O is held back for a moment so that more of it comes together.

mod queue_support;

use fairlift_core::queue::{Admission, NoMerges, Plugging, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, IoPrio, MS, Op};
use queue_support::*;

fn plugged() -> QueueConfig {
    QueueConfig { plugging: Plugging::QUEUE, ..QueueConfig::default() }
}

fn noop(config: QueueConfig) -> (RequestQueue, ContextId) {
    let mut q = queue(config, "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    (q, task)
}

// ---- the queue's plug -------------------------------------------------------------------------------------------------------

#[test]
fn a_request_entering_an_empty_queue_waits_three_milliseconds() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(read(task, 0, 8), 5 * MS));
    assert_eq!(q.dispatch(5 * MS), Dispatch::Idle { until: 8 * MS });
    assert_eq!(q.dispatch(8 * MS - 1), Dispatch::Idle { until: 8 * MS });
    issue(&mut q, 8 * MS);
}

#[test]
fn a_later_request_does_not_prolong_the_plug() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 100, 8), 2 * MS));
    assert_eq!(q.dispatch(2 * MS), Dispatch::Idle { until: 3 * MS });
}

#[test]
fn four_waiting_requests_unplug() {
    let (mut q, task) = noop(plugged());
    for n in 0..3 {
        queued(q.submit(read(task, n * 1000, 8), 0));
        assert!(matches!(q.dispatch(0), Dispatch::Idle { .. }), "after {}", n + 1);
    }
    queued(q.submit(read(task, 3000, 8), 0));
    issue(&mut q, 0);
}

#[test]
fn sixteen_bios_in_one_request_do_not_unplug() {
    let (mut q, task) = noop(plugged());
    for n in 0..16 {
        q.submit(read(task, n * 8, 8), 0);
    }
    assert_eq!(q.requests().taken(), 1);
    assert_eq!(q.dispatch(0), Dispatch::Idle { until: 3 * MS });
}

#[test]
fn requests_in_the_device_do_not_count_for_the_threshold() {
    let (mut q, task) = noop(plugged());
    for n in 0..4 {
        queued(q.submit(read(task, n * 1000, 8), 0));
    }
    for _ in 0..4 {
        issue(&mut q, 0);
    }
    for n in 4..7 {
        queued(q.submit(read(task, n * 1000, 8), 0));
        assert_eq!(q.dispatch(0), Dispatch::Idle { until: 3 * MS }, "4 in the device, {} waiting", n - 3);
    }
    queued(q.submit(read(task, 7000, 8), 0));
    issue(&mut q, 0);
}

#[test]
fn a_bio_with_unplug_goes_at_once_even_if_it_merges() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(bio(Op::Read, Flags::UNPLUG, task, 0, 8), 0));
    issue(&mut q, 0);
    let (mut q, task) = noop(plugged());
    queued(q.submit(read(task, 0, 8), 0));
    merged(q.submit(bio(Op::Read, Flags::UNPLUG, task, 8, 8), 0));
    issue(&mut q, 0);
}

#[test]
fn somebody_who_waits_unplugs() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(read(task, 0, 8), 0));
    q.unplug();
    issue(&mut q, 0);
}

#[test]
fn a_completion_unplugs() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(bio(Op::Read, Flags::UNPLUG, task, 0, 8), 0));
    let first = issue(&mut q, 0);
    queued(q.submit(read(task, 1000, 8), 0));
    assert!(matches!(q.dispatch(0), Dispatch::Idle { .. }));
    complete(&mut q, first, 1);
    issue(&mut q, 1);
}

#[test]
fn a_task_that_has_to_wait_for_a_slot_unplugs_first() {
    let config = QueueConfig { admission: Admission::Tags { nr_requests: 2 }, ..plugged() };
    let (mut q, task) = noop(config);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 1000, 8), 0));
    assert!(matches!(q.dispatch(0), Dispatch::Idle { .. }));
    assert_eq!(q.submit(read(task, 2000, 8), 0), Submitted::Full);
    issue(&mut q, 0);
}

#[test]
fn a_barrier_unplugs() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(write(task, 0, 8), 0));
    queued(q.submit(bio(Op::Write, Flags::BARRIER, task, 1000, 8), 0));
    issue(&mut q, 0);
}

#[test]
fn only_a_queue_that_was_empty_is_plugged() {
    let (mut q, task) = noop(plugged());
    queued(q.submit(read(task, 0, 8), 0));
    q.unplug();
    queued(q.submit(read(task, 1000, 8), 0)); // one was waiting: no new plug
    issue(&mut q, 0);
}

/// 2.6.25-28 always plug; since 2.6.30 a device without seeks that takes several commands is spared.
#[test]
fn devices_without_seeks_are_spared_if_they_queue() {
    for (spare, rotational, tagged, holds) in [
        (true, true, true, true),
        (true, false, false, true),
        (true, false, true, false),
        (false, false, true, true),
    ] {
        let plugging = Plugging::Queue { threshold: 4, delay_ns: 3 * MS, spare_non_rotational: spare };
        let (mut q, task) = noop(QueueConfig { plugging, rotational, tagged, ..QueueConfig::default() });
        queued(q.submit(read(task, 0, 8), 0));
        let held = matches!(q.dispatch(0), Dispatch::Idle { .. });
        assert_eq!(held, holds, "spare {spare} rotational {rotational} tagged {tagged}");
    }
}

// ---- the tasks' plugs -------------------------------------------------------------------------------------------------------

fn task_plugged() -> QueueConfig {
    QueueConfig { plugging: Plugging::Task, ..QueueConfig::default() }
}

#[test]
fn an_open_plug_keeps_requests_from_the_elevator_until_it_closes() {
    let (mut q, orders, task) = probed(task_plugged());
    q.open_plug(task);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 1000, 8), 0));
    assert_eq!(q.dispatch(0), Dispatch::Empty);
    assert_eq!(count(&orders, "insert"), 0);
    q.close_plug(task, 0);
    assert_eq!(count(&orders, "insert"), 2);
    assert_eq!(serve_all(&mut q, 0), [(0, 8), (1000, 8)]);
    queued(q.submit(read(task, 0, 8), 0)); // closed: straight through
    assert_eq!(count(&orders, "insert"), 3);
}

#[test]
fn a_plug_holds_only_its_own_task_back() {
    let (mut q, _, task) = probed(task_plugged());
    let other = q.contexts_mut().create(IoPrio::DEFAULT);
    q.open_plug(task);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(other, 1000, 8), 0));
    assert_eq!(serve_all(&mut q, 0), [(1000, 8)]);
}

#[test]
fn a_bio_merges_with_the_newest_request_on_the_plug_without_asking_the_elevator() {
    let (mut q, orders, task) = probed(task_plugged());
    orders.lock().unwrap().veto = true;
    q.open_plug(task);
    let rq = queued(q.submit(read(task, 100, 8), 0));
    assert_eq!(merged(q.submit(read(task, 108, 8), 0)), rq);
    assert_eq!(merged(q.submit(read(task, 92, 8), 0)), rq);
    queued(q.submit(read(task, 5000, 8), 0));
    queued(q.submit(read(task, 116, 8), 0)); // no longer the newest
    assert_eq!(count(&orders, "allow_merge"), 0);
}

#[test]
fn nomerges_two_silences_the_plug_too_and_one_does_not() {
    for (level, joins) in [(1, true), (2, false)] {
        let (mut q, _, task) =
            probed(QueueConfig { nomerges: NoMerges::from_sysfs(level), ..task_plugged() });
        q.open_plug(task);
        queued(q.submit(read(task, 0, 8), 0));
        let answer = q.submit(read(task, 8, 8), 0);
        assert_eq!(matches!(answer, Submitted::Merged(_)), joins, "level {level}");
    }
}

#[test]
fn the_thirty_third_request_flushes_the_plug_first() {
    let (mut q, orders, task) = probed(task_plugged());
    q.open_plug(task);
    for n in 0..32 {
        queued(q.submit(read(task, n * 1000, 8), 0));
    }
    assert_eq!(count(&orders, "insert"), 0);
    queued(q.submit(read(task, 32_000, 8), 0));
    assert_eq!(count(&orders, "insert"), 32);
    q.close_plug(task, 0);
    assert_eq!(count(&orders, "insert"), 33);
}

#[test]
fn a_newest_request_of_128_kib_makes_the_next_one_flush_the_plug() {
    for (sectors, nomerges, flushes) in [(255, 0, 0), (256, 0, 1), (256, 2, 0)] {
        let (mut q, orders, task) =
            probed(QueueConfig { nomerges: NoMerges::from_sysfs(nomerges), ..task_plugged() });
        q.open_plug(task);
        queued(q.submit(read(task, 0, sectors), 0));
        queued(q.submit(read(task, 50_000, 8), 0));
        assert_eq!(count(&orders, "insert"), flushes, "{sectors} sectors, nomerges {nomerges}");
    }
}

#[test]
fn a_request_off_the_plug_joins_one_with_the_elevator() {
    let (mut q, orders, task) = probed(task_plugged());
    let low = queued(q.submit(read(task, 0, 8), 7));
    queued(q.submit(read(task, 5000, 8), 7));
    q.open_plug(task);
    queued(q.submit(read(task, 9000, 8), 20));
    // Continues `low`, yet lands on the plug: the plug's newest does not fit, and the elevator vetoes the bio.
    orders.lock().unwrap().veto = true;
    queued(q.submit(read(task, 8, 8), 20));
    orders.lock().unwrap().veto = false;
    q.close_plug(task, 30);
    assert_eq!(q.requests()[low].sectors, 16);
    assert_eq!(serve_all(&mut q, 30), [(0, 16), (5000, 8), (9000, 8)]);
    assert_empty(&q);
}

#[test]
fn the_elevator_may_veto_a_request_off_the_plug() {
    let (mut q, orders, task) = probed(task_plugged());
    queued(q.submit(read(task, 0, 8), 0));
    orders.lock().unwrap().veto = true;
    q.open_plug(task);
    queued(q.submit(read(task, 8, 8), 0));
    q.close_plug(task, 0);
    assert_eq!(serve_all(&mut q, 0), [(0, 8), (8, 8)]);
}

#[test]
fn a_request_that_joins_off_the_plug_passes_on_its_age_and_priority() {
    let (mut q, _, task) = probed(task_plugged());
    let other = q.contexts_mut().create(IoPrio::DEFAULT);
    q.open_plug(task);
    let gone = queued(q.submit(Bio { ioprio: Some(IoPrio::RealTime(1)), ..read(task, 8, 8) }, 3));
    let low = queued(q.submit(read(other, 0, 8), 9)); // the other task has no plug
    q.close_plug(task, 20);
    assert_ne!(gone, low);
    let survivor = &q.requests()[low];
    assert_eq!((survivor.sectors, survivor.start_ns, survivor.ioprio), (16, 3, IoPrio::RealTime(1)));
    assert_eq!(q.requests().taken(), 1, "its slot is free");
}

#[test]
fn joining_off_the_plug_closes_gaps_too() {
    let (mut q, orders, task) = probed(task_plugged());
    orders.lock().unwrap().veto = true;
    let low = queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 16, 8), 0));
    q.open_plug(task);
    queued(q.submit(read(task, 8, 8), 0));
    orders.lock().unwrap().veto = false;
    q.close_plug(task, 0);
    assert_eq!(q.requests()[low].sectors, 24);
    let rq = issue(&mut q, 0);
    assert_eq!(complete(&mut q, rq, 0), [0, 8, 16]);
    assert_empty(&q);
}

#[test]
fn a_task_that_goes_to_sleep_for_a_slot_lets_its_plug_go() {
    let config = QueueConfig { admission: Admission::Tags { nr_requests: 2 }, ..task_plugged() };
    let (mut q, _, task) = probed(config);
    q.open_plug(task);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 1000, 8), 0));
    assert_eq!(q.submit(read(task, 2000, 8), 0), Submitted::Full);
    assert_eq!(serve_all(&mut q, 0), [(0, 8), (1000, 8)], "or nobody would ever free a slot");
}
