//! Order within a class, expiry, and whose turn it is. Most tests switch waiting off (`antic_expire` 0) to see only that.

use fairlift_core::{ContextId, MS};

use crate::rig::{At, Empty, HZ_1000, IdleUntilMs, Rig};

/// Nobody is waited for; sectors from here on are writes.
const WRITES: u64 = 1_000_000;

/// A queue without waiting, after its first read (at 992..1000), which leaves 24 writes to a batch (see below).
fn after_a_read() -> (Rig, ContextId) {
    let mut rig = Rig::new(HZ_1000);
    rig.set("antic_expire", "0");
    let task = rig.task();
    rig.read_at_once(task, 992);
    (rig, task)
}

// ---- order ----

#[test]
fn nearest_first_and_back_costs_double() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.task();
    rig.write(task, 2_000_000);
    rig.serve(2_000_000, 0);
    for sector in [2_000_108, 1_999_968, 1_999_938, 900_000, 800_000, 5_000_000] {
        rig.write(task, sector);
    }
    // From 2_000_008: 40 back (80) beats 100 ahead. From 1_999_976: 38 back (76) beats 132 ahead. Then the one ahead, for
    // 900_000 is more than 1_048_576 behind; so it is from 2_000_116. At the top: the lower of the two left behind.
    assert_eq!(rig.rest(), [1_999_968, 1_999_938, 2_000_108, 5_000_000, 800_000, 900_000]);
}

#[test]
fn of_equal_costs_the_one_ahead_goes_first() {
    // From 2008: 40 back, 80 ahead.
    for order in [[1968, 2088], [2088, 1968]] {
        let mut rig = Rig::new(HZ_1000);
        let task = rig.task();
        rig.write(task, 2000);
        rig.serve(2000, 0);
        for sector in order {
            rig.write(task, sector);
        }
        assert_eq!(rig.next(), At(2088));
    }
}

#[test]
fn going_back_ends_at_1048576_sectors() {
    for (sector, first) in [(2_000_008 - 1_048_576, true), (2_000_008 - 1_048_577, false)] {
        let mut rig = Rig::new(HZ_1000);
        let task = rig.task();
        rig.write(task, 2_000_000);
        rig.serve(2_000_000, 0);
        rig.write(task, 9_000_000);
        rig.write(task, sector);
        assert_eq!(rig.next(), At(if first { sector } else { 9_000_000 }));
    }
}

#[test]
fn the_next_one_is_chosen_when_one_leaves_and_bettered_by_arrivals() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.task();
    for sector in [5000, 9000] {
        rig.write(task, sector);
    }
    assert_eq!(rig.next(), At(5000));
    rig.write(task, 7000);
    rig.write(task, 8000);
    assert_eq!(rig.rest(), [7000, 8000, 9000]);
}

// ---- expiry ----

/// Serve a stream ahead of a request at `old`, 1 ms each, until that one is served; answers with the time.
fn when_served(rig: &mut Rig, old: u64, add: impl Fn(&mut Rig, u64)) -> u64 {
    let mut sector = 2000;
    add(rig, sector);
    loop {
        match rig.next() {
            At(at) if at == old => return rig.now / MS,
            At(at) => assert_eq!(at, sector),
            answer => panic!("{answer:?}"),
        }
        rig.now += MS;
        rig.done_last();
        sector += 8;
        add(rig, sector);
    }
}

#[test]
fn an_expired_read_is_served_when_the_fifo_is_looked_at() {
    let (mut rig, task) = after_a_read();
    rig.read(task, 900_000_000);
    // Looked at when the batch began, 0; at 125 it is due, not over; then at 250.
    assert_eq!(
        when_served(&mut rig, 900_000_000, |rig, at| {
            rig.read(task, at);
        }),
        250
    );
}

#[test]
fn an_expired_read_goes_before_waiting() {
    let mut rig = Rig::new(HZ_1000);
    let (reader, other) = (rig.task(), rig.task());
    rig.read_at_once(reader, 992);
    rig.read(other, 900_000_000);
    // The same with a reader that is worth waiting for, and comes back at once each time.
    assert_eq!(
        when_served(&mut rig, 900_000_000, |rig, at| {
            rig.read(reader, at);
        }),
        250
    );
    // And an expired one does not wait for anybody's window: the reader has nothing queued, the look is due.
    let mut rig = Rig::new(HZ_1000);
    rig.set("antic_expire", "300");
    let (reader, other) = (rig.task(), rig.task());
    rig.read_at_once(reader, 992);
    rig.read(other, 900_000_000);
    rig.at_ms(126);
    assert_eq!(rig.next(), At(900_000_000));
}

#[test]
fn an_expired_write_likewise() {
    let mut rig = Rig::new(HZ_1000);
    let task = rig.task();
    rig.write(task, 900_000_000);
    // Attached at 0; looked at at 250, when it is due, and at 500.
    assert_eq!(
        when_served(&mut rig, 900_000_000, |rig, at| {
            rig.write(task, at);
        }),
        500
    );
}

#[test]
fn deadlines_are_strict() {
    // One look, at 126 ms resp. 125 ms: a request of 0 ms has expired at 126.
    for (ms, first) in [(125, 2000), (126, 900_000_000)] {
        let (mut rig, task) = after_a_read();
        rig.read(task, 900_000_000);
        rig.at_ms(ms).read(task, 2000);
        assert_eq!(rig.next(), At(first), "at {ms} ms");
    }
}

// ---- turns ----

#[test]
fn reads_alone_are_on_no_clock() {
    let (mut rig, task) = after_a_read();
    // The batch's clock starts anew with each that nobody else waits behind: here at 2000 ms, so that it is over at 2501.
    for i in 0..=200 {
        rig.at_ms(10 * i).read_at_once(task, 1000 + 8 * i);
    }
    rig.write(task, WRITES);
    rig.at_ms(2500).read_at_once(task, 3000);
    rig.at_ms(2501).read(task, 3008);
    assert_eq!(rig.next(), At(WRITES));
}

#[test]
fn a_read_batch_is_over_once_the_clock_shows_more() {
    for (ms, write) in [(500, false), (501, true)] {
        let (mut rig, task) = after_a_read();
        rig.write(task, WRITES);
        rig.read(task, 1000);
        assert_eq!(rig.at_ms(ms).next(), At(if write { WRITES } else { 1000 }), "at {ms} ms");
    }
}

#[test]
fn a_read_batchs_clock_starts_with_its_first_completion() {
    let mut rig = Rig::new(HZ_1000);
    rig.set("antic_expire", "0");
    rig.set("read_batch_expire", "10");
    let task = rig.task();
    rig.write(task, WRITES);
    rig.serve(WRITES, 0);
    for i in 1..=5 {
        rig.read(task, 1000 * i);
    }
    rig.write(task, WRITES + 1000);
    let first = rig.issue(1000);
    // Not over, however long the drive takes for the first.
    rig.at_ms(50);
    let second = rig.issue(2000);
    rig.at_ms(100).done(first);
    rig.at_ms(110);
    let third = rig.issue(3000);
    assert_eq!(rig.at_ms(111).next(), Empty);
    rig.done(second);
    assert_eq!(rig.next(), Empty);
    rig.done(third);
    assert_eq!(rig.next(), At(WRITES + 1000));
}

#[test]
fn the_drive_runs_dry_before_the_class_changes() {
    let (mut rig, task) = after_a_read();
    rig.set("read_batch_expire", "0");
    rig.at_ms(1).read(task, 2000);
    let rq = rig.issue(2000);
    rig.at_ms(2).read(task, 9000);
    for sector in [WRITES + 5000, WRITES + 3000] {
        rig.write(task, sector);
    }
    assert_eq!([rig.next(), rig.next()], [Empty, Empty]);
    // Arrivals do not change that.
    rig.read(task, 2008);
    assert_eq!(rig.next(), Empty);
    rig.at_ms(3).done(rq);
    // Now in order of sectors, not with the oldest.
    assert_eq!(rig.next(), At(WRITES + 3000));
}

#[test]
fn with_a_dry_drive_a_batch_starts_with_the_oldest() {
    let (mut rig, task) = after_a_read();
    for sector in [WRITES + 5000, WRITES + 3000] {
        rig.write(task, sector);
    }
    assert_eq!(rig.next(), At(WRITES + 5000));
}

#[test]
fn a_class_alone_goes_on_without_batches() {
    let (mut rig, task) = after_a_read();
    // 24 and more.
    let writes = (0..40).map(|i| WRITES + 8 * i);
    for sector in writes.clone() {
        rig.write(task, sector);
    }
    assert!(rig.rest().into_iter().eq(writes));
}

#[test]
fn reads_wait_until_the_writes_number_is_used_up() {
    let (mut rig, task) = after_a_read();
    for i in 0..30 {
        rig.write(task, WRITES + 8 * i);
    }
    rig.serve(WRITES, 0);
    rig.read(task, 1000);
    for i in 1..24 {
        rig.serve(WRITES + 8 * i, 0);
    }
    assert_eq!(rig.next(), At(1000));
}

// ---- the size of a write batch ----

/// Reads and writes always wait, the drive takes one at a time.
struct Mixed {
    rig: Rig,
    task: ContextId,
    read: u64,
    write: u64,
}

impl Mixed {
    fn new() -> Mixed {
        let (mut rig, task) = after_a_read();
        rig.set("read_batch_expire", "0");
        rig.read_at_once(task, 1000);
        let mut mixed = Mixed { rig, task, read: 2000, write: WRITES };
        (0..3).for_each(|_| mixed.add_read());
        (0..100).for_each(|_| mixed.add_write());
        mixed
    }

    fn add_read(&mut self) {
        self.rig.read(self.task, self.read);
        self.read += 8;
    }

    fn add_write(&mut self) {
        self.rig.write(self.task, self.write);
        self.write += 8;
    }

    /// Issue the next request and queue another of its class. Is it a write?
    fn step(&mut self) -> (bool, fairlift_core::RequestId) {
        let At(sector) = self.rig.next() else { panic!("both classes wait") };
        let requests = self.rig.q.requests().iter();
        let rq = requests.filter(|(_, r)| r.sector == sector).map(|(rq, _)| rq).last().expect("issued");
        if sector >= WRITES {
            self.add_write();
        } else {
            self.add_read();
        }
        (sector >= WRITES, rq)
    }

    /// The number of writes in the next batch if each takes `ms`; the read behind it takes no time.
    fn writes_of(&mut self, ms: u64) -> usize {
        let mut writes = 0;
        loop {
            let (write, rq) = self.step();
            if !write && writes > 0 {
                self.rig.done(rq);
                return writes;
            }
            self.rig.now += if write { ms * MS } else { MS };
            self.rig.done(rq);
            writes += usize::from(write);
        }
    }
}

#[test]
fn the_number_of_writes_follows_the_time_they_take() {
    let mut mixed = Mixed::new();
    for (ms, expected, why) in [
        (5, 24, "took 120 of 125 ms, used up: one more"),
        (5, 25, "took 125 of 125: as it is"),
        (5, 25, "as it is"),
        (6, 21, "over when the clock shows 126: one less"),
        (5, 24, "120: one more"),
        (400, 1, "more than 375: half of 25"),
        (1, 12, "12 is less than 125/3: twice"),
        (3, 24, "72 is not: one more"),
        (1, 25, "twice"),
        (2, 50, "100: one more"),
        (4, 32, "over at 128, not used up: one less"),
        (2, 50, "100, and one more than that next time"),
        (2, 51, ""),
    ] {
        assert_eq!(mixed.writes_of(ms), expected, "{ms} ms each; {why}");
    }
}

#[test]
fn the_number_of_writes_never_falls_below_one() {
    let mut mixed = Mixed::new();
    // 24, 12, 6, 3, 1, and stays.
    for _ in 0..7 {
        assert_eq!(mixed.writes_of(400), 1);
    }
    // 1 was used up in 1 ms: 2, 4.
    assert_eq!([mixed.writes_of(1), mixed.writes_of(1), mixed.writes_of(1)], [1, 2, 4]);
}

#[test]
fn the_first_read_finds_an_unused_number_and_doubles_it() {
    // 12 are a tenth of 125 jiffies; HZ=250: 3 of 31; HZ=100: at least 2.
    for (tick_ms, expected) in [(1, 24), (4, 6), (10, 4), (0, 24)] {
        let mut rig = Rig::new(tick_ms * MS);
        rig.set("antic_expire", "0");
        let task = rig.task();
        rig.read_at_once(task, 992);
        for i in 0..30 {
            rig.write(task, WRITES + 8 * i);
        }
        rig.serve(WRITES, 0);
        rig.read(task, 1000);
        let mut writes = 1;
        while let At(WRITES..) = rig.next() {
            rig.done_last();
            writes += 1;
        }
        assert_eq!(writes, expected, "jiffies of {tick_ms} ms");
    }
}

/// One write of so many ms, and nothing else; then reads. Somebody asks meanwhile, or not.
fn write_alone(rig: &mut Rig, task: ContextId, ms: u64, ask: bool) {
    rig.write(task, WRITES);
    let rq = rig.issue(WRITES);
    if ask {
        assert_eq!(rig.next(), Empty);
    }
    rig.now += ms * MS;
    rig.done(rq);
    rig.set("read_batch_expire", "500");
    rig.read_at_once(task, 1000);
    rig.set("read_batch_expire", "0");
    rig.read_at_once(task, 1008);
    rig.now += MS;
}

#[test]
fn a_batch_that_ran_out_of_writes_is_no_measure() {
    for (ms, ask, expected) in [
        (400, true, 24),
        // Nobody asked: it looks as if one write had taken the whole time.
        (400, false, 12),
        // Short, but its number was not used up.
        (10, true, 24),
        (10, false, 24),
    ] {
        let (mut rig, task) = after_a_read();
        write_alone(&mut rig, task, ms, ask);
        rig.read(task, 1016);
        for i in 0..30 {
            rig.write(task, WRITES + 100 + 8 * i);
        }
        let mut writes = 0;
        while rig.next() == At(WRITES + 100 + 8 * writes) {
            rig.done_last();
            writes += 1;
        }
        assert_eq!(writes, expected, "{ms} ms, asked: {ask}");
    }
}

#[test]
fn the_next_batch_is_a_measure_again() {
    let (mut rig, task) = after_a_read();
    write_alone(&mut rig, task, 400, true);
    write_alone(&mut rig, task, 400, false);
    rig.read(task, 1016);
    for i in 0..30 {
        rig.write(task, WRITES + 100 + 8 * i);
    }
    for i in 0..12 {
        rig.serve(WRITES + 100 + 8 * i, 0);
    }
    assert_eq!(rig.next(), At(1016));
}

#[test]
fn a_write_batch_that_ends_in_a_busy_drive_is_taken_for_a_short_one() {
    // 24 writes of 5 ms: 120 ms, worth one more; but the drive has the last one when the read batch is chosen.
    let mut mixed = Mixed::new();
    mixed.rig.set("read_batch_expire", "500");
    let mut writes = 0;
    while writes < 24 {
        let (write, rq) = mixed.step();
        writes += usize::from(write);
        if writes == 24 {
            assert_eq!(mixed.rig.next(), Empty);
        }
        mixed.rig.now += if write { 5 * MS } else { MS };
        mixed.rig.done(rq);
    }
    mixed.rig.set("read_batch_expire", "0");
    let (write, rq) = mixed.step();
    assert!(!write);
    mixed.rig.done(rq);
    mixed.rig.now += 1000 * MS;
    assert_eq!(mixed.writes_of(1), 48);
}

#[test]
fn a_reader_beside_a_writer_in_full() {
    // Reads of 2 ms with 1 ms of thought, writes of 5 ms; HZ=1000. All the writes are there.
    let mut rig = Rig::new(HZ_1000);
    let (reader, writer) = (rig.task(), rig.task());
    rig.read_at_once(reader, 1000);
    for i in 0..60 {
        rig.write(writer, WRITES + 8 * i);
    }
    // The clock started at 0. Dispatched at 1, 4, ... 499 ms; the last is done at 501.
    for i in 0..167 {
        assert_eq!(rig.next(), IdleUntilMs(3 * i + 6));
        rig.at_ms(3 * i + 1).read(reader, 1008 + 8 * i);
        rig.serve(1008 + 8 * i, 2);
    }
    // Over: but while the reader thinks, only one class waits, and the drive is kept for it...
    assert_eq!(rig.next(), IdleUntilMs(507));
    // ... and once it is back, both do, and it is the writes' turn.
    rig.at_ms(502).read(reader, 2344);
    for i in 0..24 {
        rig.serve(WRITES + 8 * i, 5);
    }
    rig.serve(2344, 2);
    assert_eq!(rig.now, 624 * MS);
    // And the reader is waited for again. (122 ms for 24: next time it will be 25.)
    assert_eq!(rig.next(), IdleUntilMs(630));
}
