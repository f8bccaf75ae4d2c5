//! The preemption tables of Linux 2.6.31 and 2.6.34, a test a line. Each is arranged so that the opposite decision
//! gives another answer, named in its last comment.

use super::*;

/// An active queue with a request in the device and `more` queued behind it, all sequential; the request in the device
/// went there at 0.
fn reader_in_service(rig: &mut Rig, a: ContextId, more: u64) -> (RequestId, Vec<RequestId>) {
    let first = rig.read(a, 1000);
    let rest = (1..=more).map(|i| rig.read(a, 1000 + i * PAGE)).collect();
    rig.issues(first);
    (first, rest)
}

/// The active queue `a` runs a slice in which the FIFO was looked at, and holds an overdue request far away. Only the
/// start of another slice would serve that one before its neighbours in sector order. Now is 20.
fn reader_with_overdue_request(rig: &mut Rig, a: ContextId) -> (RequestId, RequestId) {
    rig.set("fifo_expire_sync", "10");
    let overdue = rig.read(a, FAR);
    let first = rig.read(a, 1000);
    let second = rig.read(a, 1008);
    let third = rig.read(a, 1016);
    rig.serves(first, 1);
    rig.serves(second, 19);
    (third, overdue)
}

// Lines that both tables have.

#[test]
fn without_an_active_queue_nobody_is_preempted() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        // b (level 4 as a) has the later key: 0+80 against 0 (2.6.31), 0 against -80 (2.6.34).
        let ra = rig.read(a, 1000);
        rig.read(b, FAR);
        rig.issues(ra); // else b, at the front
    }
}

#[test]
fn a_used_up_slice_is_preempted() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b, c) = (rig.context(), rig.context(), rig.context());
        let (ra, _) = reader_in_service(&mut rig, a, 3);
        rig.at(1).complete(ra); // slice 1..101
        rig.at(2).read(c, FAR);
        let rb = rig.at(102).read(b, 2 * FAR);
        rig.issues(rb); // else c, which queued up 100 ms earlier
    }
}

#[test]
fn an_idle_class_request_never_preempts() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, idle) = (rig.context(), rig.context_at(IoPrio::Idle));
        let (next, _) = reader_with_overdue_request(&mut rig, a);
        rig.metadata(idle, 2 * FAR); // metadata would preempt
        rig.issues(next); // else a's slice starts anew, with its overdue request
    }
}

#[test]
fn an_idle_class_queue_is_always_preempted() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (idle, b) = (rig.context_at(IoPrio::Idle), rig.context());
        reader_in_service(&mut rig, idle, 1);
        let rb = rig.at(1).read(b, FAR);
        rig.issues(rb); // else nothing: the idle queue is active and may have one request in the device
    }
}

#[test]
fn metadata_preempts_plain_requests() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        reader_in_service(&mut rig, a, 1);
        let rb = rig.at(1).metadata(b, FAR);
        rig.issues(rb); // else a's second request
    }
}

#[test]
fn metadata_does_not_preempt_metadata() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let (_, _) = reader_in_service(&mut rig, a, 0);
        let more = rig.metadata(a, 1008);
        rig.at(1).metadata(b, FAR);
        rig.issues(more); // else b's
    }
}

#[test]
fn a_queue_not_waited_for_is_not_preempted_by_a_close_request() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        // Another level, so that they are no cooperators.
        let (a, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(5)));
        reader_in_service(&mut rig, a, 0);
        rig.at(1).read(b, 1008);
        rig.holds(); // a has a request in the device and is worth waiting for; else b's request
    }
}

#[test]
fn a_queue_waited_for_is_preempted_by_a_close_request() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(5)));
        let (ra, _) = reader_in_service(&mut rig, a, 0);
        rig.at(1).complete(ra); // idles until 9
        let rb = rig.at(2).read(b, 1008);
        rig.issues(rb); // else idling goes on until 9
    }
}

#[test]
fn a_queue_whose_request_came_counts_as_waited_for_in_2_6_31_only() {
    for (profile, preempts) in [("2.6.31", true), ("2.6.34", false)] {
        let mut rig = Rig::new(profile);
        let (a, b, c) = (rig.context(), rig.context_at(IoPrio::BestEffort(5)), rig.context());
        let (ra, _) = reader_in_service(&mut rig, a, 0);
        rig.read(c, FAR);
        rig.at(1).complete(ra);
        let more = rig.at(2).read(a, 1008);
        rig.issues(more);
        let rb = rig.at(3).read(b, 1016);
        if preempts {
            rig.issues(rb);
        } else {
            rig.holds();
        }
    }
}

#[test]
fn a_queue_waited_for_is_not_preempted_by_a_distant_request() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(5)));
        let (ra, _) = reader_in_service(&mut rig, a, 0);
        rig.at(1).complete(ra);
        // The head stands at 1008. Close are 8192 sectors: 9200 is, 9201 is not.
        let rb = rig.at(2).read(b, 9201);
        rig.idles_until(9); // else b's request
        rig.at(9).issues(rb);

        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(5)));
        let (ra, _) = reader_in_service(&mut rig, a, 0);
        rig.at(1).complete(ra);
        let rb = rig.at(2).read(b, 9200);
        rig.issues(rb);
    }
}

// Lines in which they differ, or that show in another way.

#[test]
fn v31_sync_preempts_async() {
    let mut rig = Rig::new("2.6.31");
    let (w, b) = (rig.context(), rig.context());
    let first = rig.write(w, 1000);
    rig.write(w, 1008);
    rig.issues(first);
    let rb = rig.at(1).read(b, FAR);
    rig.issues(rb); // else the second write
}

#[test]
fn v31_an_async_request_does_not_preempt_async() {
    let mut rig = Rig::new("2.6.31");
    let (w, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(0)));
    let first = rig.write(w, 1000);
    let second = rig.write(w, 1008);
    rig.issues(first);
    rig.at(1).write(b, FAR);
    rig.issues(second); // else b's
}

#[test]
fn v31_real_time_preempts_best_effort() {
    let mut rig = Rig::new("2.6.31");
    let a = rig.context();
    let (low, high) = (rig.context_at(IoPrio::RealTime(7)), rig.context_at(IoPrio::RealTime(0)));
    reader_in_service(&mut rig, a, 1);
    let r_low = rig.at(1).read(low, FAR);
    let r_high = rig.read(high, 2 * FAR);
    // The preemptor goes to the front. Only looking for RT queues at the next dispatch (as 2.6.31 does too) would find
    // `high` first: its key is 1 + 2 x (180 - 180), that of `low` 1 + 1 x (180 - 40).
    rig.issues(r_low);
    rig.at(2);
    let _ = r_high;
}

#[test]
fn v31_real_time_comes_before_best_effort_at_every_dispatch() {
    let mut rig = Rig::new("2.6.31");
    let (a, rt) = (rig.context(), rig.context_at(IoPrio::RealTime(4)));
    let (ra, rest) = reader_in_service(&mut rig, a, 2);
    let r1 = rig.read(rt, FAR);
    rig.issues(r1);
    rig.at(1).complete(ra);
    rig.complete(r1);
    // The RT queue is idled for until 9; then a is served.
    rig.idles_until(9);
    rig.at(9).issues(rest[0]);
}

#[test]
fn v31_real_time_comes_before_a_queue_that_became_best_effort() {
    // Nothing is inserted that could preempt: it is the look at every dispatch that finds b.
    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context_at(IoPrio::RealTime(4)), rig.context_at(IoPrio::RealTime(4)));
    let (_, _) = reader_in_service(&mut rig, a, 1);
    let rb = rig.read(b, FAR);
    rig.q.set_ioprio(a, IoPrio::BestEffort(4), rig.now);
    rig.read(a, 1016);
    rig.issues(rb); // else a's second request
}

#[test]
fn v34_real_time_preempts_best_effort() {
    let mut rig = Rig::new("2.6.34");
    let (a, rt) = (rig.context(), rig.context_at(IoPrio::RealTime(4)));
    reader_in_service(&mut rig, a, 1);
    let r1 = rig.at(1).read(rt, FAR);
    rig.issues(r1); // else a's second request
}

#[test]
fn v34_best_effort_never_preempts_real_time() {
    let mut rig = Rig::new("2.6.34");
    let (rt, b) = (rig.context_at(IoPrio::RealTime(4)), rig.context());
    let (next, _) = reader_with_overdue_request(&mut rig, rt);
    rig.metadata(b, 2 * FAR); // metadata would preempt
    rig.issues(next); // else the RT slice starts anew, with its overdue request
}

#[test]
fn v31_best_effort_metadata_does_preempt_real_time() {
    // The line is missing in 2.6.31: metadata ends an RT slice. RT is picked again, but its slice starts anew.
    let mut rig = Rig::new("2.6.31");
    let (rt, b) = (rig.context_at(IoPrio::RealTime(4)), rig.context());
    let (_, overdue) = reader_with_overdue_request(&mut rig, rt);
    rig.metadata(b, 2 * FAR);
    rig.issues(overdue); // else the next in sector order
}

#[test]
fn v34_sync_preempts_async_once_the_async_workload_is_over() {
    let mut rig = Rig::new("2.6.34");
    let (w, b) = (rig.context(), rig.context());
    let first = rig.write(w, 1000);
    rig.write(w, 1008);
    rig.issues(first); // workload: 300 x 1/1 x 40/100 = 120, ends at 120
    let rb = rig.at(130).read(b, FAR);
    rig.holds(); // b's turn, after the write in the device is done; else the second write, at once
    rig.at(131).complete(first);
    rig.issues(rb);
}

#[test]
fn v34_sync_over_async_does_not_end_the_async_workload() {
    // As above, but the workload goes on until 120: the write queue expires and is picked again. (2.6.38 made a
    // preemption end the workload.)
    let mut rig = Rig::new("2.6.34");
    let (w, b) = (rig.context(), rig.context());
    let first = rig.write(w, 1000);
    let second = rig.write(w, 1008);
    rig.issues(first);
    rig.at(10).read(b, FAR);
    rig.issues(second);
}

#[test]
fn v34_a_seeker_preempts_the_idle_wait_of_its_tree() {
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    rig.make_slow(a);
    rig.make_slow(b);
    let start = 200;
    let ra = rig.at(start).read(a, 10 * FAR);
    rig.serves(ra, 5);
    // Neither has an idle window; a is the last of their tree, so the tree is waited for.
    let rb = rig.at(start + 6).read(b, 20 * FAR);
    rig.issues(rb); // else idling until start + 13
}

#[test]
fn v34_a_seeker_does_not_preempt_when_the_tree_holds_a_third() {
    let mut rig = Rig::new("2.6.34");
    let contexts = [rig.context(), rig.context(), rig.context()];
    for c in contexts {
        rig.make_slow(c);
    }
    let [a, b, c] = contexts;
    let start = 400;
    let ra = rig.at(start).read(a, 10 * FAR);
    let rb = rig.read(b, 20 * FAR);
    rig.issues(ra);
    rig.read(c, 30 * FAR);
    rig.issues(rb); // b's turn, for no seeker is waited for while there are others; else c, at the front
}
