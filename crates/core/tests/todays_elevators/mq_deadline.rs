//! mq-deadline: schedules computed by hand from the algorithm (docs of `elevator::mq_deadline`).
//!
//! `|` in a comment is a boundary between batches. The direction served last is at first *write*.

use fairlift_core::elevator::{AnyElevator, ClassCounts};

use crate::bench::{BE, Bench, DISCARD, IDLE, Kind, LENGTH, READ, RT, SYNC_WRITE, WRITE};

fn mq_deadline() -> Bench {
    Bench::disk("mq-deadline")
}

fn with(settings: &[(&str, &str)]) -> Bench {
    let mut b = mq_deadline();
    settings.iter().for_each(|(name, value)| b.set(name, value));
    b
}

fn counts(b: &mut Bench) -> [ClassCounts; 3] {
    let AnyElevator::MqDeadline(elevator) = &mut b.elevator else { panic!("another elevator") };
    elevator.class_counts()
}

// ---- order within a direction ----

/// Unlike 2.6's deadline, which starts with the oldest, a batch starts where the last one of its direction stopped: at 0.
#[test]
fn starts_at_the_lowest_sector_and_goes_up() {
    let mut b = mq_deadline();
    b.add_all(READ, [50, 10, 90, 30]);
    assert_eq!(b.rest(), [10, 30, 50, 90]);
}

/// What arrives behind the position joins the batch even if it was not there when the last one left.
#[test]
fn arrivals_above_join_the_batch_and_those_below_come_when_nothing_is_above() {
    let mut b = mq_deadline();
    b.add_all(READ, [50, 90]);
    assert_eq!(b.next(1), [50]);
    b.add_all(READ, [60, 95, 20]);
    // 60 90 95 | nothing above 95: the oldest, 20.
    assert_eq!(b.rest(), [60, 90, 95, 20]);
}

#[test]
fn when_nothing_is_above_a_batch_starts_with_the_oldest_not_the_lowest() {
    let mut b = mq_deadline();
    b.add(READ, 100);
    assert_eq!(b.next(1), [100]);
    b.add_all(READ, [40, 10, 60]);
    // Oldest 40, 60 | oldest 10.
    assert_eq!(b.rest(), [40, 60, 10]);
}

// ---- choice of direction ----

/// `starved` is counted when reads are chosen although writes wait, and compared before that: two batches of reads pass.
#[test]
fn two_batches_of_reads_pass_waiting_writes() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add_all(READ, [10, 20, 30, 40, 50, 60, 70, 80]);
    b.add_all(WRITE, [1, 2, 3, 4]);
    // Last direction is write, and 1 is above position 0, with nothing batched yet: the kernel goes on with writes: 1 2 |
    // reads (0 -> 1) | (1 -> 2) | 2 >= 2: writes, 0 | reads
    assert_eq!(b.rest(), [1, 2, 10, 20, 30, 40, 3, 4, 50, 60, 70, 80]);
}

/// The batch of writes above comes from `last_dir = write` with `batching = 0` at the start; with a read first it does not.
#[test]
fn after_a_read_reads_come_first() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add(READ, 5);
    assert_eq!(b.next(1), [5]);
    b.add_all(READ, [10, 20, 30, 40, 50, 60, 70]);
    b.add_all(WRITE, [1, 2, 3, 4]);
    // 5 10 | 20 30 (0 -> 1) | 40 50 (1 -> 2) | 1 2 | 60 70 (0 -> 1) | 3 4: no read is left
    assert_eq!(b.rest(), [10, 20, 30, 40, 50, 1, 2, 60, 70, 3, 4]);
}

#[test]
fn with_writes_starved_0_writes_win_every_choice() {
    let mut b = with(&[("fifo_batch", "1"), ("writes_starved", "0")]);
    b.add(READ, 5);
    assert_eq!(b.next(1), [5]);
    b.add_all(READ, [10, 20]);
    b.add_all(WRITE, [1, 2]);
    assert_eq!(b.rest(), [1, 2, 10, 20]);
}

#[test]
fn a_batch_ends_after_sixteen() {
    let mut b = mq_deadline();
    b.add(READ, 1);
    assert_eq!(b.next(1), [1]);
    b.add_all(READ, (1..=40).map(|i| i * 100));
    b.add(WRITE, 5);
    // The running batch has 15 left | 16 (0 -> 1) | ... the write is third: 9 more reads would be the batch after it.
    let reads = |from: u64, to: u64| (from..=to).map(|i| i * 100);
    let expected: Vec<u64> = reads(1, 15).chain(reads(16, 31)).chain(reads(32, 40)).chain([5]).collect();
    assert_eq!(b.rest(), expected);
}

// ---- deadlines ----

#[test]
fn an_expired_read_starts_the_next_batch() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add(READ, 50);
    assert_eq!(b.next(1), [50]);
    b.add(READ, 10);
    b.at_ms(100);
    b.add_all(READ, [60, 70, 80, 90]);
    b.at_ms(500);
    // 60 ends the batch | 10 came at 0 and its 500 ms are over now, 60 is gone: 10, then up: 70 | 80 90.
    assert_eq!(b.rest(), [60, 10, 70, 80, 90]);
}

#[test]
fn one_nanosecond_earlier_it_does_not() {
    let mut b = with(&[("fifo_batch", "2")]);
    b.add(READ, 50);
    assert_eq!(b.next(1), [50]);
    b.add(READ, 10);
    b.add_all(READ, [60, 70, 80, 90]);
    b.now = 500_000_000 - 1;
    assert_eq!(b.rest(), [60, 70, 80, 90, 10]);
}

#[test]
fn an_expired_write_does_not_change_the_choice_of_direction() {
    let mut b = with(&[("fifo_batch", "1"), ("write_expire", "10")]);
    b.add(READ, 5);
    assert_eq!(b.next(1), [5]);
    b.add_all(WRITE, [1, 2]);
    b.add_all(READ, [10, 20, 30]);
    b.at_ms(1000);
    // (0 -> 1), (1 -> 2): only then the writes.
    assert_eq!(b.next(3), [10, 20, 1]);
}

// ---- priority classes ----

fn rt(kind: Kind) -> Kind {
    kind.with(RT)
}

fn idle(kind: Kind) -> Kind {
    kind.with(IDLE)
}

#[test]
fn a_class_waits_while_a_better_one_has_a_request_anywhere() {
    let mut b = mq_deadline();
    b.add(idle(READ), 1);
    b.add(READ, 2);
    b.add(rt(READ), 3);
    let first = b.dispatch().expect("the real-time one");
    assert_eq!(b.requests[first].sector, 3);
    assert_eq!(b.next(1), [], "it is in the device still");
    b.completed(first);
    let second = b.dispatch().expect("the best-effort one");
    assert_eq!(b.requests[second].sector, 2);
    assert_eq!(b.dispatch(), None);
    b.completed(second);
    assert_eq!(b.next(1), [1]);
}

#[test]
fn a_request_as_old_as_prio_aging_expire_passes_better_classes() {
    let mut b = with(&[("prio_aging_expire", "1000")]);
    b.add(idle(READ), 1);
    b.at_ms(1);
    b.add(READ, 2);
    b.at_ms(500);
    b.add_all(rt(READ), [30, 40]);
    b.now = 1_000_000_000 - 1;
    assert_eq!(b.next(1), [30], "nobody is old enough");
    b.at_ms(1000);
    assert_eq!(b.next(1), [1], "the idle one, which is; the best-effort one lacks 1 ms");
    b.at_ms(1001);
    assert_eq!(b.next(1), [2]);
    assert_eq!(b.next(1), [40]);
}

#[test]
fn best_effort_is_asked_for_aged_requests_before_idle() {
    let mut b = with(&[("prio_aging_expire", "10")]);
    b.add(idle(READ), 1);
    b.add(READ, 2);
    b.at_ms(10);
    b.add(rt(READ), 3);
    assert_eq!(b.next(2), [2, 1]);
}

/// The account is one for all classes: looking at the best-effort class in vain uses up a turn of reads.
#[test]
fn what_is_decided_in_vain_remains_decided() {
    let mut b = with(&[("fifo_batch", "1")]);
    b.add(rt(READ), 100);
    assert_eq!(b.next(1), [100]);
    b.add_all(rt(READ), [200, 300]);
    b.add(rt(WRITE), 1);
    b.add_all(READ, [10]);
    b.add_all(WRITE, [5]);
    // For each dispatch the best-effort class is looked at first, where both wait: a new batch of reads (0 -> 1), 0 batched, too
    // young. Real-time goes on with this empty batch: 200. Again (1 -> 2): 300. Again, 2 >= 2: a batch of writes, too young, and
    // real-time goes on with its write.
    assert_eq!(b.next(3), [200, 300, 1]);
}

#[test]
fn a_single_class_is_never_aged() {
    let mut b = with(&[("prio_aging_expire", "0"), ("fifo_batch", "2")]);
    b.add_all(READ, [10, 20, 30]);
    b.at_ms(100);
    assert_eq!(b.rest(), [10, 20, 30]);
}

// ---- statistics ----

#[test]
fn each_class_is_counted() {
    let mut b = mq_deadline();
    let low = b.add(READ, 0);
    let high = b.add(READ, u64::from(LENGTH));
    b.absorb(low, high);
    b.add(rt(WRITE), 500);
    b.add(idle(DISCARD), 900);
    let first = b.dispatch().expect("real-time");
    b.completed(first);
    assert_eq!(b.next(1), [0]);
    let count =
        |inserted, merged, dispatched, completed| ClassCounts { inserted, merged, dispatched, completed };
    assert_eq!(counts(&mut b), [count(1, 0, 1, 1), count(2, 1, 1, 1), count(1, 0, 0, 0)]);
}

#[test]
fn who_is_drained_keeps_nobody_waiting() {
    let mut b = mq_deadline();
    b.add(rt(READ), 10);
    b.add(READ, 20);
    let drained = b.drain().expect("the real-time one");
    assert_eq!(b.next(1), [20], "it is not waited for");
    b.completed(drained);
    assert_eq!(counts(&mut b)[0].completed, 1);
}

// ---- merging ----

#[test]
fn a_request_that_absorbs_an_older_one_takes_its_deadline_and_place() {
    let mut b = with(&[("fifo_batch", "1")]);
    b.add(READ, 1000);
    assert_eq!(b.next(1), [1000]);
    let gone = b.add(READ, 108);
    b.at_ms(100);
    b.add(READ, 50);
    let kept = b.add(READ, 100);
    b.absorb(kept, gone);
    // Nothing is above 1000: the oldest, which 100 is now.
    assert_eq!(b.next(1), [100]);
    assert_eq!(b.rest(), [50]);
}

#[test]
fn a_front_merge_is_looked_for_in_the_same_class_and_direction() {
    let mut b = mq_deadline();
    let rq = b.add(READ, 58);
    assert_eq!(b.find_front(&READ.bio(50)), Some(rq));
    assert_eq!(b.find_front(&WRITE.bio(50)), None);
    assert_eq!(b.find_front(&rt(READ).bio(50)), None);
    b.set("front_merges", "0");
    assert_eq!(b.find_front(&READ.bio(50)), None);
}

#[test]
fn a_request_that_grew_at_its_front_is_sorted_anew() {
    let mut b = mq_deadline();
    let rq = b.add(READ, 100);
    b.add(READ, 50);
    b.grow_front(rq, 60);
    assert_eq!(b.rest(), [40, 50]);
}

#[test]
fn neighbours_are_those_of_the_own_class_and_direction() {
    let mut b = mq_deadline();
    let low = b.add(WRITE, 10);
    let high = b.add(SYNC_WRITE, 30);
    b.add(READ, 20);
    b.add(WRITE.with(IDLE), 20);
    assert_eq!((b.former(high), b.latter(low)), (Some(low), Some(high)));
    assert_eq!((b.former(low), b.latter(high)), (None, None));
    assert_eq!(BE, WRITE.ioprio);
}
