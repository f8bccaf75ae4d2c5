//! Whose turn, how long, and in which order.

use super::*;

/// Queue `n` sequential reads.
fn stream(rig: &mut Rig, context: ContextId, from: u64, n: u64) {
    for i in 0..n {
        rig.read(context, from + i * PAGE);
    }
}

/// Serve one request a millisecond until the context changes; how many were served?
fn run_length(rig: &mut Rig, pending: &mut Option<ContextId>) -> (ContextId, u64) {
    let (context, mut n) = match pending.take() {
        Some(context) => (context, 1),
        None => (rig.serve_next(1).1, 1),
    };
    loop {
        let next = rig.serve_next(1).1;
        if next != context {
            *pending = Some(next);
            return (context, n);
        }
        n += 1;
    }
}

#[test]
fn slices_by_level_in_whole_ticks() {
    use super::super::{Units, queue::slices};
    let [asynchronous, sync] = slices(Units::new(MS), 40 * MS, 100 * MS);
    assert_eq!(sync, [180, 160, 140, 120, 100, 80, 60, 40]);
    assert_eq!(asynchronous, [72, 64, 56, 48, 40, 32, 24, 16]);
    // HZ = 100: 40 ms are 4 ticks, a fifth of which is 0: all async slices are equal, as on a kernel.
    assert_eq!(slices(Units::new(10 * MS), 40 * MS, 100 * MS)[0], [4; 8]);
    assert_eq!(slices(Units::new(0), 40 * MS, 100 * MS)[1][7], 40 * MS);
}

#[test]
fn a_slice_begins_at_the_first_completion() {
    // The first request goes at 0 and completes at 1: slice 1..1+slice. The last request that may go does so one
    // before the end, and completes at the end. So slice+1 requests of 1 ms are served in a turn.
    for (level, slice) in [(0u8, 180), (4, 100), (7, 40)] {
        let mut rig = Rig::new("2.6.31");
        let a = rig.context_at(IoPrio::BestEffort(level));
        let b = rig.context_at(IoPrio::BestEffort(level));
        stream(&mut rig, a, 1000, 400);
        stream(&mut rig, b, FAR, 400);
        let mut pending = None;
        assert_eq!(run_length(&mut rig, &mut pending), (a, slice + 1), "level {level}");
        assert_eq!(run_length(&mut rig, &mut pending), (b, slice + 1), "level {level}");
    }
}

#[test]
fn better_levels_come_round_sooner() {
    // Keys at 0, one queue after the other: level 7 gets 0 + 0 x 140 = 0, level 4 gets 0 + 1 x 80 = 80, level 0 gets
    // 0 + 2 x 0 = 0 and is behind level 7.
    let mut rig = Rig::new("2.6.31");
    let [low, mid, high] = [7, 4, 0].map(|level| rig.context_at(IoPrio::BestEffort(level)));
    let (r_low, r_mid, r_high) = (rig.read(low, FAR), rig.read(mid, 2 * FAR), rig.read(high, 3 * FAR));
    for rq in [r_low, r_high, r_mid] {
        rig.serves(rq, 5);
        rig.pass(8); // idle
    }
}

#[test]
fn v34_a_newcomer_is_not_counted_in_its_own_key() {
    // 2.6.34, keys at 0: level 7 gets 0 - 1 x 140, level 0 gets 0 + 0 x 0, level 4 gets 0 + 1 x 80.
    let mut rig = Rig::new("2.6.34");
    let [low, high, mid] = [7, 0, 4].map(|level| rig.context_at(IoPrio::BestEffort(level)));
    let (r_low, r_high, r_mid) = (rig.read(low, FAR), rig.read(high, 2 * FAR), rig.read(mid, 3 * FAR));
    for rq in [r_low, r_high, r_mid] {
        rig.serves(rq, 5);
        rig.pass(8);
    }
}

#[test]
fn what_is_left_of_a_slice_counts_at_the_next_turn() {
    // Level 0, so that keys are plain times. a runs 1..181 and is preempted at 41 with 140 left: key 41 - 140 = -99.
    // c, queued at 30, has key 30. Without the residual (41) or with 2.6.31's own sign (181) c would go first.
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let prio = IoPrio::BestEffort(0);
        let (a, c, rt) = (rig.context_at(prio), rig.context_at(prio), rig.context_at(IoPrio::RealTime(0)));
        let first = rig.read(a, 1000);
        let second = rig.read(a, 1008);
        rig.serves(first, 1);
        let rc = rig.at(30).read(c, FAR);
        let r = rig.at(41).read(rt, 2 * FAR);
        rig.serves(r, 1);
        rig.at(50); // the idle wait for rt is over
        rig.issues(second);
        let _ = rc;
    }
}

#[test]
fn an_overrun_is_paid_back() {
    // Level 0 again. a's request, begun in its slice (1..181), completes at 300: residual -119, key 300 + 119 = 419.
    // Then b (key 160) is served; c, which comes at 305, goes before a: without the residual a's key were 300.
    let mut rig = Rig::new("2.6.31");
    let prio = IoPrio::BestEffort(0);
    let (a, b, c) = (rig.context_at(prio), rig.context_at(prio), rig.context_at(prio));
    let first = rig.read(a, 1000);
    rig.serves(first, 1);
    let slow = rig.at(5).read(a, 1008);
    rig.issues(slow);
    let more = rig.at(150).read(a, 1016);
    let rb = rig.at(160).read(b, FAR);
    rig.at(300).complete(slow);
    rig.serves(rb, 1);
    let rc = rig.at(305).read(c, 2 * FAR);
    rig.idles_until(309); // for b
    rig.at(309).issues(rc);
    let _ = more;
}

#[test]
fn an_async_queue_sends_a_fixed_number_a_slice() {
    // 2 x 2 x (8 - level): 4 at level 7, 16 at level 4. Served at 0.1 ms each the 16 and 40 ms slices do not end first.
    for (level, requests) in [(7u8, 4), (4, 16)] {
        let mut rig = Rig::new("2.6.31");
        let w = rig.context_at(IoPrio::BestEffort(level));
        let v = rig.context_at(IoPrio::BestEffort(0));
        for i in 0..40 {
            rig.write(w, 1000 + i * PAGE);
        }
        for i in 0..40 {
            rig.write(v, FAR + i * PAGE);
        }
        let order: Vec<ContextId> = (0..requests + 1)
            .map(|_| {
                let Dispatch::Issue(rq) = rig.ask() else { panic!("nothing to serve") };
                let context = rig.q.requests()[rq].context;
                rig.now += MS / 10;
                rig.complete(rq);
                context
            })
            .collect();
        // At 0 the key of w is 0, that of v 0 + 1 x (180 - 72) = 108.
        assert!(order[..requests].iter().all(|c| *c == w), "level {level}: {order:?}");
        assert_eq!(order[requests], v, "level {level}");
    }
}

#[test]
fn an_async_queue_alone_has_no_such_limit() {
    let mut rig = Rig::new("2.6.31");
    let w = rig.context_at(IoPrio::BestEffort(7));
    for i in 0..10 {
        rig.write(w, 1000 + i * PAGE);
    }
    for _ in 0..10 {
        assert!(matches!(rig.ask(), Dispatch::Issue(_)));
    }
}

#[test]
fn idle_class_waits_for_everybody() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (idle, a) = (rig.context_at(IoPrio::Idle), rig.context());
        let ri = rig.read(idle, FAR);
        let ra = rig.read(a, 1000);
        rig.serves(ra, 1);
        rig.idles_until(9); // even for a's next request
        rig.at(9).issues(ri);
    }
}

#[test]
fn idle_class_queues_follow_one_another() {
    // One request each turn; every key is 200 behind the last one's.
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (x, y) = (rig.context_at(IoPrio::Idle), rig.context_at(IoPrio::Idle));
        let (x1, x2) = (rig.read(x, 1000), rig.read(x, 1008));
        let (y1, y2) = (rig.read(y, FAR), rig.read(y, FAR + 8));
        for rq in [x1, y1, x2, y2] {
            rig.serves(rq, 1);
        }
        // A turn is over with the dispatch: both may have a request in the device.
        let (x1, y1) = (rig.read(x, 1000), rig.read(y, FAR));
        rig.read(x, 1008);
        rig.issues(x1);
        rig.issues(y1);
    }
}

#[test]
fn ioprio_changes_with_the_next_request() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let first = rig.read(a, 1000);
        rig.serves(first, 1);
        rig.at(20);
        rig.q.set_ioprio(b, IoPrio::RealTime(0), rig.now);
        let ra = rig.read(a, 5000);
        let rb = rig.read(b, FAR); // preempts nobody, but is in the better class
        rig.issues(rb);
        let _ = ra;

        // Back to best effort: the new class shows with the next request, and the change needs the hook.
        rig.pass(1).complete(rb);
        rig.pass(20);
        let first = rig.serve_next(1).0;
        assert_eq!(first, ra);
        rig.pass(20);
        rig.q.set_ioprio(b, IoPrio::Idle, rig.now);
        let rb = rig.read(b, FAR);
        let ra = rig.read(a, 6000);
        rig.serves(ra, 1);
        let (next, _) = rig.serve_next(1);
        assert_eq!(next, rb);
    }
}
