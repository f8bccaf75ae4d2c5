//! Which request of a queue is next.

use super::super::choose::{BackSeek, prefer};
use super::*;
use crate::context::ContextId;

const BACK: BackSeek = BackSeek { sectors_max: 100, penalty: 2 };

fn at(sector: u64) -> crate::Request {
    request::request(Op::Read, Flags::NONE, sector, 8, ContextId::OVERFLOW, 0)
}

/// The sector chosen of two, asked both ways round.
#[track_caller]
fn best(a: u64, b: u64, from: u64) -> u64 {
    let (x, y) = (at(a), at(b));
    let first = prefer(&x, &y, from, BACK);
    assert!(a == b || first != prefer(&y, &x, from, BACK), "the choice does not depend on the order asked");
    if first { a } else { b }
}

#[test]
fn nearer_ahead_wins() {
    assert_eq!(best(1010, 1020, 1000), 1010);
}

#[test]
fn a_way_back_costs_double() {
    assert_eq!(best(990, 1019, 1000), 1019); // 20 against 19
    assert_eq!(best(990, 1021, 1000), 990); // 20 against 21
}

#[test]
fn of_equal_costs_the_one_ahead_wins() {
    assert_eq!(best(990, 1020, 1000), 1020); // 20 each
}

#[test]
fn too_far_back_waits_for_the_next_sweep() {
    assert_eq!(best(900, 5000, 1000), 900); // exactly 100 back: cost 200
    assert_eq!(best(899, 5000, 1000), 5000); // 101 back: wraps
}

#[test]
fn of_two_behind_the_sweep_the_first_starts_it() {
    assert_eq!(best(100, 200, 1000), 100);
    assert_eq!(best(800, 200, 1000), 200);
}

#[test]
fn sync_goes_before_metadata_before_position() {
    let plain = at(1000);
    let meta = crate::Request { flags: Flags::META, ..at(5000) };
    let asynchronous = crate::Request { op: Op::Write, ..at(1000) };
    assert!(prefer(&meta, &plain, 1000, BACK));
    assert!(!prefer(&plain, &meta, 1000, BACK));
    assert!(prefer(&meta, &asynchronous, 1000, BACK));
    assert!(!prefer(&crate::Request { flags: Flags::META, ..asynchronous }, &plain, 1000, BACK));
}

#[test]
fn a_sweep_goes_up_and_wraps() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let far = 100 * FAR;
        let sectors = [far + 80, far + 40, 1000, far, 2000];
        let ids: Vec<RequestId> = sectors.map(|s| rig.read(a, s)).into();
        // The head is at 0: 1000, 2000, then far.., where 2000 is beyond any way back.
        for i in [2, 4, 3, 1, 0] {
            rig.serves(ids[i], 1);
        }
    }
}

#[test]
fn behind_the_last_request_the_first_is_considered() {
    // After the request at 10 x FAR its neighbours are the one before it, 9 x FAR, too far back, and, as nothing is
    // ahead, the very first: both wrap, and the first starts the next sweep.
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let (a, b) = (rig.context(), rig.context());
        let rb = rig.read(b, 10 * FAR - PAGE);
        rig.issues(rb);
        rig.pass(1);
        rig.q.context_exit(b, rig.now);
        rig.complete(rb);
        let top = rig.read(a, 10 * FAR);
        let first = rig.read(a, FAR);
        let before = rig.read(a, 9 * FAR);
        rig.serves(top, 1);
        rig.serves(first, 1);
        rig.serves(before, 1);
    }
}

#[test]
fn neighbours_are_weighed_from_the_head_or_from_the_request() {
    // 1000 goes to the device, the neighbours of the next one, 1100, are 1040 behind it and 1200 ahead.
    // 2.6.34 measures from 1100 itself: 1040 costs 2 x 60 = 120, 1200 costs 100: 1200 is next.
    // 2.6.31 measures from the head, the end of 1000, 1008: 1040 costs 32: 1040 is next. Hence 1100 must be taken out
    // of order: it is overdue, and 1000 in the device is of the slice before.
    for (profile, next) in [("2.6.31", 1040), ("2.6.34", 1200)] {
        let mut rig = Rig::new(profile);
        rig.set("fifo_expire_sync", "1");
        let (a, b) = (rig.context(), rig.context());
        let rb = rig.read(b, 1000);
        rig.issues(rb);
        let first = rig.read(a, 1100);
        rig.read(a, 1040);
        rig.read(a, 1200);
        rig.pass(1);
        rig.q.context_exit(b, rig.now);
        rig.issues(first);
        let Dispatch::Issue(rq) = rig.ask() else { panic!() };
        let got = rig.q.requests()[rq].sector;
        // At the time 1100 is chosen 1000 is the last one issued.
        assert_eq!(got, next, "{profile}");
    }
}

#[test]
fn the_fifo_is_looked_at_once_a_slice() {
    for profile in BOTH {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let old = rig.read(a, FAR);
        let older = rig.read(a, 2 * FAR);
        let near = rig.read(a, 1000);
        // At 124 nothing is overdue, at 125 both distant ones are: the oldest goes first, then its nearer neighbour
        // (1000 is too far back from FAR: 1 GiB), never the second overdue one for its age.
        rig.at(125);
        rig.serves(old, 1);
        let next = rig.read(a, FAR + 8);
        rig.serves(next, 1);
        rig.serves(older, 1);
        rig.serves(near, 1);

        let mut rig = Rig::new(profile);
        let a = rig.context();
        rig.read(a, FAR);
        let near = rig.read(a, 1000);
        rig.at(124);
        rig.issues(near);
    }
}

#[test]
fn deadlines_run_from_the_start_or_from_insertion() {
    // Taken at 0, inserted at 100 (a plugged request), looked at when it is 130.
    for (profile, overdue) in [("2.6.31", true), ("2.6.34", false)] {
        let mut rig = Rig::new(profile);
        let a = rig.context();
        let plugged = rig.q.take(request::request(Op::Read, Flags::NONE, FAR, 8, a, rig.now)).unwrap();
        rig.at(100);
        rig.q.insert(plugged, rig.now);
        let near = rig.read(a, 1000);
        rig.at(130);
        rig.issues(if overdue { plugged } else { near });
    }
}

#[test]
fn async_requests_expire_later() {
    let mut rig = Rig::new("2.6.31");
    let w = rig.context();
    rig.write(w, FAR);
    let near = rig.write(w, 1000);
    rig.at(249);
    rig.issues(near);

    let mut rig = Rig::new("2.6.31");
    let w = rig.context();
    let old = rig.write(w, FAR);
    rig.write(w, 1000);
    rig.at(250);
    rig.issues(old);
}
