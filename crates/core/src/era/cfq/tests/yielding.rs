//! The yield of 2.6.34 and upstream's other answer of 2.6.37, on one file's fsync: data from the caller, the commit's body
//! and its record from the journal thread.
//!
//! In all of them the caller c, the journal j and, beside them, readers. Data are sync and NOIDLE, the record too; the
//! body is async up to 2.6.36 and sync and NOIDLE in 2.6.37. Each request takes 1.

use super::*;

/// Where the journal is, far from any data.
const JOURNAL: u64 = 40 * FAR;

struct Fsync {
    rig: Rig,
    c: ContextId,
    j: ContextId,
}

fn fsync(profile: &str, yields: &str) -> Fsync {
    let mut rig = Rig::new(profile);
    rig.set("yield", yields);
    let (c, j) = (rig.context(), rig.context());
    Fsync { rig, c, j }
}

impl Fsync {
    fn noidle(&mut self, context: ContextId, sector: u64) -> RequestId {
        self.rig.insert(Op::Write, Flags::SYNC | Flags::NOIDLE, sector, 8, context)
    }

    /// The caller's data are written, 0..1, and it is idled on until 9.
    #[track_caller]
    fn data(&mut self) {
        let data = self.noidle(self.c, 1000);
        self.rig.serves(data, 1);
    }

    fn yields(&mut self) {
        self.rig.q.yield_to(self.c, Some(self.j), self.rig.now);
    }

    /// The yield must have been in vain: the journal's body has to wait for the end of the idle wait, at 9.
    #[track_caller]
    fn body_waits(&mut self) {
        let body = self.rig.write(self.j, JOURNAL);
        self.rig.idles_until(9);
        self.rig.at(9).issues(body);
    }

    /// The yield must have worked: the journal's body goes at once.
    #[track_caller]
    fn body_goes(&mut self) {
        let body = self.rig.write(self.j, JOURNAL);
        self.rig.serves(body, 1);
    }
}

// The yield.

#[test]
fn without_the_yield_the_body_waits_for_the_idle_window() {
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.body_waits();
}

#[test]
fn body_and_record_go_at_once_and_then_the_caller() {
    // 1 ms each, three round trips, and no wait between: data 0..1, body 1..2, record 2..3, the next data 3..4.
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.yields();
    t.body_goes();
    let record = t.noidle(t.j, JOURNAL + PAGE);
    t.rig.serves(record, 1);
    // The journal is idled on now, but only the caller can give it something to do.
    let next = t.noidle(t.c, 1000 + FAR);
    t.rig.serves(next, 1);
    assert_eq!(t.rig.now, 1004 * MS);
}

#[test]
fn off_it_changes_nothing() {
    let mut t = fsync("2.6.34", "0");
    t.data();
    t.yields();
    t.body_waits();
}

#[test]
fn a_body_that_came_before_the_yield_goes_as_well() {
    // The journal thread may be faster than the caller's going to sleep.
    let mut t = fsync("2.6.34", "1");
    t.data();
    let body = t.rig.write(t.j, JOURNAL);
    t.rig.idles_until(9);
    t.yields();
    t.rig.issues(body);
}

#[test]
fn a_sync_body_goes_at_once_too() {
    // As ext4 of 2.6.32 writes it.
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.yields();
    let body = t.noidle(t.j, JOURNAL);
    t.rig.serves(body, 1);
    let record = t.noidle(t.j, JOURNAL + PAGE);
    t.rig.serves(record, 1);
    let next = t.noidle(t.c, 1000 + FAR);
    t.rig.issues(next);
}

#[test]
fn a_body_that_takes_the_disk_by_itself_takes_what_was_yielded() {
    // As ext4 of 6.12 writes it: metadata, for which the caller's turn is interrupted. The record, too, asks to be idled on.
    let mut t = fsync("2.6.34", "1");
    for at in 0..3 {
        let data = t.noidle(t.c, 1000 + at * FAR);
        t.rig.serves(data, 1);
        t.yields();
        for block in 0..2 {
            let place = JOURNAL + (2 * at + block) * PAGE;
            let rq = t.rig.insert(Op::Write, Flags::SYNC | Flags::META, place, 8, t.j);
            t.rig.serves(rq, 1);
        }
    }
    assert_eq!(t.rig.now, 1009 * MS, "without a wait");
}

#[test]
fn one_fsync_after_the_other_is_one_turn_and_no_more() {
    // The caller's slice of 100 begins at 1. What it takes back is what it lent, and so the reader has its turn at 101, but for
    // the journal's idle wait of 8 and what was sent before.
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    let read = t.rig.read(r, 5 * FAR);
    'turn: loop {
        t.yields();
        for step in 0..3 {
            match step {
                2 => t.noidle(t.c, 1000),
                _ => t.rig.insert(Op::Write, Flags::SYNC | Flags::META, JOURNAL + step * PAGE, 8, t.j),
            };
            if t.rig.serve_next(1).0 == read {
                break 'turn;
            }
        }
    }
    let turn_ms = t.rig.now / MS - 1000;
    assert!((100..=112).contains(&turn_ms), "the reader waited {turn_ms} ms");
}

#[test]
fn the_journal_interrupts_others_once_they_have_had_as_much() {
    for yields in [false, true] {
        let mut t = fsync("2.6.34", "1");
        let r = t.rig.context();
        // The caller, which is known to be one from 1 on, has the device to 9, and the reader from 9.
        t.data();
        if yields {
            t.yields();
        }
        let read = t.rig.read(r, 5 * FAR);
        t.rig.idles_until(9);
        t.rig.at(9).serves(read, 1);
        let body = t.rig.insert(Op::Write, Flags::SYNC | Flags::META, JOURNAL, 8, t.j);
        let mut next = 0;
        while yields && t.rig.now < 1017 * MS {
            let read = t.rig.read(r, 5 * FAR + (1 + next) * PAGE);
            t.rig.serves(read, 1);
            next += 1;
        }
        t.rig.read(r, 7 * FAR);
        t.rig.issues(body);
    }
}

#[test]
fn another_ones_metadata_takes_nothing_of_it() {
    let mut t = fsync("2.6.34", "1");
    let other = t.rig.context();
    t.data();
    t.yields();
    let metadata = t.rig.insert(Op::Read, Flags::META, 10 * FAR, 8, other);
    t.rig.serves(metadata, 1);
    // The disk idles for who read it, and not for the caller's sake.
    let next = t.noidle(t.c, 1000 + FAR);
    t.rig.idles_until(10);
    t.rig.at(10).issues(next);
}

#[test]
fn a_yield_to_nobody_known_ends_the_wait() {
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    let read = t.rig.read(r, 5 * FAR);
    t.rig.idles_until(9);
    t.rig.q.yield_to(t.c, None, t.rig.now);
    t.rig.issues(read);
}

#[test]
fn the_target_is_waited_for_in_the_callers_place() {
    // A reader's request is there, the journal's not yet: the wait goes on, and the journal is first when it comes.
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    t.rig.read(r, 5 * FAR);
    t.yields();
    t.rig.idles_until(9);
    t.rig.at(3);
    t.body_goes();
}

#[test]
fn a_sequential_reader_keeps_its_slices() {
    // The hole: between body and record the reader's turn begins, and the record waits until its slice of 100 is over.
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    let mut read = t.rig.read(r, 5 * FAR);
    t.yields();
    t.body_goes(); // 1..2
    t.rig.issues(read); // 2..3: the reader's slice is 3..103
    let record = t.noidle(t.j, JOURNAL + PAGE);
    t.rig.pass(1).complete(read);
    let mut sector = 5 * FAR + PAGE;
    while t.rig.now < 1103 * MS {
        read = t.rig.read(r, sector);
        t.rig.serves(read, 1);
        sector += PAGE;
    }
    t.rig.read(r, sector);
    t.rig.issues(record);
}

// Its guards.

#[test]
fn ignored_while_the_caller_has_a_request_in_the_device() {
    let mut t = fsync("2.6.34", "1");
    let a = t.noidle(t.c, 1000);
    let b = t.noidle(t.c, 1000 + PAGE);
    t.rig.issues(a);
    t.rig.issues(b);
    t.rig.pass(1).complete(a);
    t.yields();
    t.rig.complete(b);
    t.body_waits();
}

#[test]
fn ignored_while_the_caller_has_an_async_request() {
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.rig.write(t.c, 3 * FAR);
    t.yields();
    t.rig.write(t.j, JOURNAL);
    t.rig.idles_until(9);
}

#[test]
fn ignored_when_it_is_not_the_callers_turn() {
    // c had its turn long ago; r is idled on until 15, and c has nothing to give.
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    t.rig.at(12);
    let read = t.rig.read(r, 5 * FAR);
    t.rig.serves(read, 1);
    t.yields();
    t.rig.write(t.j, JOURNAL);
    t.rig.idles_until(21);
}

#[test]
fn another_tasks_yield_does_not_undo_the_one_whose_turn_it_is() {
    let mut t = fsync("2.6.34", "1");
    let (r, other) = (t.rig.context(), t.rig.context());
    let read = t.rig.read(other, 5 * FAR);
    t.rig.serves(read, 1);
    t.rig.at(20);
    let data = t.noidle(t.c, 1000);
    t.rig.serves(data, 1);
    t.yields();
    t.rig.q.yield_to(other, Some(r), t.rig.now);
    t.body_goes();
}

#[test]
fn ignored_when_the_queue_is_shared() {
    // c and o read next to each other: from their second requests on they share a queue, idled on for both.
    let mut t = fsync("2.6.34", "1");
    let o = t.rig.context();
    let (a, b) = (t.rig.read(t.c, 1000), t.rig.read(o, 1008));
    t.rig.serves(a, 1);
    t.rig.serves(b, 1);
    let a = t.rig.read(t.c, 1016);
    t.rig.serves(a, 1); // 2..3
    t.yields();
    t.rig.write(t.j, JOURNAL);
    t.rig.idles_until(11);
}

#[test]
fn the_caller_does_not_interrupt_the_target_at_work() {
    // Two requests of the journal are on their way when c (it did not wait after all) comes back: the second goes first.
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.yields();
    let first = t.noidle(t.j, JOURNAL);
    t.rig.issues(first);
    let second = t.noidle(t.j, JOURNAL + FAR);
    t.noidle(t.c, 1000 + FAR);
    t.rig.issues(second);
}

#[test]
fn what_was_lent_is_void_with_another_ones_turn() {
    // The reader is served after the body and idled on until 11; c, back early, has no right to that wait.
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    let read = t.rig.read(r, 5 * FAR);
    t.yields();
    t.body_goes();
    t.rig.serves(read, 1); // 2..3
    t.noidle(t.c, 1000 + FAR);
    t.rig.idles_until(11);
}

#[test]
fn void_with_a_new_request_of_the_caller() {
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.yields();
    let more = t.noidle(t.c, 1000 + PAGE);
    t.rig.at(1).serves(more, 1); // 1..2: idled on until 10
    t.rig.write(t.j, JOURNAL);
    t.rig.idles_until(10);
}

#[test]
fn void_with_the_end_of_the_slice() {
    // c yields, the wait runs out at 9 without the journal. c's next turn is not the journal's again.
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    t.data();
    t.yields();
    let read = t.rig.read(r, 5 * FAR);
    t.rig.idles_until(9);
    t.rig.at(9).serves(read, 1); // 9..10, idled on until 18
    t.rig.write(t.j, JOURNAL);
    t.rig.idles_until(18);
}

#[test]
fn void_with_the_targets_exit() {
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.yields();
    t.rig.write(t.j, JOURNAL);
    t.rig.q.context_exit(t.j, t.rig.now);
    t.rig.idles_until(9);
}

#[test]
fn ignored_for_a_target_that_is_gone() {
    let mut t = fsync("2.6.34", "1");
    t.data();
    t.rig.write(t.j, JOURNAL);
    t.rig.q.context_exit(t.j, t.rig.now);
    t.yields();
    t.rig.idles_until(9);
}

#[test]
fn a_target_of_a_lower_class_does_not_pass_those_above_it() {
    // An RT caller gives up its slice; the RT reader is next, not the best-effort journal.
    let mut rig = Rig::new("2.6.34");
    rig.set("yield", "1");
    let (c, j) = (rig.context_at(IoPrio::RealTime(4)), rig.context());
    let r = rig.context_at(IoPrio::RealTime(4));
    let data = rig.insert(Op::Write, Flags::SYNC, 1000, 8, c);
    rig.serves(data, 1);
    let body = rig.write(j, JOURNAL);
    let read = rig.read(r, 5 * FAR);
    rig.idles_until(9);
    rig.q.yield_to(c, Some(j), rig.now);
    rig.serves(read, 1);
    rig.idles_until(10);
    rig.at(10).issues(body);
}

#[test]
fn the_caller_does_not_take_back_what_it_never_gave() {
    // Without a yield the journal's idle window after the record stands: 9..10 body, 10..11 record, idle until 19.
    let mut t = fsync("2.6.34", "1");
    t.data();
    let body = t.rig.write(t.j, JOURNAL);
    t.rig.at(9).serves(body, 1);
    let record = t.noidle(t.j, JOURNAL + PAGE);
    t.rig.serves(record, 1);
    t.noidle(t.c, 1000 + FAR);
    t.rig.idles_until(19);
}

#[test]
fn what_was_lent_is_lent_no_longer_than_the_slice() {
    // slice_sync 10: c's slice is 1..11. The journal takes until 12: the record's idle window is its own now.
    let mut t = fsync("2.6.34", "1");
    t.rig.set("slice_sync", "10");
    t.data();
    t.yields();
    let body = t.rig.write(t.j, JOURNAL);
    t.rig.serves(body, 1);
    let record = t.noidle(t.j, JOURNAL + PAGE);
    t.rig.serves(record, 10); // 2..12, idled on until 20
    t.noidle(t.c, 1000 + FAR);
    t.rig.idles_until(20);
}

// The window of the sync-noidle tree.

/// A caller and a reader r that jump about so much that both are in the sync-noidle tree, r's last request done at
/// 0, c's at 1: the tree is idled on until 9. Times count from there.
fn among_seekers() -> (Fsync, ContextId) {
    let mut t = fsync("2.6.34", "1");
    let r = t.rig.context();
    for i in 0..12 {
        for c in [t.c, r] {
            // Seekers' requests far apart: history fills with jumps.
            let sector = (1 + i * 2 % 9) * FAR + u64::from(c == r) * 20 * FAR + i * 100_000;
            t.rig.read(c, sector);
            t.rig.serve_next(1);
        }
    }
    (t, r)
}

#[test]
fn ignored_when_another_noidle_queue_would_lose_the_trees_window() {
    let (mut t, r) = among_seekers();
    let read = t.rig.read(r, 7 * FAR);
    t.rig.serves(read, 1);
    let data = t.noidle(t.c, 9 * FAR);
    t.rig.serves(data, 1);
    let start = t.rig.now;
    // r comes back within 8 of its last request, as it always has: it has a right to the window.
    t.yields();
    t.rig.write(t.j, JOURNAL);
    assert!(matches!(t.rig.ask(), Dispatch::Idle { until } if until > start));
    let read = t.rig.pass(2).read(r, 11 * FAR);
    t.rig.issues(read);
}

#[test]
fn ignored_when_another_noidle_queue_has_requests() {
    // r was away for long, but it is back, and its turn comes after c's.
    let (mut t, r) = among_seekers();
    t.rig.pass(30);
    let data = t.rig.read(t.c, 9 * FAR);
    let read = t.rig.read(r, 7 * FAR);
    t.rig.serves(data, 1);
    t.rig.write(t.j, JOURNAL);
    t.yields();
    t.rig.issues(read);
}

#[test]
fn honoured_when_the_other_noidle_queue_has_been_away_for_long() {
    let (mut t, _) = among_seekers();
    t.rig.pass(30);
    let data = t.rig.read(t.c, 9 * FAR);
    t.rig.serves(data, 1);
    t.yields();
    t.body_goes();
}

#[test]
fn honoured_when_the_tree_thinks_too_long_to_be_waited_for() {
    // As in the first of these, but the tree's requests come 12 apart: waiting 8 for the next is in vain.
    let (mut t, r) = among_seekers();
    for i in 0..30 {
        let c = if i % 2 == 0 { r } else { t.c };
        t.rig.pass(12).read(c, (3 + i % 7) * FAR + i * 100_000);
        t.rig.serve_next(1);
    }
    let read = t.rig.pass(12).read(r, 7 * FAR);
    t.rig.issues(read);
    let data = t.noidle(t.c, 9 * FAR);
    t.rig.pass(1).complete(read);
    t.rig.serves(data, 1);
    t.yields();
    t.body_goes();
}

// Upstream's answer.

#[test]
fn in_2_6_37_a_noidle_request_files_its_queue_in_the_noidle_tree() {
    // The first time a queue is filed before its request is looked at. From the second on caller and journal take turns in
    // the tree: each preempts the wait for the other. In 2.6.34 the second one waits.
    for (profile, at_once) in [("2.6.34", false), ("2.6.37", true)] {
        let mut t = fsync(profile, "0");
        for (c, sector) in [(t.c, 1000), (t.j, JOURNAL)] {
            t.noidle(c, sector);
            t.rig.serve_next(1);
            t.rig.pass(20);
        }
        let data = t.noidle(t.c, 1008);
        t.rig.serves(data, 1);
        let body = t.noidle(t.j, JOURNAL + PAGE);
        let answer = t.rig.ask();
        assert_eq!(answer == Dispatch::Issue(body), at_once, "{profile}: {answer:?}");
    }
}

#[test]
fn in_2_6_37_whole_fsyncs_go_without_a_wait() {
    let mut t = fsync("2.6.37", "0");
    for (c, sector) in [(t.c, 1000), (t.j, JOURNAL)] {
        t.noidle(c, sector);
        t.rig.serve_next(1);
        t.rig.pass(20);
    }
    let start = t.rig.now;
    for i in 1..=5 {
        for (c, sector) in
            [(t.c, 1000 + i * FAR), (t.j, JOURNAL + 2 * i * PAGE), (t.j, JOURNAL + (2 * i + 1) * PAGE)]
        {
            let rq = t.noidle(c, sector);
            t.rig.serves(rq, 1);
        }
    }
    assert_eq!(t.rig.now - start, 15 * MS);
}

#[test]
fn in_2_6_37_the_noidle_tree_has_its_share_beside_a_reader() {
    // Caller and journal are idled on as one, so that a reader does not get in between: three round trips in 3. In 2.6.34
    // no request without NOIDLE, no wait: the reader gets in after the first.
    let mut t = fsync("2.6.37", "0");
    let r = t.rig.context();
    for (c, sector) in [(t.c, 1000), (t.j, JOURNAL)] {
        t.noidle(c, sector);
        t.rig.serve_next(1);
        t.rig.pass(20);
    }
    let data = t.noidle(t.c, 1008);
    t.rig.issues(data);
    let read = t.rig.read(r, 5 * FAR);
    t.rig.pass(1).complete(data);
    for i in 1..=2 {
        let rq = t.noidle(t.j, JOURNAL + i * PAGE);
        t.rig.serves(rq, 1);
    }
    // And when nobody comes, the reader has waited 8 for it.
    assert!(matches!(t.rig.ask(), Dispatch::Idle { .. }));
    t.rig.pass(8).issues(read);
}

#[test]
fn in_2_6_37_the_window_comes_back_with_ordinary_requests() {
    // A reader that wrote once with NOIDLE and reads on at 1 ms of think time is idled on for itself again: a second reader
    // in the sync-noidle tree does not preempt it.
    let mut t = fsync("2.6.37", "0");
    t.noidle(t.c, 1000);
    t.rig.serve_next(1);
    let mut sector = 1008;
    for _ in 0..5 {
        t.rig.pass(1).read(t.c, sector);
        t.rig.serve_next(1);
        sector += PAGE;
    }
    t.noidle(t.j, JOURNAL);
    assert!(matches!(t.rig.ask(), Dispatch::Idle { .. }));
}
