//! When the drive is kept idle for a task, and what ends or forbids that. `wait(rq)` in a comment is the question whether
//! `rq` should be served rather than waited for the task whose request was dispatched last.

use fairlift_core::elevator::MayQueue;
use fairlift_core::{Dispatch, MS};

use crate::rig::{At, Empty, HZ_1000, IdleUntilMs, Rig};

/// Far from everything that the tests read.
const FAR: u64 = 900_000_000;

/// A reader whose last request, 1000..1008, was completed just now; clock at 0.
fn after_a_read() -> (Rig, fairlift_core::ContextId) {
    let mut rig = Rig::new(HZ_1000);
    let reader = rig.reader(1008);
    (rig, reader)
}

// ---- the wait itself ----

#[test]
fn one_reader_beside_a_writer_keeps_the_drive() {
    let (mut rig, reader) = after_a_read();
    let writer = rig.task();
    rig.write(writer, FAR);
    // 1 ms of thought, 2 ms of service, over and over: the write waits, and so does the drive.
    for i in 0..20 {
        let done_ms = 3 * i;
        assert_eq!(rig.next(), IdleUntilMs(done_ms + 6));
        let sector = 1008 + 8 * i;
        rig.at_ms(done_ms + 1).read(reader, sector);
        rig.serve(sector, 2);
    }
}

#[test]
fn waits_for_the_completion_first_and_counts_from_there() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(reader, 1008);
    let rq = rig.issue(1008);
    rig.read(other, FAR);
    // Nothing to ask for again: the completion will be an event of its own.
    assert_eq!(rig.next(), Empty);
    rig.at_ms(5);
    assert_eq!(rig.next(), Empty);
    rig.done(rq);
    assert_eq!(rig.next(), IdleUntilMs(11));
    assert_eq!(rig.at_ms(10).next(), IdleUntilMs(11));
}

#[test]
fn gives_up_after_antic_expire() {
    let (mut rig, _) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    // The clock of a kernel shows 5 ms up to the last nanosecond.
    rig.now = 6 * MS - 1;
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.now = 6 * MS;
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn after_giving_up_goes_on_with_writes_if_there_is_nothing_else() {
    let (mut rig, _) = after_a_read();
    let writer = rig.task();
    rig.write(writer, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    assert_eq!(rig.at_ms(6).next(), At(FAR));
}

#[test]
fn time_up_is_noticed_by_whatever_comes_first() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    assert_eq!(rig.may_queue(reader), MayQueue::Must);
    rig.at_ms(6);
    assert_eq!(rig.may_queue(reader), MayQueue::May);
}

#[test]
fn no_second_wait_before_something_was_dispatched() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.at_ms(7).exit(reader);
    // Time was up; what is there goes, though nothing happened in between.
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn waits_only_while_there_is_something_to_wait_with() {
    let (mut rig, reader) = after_a_read();
    assert_eq!(rig.next(), Empty);
    assert_eq!(rig.may_queue(reader), MayQueue::May);
}

#[test]
fn async_writes_are_never_waited_for() {
    let mut rig = Rig::new(HZ_1000);
    let (writer, other) = (rig.task(), rig.task());
    rig.write(writer, 1000);
    rig.serve(1000, 1);
    rig.write(other, FAR);
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn a_write_dispatched_last_means_nobody_is_awaited() {
    let mut rig = Rig::new(HZ_1000);
    let (writer, reader) = (rig.task(), rig.task());
    rig.write(writer, 1000);
    let rq = rig.issue(1000);
    rig.read(reader, FAR);
    assert_eq!(rig.next(), Empty, "the batch of reads waits for the drive");
    rig.at_ms(1).done(rq);
    assert_eq!(rig.next(), At(FAR), "and nothing else");
}

#[test]
fn sync_writes_are_waited_for_like_reads() {
    let mut rig = Rig::new(HZ_1000);
    let (writer, other) = (rig.task(), rig.task());
    rig.sync_write(writer, 1000);
    rig.serve(1000, 0);
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
}

#[test]
fn antic_expire_0_never_waits() {
    let (mut rig, _) = after_a_read();
    rig.set("antic_expire", "0");
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn antic_expire_is_how_long() {
    let (mut rig, _) = after_a_read();
    rig.set("antic_expire", "20");
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(20));
    // A change finds the wait under way with the end it has.
    rig.set("antic_expire", "3");
    assert_eq!(rig.at_ms(4).next(), IdleUntilMs(20));
    // But whoever asks anew is told that 3 ms are over.
    let third = rig.task();
    rig.write(third, 5_000_000);
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn the_awaited_task_gets_a_slot_in_any_case() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(reader, 1008);
    let rq = rig.issue(1008);
    rig.read(other, FAR);
    assert_eq!(rig.may_queue(reader), MayQueue::May, "nobody has decided to wait yet");
    assert_eq!(rig.next(), Empty);
    assert_eq!([rig.may_queue(reader), rig.may_queue(other)], [MayQueue::Must, MayQueue::May]);
    rig.done(rq);
    assert_eq!([rig.may_queue(reader), rig.may_queue(other)], [MayQueue::Must, MayQueue::May]);
    rig.read(reader, 1016);
    assert_eq!(rig.may_queue(reader), MayQueue::May);
}

// ---- what ends it ----

#[test]
fn the_awaited_request_ends_it() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.at_ms(2).read(reader, 1008);
    assert_eq!(rig.next(), At(1008));
}

#[test]
fn so_does_an_async_write_of_the_awaited_task() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.at_ms(1).write(reader, 2000);
    // No more reads will come before the write is done; but the batch is one of reads still.
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn an_async_write_of_somebody_else_does_not_however_close() {
    let (mut rig, _) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.write(other, 1008);
    assert_eq!(rig.next(), IdleUntilMs(6));
}

#[test]
fn a_close_read_is_8192_ahead_or_4096_behind() {
    // The last position is 10_008.
    let cases = [
        (18_200, true),
        (18_201, false),
        (5_912, true),
        (5_911, false),
        (10_008, true),
        (10_000, true),
        (FAR, false),
    ];
    for (sector, close) in cases {
        let mut rig = Rig::new(HZ_1000);
        rig.reader(10_008);
        let other = rig.task();
        rig.read(other, sector);
        let expected = if close { At(sector) } else { IdleUntilMs(6) };
        assert_eq!(rig.next(), expected, "at {sector}");
    }
}

#[test]
fn the_window_doubles_with_every_jiffy_waited() {
    // Position 10_008; after n ms 8192 * 2^n ahead.
    for (ms, sector, close) in [
        (0, 10_008 + 8_193, false),
        (1, 10_008 + 16_384, true),
        (1, 10_008 + 16_385, false),
        (5, 10_008 + 262_144, true),
        (5, 10_008 + 262_145, false),
    ] {
        let mut rig = Rig::new(HZ_1000);
        rig.reader(10_008);
        let (writer, other) = (rig.task(), rig.task());
        rig.write(writer, FAR);
        assert_eq!(rig.next(), IdleUntilMs(6));
        rig.at_ms(ms).read(other, sector);
        let expected = if close { At(sector) } else { IdleUntilMs(6) };
        assert_eq!(rig.next(), expected, "{sector} after {ms} ms");
    }
}

#[test]
fn beyond_20_ms_of_waiting_anything_is_close() {
    let mut rig = Rig::new(HZ_1000);
    rig.set("antic_expire", "100");
    rig.reader(10_008);
    let (writer, other) = (rig.task(), rig.task());
    rig.write(writer, FAR);
    assert_eq!(rig.next(), IdleUntilMs(100));
    // 8192 * 2^20 is eight billion sectors, 4 TB.
    rig.at_ms(20).read(other, 10_009 + (8192 << 20));
    assert_eq!(rig.next(), IdleUntilMs(100));
    rig.at_ms(21).read(other, 1 << 50);
    assert_eq!(rig.next(), At(10_009 + (8192 << 20)), "the nearer of the two");
}

#[test]
fn the_window_does_not_grow_before_the_completion() {
    let (mut rig, reader) = after_a_read();
    let (writer, other) = (rig.task(), rig.task());
    rig.read(reader, 1008);
    let rq = rig.issue(1008);
    rig.write(writer, FAR);
    assert_eq!(rig.next(), Empty);
    rig.at_ms(5).read(other, 1016 + 8193);
    assert_eq!(rig.next(), Empty);
    rig.done(rq);
    assert_eq!(rig.next(), IdleUntilMs(11));
}

#[test]
fn nearer_than_the_tasks_own_seeks_is_close_enough() {
    // Reads at 0, 100_008, 200_016: two seeks of 100_000. Totals 25_600_000/8 = 3_200_000, then 7/8 of it + 3_200_000 =
    // 6_000_000; 60 samples: (6_000_000 + 30) / 60 = 100_000. Position 200_024.
    for (distance, close) in [(99_999, true), (100_000, false)] {
        let mut rig = Rig::new(HZ_1000);
        let (strider, other) = (rig.task(), rig.task());
        for sector in [0, 100_008, 200_016] {
            rig.read_at_once(strider, sector);
        }
        rig.read(other, 200_024 + distance);
        let expected = if close { At(200_024 + distance) } else { IdleUntilMs(6) };
        assert_eq!(rig.next(), expected, "{distance} away");
    }
}

#[test]
fn of_a_new_task_the_seeks_of_new_tasks_are_expected() {
    for (distance, close) in [(99_999, true), (100_000, false)] {
        let mut rig = Rig::new(HZ_1000);
        let (first, second, other) = (rig.task(), rig.task(), rig.task());
        // The first task's first seek is 800_000: an eighth of it is what new tasks do on average.
        rig.read_at_once(first, 0);
        rig.read_at_once(first, 800_008);
        rig.at_ms(100).read_at_once(second, 5_000_000);
        let sector = 5_000_008 + distance;
        rig.read(other, sector);
        assert_eq!(rig.next(), if close { At(sector) } else { IdleUntilMs(106) }, "{distance} away");
    }
}

#[test]
fn more_requests_of_the_task_mean_no_wait() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(reader, 1008);
    rig.read(reader, FAR + 1_000_000);
    rig.read(other, FAR);
    rig.serve(1008, 1);
    // The reader has another one queued: there is no telling that it thinks. So the cheapest one goes, which is not its.
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn requests_of_the_task_on_the_dispatch_list_count_too() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(reader, 1008);
    let rq = rig.issue(1008);
    rig.read(other, FAR);
    assert_eq!(rig.next(), Empty);
    // The drive is full and gives it back: now it is on the list, and whoever asks is told not to wait.
    rig.q.requeue(rq, rig.now);
    rig.read(other, FAR + 1000);
    rig.issue(1008);
    assert_eq!(rig.next(), At(FAR));
}

#[test]
fn time_up_before_anybody_wanted_the_drive() {
    let (mut rig, _) = after_a_read();
    let other = rig.task();
    // Completed at 0, nothing queued until 5 ms: 1 ms is left to wait.
    rig.at_ms(5).read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    let (mut rig, _) = after_a_read();
    let other = rig.task();
    rig.at_ms(6).read(other, FAR);
    assert_eq!(rig.next(), At(FAR));
}

// ---- think time ----

#[test]
fn a_task_that_thinks_longer_than_antic_expire_is_not_waited_for() {
    // One think time of t jiffies gives a mean of (32 t + 128) / 32 = t + 4.
    for (think_ms, waits) in [(0, true), (2, true), (3, false), (500, false)] {
        let mut rig = Rig::new(HZ_1000);
        let (thinker, other) = (rig.task(), rig.task());
        rig.read_at_once(thinker, 1000);
        rig.at_ms(think_ms).read_at_once(thinker, 1008);
        rig.read(other, FAR);
        let expected = if waits { IdleUntilMs(think_ms + 6) } else { At(FAR) };
        assert_eq!(rig.next(), expected, "after {think_ms} ms of thought");
    }
}

#[test]
fn an_exact_clock_knows_think_times_exactly() {
    // 5 ms of thought are less than 6, and are not rounded to 9.
    let mut rig = Rig::new(0);
    let (thinker, other) = (rig.task(), rig.task());
    rig.read_at_once(thinker, 1000);
    rig.at_ms(5).read_at_once(thinker, 1008);
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(11));
}

#[test]
fn a_task_mends_its_ways() {
    // A pause counts 19 jiffies at most: total 608, samples 32, mean 23. Then n requests without a pause:
    // (532+128)/60 = 11, (465+128)/84 = 7, (406+128)/105 = 5: after three of them it is waited for again.
    for (quick, waits) in [(0, false), (1, false), (2, false), (3, true)] {
        let mut rig = Rig::new(HZ_1000);
        let (thinker, other) = (rig.task(), rig.task());
        rig.read_at_once(thinker, 1000);
        rig.at_ms(1000);
        for i in 0..=quick {
            rig.read_at_once(thinker, 1008 + 8 * i);
        }
        rig.read(other, FAR);
        assert_eq!(rig.next(), if waits { IdleUntilMs(1006) } else { At(FAR) }, "{quick} quick ones");
    }
}

#[test]
fn overlapping_requests_count_as_no_thought() {
    let mut rig = Rig::new(HZ_1000);
    let (task, other) = (rig.task(), rig.task());
    rig.read_at_once(task, 1000);
    // 2 ms later two at a time: the pause counts for the first of them only.
    rig.at_ms(2).read(task, 1008);
    rig.read(task, 1016);
    rig.serve(1008, 0);
    rig.serve(1016, 0);
    // Total 64, then 56 with 60 samples: (56+128)/60 = 3. Had the second thought as long, (120+128)/60 = 4.
    rig.set("antic_expire", "3");
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(5));
}

#[test]
fn new_tasks_are_judged_by_the_first_thoughts_of_others() {
    let mut rig = Rig::new(HZ_1000);
    // Each task's first pause is long: 19 jiffies. Totals 608, 1140, 1605, 2012; means in whole jiffies 2, 4, 6, 7.
    for (n, waits) in [(1, true), (2, true), (3, true), (4, false)] {
        let slow = rig.task();
        rig.now += 100 * MS;
        rig.read_at_once(slow, 1000);
        rig.now += 100 * MS;
        rig.read_at_once(slow, 1008);
        rig.exit(slow);
        let (new, other) = (rig.task(), rig.task());
        rig.now += 100 * MS;
        rig.read_at_once(new, 2000);
        rig.read(other, FAR);
        let answer = rig.next();
        assert_eq!(matches!(answer, IdleUntilMs(_)), waits, "after {n} slow starters");
        // Clean up, without anybody learning from it: the new one comes back in time.
        rig.now += 10 * MS;
        rig.rest();
        rig.exit(new);
        rig.exit(other);
    }
}

// ---- exits ----

/// A task reads once, or often, and exits; somebody else's read is far away. Is the drive kept idle, in vain?
fn waits_after_exit(rig: &mut Rig, experienced: bool) -> bool {
    rig.now += 100 * MS;
    let leaver = if experienced {
        rig.reader(1008)
    } else {
        let task = rig.task();
        rig.read_at_once(task, 1000);
        task
    };
    rig.exit(leaver);
    let other = rig.task();
    rig.read(other, FAR);
    let waits = rig.q.peek(rig.now) == Dispatch::Idle { until: rig.now + 6 * MS };
    rig.now += 6 * MS;
    rig.serve(FAR, 0);
    rig.exit(other);
    waits
}

#[test]
fn an_exited_task_is_waited_for_until_experience_speaks_against_it() {
    let mut rig = Rig::new(HZ_1000);
    // Each time out: 32, 60, 84, 105, 123, 139 of 256.
    for n in 1..=6 {
        assert!(waits_after_exit(&mut rig, true), "exit {n}");
    }
    assert!(!waits_after_exit(&mut rig, true));
}

#[test]
fn a_successor_nearby_restores_trust() {
    let mut rig = Rig::new(HZ_1000);
    (1..=6).for_each(|_| assert!(waits_after_exit(&mut rig, true)));
    // A shell script: the task is gone, another one goes on behind it. 7/8 of 139 is 121: no longer over a half.
    rig.now += 100 * MS;
    let (leaver, successor) = (rig.reader(1008), rig.task());
    rig.exit(leaver);
    rig.read_at_once(successor, 1008);
    rig.exit(successor);
    assert!(waits_after_exit(&mut rig, true));
}

#[test]
fn a_living_tasks_neighbour_restores_nothing() {
    let mut rig = Rig::new(HZ_1000);
    (1..=6).for_each(|_| assert!(waits_after_exit(&mut rig, true)));
    rig.now += 100 * MS;
    let (reader, neighbour) = (rig.reader(1008), rig.task());
    rig.read_at_once(neighbour, 1008);
    rig.exit(reader);
    rig.exit(neighbour);
    assert!(!waits_after_exit(&mut rig, true));
}

#[test]
fn tasks_that_read_once_and_go_are_found_out_sooner() {
    // Of a new task that is gone two things are noted per wait: that it was gone when we looked, and that it did not come.
    // exits: 32, 60 | 84, 105 | 123, 139 | 153, 165 | 176, 186 | 194; leaves_no_successor after each: 32, 60, 84, 105, 123.
    // So in the sixth 194 * 123 = 23_862, less than 32_768: both rules together come too late to help.
    let mut rig = Rig::new(HZ_1000);
    (1..=6).for_each(|n| assert!(waits_after_exit(&mut rig, false), "exit {n}"));
    assert!(!waits_after_exit(&mut rig, false));
}

#[test]
fn once_that_is_known_a_living_new_task_is_not_waited_for_either() {
    for (exits, waits) in [(14, true), (15, false)] {
        let mut rig = Rig::new(HZ_1000);
        for _ in 0..exits {
            waits_after_exit(&mut rig, false);
        }
        rig.now += 100 * MS;
        let (new, other) = (rig.task(), rig.task());
        rig.read_at_once(new, 1000);
        rig.read(other, FAR);
        // leaves_no_successor stays at 139, nobody waits for a gone one any more; exits goes on with 201 | 207, 213, 218, 222,
        // 226, 229, 232, 235, 237. 139 * 235 = 32_665, 139 * 237 = 32_943: more than half of 65_536.
        assert_eq!(matches!(rig.next(), IdleUntilMs(_)), waits, "{exits} exits");
    }
}

#[test]
fn new_tasks_that_come_back_restore_trust_in_new_tasks() {
    for (come_back, waits) in [(false, false), (true, true)] {
        let mut rig = Rig::new(HZ_1000);
        for _ in 0..15 {
            waits_after_exit(&mut rig, false);
        }
        rig.now += 100 * MS;
        let (steady, new, other) = (rig.task(), rig.task(), rig.task());
        rig.read_at_once(steady, 5000);
        if come_back {
            // 7/8 of 237 is 207; 139 * 207 = 28_773.
            rig.read_at_once(steady, 5008);
        }
        rig.now += 100 * MS;
        rig.read_at_once(new, 1000);
        rig.read(other, FAR);
        assert_eq!(matches!(rig.next(), IdleUntilMs(_)), waits, "come back: {come_back}");
    }
}

#[test]
fn a_wait_goes_on_when_the_awaited_task_exits() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.at_ms(2).exit(reader);
    assert_eq!(rig.next(), IdleUntilMs(6));
}

#[test]
fn who_moves_into_the_slot_of_the_awaited_task_is_not_the_awaited_task() {
    let (mut rig, reader) = after_a_read();
    let other = rig.task();
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    rig.exit(reader);
    let newcomer = rig.task();
    assert_eq!(newcomer, reader, "the same slot");
    assert_eq!(rig.may_queue(newcomer), MayQueue::May);
    rig.read(newcomer, FAR + 1000);
    assert_eq!(rig.next(), IdleUntilMs(6));
    // And the history of the one that left is still there: a request close to its place ends the wait.
    rig.read(newcomer, 1008);
    assert_eq!(rig.next(), At(1008));
}

// ---- other tasks ----

#[test]
fn a_close_request_of_another_counts_as_the_awaited_tasks_next() {
    let mut rig = Rig::new(HZ_1000);
    let (first, second, third) = (rig.task(), rig.task(), rig.task());
    rig.read_at_once(first, 1000);
    rig.write(third, FAR);
    assert_eq!(rig.next(), IdleUntilMs(6));
    // It came after 3 ms: the first task is now known to think (96+128)/32 = 7 ms.
    rig.at_ms(3).read(second, 1008);
    rig.serve(1008, 0);
    // Wait for the second, of which nothing is known but that new tasks think 96/256 = 0 ms.
    assert_eq!(rig.next(), IdleUntilMs(9));
    rig.at_ms(4).read(first, 1016);
    rig.serve(1016, 0);
    // The first's own pause was 4 ms since its completion at 0: total 84 + 128 = 212, (212+128)/60 = 5. Without the
    // other's request it would have been (128+128)/32 = 8, and the write would go.
    assert_eq!(rig.next(), IdleUntilMs(10));
}

#[test]
fn two_readers_take_turns_when_a_request_expires() {
    let mut rig = Rig::new(HZ_1000);
    let near = rig.reader(1008);
    let far = rig.at_ms(100).reader(FAR);
    // Streams of 1 ms a request and no thought, one of which runs while the other waits with its next.
    let (mut running, mut waiting) = ((far, FAR), (near, 1008));
    rig.at_ms(200).read(waiting.0, waiting.1);
    rig.read(running.0, running.1);
    let (mut runs, mut run) = (Vec::new(), 0);
    while runs.len() < 3 {
        let At(sector) = rig.next() else { panic!("one of them is ready") };
        if sector == waiting.1 {
            runs.push(run);
            run = 0;
            std::mem::swap(&mut running, &mut waiting);
        }
        assert_eq!(sector, running.1);
        rig.now += MS;
        rig.done_last();
        run += 1;
        running.1 += 8;
        rig.read(running.0, running.1);
    }
    // The FIFO is looked at at 200; at 325, when the one of 200 is due but not over; at 450, when it is; and at 575, 700,
    // 825, 950 likewise.
    assert_eq!(runs, [250, 250, 250]);
}

// ---- ticks ----

#[test]
fn ticks_round_the_wait() {
    // HZ=250: antic_expire is 1 jiffy, 4 ms. Completed at 9 ms, the clock shows 8.
    let mut rig = Rig::new(4 * MS);
    let (reader, other) = (rig.task(), rig.task());
    rig.at_ms(9).read_at_once(reader, 1000);
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(12));
    rig.now = 12 * MS - 1;
    assert_eq!(rig.next(), IdleUntilMs(12));
    assert_eq!(rig.at_ms(12).next(), At(FAR));
}

#[test]
fn with_a_jiffy_of_4_ms_trust_needs_four_requests() {
    // Means of no thought at all: (0+128)/32 = 4, /60 = 2, /84 = 1; only 1 is not more than antic_expire.
    for (requests, waits) in [(1, true), (2, false), (3, false), (4, true)] {
        let mut rig = Rig::new(4 * MS);
        let (reader, other) = (rig.task(), rig.task());
        for i in 0..requests {
            rig.read_at_once(reader, 1000 + 8 * i);
        }
        rig.read(other, FAR);
        assert_eq!(rig.next(), if waits { IdleUntilMs(4) } else { At(FAR) }, "{requests} requests");
    }
}

#[test]
fn defaults_are_fractions_of_hz() {
    let names = ["read_expire", "write_expire", "antic_expire", "read_batch_expire", "write_batch_expire"];
    for (tick_ms, expected) in [
        (0, [125, 250, 6, 500, 125]),
        (1, [125, 250, 6, 500, 125]),
        (4, [124, 248, 4, 500, 124]),
        (10, [120, 250, 10, 500, 120]),
    ] {
        let mut rig = Rig::new(tick_ms * MS);
        assert_eq!(names.map(|name| rig.setting(name) / MS), expected, "jiffies of {tick_ms} ms");
    }
    let listed: Vec<_> = Rig::new(0).q.elevator().tunables().iter().map(|t| (t.name, t.default)).collect();
    assert_eq!(listed.len(), names.len());
    assert!(listed.iter().all(|(name, _)| names.contains(name)));
}

#[test]
fn a_tunable_is_rounded_up_to_whole_ticks() {
    let mut rig = Rig::new(10 * MS);
    rig.set("antic_expire", "11");
    let (reader, other) = (rig.task(), rig.task());
    rig.read_at_once(reader, 1000);
    rig.read(other, FAR);
    assert_eq!(rig.next(), IdleUntilMs(20));
}

#[test]
fn peeking_does_not_issue() {
    let (mut rig, reader) = after_a_read();
    rig.read(reader, 1008);
    let rq = rig.q.peek(0);
    assert!(matches!(rq, Dispatch::Issue(_)));
    assert_eq!(rig.q.peek(0), rq);
    assert_eq!(rig.next(), At(1008));
}
