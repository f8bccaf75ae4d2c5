//! deadline with `classes=direction`: the mainline algorithm, 2.6.28 to 2.6.37.
//!
//! `|` in a comment is a boundary between batches; `next` is where the running batch would go on.

use fairlift_core::MS;
use fairlift_core::elevator::{self, Placement};
use fairlift_core::tunable::SetError;

use crate::bench::{Bench, DISCARD, READ, SYNC_WRITE, WRITE};

fn deadline() -> Bench {
    Bench::disk("deadline")
}

/// A deadline elevator with one tunable after the other set.
fn with(settings: &[(&str, &str)]) -> Bench {
    let mut b = deadline();
    for (name, value) in settings {
        b.set(name, value);
    }
    b
}

// ---- order within a direction ----

#[test]
fn starts_with_the_oldest_goes_up_and_does_not_wrap() {
    let mut b = deadline();
    b.add_all(READ, [50, 10, 90, 30]);
    // Head 50, then 90; the tree ends and with it the batch | head 10, then 30.
    assert_eq!(b.rest(), [50, 90, 10, 30]);
}

#[test]
fn writes_alone_are_swept_like_reads() {
    let mut b = deadline();
    b.add_all(WRITE, [50, 10, 90, 30]);
    assert_eq!(b.rest(), [50, 90, 10, 30]);
}

#[test]
fn arrivals_above_join_the_running_batch_and_those_below_wait() {
    let mut b = deadline();
    b.add_all(READ, [50, 90]);
    assert_eq!(b.next(1), [50]);
    // `next` is 90 already, so 60 is passed: it was found behind 50 before 60 came.
    b.add_all(READ, [60, 95, 20]);
    assert_eq!(b.rest(), [90, 95, 60, 20]);
}

// ---- choice of direction ----

#[test]
fn a_batch_ends_after_sixteen() {
    let mut b = with(&[("writes_starved", "1")]);
    b.add_all(READ, (1..=20).map(|i| i * 100));
    b.add(WRITE, 5);
    // Both wait: reads (starved 1), sixteen of them | starved is 1: the write | the last four reads.
    let mut expected: Vec<u64> = (1..=16).map(|i| i * 100).collect();
    expected.extend([5, 1700, 1800, 1900, 2000]);
    assert_eq!(b.rest(), expected);
}

#[test]
fn the_end_of_the_tree_ends_a_batch_early() {
    let mut b = with(&[("writes_starved", "1")]);
    b.add_all(READ, [50, 90, 10]);
    b.add(WRITE, 5);
    // 50 90 and no read above | the write's turn | 10.
    assert_eq!(b.rest(), [50, 90, 5, 10]);
}

#[test]
fn writes_wait_for_two_batches_of_reads() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add_all(READ, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    b.add_all(WRITE, [1, 2, 3, 4]);
    // starved: 1 | 2 | writes, 0 | 1 | 2 | writes, 0 | only reads left
    assert_eq!(b.rest(), [10, 20, 30, 40, 1, 2, 50, 60, 70, 80, 3, 4, 90, 100]);
}

#[test]
fn with_writes_starved_0_writes_win() {
    let mut b = with(&[("fifo_batch", "2"), ("writes_starved", "0")]);
    b.add_all(READ, [10, 20]);
    b.add_all(WRITE, [1, 2, 3, 4]);
    assert_eq!(b.rest(), [1, 2, 3, 4, 10, 20]);
}

#[test]
fn batches_count_as_starving_only_while_writes_wait() {
    let mut b = with(&[("fifo_batch", "1")]);
    b.add_all(READ, [10, 20, 30, 40, 50]);
    assert_eq!(b.next(2), [10, 20]);
    b.add(WRITE, 1);
    // Two batches since the write is there, not since ever.
    assert_eq!(b.rest(), [30, 40, 1, 50]);
}

#[test]
fn a_batch_of_writes_alone_settles_the_account() {
    let mut b = with(&[("fifo_batch", "1")]);
    b.add(READ, 10);
    b.add_all(WRITE, [1, 2, 3]);
    // Read (starved 1) | no reads: write (starved 0).
    assert_eq!(b.next(2), [10, 1]);
    b.add_all(READ, [20, 30, 40]);
    // Again two batches of reads, not one.
    assert_eq!(b.rest(), [20, 30, 2, 40, 3]);
}

#[test]
fn a_change_of_direction_starts_at_the_oldest() {
    let mut b = with(&[("fifo_batch", "2"), ("writes_starved", "1")]);
    b.add_all(READ, [50, 60, 90, 20, 70]);
    b.add_all(WRITE, [5, 6]);
    // 50 60 | 5 6 | not 70, where the reads had stopped, but the oldest, 90; top of the tree | oldest 20, then 70.
    assert_eq!(b.rest(), [50, 60, 5, 6, 90, 20, 70]);
}

#[test]
fn the_same_direction_again_goes_on_where_it_was() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add_all(READ, [50, 10, 60, 70, 80]);
    // 50 60 | nothing has expired: 70 80, not the oldest (10) | end of the tree: 10.
    assert_eq!(b.rest(), [50, 60, 70, 80, 10]);
}

#[test]
fn fifo_batch_1_serves_each_direction_in_order_of_arrival_when_they_alternate() {
    let mut b = with(&[("fifo_batch", "1"), ("writes_starved", "1")]);
    b.add_all(READ, [50, 40, 60]);
    b.add_all(WRITE, [7, 5, 9]);
    // Every batch changes the direction and so starts at the oldest.
    assert_eq!(b.rest(), [50, 7, 40, 5, 60, 9]);
}

#[test]
fn fifo_batch_0_is_fifo_batch_1() {
    let mut b = with(&[("fifo_batch", "0"), ("writes_starved", "1")]);
    b.add_all(READ, [50, 40, 60]);
    b.add_all(WRITE, [7, 5, 9]);
    assert_eq!(b.rest(), [50, 7, 40, 5, 60, 9]);
}

#[test]
fn sync_writes_and_priorities_get_no_preference() {
    let mut b = deadline();
    b.add_all(WRITE, [50, 60]);
    b.add(SYNC_WRITE, 10);
    b.add(WRITE.with(crate::bench::RT), 5);
    b.add(READ.with(crate::bench::IDLE), 1);
    // The read first, whoever's; then writes: head 50, 60 | head 10 | head 5.
    assert_eq!(b.rest(), [1, 50, 60, 10, 5]);
}

#[test]
fn a_discard_is_a_write() {
    let mut b = deadline();
    b.add(DISCARD, 5);
    b.add(WRITE, 6);
    b.add(READ, 100);
    assert_eq!(b.rest(), [100, 5, 6]);
}

// ---- expiry ----

/// FIFO 200 100 300; 200 is gone, so `next` is 300 and the head 100, whose deadline is 100 ms.
fn head_100_next_300() -> Bench {
    let mut b = with(&[("fifo_batch", "1"), ("read_expire", "100")]);
    b.add_all(READ, [200, 100, 300]);
    assert_eq!(b.next(1), [200]);
    b
}

#[test]
fn at_its_deadline_a_request_has_not_expired() {
    let mut b = head_100_next_300();
    b.at_ms(100);
    assert_eq!(b.rest(), [300, 100]);
}

#[test]
fn just_after_its_deadline_it_has() {
    let mut b = head_100_next_300();
    b.now = 100 * MS + 1;
    assert_eq!(b.rest(), [100, 300]);
}

#[test]
fn the_default_deadlines_are_500_ms_and_5_s() {
    for (kind, expire_ms) in [(READ, 500), (WRITE, 5000)] {
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
fn expiry_is_looked_at_only_between_batches() {
    let mut b = with(&[("fifo_batch", "3")]);
    b.add_all(READ, [200, 100, 300, 400, 500]);
    assert_eq!(b.next(1), [200]);
    b.at_ms(10_000);
    // The batch goes on to its third | all have expired: the oldest, 100; then up: 500, 400 being gone.
    assert_eq!(b.rest(), [300, 400, 100, 500]);
}

#[test]
fn only_the_head_of_the_fifo_is_looked_at() {
    let mut b = with(&[("fifo_batch", "1"), ("read_expire", "1000")]);
    b.add_all(READ, [200, 100, 300]);
    b.set("read_expire", "1");
    b.add(READ, 50);
    assert_eq!(b.next(1), [200]);
    // 50 expired at 1 ms, but 100 stands before it with 999 ms to go.
    b.at_ms(10);
    assert_eq!(b.rest(), [300, 100, 50]);
}

#[test]
fn a_new_expiry_time_does_not_touch_what_is_queued() {
    let mut b = head_100_next_300();
    b.set("read_expire", "0");
    b.at_ms(100);
    assert_eq!(b.rest(), [300, 100]);
}

#[test]
fn expired_writes_do_not_win_the_choice_of_direction() {
    let mut b = with(&[("fifo_batch", "1"), ("write_expire", "10")]);
    b.add(WRITE, 5);
    b.add_all(READ, [10, 20, 30]);
    b.at_ms(400);
    // The write expired 390 ms ago and still waits for two batches.
    assert_eq!(b.rest(), [10, 20, 5, 30]);
}

#[test]
fn an_expired_read_waits_for_the_running_batch_of_writes() {
    let mut b = with(&[("read_expire", "1")]);
    b.add_all(WRITE, (1..=20).map(|i| i * 100));
    assert_eq!(b.next(1), [100]);
    b.add(READ, 5);
    b.at_ms(1000);
    // Fifteen more writes complete the batch of sixteen | the read | the other four.
    let mut expected: Vec<u64> = (2..=16).map(|i| i * 100).collect();
    expected.extend([5, 1700, 1800, 1900, 2000]);
    assert_eq!(b.rest(), expected);
}

#[test]
fn an_expired_request_starts_a_batch_upwards() {
    let mut b = with(&[("fifo_batch", "2"), ("read_expire", "10")]);
    b.add_all(READ, [200, 100, 150, 300, 400]);
    assert_eq!(b.next(1), [200]);
    b.at_ms(20);
    // 300 ends the batch | expired 100, then 150 | expired 400.
    assert_eq!(b.rest(), [300, 100, 150, 400]);
}

#[test]
fn the_clock_and_the_deadlines_go_in_jiffies() {
    // HZ=250. Inserted at 7 ms, when the clock shows 4; 10 ms count as three jiffies: the deadline is 16 ms.
    for (now_ns, expected) in [(20 * MS - 1, [300, 100]), (20 * MS, [100, 300])] {
        let mut b = Bench::build("deadline", 8, true, 4 * MS);
        b.set("fifo_batch", "1");
        b.set("read_expire", "10");
        b.at_ms(7);
        b.add_all(READ, [200, 100, 300]);
        assert_eq!(b.next(1), [200]);
        // One nanosecond before 20 ms the clock still shows 16, which is not after 16.
        b.now = now_ns;
        assert_eq!(b.rest(), expected);
    }
}

#[test]
fn within_a_jiffy_deadlines_are_equal() {
    let mut b = Bench::build("deadline", 8, true, 4 * MS);
    b.at_ms(4);
    let gone = b.add(READ, 108);
    b.add(READ, 500);
    b.at_ms(7);
    let rq = b.add(READ, 100);
    // 4 and 7 ms are one jiffy: 108 is not earlier and 100 keeps its place behind 500.
    b.absorb(rq, gone);
    assert_eq!(b.rest(), [500, 100]);
}

// ---- two requests at one sector ----

#[test]
fn of_two_reads_at_one_sector_the_older_leaves_at_once() {
    let mut b = deadline();
    let older = b.add(READ, 100);
    assert!(b.evicted.is_empty());
    let newer = b.add(READ, 100);
    assert_eq!(b.evicted, [older]);
    assert_eq!(b.dispatch(), Some(newer));
    assert!(b.elevator.is_empty());
}

#[test]
fn a_read_and_a_write_at_one_sector_both_stay() {
    let mut b = deadline();
    b.add(READ, 100);
    b.add(WRITE, 100);
    assert!(b.evicted.is_empty());
    assert_eq!(b.rest(), [100, 100]);
}

#[test]
fn the_batch_goes_on_behind_the_one_that_left() {
    let mut b = deadline();
    b.add_all(READ, [200, 100, 300, 400, 500]);
    assert_eq!(b.next(1), [200]);
    // `next` was 300. The old 400 leaves; behind it is 500. Then the top of the tree | the oldest, 100, and up.
    b.add(READ, 400);
    assert_eq!(b.rest(), [500, 100, 300, 400]);
}

#[test]
fn one_that_left_at_a_shared_sector_is_not_counted_for_the_batch() {
    let mut b = with(&[("fifo_batch", "2"), ("writes_starved", "1")]);
    b.add_all(READ, [100, 200, 300]);
    b.add(WRITE, 5);
    assert_eq!(b.next(1), [100]);
    b.add(READ, 200);
    // `next` is now 300 and it is the second of the batch, not the third | the write | the new 200.
    assert_eq!(b.rest(), [300, 5, 200]);
}

// ---- merging ----

#[test]
fn front_look_up_finds_the_request_that_starts_where_the_bio_ends() {
    let mut b = deadline();
    let rq = b.add(READ, 100);
    assert_eq!(b.find_front(&READ.bio(92)), Some(rq));
    assert_eq!(b.find_front(&READ.bio(91)), None);
    assert_eq!(b.find_front(&READ.bio(108)), None);
}

#[test]
fn front_look_up_stays_in_the_direction_of_the_bio() {
    let mut b = deadline();
    b.add(READ, 100);
    assert_eq!(b.find_front(&WRITE.bio(92)), None);
    let write = b.add(WRITE, 100);
    assert_eq!(b.find_front(&SYNC_WRITE.bio(92)), Some(write));
}

#[test]
fn front_look_up_can_be_switched_off() {
    let mut b = with(&[("front_merges", "0")]);
    b.add(READ, 100);
    assert_eq!(b.find_front(&READ.bio(92)), None);
}

#[test]
fn a_sync_bio_may_join_an_async_write() {
    let mut b = deadline();
    let rq = b.add(WRITE, 100);
    assert!(b.allow_merge(rq, &SYNC_WRITE.bio(108)));
}

#[test]
fn nothing_joins_a_request_that_has_left() {
    let mut b = deadline();
    let rq = b.add(WRITE, 100);
    assert_eq!(b.dispatch(), Some(rq));
    assert!(!b.allow_merge(rq, &WRITE.bio(108)));
    assert_eq!(b.find_front(&WRITE.bio(92)), None);
}

#[test]
fn after_growing_in_front_a_request_is_sorted_by_its_new_start() {
    let mut b = deadline();
    b.add_all(READ, [50, 100]);
    let rq = b.add(READ, 110);
    b.grow_front(rq, 30);
    // 110 became 80: behind 50, before 100.
    assert_eq!(b.find_front(&READ.bio(72)), Some(rq));
    assert_eq!(b.find_front(&READ.bio(102)), None);
    assert_eq!(b.rest(), [50, 80, 100]);
}

#[test]
fn growing_in_front_keeps_the_place_of_the_batch() {
    let mut b = deadline();
    b.add(READ, 100);
    let rq = b.add(READ, 200);
    b.add(READ, 300);
    assert_eq!(b.next(1), [100]);
    // `next` is 200; though it starts at 50 now, below the position, the batch goes on with it.
    b.grow_front(rq, 150);
    assert_eq!(b.rest(), [50, 300]);
}

#[test]
fn growing_in_front_to_a_taken_sector_sends_the_other_away() {
    let mut b = deadline();
    let other = b.add(READ, 100);
    let rq = b.add(READ, 108);
    b.grow_front(rq, 8);
    assert_eq!(b.evicted, [other]);
    assert_eq!(b.dispatch(), Some(rq));
    assert!(b.elevator.is_empty());
}

#[test]
fn growing_at_the_back_changes_nothing() {
    let mut b = deadline();
    let rq = b.add(READ, 100);
    b.add(READ, 104);
    b.grow_back(rq, 8);
    assert!(b.evicted.is_empty());
    assert_eq!(b.rest(), [100, 104]);
}

#[test]
fn the_survivor_takes_the_place_of_an_older_one_it_absorbs() {
    let mut b = with(&[("fifo_batch", "1"), ("read_expire", "0")]);
    let gone = b.add(READ, 108);
    b.at_ms(1);
    b.add(READ, 500);
    let rq = b.add(READ, 100);
    // FIFO 108 500 100 becomes 100 500.
    b.absorb(rq, gone);
    b.at_ms(10);
    assert_eq!(b.rest(), [100, 500]);
}

#[test]
fn the_survivor_keeps_its_place_before_a_younger_one() {
    let mut b = with(&[("fifo_batch", "1"), ("read_expire", "0")]);
    let rq = b.add(READ, 100);
    b.at_ms(1);
    b.add(READ, 50);
    let gone = b.add(READ, 108);
    b.absorb(rq, gone);
    b.at_ms(10);
    // FIFO 100 50 108 becomes 100 50.
    assert_eq!(b.rest(), [100, 50]);
}

#[test]
fn of_equal_deadlines_the_survivor_keeps_its_own_place() {
    let mut b = with(&[("fifo_batch", "1"), ("read_expire", "0")]);
    let gone = b.add(READ, 108);
    b.add(READ, 500);
    let rq = b.add(READ, 100);
    b.absorb(rq, gone);
    b.at_ms(10);
    // All three of one instant: 500 is before 100.
    assert_eq!(b.rest(), [500, 100]);
}

#[test]
fn the_survivor_takes_the_earlier_deadline() {
    for (ms, expected) in [(100, [300, 100]), (101, [100, 300])] {
        let mut b = with(&[("fifo_batch", "1"), ("read_expire", "100")]);
        b.add(READ, 200);
        let gone = b.add(READ, 108);
        b.add(READ, 300);
        assert_eq!(b.next(1), [200]);
        b.at_ms(50);
        let rq = b.add(READ, 100);
        b.absorb(rq, gone);
        // FIFO 100 300, `next` 300. By itself 100 would expire after 150 ms; it does after the 100 ms of 108.
        b.at_ms(ms);
        assert_eq!(b.rest(), expected);
    }
}

#[test]
fn the_batch_goes_on_behind_an_absorbed_request() {
    let mut b = deadline();
    b.add(READ, 100);
    b.add(READ, 50);
    let gone = b.add(READ, 200);
    b.add(READ, 300);
    assert_eq!(b.next(1), [100]);
    let rq = b.add(READ, 192);
    // `next` was 200; it is 300 then, not the survivor.
    b.absorb(rq, gone);
    assert_eq!(b.rest(), [300, 50, 192]);
}

#[test]
fn neighbours_are_those_by_sector_in_the_same_direction() {
    let mut b = deadline();
    let r300 = b.add(READ, 300);
    let r100 = b.add(READ, 100);
    b.add(WRITE, 200);
    assert_eq!(b.latter(r100), Some(r300));
    assert_eq!(b.former(r300), Some(r100));
    assert_eq!((b.former(r100), b.latter(r300)), (None, None));
}

// ---- the rest ----

#[test]
fn drains_everything_in_the_order_of_its_policy() {
    let mut b = with(&[("fifo_batch", "1")]);
    b.add_all(READ, [30, 20, 40]);
    b.add_all(WRITE, [7]);
    let mut order = Vec::new();
    while let Some(rq) = b.drain() {
        order.push(b.requests[rq].sector);
    }
    // Read 30 | read 40 goes on upwards | write | read.
    assert_eq!(order, [30, 40, 7, 20]);
    assert!(b.elevator.is_empty());
    assert_eq!(b.elevator.placement(), Placement::Tail);
}

#[test]
fn quantum_and_looking_back_have_no_say() {
    let mut b =
        with(&[("fifo_batch", "3"), ("quantum", "1000"), ("read_expire", "10"), ("writes_starved", "0")]);
    b.add_all(READ, [100, 90, 110, 120]);
    assert_eq!(b.next(1), [100]);
    b.at_ms(100);
    b.add(WRITE, 5);
    // Third request of the batch, then the write in spite of the quantum; then 90 itself, nothing below it.
    b.add(READ, 80);
    assert_eq!(b.rest(), [110, 120, 5, 90, 80]);
}

#[test]
fn wrong_settings_are_refused_and_change_nothing() {
    let mut b = deadline();
    for (name, text) in
        [("fifo_batch", "-1"), ("classes", "both"), ("front_merges", "2"), ("sync_expire", "1")]
    {
        assert!(elevator::set(&mut *b.elevator, name, text).is_err(), "{name}={text}");
    }
    assert!(matches!(
        elevator::set(&mut *b.elevator, "read_expire", "2147483648"),
        Err(SetError::OutOfRange(_))
    ));
    for tunable in b.elevator.tunables() {
        assert_eq!(b.elevator.setting(tunable.name).copied(), Some(tunable.stored_default()));
    }
}

#[test]
fn the_largest_settings_do_no_harm() {
    let mut b = deadline();
    for tunable in b.elevator.tunables() {
        *b.elevator.setting(tunable.name).expect("listed") = tunable.max * tunable.unit.scale();
    }
    b.elevator.settings_changed();
    b.now = u64::MAX;
    b.add_all(READ, [3, 1, 2]);
    assert_eq!(b.rest(), [3, 1, 2]);
}
