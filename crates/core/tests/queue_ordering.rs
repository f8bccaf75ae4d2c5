//! Order and durability: barriers step by step, FLUSH and FUA sequences.

mod queue_support;

use fairlift_core::queue::{Ordering, Plugging, QueueConfig, Refusal, RequestQueue, Submitted};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, IoPrio, MS, Op, RequestId, SECOND};
use queue_support::*;

fn ordered(ordering: Ordering) -> (RequestQueue, ContextId) {
    let mut q = queue(QueueConfig { ordering, ..unplugged() }, "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    (q, task)
}

fn barrier(task: ContextId, sector: u64) -> Bio {
    bio(Op::Write, Flags::BARRIER, task, sector, 8)
}

/// What the device is told: operation, first sector, and whether with FUA or PREFLUSH.
type Command = (Op, u64, bool, bool);

/// [`Command`] of a request.
fn command(q: &RequestQueue, rq: RequestId) -> Command {
    let r = &q.requests()[rq];
    (r.op, r.sector, r.flags.contains(Flags::FUA), r.flags.contains(Flags::PREFLUSH))
}

const FLUSH: Command = (Op::Flush, 0, false, false);

fn plain(sector: u64) -> Command {
    (Op::Write, sector, false, false)
}

/// Serve one by one: the commands, and the cookies each completes.
fn steps(q: &mut RequestQueue, now: u64) -> Vec<(Command, Vec<u64>)> {
    let mut steps = Vec::new();
    while let Dispatch::Issue(rq) = q.dispatch(now) {
        let what = command(q, rq);
        steps.push((what, complete(q, rq, now)));
    }
    steps
}

// ---- barriers -------------------------------------------------------------------------------------------------------------

#[test]
fn a_queue_without_order_refuses_barriers_and_flushes() {
    let (mut q, task) = ordered(Ordering::NoBarriers);
    assert_eq!(q.submit(barrier(task, 0), 0), Submitted::Refused(Refusal::Barrier));
    assert_eq!(q.submit(flush(task), 0), Submitted::Refused(Refusal::Barrier));
    queued(q.submit(write(task, 0, 8), 0));
    assert_eq!(steps(&mut q, 0).len(), 1);
}

#[test]
fn drain_sends_the_barrier_alone() {
    let (mut q, task) = ordered(Ordering::Drain);
    q.submit(write(task, 100, 8), 0);
    q.submit(barrier(task, 200), 0);
    q.submit(write(task, 300, 8), 0);
    assert_eq!(
        steps(&mut q, 0),
        [(plain(100), vec![100]), (plain(200), vec![200]), (plain(300), vec![300]),]
    );
    assert_empty(&q);
}

#[test]
fn drain_flush_sends_the_barrier_between_two_flushes() {
    let (mut q, task) = ordered(Ordering::DrainFlush);
    q.submit(write(task, 100, 8), 0);
    q.submit(barrier(task, 200), 0);
    q.submit(write(task, 300, 8), 0);
    assert_eq!(
        steps(&mut q, 0),
        [
            (plain(100), vec![100]),
            (FLUSH, vec![]),
            (plain(200), vec![]),
            (FLUSH, vec![200]),
            (plain(300), vec![300]),
        ]
    );
    assert_empty(&q);
}

#[test]
fn drain_fua_sends_a_flush_and_a_fua_write() {
    let (mut q, task) = ordered(Ordering::DrainFua);
    q.submit(barrier(task, 200), 0);
    assert_eq!(steps(&mut q, 0), [(FLUSH, vec![]), ((Op::Write, 200, true, false), vec![200])]);
    assert_empty(&q);
}

#[test]
fn an_empty_barrier_is_a_drain_and_one_flush() {
    for ordering in [Ordering::DrainFlush, Ordering::DrainFua] {
        let (mut q, task) = ordered(ordering);
        q.submit(write(task, 100, 8), 0);
        q.submit(flush(task), 0);
        assert_eq!(steps(&mut q, 0), [(plain(100), vec![100]), (FLUSH, vec![999_999])]);
        assert_empty(&q);
    }
}

#[test]
fn an_empty_barrier_without_a_volatile_cache_is_done_when_the_device_has_run_dry() {
    let (mut q, task) = ordered(Ordering::Drain);
    assert_eq!(q.submit(flush(task), 0), Submitted::Done, "nothing to wait for");
    q.submit(write(task, 100, 8), 0);
    q.submit(write(task, 500, 8), 0);
    queued(q.submit(flush(task), 0));
    q.submit(write(task, 300, 8), 0);
    let (first, second) = (issue(&mut q, 0), issue(&mut q, 0));
    assert_eq!(q.dispatch(0), Dispatch::Busy, "what came later waits");
    assert_eq!(complete(&mut q, first, 0), [100]);
    assert_eq!(complete(&mut q, second, 0), [500, 999_999]);
    assert_eq!(steps(&mut q, 0), [(plain(300), vec![300])]);
    assert_empty(&q);
}

#[test]
fn several_empty_barriers_in_a_row_are_done_together() {
    let (mut q, task) = ordered(Ordering::Drain);
    q.submit(write(task, 100, 8), 0);
    queued(q.submit(flush(task), 0));
    queued(q.submit(Bio { cookie: 7, ..flush(task) }, 0));
    queued(q.submit(barrier(task, 200), 0));
    queued(q.submit(Bio { cookie: 8, ..flush(task) }, 0));
    assert_eq!(steps(&mut q, 0), [(plain(100), vec![100, 999_999, 7]), (plain(200), vec![200, 8])]);
    assert_empty(&q);
}

#[test]
fn an_empty_barrier_waits_for_a_request_the_device_gave_back() {
    let (mut q, task) = ordered(Ordering::Drain);
    q.submit(write(task, 100, 8), 0);
    q.submit(write(task, 500, 8), 0);
    queued(q.submit(flush(task), 0));
    let (first, second) = (issue(&mut q, 0), issue(&mut q, 0));
    q.requeue(first, 0);
    assert_eq!(complete(&mut q, second, 0), [500], "one of those before it is still not done");
    assert_eq!(steps(&mut q, 0), [(plain(100), vec![100, 999_999])]);
}

#[test]
fn a_barrier_waits_until_the_device_is_empty_and_the_rest_waits_for_the_barrier() {
    let (mut q, task) = ordered(Ordering::DrainFlush);
    for sector in [100, 200, 300] {
        q.submit(write(task, sector, 8), 0);
    }
    let before = [issue(&mut q, 0), issue(&mut q, 0), issue(&mut q, 0)];
    q.submit(barrier(task, 400), 0);
    q.submit(read(task, 0, 8), 0);
    for rq in before {
        assert_eq!(q.dispatch(0), Dispatch::Busy, "the device is not empty yet");
        complete(&mut q, rq, 0);
    }
    for _ in 0..3 {
        let step = issue(&mut q, 0);
        assert_eq!(q.dispatch(0), Dispatch::Busy, "one step at a time, and nothing beside it");
        complete(&mut q, step, 0);
    }
    assert_eq!(serve_all(&mut q, 0), [(0, 8)]);
}

#[test]
fn a_barrier_forces_the_elevator_empty_and_later_requests_back_in() {
    let (mut q, orders, task) = probed(unplugged());
    q.submit(write(task, 100, 8), 0);
    q.submit(write(task, 900, 8), 0);
    q.submit(barrier(task, 400), 0);
    assert_eq!(count(&orders, "drain"), 2);
    q.submit(write(task, 500, 8), 0);
    assert_eq!(count(&orders, "drain"), 2);
    assert_eq!(count(&orders, "insert"), 3, "the barrier itself never meets the elevator");
}

#[test]
fn what_a_barrier_forces_out_is_sorted_one_way_and_what_follows_sorts_from_its_end() {
    let (mut q, _, task) = probed(QueueConfig { ordering: Ordering::Drain, ..unplugged() });
    for sector in [900, 100, 500] {
        q.submit(write(task, sector, 8), 0);
    }
    q.submit(barrier(task, 400), 0);
    for sector in [100, 900, 500] {
        q.submit(write(task, sector, 8), 0);
    }
    q.submit(barrier(task, 0), 0);
    let order: Vec<u64> = serve_all(&mut q, 0).iter().map(|(sector, _)| *sector).collect();
    assert_eq!(order, [100, 500, 900, 400, 500, 900, 100, 0]);
}

#[test]
fn what_the_device_gives_back_goes_before_the_barrier_it_preceded() {
    let (mut q, task) = ordered(Ordering::Drain);
    q.submit(write(task, 100, 8), 0);
    q.submit(write(task, 200, 8), 0);
    let (a, b) = (issue(&mut q, 0), issue(&mut q, 0));
    q.submit(barrier(task, 400), 0);
    assert_eq!(q.dispatch(0), Dispatch::Busy);
    q.requeue(b, 0);
    complete(&mut q, a, 0);
    assert_eq!(issue(&mut q, 0), b);
    complete(&mut q, b, 0);
    assert_eq!(steps(&mut q, 0), [(plain(400), vec![400])]);
}

#[test]
fn nothing_is_sorted_past_a_request_the_device_gave_back() {
    let (mut q, _, task) = probed(QueueConfig { ordering: Ordering::Drain, ..unplugged() });
    q.submit(write(task, 500, 8), 0);
    let back = issue(&mut q, 0);
    q.requeue(back, 0);
    q.submit(write(task, 100, 8), 0);
    q.submit(barrier(task, 400), 0); // files 100 on the list: before 500, were that not fixed
    assert_eq!(issue(&mut q, 0), back);
}

#[test]
fn each_step_of_a_barrier_may_come_back_from_the_device() {
    let (mut q, task) = ordered(Ordering::DrainFlush);
    q.submit(barrier(task, 200), 0);
    q.submit(write(task, 300, 8), 0);
    for step in [FLUSH, plain(200), FLUSH] {
        let rq = issue(&mut q, 0);
        q.requeue(rq, 0);
        assert_eq!(issue(&mut q, 0), rq);
        assert_eq!(command(&q, rq), step);
        complete(&mut q, rq, 0);
    }
    assert_eq!(steps(&mut q, 0), [(plain(300), vec![300])]);
    assert_empty(&q);
}

#[test]
fn barriers_follow_each_other() {
    let (mut q, task) = ordered(Ordering::DrainFua);
    q.submit(barrier(task, 100), 0);
    let flush = issue(&mut q, 0);
    q.submit(write(task, 800, 8), 0);
    q.submit(barrier(task, 200), 0); // while the first is at work
    complete(&mut q, flush, 0);
    let fua = |sector| (Op::Write, sector, true, false);
    assert_eq!(
        steps(&mut q, 0),
        [(fua(100), vec![100]), (plain(800), vec![800]), (FLUSH, vec![]), (fua(200), vec![200]),]
    );
    assert_empty(&q);
}

/// Write 0, a barrier, write 200, a barrier, write 400; then groups begin, with the first write in such a state.
fn groups_begin(ordering: Ordering, elevator: &str, before: impl Fn(&mut RequestQueue)) -> Vec<Command> {
    let mut q = queue(QueueConfig { ordering, groups_max: 2, ..unplugged() }, elevator);
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    for bio in
        [write(task, 0, 8), barrier(task, 100), write(task, 200, 8), barrier(task, 300), write(task, 400, 8)]
    {
        queued(q.submit(bio, MS));
    }
    before(&mut q);
    q.groups_mut();
    queued(q.submit(write(task, 500, 8), MS));
    let mut now = MS;
    let mut order = Vec::new();
    loop {
        match q.dispatch(now) {
            Dispatch::Issue(rq) => {
                order.push(command(&q, rq));
                now += MS;
                complete(&mut q, rq, now);
            }
            Dispatch::Idle { until } => now = until,
            _ => break,
        }
    }
    assert_empty(&q);
    order
}

#[test]
fn nothing_passes_a_barrier_that_was_there_before_groups() {
    for elevator in ["noop", "deadline", "fair", "anticipatory", "cfq", "none", "mq-deadline", "kyber", "bfq"]
    {
        let all = [0, 100, 200, 300, 400, 500].map(plain);
        let order = |before: &dyn Fn(&mut RequestQueue)| groups_begin(Ordering::Drain, elevator, before);
        assert_eq!(order(&|_| {}), all, "{elevator}: all are queued");
        let done = |q: &mut RequestQueue| {
            let rq = issue(q, MS);
            complete(q, rq, 2 * MS);
        };
        assert_eq!(order(&done), all[1..], "{elevator}: the first is done");
        let given_back = |q: &mut RequestQueue| {
            let rq = issue(q, MS);
            assert_eq!(q.dispatch(MS), Dispatch::Busy, "the barrier waits for it");
            q.requeue(rq, 2 * MS);
        };
        assert_eq!(order(&given_back), all, "{elevator}: the device gave the first back");
        let at_work = |q: &mut RequestQueue| {
            done(q);
            let rq = issue(q, 2 * MS);
            q.requeue(rq, 3 * MS);
        };
        assert_eq!(order(&at_work), all[1..], "{elevator}: the device gave the barrier back");
    }
}

#[test]
fn a_barrier_takes_its_own_tasks_plug_along() {
    let config =
        QueueConfig { ordering: Ordering::Drain, plugging: Plugging::Task, ..QueueConfig::default() };
    let (mut q, _, task) = probed(config);
    q.open_plug(task);
    q.submit(write(task, 100, 8), 0);
    q.submit(barrier(task, 50), 0);
    assert_eq!(serve_all(&mut q, 0), [(100, 8), (50, 8)]);
}

// ---- FLUSH and FUA ----------------------------------------------------------------------------------------------------------

fn sequences(write_cache: bool, fua: bool) -> (RequestQueue, ContextId) {
    ordered(Ordering::Sequences { write_cache, fua })
}

/// The steps each kind of bio takes on each kind of device (modern-schedulers 1.6).
#[test]
fn the_device_decides_which_steps_a_bio_takes() {
    let fua_write = (Op::Write, 8, true, false);
    type Expected = Vec<Command>;
    let table: [(bool, bool, Flags, Expected); 9] = [
        (false, false, Flags::PREFLUSH | Flags::FUA, vec![plain(8)]),
        (false, true, Flags::PREFLUSH | Flags::FUA, vec![plain(8)]),
        (true, false, Flags::PREFLUSH, vec![FLUSH, plain(8)]),
        (true, false, Flags::FUA, vec![plain(8), FLUSH]),
        (true, false, Flags::PREFLUSH | Flags::FUA, vec![FLUSH, plain(8), FLUSH]),
        (true, true, Flags::PREFLUSH, vec![FLUSH, plain(8)]),
        (true, true, Flags::FUA, vec![fua_write]),
        (true, true, Flags::PREFLUSH | Flags::FUA, vec![FLUSH, fua_write]),
        (true, true, Flags::NONE, vec![plain(8)]),
    ];
    for (write_cache, fua, flags, expected) in table {
        let (mut q, task) = sequences(write_cache, fua);
        queued(q.submit(bio(Op::Write, flags, task, 8, 8), 0));
        let steps = steps(&mut q, 0);
        let commands: Vec<_> = steps.iter().map(|(c, _)| *c).collect();
        assert_eq!(commands, expected, "cache {write_cache} fua {fua} {flags:?}");
        let (last, before) = steps.split_last().unwrap();
        assert_eq!(last.1, [8], "done with the last step");
        assert!(before.iter().all(|(_, done)| done.is_empty()), "and not earlier");
        assert_empty(&q);
    }
}

#[test]
fn an_empty_flush_is_one_flush_or_nothing_at_all() {
    let (mut q, task) = sequences(true, true);
    queued(q.submit(flush(task), 0));
    assert_eq!(steps(&mut q, 0), [(FLUSH, vec![999_999])]);
    let (mut q, task) = sequences(false, false);
    assert_eq!(q.submit(flush(task), 0), Submitted::Done);
    assert_empty(&q);
}

#[test]
fn without_a_volatile_cache_flagged_writes_merge_like_others() {
    let (mut q, task) = sequences(false, false);
    queued(q.submit(bio(Op::Write, Flags::FUA, task, 0, 8), 0));
    merged(q.submit(bio(Op::Write, Flags::PREFLUSH, task, 8, 8), 0));
}

#[test]
fn barriers_are_gone_since_flush_and_fua() {
    let (mut q, task) = sequences(true, true);
    q.submit(write(task, 100, 8), 0);
    queued(q.submit(barrier(task, 400), 0));
    q.submit(write(task, 200, 8), 0);
    let order: Vec<u64> = {
        let issued = [issue(&mut q, 0), issue(&mut q, 0), issue(&mut q, 0)];
        issued.map(|rq| q.requests()[rq].sector).to_vec()
    };
    assert_eq!(order, [100, 400, 200], "all three in the device together");
}

#[test]
fn the_data_after_a_preflush_goes_ahead_of_everything() {
    let (mut q, orders, task) =
        probed(QueueConfig { ordering: Ordering::Sequences { write_cache: true, fua: true }, ..unplugged() });
    queued(q.submit(bio(Op::Write, Flags::PREFLUSH, task, 900, 8), 0));
    q.submit(write(task, 100, 8), 0);
    let flush = issue(&mut q, 0);
    assert_eq!(q.requests()[flush].op, Op::Flush);
    complete(&mut q, flush, 0);
    assert_eq!(serve_all(&mut q, 0), [(900, 8), (100, 8)]);
    assert_eq!(count(&orders, "insert"), 1, "the elevator saw only the plain write");
}

#[test]
fn a_fua_write_without_a_preflush_goes_through_the_elevator_and_never_merges() {
    let (mut q, orders, task) = probed(QueueConfig {
        ordering: Ordering::Sequences { write_cache: true, fua: false },
        ..unplugged()
    });
    queued(q.submit(bio(Op::Write, Flags::FUA, task, 100, 8), 0));
    assert_eq!(count(&orders, "insert"), 1);
    queued(q.submit(write(task, 108, 8), 0)); // behind it
    queued(q.submit(write(task, 92, 8), 0)); // before it
}

#[test]
fn flagged_writes_are_sync() {
    let (mut q, task) = sequences(true, true);
    for flags in [Flags::PREFLUSH, Flags::FUA] {
        let rq = queued(q.submit(bio(Op::Write, flags, task, 0, 8), 0));
        assert!(q.requests()[rq].is_sync(), "{flags:?}");
    }
}

#[test]
fn waiters_that_gather_while_a_flush_runs_share_the_next_one() {
    let (mut q, task) = sequences(true, true);
    let flush_of = |cookie| Bio { cookie, ..flush(task) };
    q.submit(flush_of(1), 0);
    let running = issue(&mut q, 0);
    for cookie in 2..=5 {
        q.submit(flush_of(cookie), 0);
    }
    assert_eq!(q.dispatch(0), Dispatch::Busy, "one flush at a time");
    assert_eq!(complete(&mut q, running, 0), [1], "it began before the others came");
    let mut shared = steps(&mut q, 0);
    shared[0].1.sort_unstable();
    assert_eq!(shared, [(FLUSH, vec![2, 3, 4, 5])]);
    assert_empty(&q);
}

#[test]
fn data_of_several_sequences_goes_in_the_order_they_came() {
    let (mut q, task) = sequences(true, true);
    q.submit(flush(task), 0);
    let running = issue(&mut q, 0);
    for sector in [300, 100, 200] {
        q.submit(bio(Op::Write, Flags::PREFLUSH, task, sector, 8), 0);
    }
    complete(&mut q, running, 0);
    let shared = issue(&mut q, 0);
    complete(&mut q, shared, 0);
    assert_eq!(serve_all(&mut q, 0), [(300, 8), (100, 8), (200, 8)]);
}

#[test]
fn a_flush_waits_for_data_in_flight_but_no_longer_than_five_seconds() {
    let (mut q, task) = sequences(true, false);
    q.submit(bio(Op::Write, Flags::FUA, task, 100, 8), 0);
    let data = issue(&mut q, 0);
    q.submit(flush(task), 2 * SECOND);
    assert_eq!(q.dispatch(2 * SECOND), Dispatch::Idle { until: 7 * SECOND });
    let command = issue(&mut q, 7 * SECOND);
    assert_eq!(q.requests()[command].op, Op::Flush);
    assert_eq!(complete(&mut q, command, 7 * SECOND), [999_999]);
    complete(&mut q, data, 8 * SECOND);
    assert_eq!(steps(&mut q, 8 * SECOND), [(FLUSH, vec![100])]);
    assert_empty(&q);
}

#[test]
fn a_flush_goes_as_soon_as_the_data_is_done() {
    let (mut q, task) = sequences(true, false);
    q.submit(bio(Op::Write, Flags::FUA, task, 100, 8), 0);
    let data = issue(&mut q, 0);
    q.submit(flush(task), 0);
    assert_eq!(complete(&mut q, data, 1), [0u64; 0]);
    let mut both = steps(&mut q, 1);
    both[0].1.sort_unstable();
    assert_eq!(
        both,
        [(FLUSH, vec![100, 999_999])],
        "one flush serves the waiter and the data's own last step"
    );
}

#[test]
fn an_idling_elevator_does_not_hide_the_flush_timeout() {
    let (mut q, orders, task) = probed(QueueConfig {
        ordering: Ordering::Sequences { write_cache: true, fua: false },
        ..unplugged()
    });
    q.submit(bio(Op::Write, Flags::FUA, task, 100, 8), 0);
    issue(&mut q, 0);
    q.submit(flush(task), 0);
    orders.lock().unwrap().idle_until = Some(60 * SECOND);
    assert_eq!(q.dispatch(0), Dispatch::Idle { until: 5 * SECOND });
    orders.lock().unwrap().idle_until = Some(8 * MS);
    assert_eq!(q.dispatch(0), Dispatch::Idle { until: 8 * MS });
}

#[test]
fn flush_command_and_data_may_come_back_from_the_device() {
    let (mut q, task) = sequences(true, false);
    queued(q.submit(bio(Op::Write, Flags::PREFLUSH | Flags::FUA, task, 8, 8), 0));
    for step in [FLUSH, plain(8), FLUSH] {
        let rq = issue(&mut q, 0);
        q.requeue(rq, 0);
        assert_eq!(issue(&mut q, 0), rq);
        assert_eq!(command(&q, rq), step);
        let done = complete(&mut q, rq, 0);
        assert_eq!(done.is_empty(), q.pending() > 0);
    }
    assert_empty(&q);
}
