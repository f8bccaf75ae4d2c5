//! Merging, allocation, requeueing, draining, switching, tunables.

use super::*;
use crate::elevator::{Growth, MayQueue};
use crate::request::RequestState;
use crate::tunable::SetError;

#[test]
fn bios_are_merged_only_within_a_queue() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let wa = rig.write(a, 2000);
        rig.read(b, 5000);
        let sync = |rig: &Rig, c| rig.bio(c, 1008);
        let asynchronous = |rig: &Rig, c| Bio { op: Op::Write, ..rig.bio(c, 2008) };
        let now = rig.now;
        let bio = sync(&rig, a);
        assert!(rig.q.allow_merge(ra, &bio, now));
        let bio = sync(&rig, b);
        assert!(!rig.q.allow_merge(ra, &bio, now), "another context's");
        let bio = Bio { flags: Flags::SYNC, ..asynchronous(&rig, a) };
        assert!(!rig.q.allow_merge(wa, &bio, now), "sync into async");
        let bio = asynchronous(&rig, a);
        assert!(rig.q.allow_merge(wa, &bio, now));
        let bio = asynchronous(&rig, b);
        assert!(rig.q.allow_merge(wa, &bio, now), "the async queue is shared");
        let bio = Bio { op: Op::Write, ..sync(&rig, a) };
        assert!(!rig.q.allow_merge(ra, &bio, now), "async into sync: not that queue");
        rig.q.set_ioprio(b, IoPrio::BestEffort(7), now);
        let bio = asynchronous(&rig, b);
        assert!(!rig.q.allow_merge(wa, &bio, now), "another level's async queue");
    }
}

#[test]
fn front_merges_are_found_in_the_submitters_queue() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1008);
        rig.read(b, 9000);
        let now = rig.now;
        let (own, other) = (rig.bio(a, 1000), rig.bio(b, 1000));
        assert_eq!(rig.q.find_front(&own, now), Some(ra));
        assert_eq!(rig.q.find_front(&other, now), None);
        let stranger = rig.context();
        let bio = rig.bio(stranger, 1000);
        assert_eq!(rig.q.find_front(&bio, now), None);
    }
}

#[test]
fn neighbours_follow_the_sectors() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let (high, low, mid) = (rig.read(a, 3000), rig.read(a, 1000), rig.read(a, 2000));
        let now = rig.now;
        assert_eq!(rig.q.former(mid, now), Some(low));
        assert_eq!(rig.q.latter(mid, now), Some(high));
        assert_eq!(rig.q.former(low, now), None);
        assert_eq!(rig.q.latter(high, now), None);
    }
}

#[test]
fn a_request_grown_at_its_front_is_found_at_its_new_place() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let (low, high) = (rig.read(a, 2000), rig.read(a, 3000));
        rig.q.requests_mut()[high].sector = 1000;
        let now = rig.now;
        rig.q.grew(high, Growth::Front, now);
        assert_eq!(rig.q.former(low, now), Some(high));
        let bio = rig.bio(a, 992);
        assert_eq!(rig.q.find_front(&bio, now), Some(high));
        rig.issues(high);
        rig.issues(low);
    }
}

#[test]
fn the_survivor_of_a_merge_takes_the_earlier_deadline_and_place() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let gone = rig.read(a, 100 * FAR + 8);
        let between = rig.at(10).read(a, 200 * FAR);
        let survivor = rig.at(20).read(a, 100 * FAR);
        rig.read(a, 1000);
        rig.q.requests_mut()[survivor].sectors = 16;
        let now = rig.now;
        rig.q.absorbed(survivor, gone, now);
        assert_eq!(rig.q.requests()[gone].state, RequestState::Held);
        // At 126 only what was inserted at 0 is overdue; its deadline and its place went to the survivor.
        rig.at(126).issues(survivor);
        let _ = between;
    }
}

#[test]
fn without_an_earlier_deadline_the_survivor_stays_where_it_is() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let survivor = rig.read(a, 100 * FAR);
        let gone = rig.at(20).read(a, 100 * FAR + 8);
        let near = rig.read(a, 1000);
        let now = rig.now;
        rig.q.absorbed(survivor, gone, now);
        rig.at(125).issues(survivor); // overdue since 0 + 125, not 20 + 125
        rig.issues(near);
        assert!(rig.q.is_empty());
    }
}

#[test]
fn of_two_requests_at_one_sector_the_old_one_goes_at_once() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let near = rig.read(a, 1000);
        let old = rig.read(a, FAR);
        let new = rig.read(a, FAR);
        assert_eq!(rig.q.queued(), 3);
        rig.issues(old);
        rig.pass(1).complete(old);
        rig.issues(near);
        rig.issues(new);
    }
}

#[test]
fn the_awaited_context_gets_one_extra_slot_a_slice() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        rig.read(b, FAR);
        let now = rig.now;
        assert_eq!(rig.q.may_queue(a, true, now), MayQueue::May);
        rig.serves(ra, 1);
        let now = rig.now;
        assert_eq!(rig.q.may_queue(b, true, now), MayQueue::May);
        assert_eq!(rig.q.may_queue(a, false, now), MayQueue::May);
        assert_eq!(rig.q.may_queue(a, true, now), MayQueue::Must);
        assert_eq!(rig.q.may_queue(a, true, now), MayQueue::May);
    }
}

#[test]
fn a_requeued_request_is_issued_again() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        let rb = rig.read(b, FAR);
        rig.issues(ra);
        rig.at(1);
        rig.q.requeue(ra, rig.now);
        rig.issues(ra);
        rig.at(2).complete(ra);
        // One completion, nothing in the device: a is waited for as ever.
        rig.idles_until(10);
        rig.at(10).issues(rb);
    }
}

#[test]
fn a_slots_next_tenant_starts_afresh() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let slow = rig.context();
        rig.make_slow(slow);
        rig.q.context_exit(slow, rig.now);
        let fresh = rig.context();
        assert_eq!(slow, fresh, "the slot is reused");
        let other = rig.context();
        let rq = rig.at(200).read(fresh, 1000);
        rig.read(other, FAR);
        rig.serves(rq, 1);
        rig.idles_until(209); // its predecessor would not be waited for
    }
}

#[test]
fn a_dead_contexts_requests_are_served() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let ids = [rig.read(a, 1000), rig.read(a, 1008), rig.read(b, FAR)];
        rig.q.context_exit(a, rig.now);
        let held = rig.q.take(request::request(Op::Read, Flags::NONE, 1016, 8, b, rig.now)).unwrap();
        rig.q.insert(held, rig.now);
        for rq in [ids[0], ids[1]] {
            rig.serves(rq, 1);
        }
        let (next, _) = rig.serve_next(1);
        assert!(next == ids[2] || next == held);
        rig.serve_next(1);
        assert!(rig.q.is_empty());
    }
}

#[test]
fn draining_gives_up_everything() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let prios = [IoPrio::Idle, IoPrio::BestEffort(4), IoPrio::RealTime(0)];
        let mut all = Vec::new();
        for (i, prio) in prios.into_iter().enumerate() {
            let c = rig.context_at(prio);
            let at = 10_000 * (i as u64 + 1);
            all.push(rig.read(c, at));
            all.push(rig.read(c, at + 100));
            all.push(rig.insert(Op::Write, Flags::SYNC, at + 200, 8, c));
        }
        let Dispatch::Issue(first) = rig.ask() else { panic!() };
        rig.q.drain(rig.now);
        assert!(rig.q.elevator().is_empty());
        let mut seen = std::vec![first];
        while let Dispatch::Issue(rq) = rig.ask() {
            seen.push(rq);
        }
        seen.sort();
        all.sort();
        assert_eq!(seen, all);
        // Back to normal work afterwards.
        for rq in seen {
            rig.complete(rq);
        }
        let c = rig.context();
        let rq = rig.read(c, 1000);
        rig.serves(rq, 1);
    }
}

#[test]
fn a_switch_in_mid_flight_forgets_what_is_in_the_device() {
    for (from, to) in [("2.6.31", "2.6.34"), ("2.6.34", "2.6.31")] {
        let mut rig = Rig::new(from);
        let (a, b) = (rig.context(), rig.context());
        let in_flight = rig.read(a, 1000);
        let queued = rig.read(b, FAR);
        rig.issues(in_flight);
        let new = build(to, 2048, 64, MS);
        drop(rig.q.switch(new, rig.now));
        let later = rig.read(a, 1008);
        rig.issues(queued);
        // Completions of the old elevator's requests are not the new one's: its counts would go below zero.
        rig.at(1).complete(in_flight);
        rig.complete(queued);
        rig.serves(later, 1);
        let rb = rig.read(b, FAR);
        rig.idles_until(10);
        rig.at(10).issues(rb);
    }
}

#[test]
fn two_instances_share_nothing() {
    let mut one = Rig::new("2.6.31");
    let mut two = Rig::new("2.6.31");
    one.set("slice_idle", "0");
    for (rig, waits) in [(&mut one, false), (&mut two, true)] {
        let (a, b) = (rig.context(), rig.context());
        let ra = rig.read(a, 1000);
        rig.read(b, FAR);
        rig.serves(ra, 1);
        assert_eq!(matches!(rig.ask(), Dispatch::Idle { .. }), waits);
    }
}

#[test]
fn tunables_are_the_kernels() {
    let value = |profile: &str, name: &str| {
        crate::tunable::find((DESCRIPTOR.tunables)(profile), name).map(|t| t.default)
    };
    for profile in BOTH {
        for (name, default) in [
            ("fifo_expire_sync", 125),
            ("fifo_expire_async", 250),
            ("back_seek_max", 16384),
            ("back_seek_penalty", 2),
            ("slice_sync", 100),
            ("slice_async", 40),
            ("slice_async_rq", 2),
            ("slice_idle", 8),
        ] {
            assert_eq!(value(profile, name), Some(default), "{profile} {name}");
        }
    }
    assert_eq!((value("2.6.31", "quantum"), value("2.6.34", "quantum")), (Some(4), Some(8)));
    assert_eq!((value("2.6.31", "low_latency"), value("2.6.34", "low_latency")), (None, Some(1)));
    assert_eq!(DESCRIPTOR.profiles[0], "2.6.31");

    // Every one can be set to both ends of its range, and used.
    for profile in BOTH {
        for end in [false, true] {
            let mut rig = Rig::new(profile);
            for t in (DESCRIPTOR.tunables)(profile) {
                rig.set(t.name, &std::format!("{}", if end { t.max } else { t.min }));
            }
            let (a, b) = (rig.context(), rig.context_at(IoPrio::BestEffort(7)));
            for i in 0..20 {
                rig.read(a, 1000 + i * FAR);
                rig.write(b, 5000 + i * FAR);
            }
            for _ in 0..40 {
                rig.serve_next(1);
            }
        }
    }

    let mut rig = Rig::new("2.6.31");
    assert_eq!(set(rig.q.elevator_mut(), "low_latency", "1"), Err(SetError::Unknown));
    assert!(matches!(set(rig.q.elevator_mut(), "quantum", "0"), Err(SetError::OutOfRange(_))));
}
