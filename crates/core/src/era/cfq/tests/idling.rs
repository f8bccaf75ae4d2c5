//! Waiting for the next request: when, how long, and what ends it.

use super::*;

#[test]
fn a_sequential_reader_is_waited_for() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let rb = rig.read(b, FAR);
        rig.serves(ra, 1);
        rig.idles_until(9);
        let more = rig.at(2).read(a, 1008);
        rig.serves(more, 1); // 2..3
        rig.idles_until(11);
        rig.at(11).issues(rb);
    }
}

#[test]
fn waits_end_on_tick_boundaries() {
    for profile in BOTH {
        // (tick, completion, end of the wait), microseconds: 1 ms: 1.7 -> 1 + 8; exact: 1.7 + 8; HZ = 250: 5.5 -> 4 + 8;
        // HZ = 100: 8 ms are one tick of 10, 15.5 -> 10 + 10.
        for (tick_us, done_us, until_us) in
            [(1000, 1700, 9000), (0, 1700, 9700), (4000, 5500, 12000), (10_000, 15_500, 20_000)]
        {
            let mut rig = Rig::with_tick(profile, tick_us * 1000);
            let (a, b) = (rig.context(), rig.context());
            let ra = rig.read(a, 1000);
            let rb = rig.read(b, FAR);
            rig.issues(ra);
            rig.at_ns(done_us * 1000).complete(ra);
            assert_eq!(rig.ask(), Dispatch::Idle { until: 1000 * MS + until_us * 1000 }, "tick {tick_us}");
            rig.at_ns(until_us * 1000 - 1);
            assert!(matches!(rig.ask(), Dispatch::Idle { .. }), "tick {tick_us}");
            rig.at_ns(until_us * 1000).issues(rb);
        }
    }
}

#[test]
fn slice_idle_0_never_waits() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        rig.set("slice_idle", "0");
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let rb = rig.read(b, FAR);
        rig.serves(ra, 1);
        rig.issues(rb);
    }
}

#[test]
fn a_slow_thinker_is_not_waited_for() {
    // Think times 0, 16 (20, capped), 16: after three samples the mean is (960 + 128) / 84 = 12 > 8.
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        rig.make_slow(a);
        // b too: 2.6.34 would wait for a if it were the last of the slow ones.
        rig.make_slow(b);
        let ra = rig.at(300).read(a, FAR);
        let rb = rig.read(b, 1000);
        rig.issues(ra);
        rig.at(305).complete(ra);
        rig.issues(rb);
    }
}

#[test]
fn two_samples_are_not_believed() {
    // Think times 0 and 16: the mean is (512 + 128) / 60 = 10 > 8, but 60 is not more than 80.
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let first = rig.read(a, 1000);
        rig.serves(first, 5);
        let second = rig.at(25).read(a, 1008);
        rig.serves(second, 5);
        rig.read(b, FAR);
        rig.idles_until(38);
    }
}

#[test]
fn v31_a_seeker_is_not_waited_for_on_a_queueing_disk() {
    // The first jump counts 0, the second, clipped to 2 Mi sectors, makes the mean 67108864 / 60 = 1.1 Mi > 8192.
    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, 1000);
    rig.serves(first, 8);
    let second = rig.read(a, 50 * FAR);
    let rb = rig.read(b, FAR);
    rig.serves(second, 8);
    rig.issues(rb);
}

#[test]
fn v34_a_seeker_is_not_waited_for_after_five_jumps() {
    // Jumps: none, then 1, 2, ... With 5 bits set the queue seeks: with the sixth request.
    for (requests, waits) in [(5u64, true), (6, false)] {
        let mut rig = Rig::new("2.6.34");
        let (a, b) = (rig.context(), rig.context());
        for i in 0..requests - 1 {
            let rq = rig.read(a, (i + 1) * FAR);
            rig.serves(rq, 1);
        }
        let rb = rig.read(b, 100);
        let last = rig.read(a, requests * FAR);
        rig.serves(last, 1);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits, "{requests} requests");
        let _ = rb;
    }
}

#[test]
fn v34_a_deep_seeker_is_waited_for() {
    // Four requests at once: it seeks, but it is not waiting for its own results.
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    let mut reads: Vec<RequestId> = (1..=8).map(|i| rig.read(a, i * FAR)).collect();
    rig.read(b, 100);
    for rq in reads.drain(..) {
        rig.serves(rq, 1);
    }
    assert!(matches!(rig.ask(), Dispatch::Idle { .. }));
}

#[test]
fn v34_small_requests_count_as_jumps_on_a_device_without_seeks() {
    // 6 requests below 32 KiB, sequential: noidle, so b goes at once although the device's queueing is not known.
    for (sectors, waits) in [(8u32, false), (64, true)] {
        let mut rig = Rig::on("2.6.34", MS, false);
        let (a, b, c) = (rig.context(), rig.context(), rig.context());
        // Make the device known as one that does not queue: 51 samples under load with depth below 5.
        for i in 0..60 {
            rig.insert(Op::Write, Flags::NONE, 100 * FAR + i * 100, 8, c);
        }
        for _ in 0..60 {
            rig.serve_next(1);
        }
        // NOIDLE, so that the noidle tree is not waited for; a queue with an idle window is all the same.
        for i in 0..6 {
            let rq = rig.insert(Op::Read, Flags::NOIDLE, 1000 + i * u64::from(sectors), sectors, a);
            rig.serves(rq, 1);
        }
        rig.pass(20);
        let last = rig.insert(Op::Read, Flags::NOIDLE, 1000 + 6 * u64::from(sectors), sectors, a);
        let rb = rig.read(b, 50 * FAR);
        rig.serves(last, 1);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits, "{sectors} sectors");
        let _ = rb;
    }
}

#[test]
fn a_queueing_device_without_seeks_is_not_idled() {
    for profile in BOTH {
        let mut rig = Rig::on(profile, MS, false);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.insert(Op::Read, Flags::NONE, 1000, 64, a);
        let rb = rig.read(b, FAR);
        rig.serves(ra, 1);
        rig.issues(rb);
    }
}

#[test]
fn nobody_waits_after_a_request_that_asked_not_to() {
    // A sync write with NOIDLE: not waited for in 2.6.31. 2.6.34 looks at the flag only for the noidle tree.
    for (profile, waits) in [("2.6.31", false), ("2.6.34", true)] {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.insert(Op::Write, Flags::SYNC | Flags::NOIDLE, 1000, 8, a);
        rig.read(b, FAR);
        rig.serves(ra, 1);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits, "{profile}");
    }
}

#[test]
fn v34_the_noidle_tree_is_waited_for_unless_all_asked_not_to() {
    for (flags, waits) in [(Flags::NONE, true), (Flags::NOIDLE, false)] {
        let mut rig = Rig::new("2.6.34");
        let (a, b) = (rig.context(), rig.context());
        rig.make_slow(a);
        let ra = rig.at(200).insert(Op::Write, Flags::SYNC | flags, 10 * FAR, 8, a);
        rig.issues(ra);
        rig.read(b, 1000); // has an idle window: the SYNC tree
        rig.pass(5).complete(ra);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits);
    }
}

#[test]
fn v34_no_wait_beyond_the_slice() {
    // a thinks 6 ms: mean 6 after some samples. With less than that left of its slice nobody waits for it.
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, 1000);
    let rb = rig.read(b, FAR);
    rig.serves(first, 1); // slice 1..101
    let mut sector = 1008;
    while rig.now < 1000 * MS + 90 * MS {
        rig.pass(6);
        let rq = rig.read(a, sector);
        rig.serves(rq, 1);
        sector += PAGE;
    }
    // 1 + 13 x 7 = 92: 9 left, more than 6: waited for; at 99: 2 left.
    assert_eq!(rig.now, 1000 * MS + 92 * MS);
    rig.idles_until(100);
    let rq = rig.at(98).read(a, sector);
    rig.serves(rq, 1);
    rig.issues(rb);
}

#[test]
fn a_promised_request_goes_out_after_the_end_of_the_slice() {
    // 2.6.31: a's slice is 1..101. It is waited for from 99 on; its request comes at 100, but the device is asked again
    // only at 103: the request goes out all the same, before b's.
    let mut rig = Rig::new("2.6.31");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, 1000);
    let rb = rig.read(b, FAR);
    rig.serves(first, 1);
    let mut sector = 1008;
    for ms in (5..=95).step_by(5) {
        let rq = rig.at(ms).read(a, sector);
        rig.serves(rq, 1);
        sector += PAGE;
    }
    let rq = rig.at(98).read(a, sector);
    rig.serves(rq, 1);
    let late = rig.at(100).read(a, sector + PAGE);
    rig.at(103).issues(late);
    // 2.6.34 ends its slice: the wait was over with the request's arrival and nothing was promised.
    let _ = rb;
}

#[test]
fn a_wait_is_not_for_the_dead() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let rb = rig.read(b, FAR);
        rig.issues(ra);
        rig.at(1);
        rig.q.context_exit(a, rig.now);
        rig.complete(ra);
        rig.issues(rb);

        // Exit while being waited for.
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let rb = rig.read(b, FAR);
        rig.serves(ra, 1);
        rig.idles_until(9);
        rig.q.context_exit(a, rig.now);
        rig.issues(rb);
    }
}

#[test]
fn with_nothing_queued_there_is_nothing_to_wait_for() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let ra = rig.read(a, 1000);
        rig.serves(ra, 1);
        rig.holds();
        rig.pass(100).holds();
    }
}

#[test]
fn no_wait_with_more_in_the_device() {
    // The second request is still out: its completion, not a timer, is waited for.
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let (first, second) = (rig.read(a, 1000), rig.read(a, 1008));
        rig.read(b, FAR);
        rig.issues(first);
        rig.issues(second);
        rig.at(1).complete(first);
        rig.holds();
        rig.at(3).complete(second);
        rig.idles_until(11);
    }
}

#[test]
fn v34_a_queue_is_not_held_on_to_where_idling_is_vain() {
    let mut rig = Rig::on("2.6.34", MS, false);
    let (a, b) = (rig.context(), rig.context());
    let ra = rig.insert(Op::Read, Flags::NONE, 1000, 64, a);
    let rb = rig.insert(Op::Read, Flags::NONE, FAR, 64, b);
    rig.issues(ra);
    rig.issues(rb);
}

#[test]
fn v34_a_queue_is_deep_only_until_it_is_waited_for_in_vain() {
    // NOIDLE, so that a seeker's tree is not waited for either.
    for (in_vain, waits) in [(false, true), (true, false)] {
        let mut rig = Rig::new("2.6.34");
        let (a, b) = (rig.context(), rig.context());
        let reads: Vec<RequestId> = (1..=8).map(|i| rig.read(a, i * FAR)).collect();
        rig.read(b, 100);
        for rq in reads {
            rig.serves(rq, 1);
        }
        if in_vain {
            rig.serve_next(1); // b, after the wait
            rig.pass(20);
        }
        let rq = rig.insert(Op::Read, Flags::NOIDLE, 20 * FAR, 8, a);
        rig.issues(rq);
        if in_vain {
            rig.read(b, 108);
        }
        rig.pass(1).complete(rq);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits, "in vain: {in_vain}");
    }
}
