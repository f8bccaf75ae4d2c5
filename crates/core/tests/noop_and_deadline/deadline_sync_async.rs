//! deadline with `classes=sync-async`: reads and sync writes are one class, async writes the other.

use fairlift_core::MS;

use crate::bench::{Bench, DISCARD, IDLE, READ, RT, SYNC_WRITE, WRITE};

fn with(settings: &[(&str, &str)]) -> Bench {
    let mut b = Bench::disk("deadline");
    b.set("classes", "sync-async");
    for (name, value) in settings {
        b.set(name, value);
    }
    b
}

// ---- who belongs where ----

#[test]
fn a_sync_write_goes_before_async_writes() {
    let mut b = with(&[]);
    b.add_all(WRITE, [10, 20]);
    b.add(SYNC_WRITE, 90);
    assert_eq!(b.rest(), [90, 10, 20]);
}

#[test]
fn reads_and_sync_writes_share_one_sweep() {
    let mut b = with(&[]);
    b.add(READ, 30);
    b.add(SYNC_WRITE, 40);
    b.add(READ, 50);
    b.add(SYNC_WRITE, 10);
    b.add(READ, 20);
    // Head 30, up to 50 | head 10, 20. By direction it would be 30 50 | 20 | 40 | 10.
    assert_eq!(b.rest(), [30, 40, 50, 10, 20]);
}

#[test]
fn an_async_discard_is_in_the_second_class() {
    let mut b = with(&[]);
    b.add(DISCARD, 1);
    b.add(SYNC_WRITE, 2);
    assert_eq!(b.rest(), [2, 1]);
}

#[test]
fn priorities_do_not_matter() {
    let mut b = with(&[]);
    b.add(READ.with(IDLE), 10);
    b.add(WRITE.with(RT), 30);
    b.add(READ.with(RT), 20);
    assert_eq!(b.rest(), [10, 20, 30]);
}

// ---- choice of class ----

#[test]
fn async_writes_wait_for_two_batches() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add_all(SYNC_WRITE, [10, 30, 50]);
    b.add_all(READ, [20, 40, 60]);
    b.add_all(WRITE, [1, 2, 3]);
    // FIFO 10 30 50 20 40 60: 10 20 | 30 40 | async 1 2 | the oldest, 50, and 60 | async 3.
    assert_eq!(b.rest(), [10, 20, 30, 40, 1, 2, 50, 60, 3]);
}

#[test]
fn sync_writes_alone_do_not_starve_async_ones_for_ever() {
    let mut b = with(&[("fifo_batch", "1"), ("writes_starved", "3")]);
    b.add_all(SYNC_WRITE, [10, 20, 30, 40]);
    b.add(WRITE, 1);
    assert_eq!(b.rest(), [10, 20, 30, 1, 40]);
}

#[test]
fn a_running_async_batch_is_not_cut_short_by_an_expired_sync_write() {
    let mut b = with(&[("fifo_batch", "3"), ("read_expire", "1")]);
    b.add_all(WRITE, [10, 20, 30, 40]);
    assert_eq!(b.next(1), [10]);
    b.add(SYNC_WRITE, 5);
    b.at_ms(1000);
    assert_eq!(b.rest(), [20, 30, 5, 40]);
}

// ---- expiry ----

#[test]
fn each_class_has_its_deadline() {
    // A sync write has that of reads, 500 ms, an async one 5 s.
    for (kind, expire_ms) in [(READ, 500), (SYNC_WRITE, 500), (WRITE, 5000)] {
        for (late, expected) in [(0, [300, 100]), (1, [100, 300])] {
            let mut b = with(&[("fifo_batch", "1")]);
            b.add_all(kind, [200, 100, 300]);
            assert_eq!(b.next(1), [200]);
            b.now = expire_ms * MS + late;
            assert_eq!(b.rest(), expected);
        }
    }
}

#[test]
fn expiry_has_no_look_back_and_a_batch_no_least_time() {
    let mut b =
        with(&[("fifo_batch", "3"), ("quantum", "1000"), ("read_expire", "10"), ("writes_starved", "0")]);
    b.add_all(READ, [100, 90, 110, 120, 130]);
    assert_eq!(b.next(1), [100]);
    b.at_ms(100);
    b.add(WRITE, 5);
    b.add(SYNC_WRITE, 80);
    // 100 110 120 | the write | expired 90, not 80 below it; then 130 | 80.
    assert_eq!(b.rest(), [110, 120, 5, 90, 130, 80]);
}

// ---- merging ----

#[test]
fn a_sync_bio_may_not_join_an_async_request() {
    let mut b = with(&[]);
    let rq = b.add(WRITE, 100);
    assert!(!b.allow_merge(rq, &SYNC_WRITE.bio(108)));
    assert!(b.allow_merge(rq, &WRITE.bio(108)));
}

#[test]
fn an_async_bio_may_join_a_sync_request() {
    let mut b = with(&[]);
    let rq = b.add(SYNC_WRITE, 100);
    assert!(b.allow_merge(rq, &WRITE.bio(108)));
    assert!(b.allow_merge(rq, &SYNC_WRITE.bio(108)));
}

#[test]
fn the_veto_looks_at_where_the_request_was_filed() {
    let mut b = Bench::disk("deadline");
    let rq = b.add(SYNC_WRITE, 100);
    assert!(b.allow_merge(rq, &SYNC_WRITE.bio(108)));
    // Filed as a write, it will be served as one.
    b.set("classes", "sync-async");
    assert!(!b.allow_merge(rq, &SYNC_WRITE.bio(108)));
    b.set("classes", "direction");
    assert!(b.allow_merge(rq, &SYNC_WRITE.bio(108)));
}

#[test]
fn front_look_up_stays_in_the_class_of_the_bio() {
    let mut b = with(&[]);
    let sync = b.add(SYNC_WRITE, 100);
    let background = b.add(WRITE, 200);
    assert_eq!(b.find_front(&SYNC_WRITE.bio(92)), Some(sync));
    assert_eq!(b.find_front(&WRITE.bio(92)), None);
    assert_eq!(b.find_front(&SYNC_WRITE.bio(192)), None);
    assert_eq!(b.find_front(&WRITE.bio(192)), Some(background));
    // Found in the same tree; that a read cannot join a write is the queue's rule.
    assert_eq!(b.find_front(&READ.bio(92)), Some(sync));
}

#[test]
fn neighbours_are_those_of_the_same_class() {
    let mut b = with(&[]);
    let read = b.add(READ, 100);
    let background = b.add(WRITE, 108);
    let sync = b.add(SYNC_WRITE, 116);
    assert_eq!(b.latter(read), Some(sync));
    assert_eq!(b.former(sync), Some(read));
    assert_eq!((b.former(background), b.latter(background)), (None, None));
}

#[test]
fn a_read_and_a_sync_write_cannot_share_a_sector_but_an_async_one_can() {
    let mut b = with(&[]);
    let read = b.add(READ, 100);
    b.add(WRITE, 100);
    assert!(b.evicted.is_empty());
    b.add(SYNC_WRITE, 100);
    assert_eq!(b.evicted, [read]);
    assert_eq!(b.rest(), [100, 100]);
}

// ---- changing classes with requests queued ----

#[test]
fn what_was_filed_by_direction_is_served_where_it_was_filed() {
    let mut b = Bench::disk("deadline");
    b.add(SYNC_WRITE, 10);
    b.add(READ, 90);
    b.set("classes", "sync-async");
    b.add(SYNC_WRITE, 95);
    b.add(WRITE, 5);
    // First class: 90 95; second: 10, filed as a write, then 5.
    assert_eq!(b.rest(), [90, 95, 10, 5]);
}

#[test]
fn back_by_direction_a_sync_write_stays_in_the_first_class() {
    let mut b = with(&[]);
    b.add(SYNC_WRITE, 10);
    b.set("classes", "direction");
    b.add(WRITE, 5);
    let newer = b.add(SYNC_WRITE, 10);
    // The other 10 is filed as a write now, so the two do not meet.
    assert!(b.evicted.is_empty());
    b.add(READ, 90);
    assert_eq!(b.next(3), [10, 90, 5]);
    assert_eq!(b.dispatch(), Some(newer));
}

#[test]
fn one_absorbed_from_the_other_class_hands_nothing_over() {
    let mut b = Bench::disk("deadline");
    let gone = b.add(SYNC_WRITE, 108);
    b.set("classes", "sync-async");
    b.at_ms(4600);
    b.add(SYNC_WRITE, 90);
    let rq = b.add(SYNC_WRITE, 100);
    // 108 is filed with the writes, until 5000 ms; 100 in the first class, until 5100 ms, behind 90.
    b.absorb(rq, gone);
    b.at_ms(6000);
    assert_eq!(b.rest(), [90, 100]);
}

// ---- reads alone ----

/// While only reads are queued the first class holds all of them under either setting, so both give the same schedule: 32 random
/// readers with a request each, as in the random-read phase of tiotest.
#[test]
fn reads_alone_are_served_alike_by_direction_and_by_sync_and_async() {
    let schedule = |classes: &str| {
        let mut b = Bench::disk("deadline");
        b.set("classes", classes);
        let mut place = 1_u64;
        let mut random = || {
            place = place * 48_271 % 0x7fff_ffff;
            place
        };
        b.add_all(READ, (0..32).map(|_| random()));
        let mut served = Vec::new();
        for _ in 0..2000 {
            b.now += 6 * MS;
            let rq = b.dispatch().expect("31 or more wait");
            served.push(b.requests[rq].sector);
            b.completed(rq);
            b.add(READ, random());
        }
        served
    };
    let by_direction = schedule("direction");
    assert!(by_direction.windows(2).any(|pair| pair[1] < pair[0]), "there is more than one sweep");
    assert_eq!(by_direction, schedule("sync-async"));
}
