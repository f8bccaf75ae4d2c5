//! Merging, requests at one sector, draining, switching.

use fairlift_core::elevator::{self, Growth};
use fairlift_core::{Bio, ContextId, Flags, Op};

use crate::rig::{At, Empty, HZ_1000, IdleUntilMs, LENGTH, Rig};

fn bio(op: Op, flags: Flags, sector: u64) -> Bio {
    let context = ContextId::OVERFLOW;
    Bio { cookie: 0, op, flags, sector, sectors: LENGTH, segments: 1, context, ioprio: None, group: None }
}

const READ: (Op, Flags) = (Op::Read, Flags::NONE);
const WRITE: (Op, Flags) = (Op::Write, Flags::NONE);
const SYNC_WRITE: (Op, Flags) = (Op::Write, Flags::SYNC);

#[test]
fn front_merges_are_looked_up_in_the_kernels_tree() {
    // Found or not, by the request that is there and the bio in front of it.
    for (there, bio_kind, found) in [
        (READ, READ, false),
        (READ, WRITE, true),
        (WRITE, READ, true),
        (WRITE, WRITE, false),
        (WRITE, SYNC_WRITE, false),
        (SYNC_WRITE, SYNC_WRITE, true),
        (SYNC_WRITE, WRITE, true),
        (SYNC_WRITE, READ, false),
    ] {
        let mut rig = Rig::new(HZ_1000);
        let task = rig.task();
        let rq = rig.add(task, there.0, there.1, 1008);
        let answer = rig.q.find_front(&bio(bio_kind.0, bio_kind.1, 1000), 0);
        // What is found with the wrong direction, the queue refuses.
        assert_eq!(answer, found.then_some(rq), "{bio_kind:?} before {there:?}");
    }
}

#[test]
fn neighbours_are_of_the_same_class() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.task();
    let (low, high) = (rig.read(task, 1000), rig.sync_write(task, 3000));
    rig.write(task, 2000);
    assert_eq!(rig.q.latter(low, 0), Some(high));
    assert_eq!(rig.q.former(high, 0), Some(low));
    assert_eq!([rig.q.former(low, 0), rig.q.latter(high, 0)], [None, None]);
}

#[test]
fn the_survivor_takes_the_earlier_deadline_and_its_place() {
    let mut rig = Rig::new(HZ_1000);
    rig.set("antic_expire", "0");
    let task = rig.task();
    rig.read_at_once(task, 0);
    let first = rig.write(task, 5000);
    rig.at_ms(1).write(task, 3000);
    let low = rig.at_ms(2).write(task, 4992);
    rig.q.absorbed(low, first, rig.now);
    rig.q.release(first);
    // The writes' batch starts with the oldest: now that is 4992, not 3000.
    assert_eq!(rig.next(), At(4992));
}

#[test]
fn a_younger_neighbour_changes_nothing() {
    let mut rig = Rig::new(HZ_1000);
    rig.set("antic_expire", "0");
    let task = rig.task();
    rig.read_at_once(task, 0);
    rig.write(task, 3000);
    let low = rig.at_ms(1).write(task, 4992);
    let high = rig.at_ms(2).write(task, 5000);
    rig.q.absorbed(low, high, rig.now);
    rig.q.release(high);
    assert_eq!(rig.rest(), [3000, 4992]);
}

#[test]
fn the_next_one_may_be_absorbed() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.task();
    rig.write(task, 2000);
    rig.serve(2000, 0);
    let low = rig.write(task, 1000);
    let next = rig.write(task, 2008);
    rig.write(task, 9000);
    rig.q.absorbed(low, next, rig.now);
    rig.q.release(next);
    // From 2008: 1000 is 1008 back, 2016; 9000 is 6992 ahead.
    assert_eq!(rig.rest(), [1000, 9000]);
}

#[test]
fn an_absorbed_request_ends_its_tasks_pause() {
    let mut rig = Rig::new(HZ_1000);
    let (task, low_task, other) = (rig.task(), rig.task(), rig.task());
    rig.read_at_once(task, 1000);
    // 3 ms later, a read of its goes up in another's: that counts as an answer.
    let low = rig.at_ms(3).read(low_task, 1992);
    let high = rig.read(task, 2000);
    rig.q.absorbed(low, high, rig.now);
    rig.q.release(high);
    rig.serve(1992, 0);
    rig.at_ms(4).read_at_once(task, 2008);
    rig.read(other, 900_000_000);
    // Its pauses are 3, then 0 before 1992 (which is close, and so counts as one of its), then 1: totals 96, 84, 105; 84
    // samples: (105+128)/84 = 2. Had it no answer since 0 ms: 3, 3, 4, totals 96, 180, 285; (285+128)/84 = 4.
    rig.set("antic_expire", "3");
    assert_eq!(rig.next(), IdleUntilMs(7));
}

#[test]
fn growing_at_the_front_moves_a_request_in_its_tree() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.task();
    let (low, high) = (rig.sync_write(task, 1000), rig.sync_write(task, 3000));
    rig.sync_write(task, 2000);
    // For the elevator's part it does not matter that the pool's request did not change (the queue would see to that).
    rig.q.grew(high, Growth::Front, 0);
    assert_eq!(rig.q.former(high, 0), rig.q.latter(low, 0));
    rig.q.grew(high, Growth::Back, 0);
    assert_eq!(rig.rest(), [1000, 2000, 3000]);
}

#[test]
fn of_two_requests_at_one_sector_the_older_leaves() {
    let mut rig = Rig::new(HZ_1000);
    let (one, other) = (rig.task(), rig.task());
    // Else the first sync batch would wait for the drive.
    rig.read_at_once(one, 0);
    let older = rig.read(one, 1000);
    rig.read(other, 900_000);
    let younger = rig.read(other, 1000);
    assert_eq!(rig.issue(1000), older);
    // That dispatch counts like any other: the task is awaited, and the younger one is close.
    assert_eq!(rig.issue(1000), younger);
    rig.done(older);
    rig.done(younger);
    assert_eq!(rig.rest(), [900_000]);
}

#[test]
fn an_alias_ends_a_wait() {
    let mut rig = Rig::new(HZ_1000);
    let (reader, other) = (rig.reader(1008), rig.task());
    rig.read(other, 900_000);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.read(other, 900_000);
    assert_eq!(rig.next(), At(900_000));
    // The wait was for the reader; now it would be for the other, which has more to do.
    assert_eq!(rig.next(), At(900_000));
    assert_ne!(reader, other);
}

#[test]
fn draining_takes_sync_requests_first_each_from_the_next() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.reader(5000);
    for sector in [7000, 4000, 9000] {
        rig.read(task, sector);
        rig.write(task, sector + 100);
    }
    rig.q.drain(0);
    // 4000 is 1000 back (2000), 7000 2000 ahead: equal, so ahead first; the list sorts within each direction from the end
    // of what was issued last, 5000: 7000, 9000, 4000; then the writes.
    assert_eq!(rig.rest(), [7000, 9000, 4000, 7100, 9100, 4100]);
}

#[test]
fn draining_ends_a_wait_and_a_change_of_batch() {
    let mut rig = Rig::new(HZ_1000);
    let (reader, other) = (rig.reader(1008), rig.task());
    rig.read(reader, 1008);
    let rq = rig.issue(1008);
    rig.write(other, 900_000);
    rig.set("antic_expire", "0");
    // Chosen: the writes, once the read is done.
    assert_eq!(rig.next(), Empty);
    rig.q.drain(0);
    assert_eq!(rig.next(), At(900_000));
    rig.read(reader, 1016);
    assert_eq!(rig.next(), At(1016));
    rig.done(rq);
}

#[test]
fn switched_away_and_back_under_load() {
    let mut rig = Rig::new(HZ_1000);
    let (reader, other) = (rig.reader(1008), rig.task());
    rig.read(reader, 1008);
    let rq = rig.issue(1008);
    rig.read(other, 900_000);
    assert_eq!(rig.next(), Empty);
    let config = elevator::Config { requests_max: 128, contexts_max: 5, groups_max: 1, tick_ns: HZ_1000 };
    let build = |name: &str| (elevator::find(name).expect("known").build)(&config, "");
    rig.q.switch(build("deadline"), 0);
    rig.read(other, 800_000);
    rig.q.switch(build("anticipatory"), 0);
    rig.read(reader, 1016);
    // What the earlier ones held, then its own: it has not heard of the request in the drive, and does not wait for it.
    rig.issue(900_000);
    rig.issue(800_000);
    assert_eq!(rig.next(), At(1016));
    rig.done(rq);
}
