//! deadline with `classes=full`: RT reads above sync above async, and the three heuristics.

use fairlift_core::MS;

use crate::bench::{BE, Bench, IDLE, READ, RT, SYNC_WRITE, WRITE};

fn on(rotational: bool, settings: &[(&str, &str)]) -> Bench {
    let mut b = Bench::build("deadline", 128, rotational, 0);
    b.set("classes", "full");
    for (name, value) in settings {
        b.set(name, value);
    }
    b
}

/// On a disk, without a least time of a batch unless said otherwise.
fn disk(settings: &[(&str, &str)]) -> Bench {
    let mut b = on(true, &[("quantum", "0")]);
    for (name, value) in settings {
        b.set(name, value);
    }
    b
}

fn flash(settings: &[(&str, &str)]) -> Bench {
    let mut b = on(false, &[("quantum", "0")]);
    for (name, value) in settings {
        b.set(name, value);
    }
    b
}

// ---- levels ----

#[test]
fn three_levels_one_after_the_other() {
    let mut b = disk(&[]);
    b.add(WRITE, 10);
    b.add(READ, 20);
    b.add(READ.with(RT), 30);
    assert_eq!(b.rest(), [30, 20, 10]);
}

#[test]
fn only_reads_are_urgent() {
    let mut b = disk(&[]);
    b.add(READ, 40);
    b.add(SYNC_WRITE.with(RT), 50);
    b.add(WRITE.with(RT), 10);
    // The RT sync write is swept with the read; the RT async write waits.
    assert_eq!(b.rest(), [40, 50, 10]);
}

#[test]
fn the_idle_class_goes_with_the_async_writes_whatever_it_does() {
    let mut b = disk(&[]);
    b.add(READ.with(IDLE), 10);
    b.add(WRITE, 20);
    b.add(SYNC_WRITE.with(IDLE), 30);
    b.add(READ, 90);
    b.add(SYNC_WRITE, 80);
    // First class: 90 | second batch 80; then one sweep through the second class.
    assert_eq!(b.rest(), [90, 80, 10, 20, 30]);
}

#[test]
fn an_rt_read_ends_a_running_batch_at_once() {
    let mut b = disk(&[]);
    b.add_all(READ, [100, 200, 50, 300]);
    assert_eq!(b.next(2), [100, 200]);
    b.add(READ.with(RT), 1000);
    // RT | not on at 300, which the batch had reached, but at the oldest, 50.
    assert_eq!(b.rest(), [1000, 50, 300]);
}

#[test]
fn an_rt_read_ends_a_running_async_batch_too() {
    let mut b = disk(&[]);
    b.add_all(WRITE, [100, 200, 50]);
    assert_eq!(b.next(1), [100]);
    b.add(READ.with(RT), 1000);
    assert_eq!(b.rest(), [1000, 200, 50]);
}

#[test]
fn a_stream_of_rt_reads_starves_the_others() {
    let mut b = disk(&[("fifo_batch", "2")]);
    b.add(WRITE, 1);
    b.add(READ, 2);
    b.at_ms(60_000);
    for sector in 100..164 {
        b.add(READ.with(RT), sector);
        assert_eq!(b.next(1), [sector]);
    }
    assert_eq!(b.rest(), [2, 1]);
}

#[test]
fn rt_batches_do_not_count_as_starving() {
    let mut b = disk(&[("fifo_batch", "1")]);
    b.add_all(READ.with(RT), [100, 200, 300]);
    b.add_all(READ, [10, 20, 30]);
    b.add(WRITE, 1);
    assert_eq!(b.rest(), [100, 200, 300, 10, 20, 1, 30]);
}

#[test]
fn rt_reads_are_swept_in_batches_of_their_own() {
    let mut b = disk(&[("fifo_batch", "2")]);
    b.add_all(READ.with(RT), [500, 400, 600, 700]);
    // 500 600 | same level, nothing expired: 700 | 400.
    assert_eq!(b.rest(), [500, 600, 700, 400]);
}

#[test]
fn rt_reads_do_not_end_their_own_batch() {
    let mut b = disk(&[("fifo_batch", "3")]);
    b.add_all(READ.with(RT), [500, 400, 600, 700]);
    assert_eq!(b.next(1), [500]);
    b.at_ms(1000);
    // All have expired, which matters only after the third.
    assert_eq!(b.rest(), [600, 700, 400]);
}

#[test]
fn the_guard_for_the_second_class_is_as_ever() {
    let mut b = disk(&[("fifo_batch", "2")]);
    b.add_all(READ, [10, 20, 30, 40, 50]);
    b.add_all(WRITE, [1, 2, 3]);
    assert_eq!(b.rest(), [10, 20, 30, 40, 1, 2, 50, 3]);
}

#[test]
fn each_level_has_its_deadline() {
    for (kind, expire_ms) in [(READ.with(RT), 125), (READ.with(BE), 500), (READ.with(IDLE), 5000)] {
        for (late, expected) in [(0, [300, 100]), (1, [100, 300])] {
            let mut b = disk(&[("fifo_batch", "1")]);
            b.add_all(kind, [200, 100, 300]);
            assert_eq!(b.next(1), [200]);
            b.now = expire_ms * MS + late;
            assert_eq!(b.rest(), expected);
        }
    }
}

// ---- a least time for a batch ----

#[test]
fn a_batch_of_cheap_requests_goes_on_for_the_quantum() {
    let mut b = disk(&[("fifo_batch", "2"), ("quantum", "10"), ("writes_starved", "0")]);
    b.add_all(READ, [10, 20, 30, 40, 50]);
    assert_eq!(b.next(1), [10]);
    b.add(WRITE, 1);
    // Second of two at 3 ms; the quantum carries the batch over 6 and 9 ms, not over 10.
    for (ms, sector) in [(3, 20), (6, 30), (9, 40)] {
        b.at_ms(ms);
        assert_eq!(b.next(1), [sector]);
    }
    b.at_ms(10);
    assert_eq!(b.rest(), [1, 50]);
}

#[test]
fn a_batch_of_dear_requests_still_gets_fifo_batch() {
    let mut b = disk(&[("fifo_batch", "3"), ("quantum", "10"), ("writes_starved", "0")]);
    b.add_all(READ, [10, 20, 30, 40]);
    assert_eq!(b.next(1), [10]);
    b.add(WRITE, 1);
    b.at_ms(100);
    // The quantum is long over; the batch still has its three.
    assert_eq!(b.rest(), [20, 30, 1, 40]);
}

#[test]
fn the_default_quantum_is_40_ms() {
    for (ms, expected) in [(39, [30, 1]), (40, [1, 30])] {
        let mut b = on(true, &[("fifo_batch", "2"), ("writes_starved", "0")]);
        b.add_all(READ, [10, 20, 30]);
        assert_eq!(b.next(1), [10]);
        b.add(WRITE, 1);
        assert_eq!(b.next(1), [20]);
        b.at_ms(ms);
        assert_eq!(b.rest(), expected);
    }
}

#[test]
fn each_batch_has_its_own_quantum() {
    let mut b = disk(&[("fifo_batch", "1"), ("quantum", "10"), ("writes_starved", "1")]);
    b.add_all(READ, [10, 20, 30, 40]);
    assert_eq!(b.next(1), [10]);
    b.add(WRITE, 1);
    // At 10 ms a second batch of reads starts (starved 1). It lasts until 20 ms | the write.
    for (ms, sector) in [(10, 20), (19, 30), (20, 1)] {
        b.at_ms(ms);
        assert_eq!(b.next(1), [sector]);
    }
    assert_eq!(b.rest(), [40]);
}

// ---- looking back ----

#[test]
fn a_batch_for_an_expired_request_starts_a_third_of_a_batch_below_it() {
    let mut b = disk(&[("fifo_batch", "9"), ("read_expire", "10")]);
    b.add(READ, 60);
    b.at_ms(5);
    b.add_all(READ, [10, 20, 30, 40, 50, 70, 80]);
    b.now = 10 * MS + 1;
    // Head 60 has expired; 9 / 3 = 3 below it is 30. Up to 80 | then 10 20 in order.
    assert_eq!(b.rest(), [30, 40, 50, 60, 70, 80, 10, 20]);
}

#[test]
fn without_expiry_a_batch_starts_with_the_oldest() {
    let mut b = disk(&[("fifo_batch", "9"), ("read_expire", "10")]);
    b.add_all(READ, [60, 10, 20, 70]);
    b.at_ms(10);
    assert_eq!(b.rest(), [60, 70, 10, 20]);
}

#[test]
fn looking_back_stops_at_the_bottom_of_the_tree() {
    let mut b = disk(&[("read_expire", "10")]);
    b.add_all(READ, [60, 40, 50, 70]);
    b.at_ms(11);
    // 16 / 3 = 5 below 60, but there are only 50 and 40.
    assert_eq!(b.rest(), [40, 50, 60, 70]);
}

#[test]
fn the_second_class_looks_back_among_its_own() {
    let mut b = disk(&[("fifo_batch", "3"), ("write_expire", "10")]);
    b.add_all(WRITE, [60, 40, 50, 70]);
    b.at_ms(11);
    b.add(READ, 55);
    // The read | expired 60, one back: 50 60 70 | expired 40.
    assert_eq!(b.rest(), [55, 50, 60, 70, 40]);
}

#[test]
fn a_fifo_batch_below_3_looks_back_for_nobody() {
    let mut b = disk(&[("fifo_batch", "2"), ("read_expire", "10")]);
    b.add_all(READ, [60, 50, 70]);
    b.at_ms(11);
    assert_eq!(b.rest(), [60, 70, 50]);
}

#[test]
fn for_the_same_request_it_looks_back_only_once() {
    let mut b = disk(&[("fifo_batch", "3"), ("read_expire", "10"), ("writes_starved", "0")]);
    b.add_all(READ, [600, 400, 500]);
    b.at_ms(11);
    // One below the expired 600 is 500.
    assert_eq!(b.next(1), [500]);
    // RT ends that batch before it reaches 600.
    b.add(READ.with(RT), 1000);
    assert_eq!(b.next(1), [1000]);
    // 600 is still the head and has expired: not once more from below (400).
    assert_eq!(b.rest(), [600, 400]);
}

#[test]
fn for_another_request_it_looks_back_again() {
    let mut b = disk(&[("fifo_batch", "3"), ("read_expire", "10")]);
    b.add_all(READ, [600, 400, 500, 300, 200]);
    b.at_ms(11);
    // 500 600; top of the tree | the head is 400: from 300, 400; top | 200.
    assert_eq!(b.rest(), [500, 600, 300, 400, 200]);
}

#[test]
fn looking_back_is_for_a_request_not_for_its_slot() {
    let mut b = disk(&[("fifo_batch", "3"), ("read_expire", "10")]);
    let first = b.add(READ, 600);
    b.add(READ, 500);
    b.at_ms(11);
    assert_eq!(b.rest(), [500, 600]);
    b.completed(first);
    // The slot of 600 has a new tenant, for which the batch may start below again.
    assert_eq!(b.add(READ, 300), first);
    b.add(READ, 200);
    b.at_ms(22);
    assert_eq!(b.rest(), [200, 300]);
}

#[test]
fn it_looks_back_at_most_32_places() {
    let mut b = disk(&[("fifo_batch", "300"), ("read_expire", "10")]);
    b.add(READ, 1000);
    b.add_all(READ, (0..60).map(|i| i * 10));
    b.at_ms(11);
    // Sixty are below; the 32nd below 1000 is the 29th from the bottom (28 * 10).
    assert_eq!(b.next(2), [280, 290]);
}

// ---- devices without seek cost ----

#[test]
fn without_seeks_the_first_class_goes_in_order_of_arrival() {
    let mut b = flash(&[]);
    b.add(READ, 50);
    b.add(SYNC_WRITE, 10);
    b.add(READ, 90);
    b.add(READ, 30);
    assert_eq!(b.rest(), [50, 10, 90, 30]);
}

#[test]
fn without_seeks_rt_reads_go_in_order_of_arrival() {
    let mut b = flash(&[]);
    b.add_all(READ.with(RT), [50, 10, 90, 30]);
    assert_eq!(b.rest(), [50, 10, 90, 30]);
}

#[test]
fn without_seeks_async_writes_are_still_swept() {
    let mut b = flash(&[]);
    b.add_all(WRITE, [50, 10, 90, 30]);
    assert_eq!(b.rest(), [50, 90, 10, 30]);
}

#[test]
fn without_seeks_batches_and_the_guard_are_as_ever() {
    let mut b = flash(&[("fifo_batch", "2")]);
    b.add_all(READ, [50, 40, 30, 20, 10]);
    b.add_all(WRITE, [1, 2, 3]);
    assert_eq!(b.rest(), [50, 40, 30, 20, 1, 2, 10, 3]);
}

#[test]
fn without_seeks_there_is_nothing_to_look_back_to_but_for_async_writes() {
    let mut b = flash(&[("fifo_batch", "3"), ("read_expire", "10"), ("write_expire", "10")]);
    b.add_all(READ, [60, 50, 70]);
    b.add_all(WRITE, [6, 5, 7]);
    b.at_ms(11);
    assert_eq!(b.rest(), [60, 50, 70, 5, 6, 7]);
}

#[test]
fn without_seeks_a_batch_takes_in_what_arrives() {
    let mut b = flash(&[("fifo_batch", "3"), ("writes_starved", "0")]);
    b.add_all(READ, [50, 40]);
    assert_eq!(b.next(1), [50]);
    b.add(READ, 10);
    b.add(WRITE, 1);
    // 10 is below and came after the batch began; it is its third.
    assert_eq!(b.rest(), [40, 10, 1]);
}

#[test]
fn without_seeks_a_survivor_takes_over_the_turn_of_the_one_it_absorbs() {
    let mut b = flash(&[]);
    b.add_all(READ, [50]);
    let gone = b.add(READ, 108);
    assert_eq!(b.next(1), [50]);
    b.at_ms(1);
    b.add(READ, 7);
    let rq = b.add(READ, 100);
    // `next` was 108; its place and turn are 100's now.
    b.absorb(rq, gone);
    assert_eq!(b.rest(), [100, 7]);
}

// ---- merging ----

#[test]
fn a_bio_may_not_join_a_request_of_a_lower_level() {
    let mut b = disk(&[]);
    let urgent = b.add(READ.with(RT), 100);
    let first = b.add(READ, 200);
    let second = b.add(READ.with(IDLE), 300);
    let bios = [READ.with(RT), READ, READ.with(IDLE)].map(|kind| kind.bio(0));
    let allowed = [urgent, first, second].map(|rq| bios.map(|bio| b.allow_merge(rq, &bio)));
    assert_eq!(allowed, [[true, true, true], [false, true, true], [false, false, true]]);
}

#[test]
fn a_bio_without_priority_has_that_of_its_context() {
    let mut b = disk(&[]);
    let first = b.add(READ, 100);
    let idle = b.add(READ.with(IDLE), 200);
    let bio = |sector| fairlift_core::Bio { ioprio: None, ..READ.bio(sector) };
    assert_eq!(b.find_front(&bio(92)), Some(first));
    assert_eq!(b.find_front(&bio(192)), None);
    assert!(!b.allow_merge(idle, &bio(208)));
}

#[test]
fn front_look_up_knows_three_trees() {
    let mut b = disk(&[]);
    let ids = [READ.with(RT), READ, READ.with(IDLE)].map(|kind| b.add(kind, 100));
    assert!(b.evicted.is_empty());
    for (kind, rq) in [READ.with(RT), READ, READ.with(IDLE)].into_iter().zip(ids) {
        assert_eq!(b.find_front(&kind.bio(92)), Some(rq));
    }
}

// ---- changing classes with requests queued ----

#[test]
fn urgent_requests_stay_urgent_when_levels_are_given_up() {
    let mut b = disk(&[]);
    b.add(READ.with(RT), 500);
    b.set("classes", "direction");
    b.add(READ.with(RT), 100);
    b.add(READ, 50);
    assert_eq!(b.rest(), [500, 100, 50]);
}

#[test]
fn a_batch_in_order_of_arrival_goes_on_by_sector_when_levels_are_given_up() {
    let mut b = flash(&[]);
    b.add_all(READ, [50, 10, 90, 30]);
    assert_eq!(b.next(1), [50]);
    b.set("classes", "sync-async");
    // `next` is 10 and stays so; behind it is now 30, then 90.
    assert_eq!(b.rest(), [10, 30, 90]);
}
