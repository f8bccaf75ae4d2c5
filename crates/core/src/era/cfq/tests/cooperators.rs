//! Processes that read next to each other.

use super::*;

#[test]
fn v31_a_close_queue_is_served_instead_of_idling() {
    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    let rb = rig.read(b, 1008);
    rig.serves(ra, 1);
    rig.issues(rb); // else idling for a until 9
}

#[test]
fn v31_the_close_queue_need_not_be_sync() {
    let mut rig = Rig::new("2.6.31");
    let (a, w) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    let rw = rig.write(w, 1008);
    rig.serves(ra, 1);
    rig.issues(rw);
}

#[test]
fn v31_a_queue_out_of_turn_is_not_served_out_of_turn_again() {
    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    let rb = rig.read(b, 1008);
    rig.serves(ra, 1);
    rig.issues(rb); // out of turn
    let ra = rig.read(a, 1016); // nobody is waited for: no preemption
    rig.pass(1).complete(rb);
    rig.issues(ra); // out of turn, the first time
    rig.read(b, 1024);
    rig.pass(1).complete(ra);
    rig.idles_until(11); // b has not had a turn of its own since; else b at once

    // Both get turns of their own, then b is served out of turn as at first.
    let (rb, who) = rig.serve_next(1); // 11..12
    assert_eq!(who, b);
    let _ = rb;
    let ra = rig.pass(20).read(a, 1032);
    rig.issues(ra);
    let rb = rig.read(b, 1040);
    rig.pass(1).complete(ra);
    rig.issues(rb);
}

#[test]
fn real_time_and_best_effort_cooperate_in_2_6_31_only() {
    for (profile, cooperate) in [("2.6.31", true), ("2.6.34", false)] {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context_at(IoPrio::RealTime(4)), rig.context());
        let ra = rig.read(a, 1000);
        rig.issues(ra);
        let rb = rig.read(b, 1008);
        rig.at(1).complete(ra);
        if cooperate {
            rig.issues(rb);
        } else {
            rig.idles_until(9);
        }
    }
}

#[test]
fn v34_a_seeker_is_no_cooperator() {
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    for i in 0..6 {
        let rq = rig.read(b, (i + 5) * FAR);
        rig.serves(rq, 1);
    }
    let ra = rig.at(50).read(a, 1000);
    rig.issues(ra);
    rig.read(b, 1008);
    rig.at(51).complete(ra);
    rig.idles_until(59);
}

#[test]
fn another_level_is_no_cooperator() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(3)));
        let ra = rig.read(a, 1000);
        rig.issues(ra);
        rig.read(b, 1008);
        rig.at(1).complete(ra);
        rig.idles_until(9);
    }
}

/// Do `a` and `b` share a queue? Then a bio of one may be merged into a request of the other.
fn share_a_queue(rig: &mut Rig, a: ContextId, b: ContextId) -> bool {
    let rq = rig.read(a, 3_000_000);
    let bio = rig.bio(b, 3_000_008);
    let shared = rig.q.allow_merge(rq, &bio, rig.now);
    loop {
        let (served, _) = rig.serve_next(1);
        if served == rq {
            return shared;
        }
    }
}

/// Two processes that read a file in turns; after this they share a queue.
fn interleaved(rig: &mut Rig) -> (ContextId, ContextId) {
    let (a, b) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    rig.issues(ra);
    rig.read(b, 1008);
    rig.at(1).complete(ra);
    // a is empty, b is close: merge planned (both have one process: the running one goes to the other), b served.
    let (_, who) = rig.serve_next(1);
    assert_eq!(who, b);
    // a follows with its next request.
    let ra = rig.read(a, 1016);
    rig.serves(ra, 1); // at once, in b's slice
    (a, b)
}

#[test]
fn v34_close_queues_become_one() {
    let mut rig = Rig::new("2.6.34");
    let (a, b) = interleaved(&mut rig);
    assert!(share_a_queue(&mut rig, a, b));
    assert!(share_a_queue(&mut rig, b, a));
}

#[test]
fn v34_a_shared_queue_that_seeks_is_taken_apart() {
    let mut rig = Rig::new("2.6.34");
    let (a, b) = interleaved(&mut rig);
    // Jumps of the shared queue (no request is near the last): more than 4 of 32. Two processes in the same queue.
    for i in 0..6 {
        let rq = rig.read(a, (i + 5) * FAR);
        rig.serves(rq, 1);
    }
    // It expires when another queue's turn comes; the next request of each but the last gets a queue of its own.
    let c = rig.context();
    let rc = rig.read(c, 100);
    rig.pass(300);
    rig.serves(rc, 1);
    rig.pass(20);
    assert!(!share_a_queue(&mut rig, a, b));
    assert!(!share_a_queue(&mut rig, b, a));
}

#[test]
fn v34_seekers_are_not_merged() {
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    for i in 0..6 {
        let rq = rig.read(a, (i + 5) * FAR);
        rig.serves(rq, 1);
    }
    rig.pass(20); // no longer waited for: else b would preempt
    let ra = rig.read(a, 1000);
    rig.issues(ra);
    rig.read(b, 1008);
    rig.pass(1).complete(ra);
    rig.serve_next(1);
    assert!(!share_a_queue(&mut rig, a, b));
}

#[test]
fn v34_an_async_queue_is_no_cooperator() {
    let mut rig = Rig::new("2.6.34");
    let (a, w) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    rig.issues(ra);
    rig.write(w, 1008);
    rig.at(1).complete(ra);
    rig.idles_until(9);
}

#[test]
fn v34_one_that_leaves_a_shared_queue_leaves_it_to_the_other() {
    let mut rig = Rig::new("2.6.34");
    let (a, b) = interleaved(&mut rig);
    rig.q.context_exit(a, rig.now);
    let rb = rig.pass(1).read(b, 1024);
    rig.serves(rb, 1);
    // The slot's next tenant starts with a queue of its own.
    let a = rig.context();
    assert!(!share_a_queue(&mut rig, a, b));
}

#[test]
fn v34_exit_before_following_a_merge() {
    // a is to follow b but exits first; then b does, and everything is served and forgotten.
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    rig.issues(ra);
    let rb = rig.read(b, 1008);
    rig.at(1).complete(ra);
    rig.issues(rb);
    rig.q.context_exit(a, rig.now);
    rig.q.context_exit(b, rig.now);
    rig.at(2).complete(rb);
    let (c, d) = (rig.context(), rig.context());
    assert!(!share_a_queue(&mut rig, c, d));
}

#[test]
fn many_tenants_never_run_out_of_queues() {
    // Merge, exit, new tenants, 500 times over 64 slots: a lost queue would end in everybody sharing the last one.
    let mut rig = Rig::new("2.6.34");
    for _ in 0..500 {
        rig.pass(1000);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        rig.issues(ra);
        rig.read(b, 1008);
        rig.pass(1).complete(ra);
        rig.serve_next(1);
        let ra = rig.read(a, 1016);
        rig.serves(ra, 1);
        rig.q.context_exit(a, rig.now);
        rig.q.context_exit(b, rig.now);
    }
    let (a, b) = (rig.context(), rig.context());
    rig.pass(1000);
    assert!(!share_a_queue(&mut rig, a, b));
}
