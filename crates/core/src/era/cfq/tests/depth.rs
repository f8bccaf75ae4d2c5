//! How many requests are let into the device, and what is learnt from it.

use super::*;

fn issue_all(rig: &mut Rig) -> Vec<RequestId> {
    core::iter::from_fn(|| match rig.ask() {
        Dispatch::Issue(rq) => Some(rq),
        _ => None,
    })
    .collect()
}

#[test]
fn v31_quantum_for_one_of_several_four_times_that_alone() {
    let mut rig = Rig::new("2.6.31");
    let a = rig.context();
    for i in 0..30 {
        rig.read(a, 1000 + i * PAGE);
    }
    assert_eq!(issue_all(&mut rig).len(), 16);

    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context(), rig.context());
    for i in 0..30 {
        rig.read(a, 1000 + i * PAGE);
    }
    rig.read(b, FAR);
    assert_eq!(issue_all(&mut rig).len(), 4);

    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context(), rig.context());
    rig.set("quantum", "7");
    for i in 0..30 {
        rig.read(a, 1000 + i * PAGE);
    }
    rig.read(b, FAR);
    assert_eq!(issue_all(&mut rig).len(), 7);
}

#[test]
fn v34_half_the_quantum_until_the_slice_is_known() {
    let (a, b);
    let mut rig = Rig::new("2.6.34");
    (a, b) = (rig.context(), rig.context());
    for i in 0..60 {
        rig.read(a, 1000 + i * PAGE);
    }
    let rb = rig.read(b, FAR);
    let first = issue_all(&mut rig);
    assert_eq!(first.len(), 4);
    // One completes at 1: slice 1..101. 3 in the device; now 8 are allowed as long as 1 + 8 x in device <= 101.
    rig.at(1).complete(first[0]);
    assert_eq!(issue_all(&mut rig).len(), 5); // up to 8
    // At 50: 6 in the device, 50 + 8 x 6 = 98 <= 101: one more. At 7: 50 + 56 > 101.
    rig.at(50).complete(first[1]);
    rig.complete(first[2]);
    assert_eq!(issue_all(&mut rig).len(), 1);
    let _ = rb;
}

#[test]
fn v34_no_limit_alone() {
    let mut rig = Rig::new("2.6.34");
    let a = rig.context();
    for i in 0..60 {
        rig.read(a, 1000 + i * PAGE);
    }
    assert_eq!(issue_all(&mut rig).len(), 60);
}

#[test]
fn idle_class_has_one_request_in_the_device() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let idle = rig.context_at(IoPrio::Idle);
        for i in 0..5 {
            rig.read(idle, 1000 + i * PAGE);
        }
        assert_eq!(issue_all(&mut rig).len(), 1);
    }
}

#[test]
fn async_waits_for_sync_in_the_device() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        // A dead reader, so that nobody waits for its next request.
        let (a, w) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let rw = rig.write(w, FAR);
        rig.issues(ra);
        rig.q.context_exit(a, rig.now);
        rig.holds();
        rig.at(1).complete(ra);
        rig.issues(rw);
    }
}

#[test]
fn v34_sync_waits_for_async_in_the_device_when_it_will_be_idled_on() {
    for (profile, waits) in [("2.6.31", false), ("2.6.34", true)] {
        let mut rig = Rig::new(profile);
        let (a, w) = (rig.context(), rig.context());
        let rw = rig.write(w, FAR);
        rig.issues(rw);
        let ra = rig.at(1).read(a, 1000);
        if waits {
            rig.holds();
            rig.at(2).complete(rw);
        }
        rig.issues(ra);
    }
}

#[test]
fn v31_has_no_async_ramp() {
    let mut rig = Rig::new("2.6.31");
    let w = rig.context();
    for i in 0..30 {
        rig.write(w, 1000 + i * PAGE);
    }
    assert_eq!(issue_all(&mut rig).len(), 16);
}

/// A sync request that took 125 ms is slow; at its completion, at 125, the ramp starts.
fn after_a_slow_sync_request() -> (Rig, ContextId) {
    let mut rig = Rig::new("2.6.34");
    let (a, w) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    rig.issues(ra);
    rig.at(125).complete(ra);
    rig.q.context_exit(a, rig.now);
    (rig, w)
}

#[test]
fn v34_async_depth_grows_with_the_time_since_a_slow_sync_request() {
    // Depth (now - 125) / 100, at least 1 into an empty device.
    for (now, depth) in [(126, 1), (224, 1), (325, 2), (725, 6)] {
        let (mut rig, w) = after_a_slow_sync_request();
        rig.at(now);
        for i in 0..30 {
            rig.write(w, 1000 + i * PAGE);
        }
        assert_eq!(issue_all(&mut rig).len(), depth, "at {now}");
    }
    // 124 ms are not slow: the depth is still that of the second before the first request, 10 and more.
    let mut rig = Rig::new("2.6.34");
    let (a, w) = (rig.context(), rig.context());
    let ra = rig.read(a, 1000);
    rig.issues(ra);
    rig.at(124).complete(ra);
    rig.q.context_exit(a, rig.now);
    for i in 0..30 {
        rig.write(w, 1000 + i * PAGE);
    }
    assert_eq!(issue_all(&mut rig).len(), 11); // (124 + 1000) / 100
}

#[test]
fn v34_without_low_latency_there_is_no_ramp() {
    let (mut rig, w) = after_a_slow_sync_request();
    rig.set("low_latency", "0");
    for i in 0..30 {
        rig.write(w, 1000 + i * PAGE);
    }
    assert_eq!(issue_all(&mut rig).len(), 30);
}

/// Serve `n` writes of one process, each 1 ms, with ten queued all the time (load enough for the sampler) and `depth` in
/// the device.
fn under_load(profile: &str, n: usize, depth: usize) -> Rig {
    more_load(Rig::new(profile), n, depth)
}

fn more_load(mut rig: Rig, n: usize, depth: usize) -> Rig {
    let writer = rig.context();
    let (mut sector, mut served) = (1000, 0);
    while served < n {
        while rig.q.queued() < 10 {
            rig.write(writer, sector);
            sector += PAGE;
        }
        let batch: Vec<RequestId> = (0..depth)
            .filter_map(|_| match rig.ask() {
                Dispatch::Issue(rq) => Some(rq),
                _ => None,
            })
            .collect();
        assert_eq!(batch.len(), depth);
        for rq in batch {
            rig.pass(1).complete(rq);
            served += 1;
        }
    }
    while !rig.q.is_empty() {
        rig.serve_next(1);
    }
    rig
}

/// Is a seeking process waited for? In 2.6.31 only on a disk that does not queue.
fn waits_for_seeker(mut rig: Rig) -> bool {
    rig.pass(50);
    let (seeker, other) = (rig.context(), rig.context());
    let a1 = rig.read(seeker, 1000);
    rig.serves(a1, 1);
    let a2 = rig.read(seeker, 900 * FAR);
    rig.serves(a2, 1);
    // The idle wait for the first one must not still be on.
    rig.pass(20);
    let a3 = rig.read(seeker, 5000);
    let ro = rig.read(other, 500 * FAR);
    rig.serves(a3, 1);
    match rig.ask() {
        Dispatch::Idle { until } => {
            assert_eq!(until, rig.now + 2 * MS, "a seeker is given 2 ms");
            true
        }
        Dispatch::Issue(rq) => {
            assert_eq!(rq, ro);
            false
        }
        Dispatch::Empty | Dispatch::Busy => panic!("nothing to do with a request queued"),
    }
}

#[test]
fn v31_a_shallow_disk_is_found_out_after_50_samples() {
    // The 51st sample decides; the last ones (5 and fewer queued) do not count.
    assert!(!waits_for_seeker(under_load("2.6.31", 40, 1)), "44 samples: still taken as queueing");
    assert!(waits_for_seeker(under_load("2.6.31", 60, 1)), "64 samples of depth 1: it does not queue");
}

#[test]
fn v31_a_deep_disk_keeps_its_reputation() {
    // Five in the device are enough, four are not.
    assert!(!waits_for_seeker(under_load("2.6.31", 120, 5)));
    assert!(waits_for_seeker(under_load("2.6.31", 120, 4)));
    // Until the next 50 samples: the peak is forgotten.
    assert!(waits_for_seeker(more_load(under_load("2.6.31", 120, 5), 120, 1)));
}

#[test]
fn v34_one_deep_moment_is_enough_for_ever() {
    // On a device without seeks the verdict shows at once: one that queues is never idled on.
    for (first_depth, waits) in [(5usize, false), (4, true)] {
        let mut rig = Rig::on("2.6.34", MS, false);
        let (w, a, b) = (rig.context(), rig.context(), rig.context());
        let mut sector = 1000;
        for depth in [first_depth, 1, 1, 1] {
            for _ in 0..60 {
                rig.write(w, sector);
                sector += PAGE;
            }
            while !rig.q.is_empty() {
                let batch: Vec<RequestId> = (0..depth)
                    .filter_map(|_| match rig.ask() {
                        Dispatch::Issue(rq) => Some(rq),
                        _ => None,
                    })
                    .collect();
                for rq in batch {
                    rig.pass(1).complete(rq);
                }
            }
        }
        rig.pass(20);
        let ra = rig.insert(Op::Read, Flags::NONE, 1000, 64, a);
        rig.read(b, FAR);
        rig.serves(ra, 1);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits, "first depth {first_depth}");
    }
}

#[test]
fn v34_idling_does_not_count_against_the_device() {
    // Ten readers, one request each: depth 1 for want of requests of the queue being served. 2.6.31 would conclude that
    // the device does not queue; 2.6.34 skips these samples, and goes on not idling on a device without seeks.
    let mut rig = Rig::on("2.6.34", MS, false);
    let contexts: Vec<ContextId> = (0..10).map(|_| rig.context()).collect();
    let mut sectors: Vec<u64> = (1..=10).map(|i| i * 10 * FAR).collect();
    for (i, c) in contexts.iter().enumerate() {
        rig.insert(Op::Read, Flags::NONE, sectors[i], 64, *c);
    }
    for _ in 0..200 {
        let Dispatch::Issue(rq) = rig.ask() else { panic!("idling at {}", rig.now) };
        let i = contexts.iter().position(|c| *c == rig.q.requests()[rq].context).unwrap();
        rig.pass(1).complete(rq);
        // Somebody else is served next, then it comes back.
        let Dispatch::Issue(other) = rig.ask() else { panic!("idling at {}", rig.now) };
        sectors[i] += 64;
        rig.insert(Op::Read, Flags::NONE, sectors[i], 64, contexts[i]);
        let i = contexts.iter().position(|c| *c == rig.q.requests()[other].context).unwrap();
        rig.pass(1).complete(other);
        sectors[i] += 64;
        rig.insert(Op::Read, Flags::NONE, sectors[i], 64, contexts[i]);
    }
}
