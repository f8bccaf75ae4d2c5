//! Merging: which queued request a bio may join, and what becomes of the two.

mod queue_support;

use fairlift_core::queue::{
    Admission, ElevatorQueue, MergeLimits, NoMerges, Ordering, Plugging, QueueConfig, Submitted,
};
use fairlift_core::request::RequestState;
use fairlift_core::{Flags, IoPrio, Op};
use queue_support::*;

// ---- search order ---------------------------------------------------------------------------------------------------------

#[test]
fn the_one_hit_cache_merges_at_both_ends_of_one_request() {
    let (mut q, orders, task) = probed(unplugged());
    let rq = queued(q.submit(read(task, 100, 8), 0));
    assert_eq!(merged(q.submit(read(task, 108, 8), 0)), rq);
    assert_eq!(merged(q.submit(read(task, 92, 8), 0)), rq);
    assert_eq!((q.requests()[rq].sector, q.requests()[rq].sectors), (92, 24));
    assert_eq!(count(&orders, "allow_merge"), 2, "found at the first try, twice");
    let rq = issue(&mut q, 0);
    assert_eq!(complete(&mut q, rq, 0), [92, 100, 108], "bios are reported in the order of their sectors");
    assert_empty(&q);
}

#[test]
fn the_hash_finds_a_back_merge_the_cache_misses() {
    let (mut q, _, task) = probed(unplugged());
    let first = queued(q.submit(read(task, 0, 8), 0));
    let second = queued(q.submit(read(task, 1000, 8), 0));
    let third = queued(q.submit(read(task, 2000, 8), 0));
    assert_eq!(merged(q.submit(read(task, 1008, 8), 0)), second);
    assert_eq!(merged(q.submit(read(task, 2008, 8), 0)), third);
    assert_eq!(merged(q.submit(read(task, 8, 8), 0)), first);
    assert_eq!(
        merged(q.submit(read(task, 2016, 8), 0)),
        third,
        "re-filed under its new end, not only cached"
    );
    assert_eq!(merged(q.submit(read(task, 16, 8), 0)), first);
}

#[test]
fn the_elevator_finds_a_front_merge_the_cache_misses() {
    let (mut q, _, task) = probed(unplugged());
    queued(q.submit(read(task, 0, 8), 0));
    let far = queued(q.submit(read(task, 1000, 8), 0));
    assert_eq!(merged(q.submit(read(task, 992, 8), 0)), far);
}

#[test]
fn noop_has_no_front_look_up_but_the_cache() {
    let mut q = queue(unplugged(), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    let cached = queued(q.submit(read(task, 1000, 8), 0));
    assert_eq!(merged(q.submit(read(task, 992, 8), 0)), cached);
    queued(q.submit(read(task, 5000, 8), 0));
    queued(q.submit(read(task, 4992, 8), 0)); // in front of the other one: not found
}

#[test]
fn the_cache_goes_before_the_hash_and_the_hash_before_the_front() {
    let (mut q, _, task) = probed(unplugged());
    // 100..108 is cached; 200..208 ends where the bio starts; 216.. starts where it ends.
    let cached = queued(q.submit(read(task, 100, 8), 0));
    let back = queued(q.submit(read(task, 200, 8), 0));
    let front = queued(q.submit(read(task, 216, 8), 0));
    assert_eq!(merged(q.submit(read(task, 208, 8), 0)), back, "the hash wins, then swallows its neighbour");
    assert_eq!(q.requests()[back].sectors, 24);
    assert_eq!(q.requests()[front].state, RequestState::Free);
    assert_eq!(q.requests()[cached].sectors, 8);
}

#[test]
fn a_merge_moves_the_cache_to_its_request() {
    let (mut q, _, task) = probed(with_nomerges(0));
    queued(q.submit(read(task, 0, 8), 0));
    let other = queued(q.submit(read(task, 1000, 8), 0));
    merged(q.submit(read(task, 1008, 8), 0)); // by hash
    q.set_nomerges(NoMerges::Simple); // only the cache from here on
    assert_eq!(merged(q.submit(read(task, 1016, 8), 0)), other);
    queued(q.submit(read(task, 8, 8), 0));
}

#[test]
fn the_cache_is_filled_again_once_its_request_left() {
    let (mut q, _, task) = probed(with_nomerges(1));
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 1000, 8), 0));
    let gone = issue(&mut q, 0);
    queued(q.submit(read(task, 8, 8), 0)); // the issued one is past merging; this one is cached now
    let answer = q.submit(read(task, 16, 8), 0);
    assert_ne!(merged(answer), gone);
}

// ---- rules that forbid ------------------------------------------------------------------------------------------------------

/// What a read of 0..8 with these flags leaves for a read of 8..16 with those: joined or not.
fn joins(first: (Op, Flags), second: (Op, Flags)) -> bool {
    let (mut q, _, task) = probed(QueueConfig { ordering: Ordering::Drain, ..unplugged() });
    queued(q.submit(bio(first.0, first.1, task, 0, 8), 0));
    matches!(q.submit(bio(second.0, second.1, task, 8, 8), 0), Submitted::Merged(_))
}

#[test]
fn equal_operations_join_and_different_ones_do_not() {
    let ops = [Op::Read, Op::Write, Op::Discard];
    for a in ops {
        for b in ops {
            assert_eq!(joins((a, Flags::NONE), (b, Flags::NONE)), a == b, "{a:?} then {b:?}");
        }
    }
}

#[test]
fn flags_of_order_and_durability_forbid_merging_on_either_side() {
    for flag in [Flags::BARRIER, Flags::FUA, Flags::PREFLUSH, Flags::NOMERGE] {
        assert!(!joins((Op::Write, flag), (Op::Write, Flags::NONE)), "into {flag:?}");
        assert!(!joins((Op::Write, Flags::NONE), (Op::Write, flag)), "{flag:?} into a plain one");
    }
    for flag in [Flags::SYNC, Flags::META, Flags::NOIDLE, Flags::READAHEAD, Flags::UNPLUG] {
        assert!(joins((Op::Write, flag), (Op::Write, Flags::NONE)), "into {flag:?}");
        assert!(joins((Op::Write, Flags::NONE), (Op::Write, flag)), "{flag:?} into a plain one");
    }
}

#[test]
fn a_gap_or_an_overlap_forbids_merging() {
    let (mut q, _, task) = probed(unplugged());
    queued(q.submit(read(task, 100, 8), 0));
    for sector in [91, 93, 100, 107, 109] {
        queued(q.submit(read(task, sector, 8), 0));
    }
}

#[test]
fn the_elevator_may_veto_each_of_the_three_ways() {
    let (mut q, orders, task) = probed(unplugged());
    queued(q.submit(read(task, 100, 8), 0));
    queued(q.submit(read(task, 1000, 8), 0));
    orders.lock().unwrap().veto = true;
    queued(q.submit(read(task, 108, 8), 0)); // cache
    queued(q.submit(read(task, 1008, 8), 0)); // hash
    queued(q.submit(read(task, 992, 8), 0)); // front
    assert_eq!(q.requests().taken(), 5);
}

#[test]
fn a_sync_bio_joins_an_async_request_unless_the_elevator_vetoes() {
    let (mut q, orders, task) = probed(unplugged());
    let rq = queued(q.submit(write(task, 0, 8), 0));
    assert_eq!(merged(q.submit(bio(Op::Write, Flags::SYNC, task, 8, 8), 0)), rq);
    assert!(!q.requests()[rq].is_sync(), "the survivor keeps its own flags");
    orders.lock().unwrap().veto = true;
    queued(q.submit(bio(Op::Write, Flags::SYNC, task, 16, 8), 0));
}

#[test]
fn nothing_that_left_the_elevator_merges() {
    let (mut q, _, task) = probed(unplugged());
    queued(q.submit(write(task, 0, 8), 0));
    queued(q.submit(write(task, 1000, 8), 0));
    queued(q.submit(bio(Op::Write, Flags::BARRIER, task, 5000, 8), 0)); // forces both onto the dispatch list
    let fresh = queued(q.submit(write(task, 8, 8), 0));
    queued(q.submit(write(task, 992, 8), 0));
    assert_eq!(
        merged(q.submit(write(task, 16, 8), 0)),
        fresh,
        "what came after the barrier merges with itself"
    );
}

#[test]
fn a_peeked_request_is_past_merging_for_a_host_that_merges_by_itself() {
    let (elevator, _) = probe();
    let mut q = ElevatorQueue::new(4, 1, true, elevator);
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    let rq = q.take(fairlift_core::request::request(Op::Read, Flags::NONE, 0, 8, task, 0)).unwrap();
    q.insert(rq, 0);
    assert!(q.requests()[rq].is_mergeable());
    q.peek(0);
    assert!(!q.requests()[rq].is_mergeable());
}

// ---- limits ---------------------------------------------------------------------------------------------------------------

fn limited(max_sectors: u32, max_segments: u16) -> QueueConfig {
    QueueConfig { limits: MergeLimits { max_sectors, max_segments }, ..unplugged() }
}

#[test]
fn a_request_grows_up_to_its_limits_and_not_beyond() {
    for (config, what) in [(limited(24, 128), "sectors"), (limited(1024, 3), "segments")] {
        let (mut q, _, task) = probed(config);
        let rq = queued(q.submit(read(task, 0, 8), 0));
        merged(q.submit(read(task, 8, 8), 0));
        merged(q.submit(read(task, 16, 8), 0));
        queued(q.submit(read(task, 24, 8), 0));
        assert_eq!(q.requests()[rq].sectors, 24, "{what}");
    }
}

#[test]
fn a_request_without_room_is_never_tried_again() {
    let (mut q, _, task) = probed(limited(16, 128));
    let rq = queued(q.submit(read(task, 1000, 12), 0));
    queued(q.submit(read(task, 1012, 8), 0)); // no room for 8
    assert!(q.requests()[rq].flags.contains(Flags::NOMERGE));
    let again = q.submit(read(task, 996, 4), 0);
    assert!(
        matches!(again, Submitted::Queued(_)),
        "4 sectors would fit, but it is marked for good: {again:?}"
    );
}

#[test]
fn coalescing_beyond_a_limit_marks_nobody() {
    let (mut q, _, task) = probed(limited(16, 128));
    let low = queued(q.submit(read(task, 0, 4), 0));
    let high = queued(q.submit(read(task, 8, 12), 0));
    merged(q.submit(read(task, 4, 4), 0)); // 0..8 touches 8..20: 20 sectors are too many
    assert_eq!(q.requests().taken(), 2);
    for rq in [low, high] {
        assert!(!q.requests()[rq].flags.contains(Flags::NOMERGE));
    }
}

#[test]
fn a_bio_beyond_the_limits_is_refused_and_an_extreme_one_does_no_harm() {
    let (mut q, _, task) = probed(limited(u32::MAX, 128));
    queued(q.submit(read(task, 0, u32::MAX), 0));
    queued(q.submit(read(task, u64::from(u32::MAX), u32::MAX), 0)); // together more than a u32
    let past_the_end = q.submit(read(task, u64::MAX - 3, 8), 0);
    assert!(matches!(past_the_end, Submitted::Refused(_)), "{past_the_end:?}");
    let (mut q, _, task) = probed(limited(16, 2));
    assert!(matches!(q.submit(read(task, 0, 17), 0), Submitted::Refused(_)));
    assert!(matches!(
        q.submit(fairlift_core::Bio { segments: 3, ..read(task, 0, 8) }, 0),
        Submitted::Refused(_)
    ));
    assert!(matches!(q.submit(read(task, 0, 0), 0), Submitted::Refused(_)), "no sectors");
    assert_empty(&q);
}

#[test]
fn a_bio_without_segments_counts_as_one() {
    let (mut q, _, task) = probed(limited(1024, 2));
    let empty = |sector| fairlift_core::Bio { segments: 0, ..read(task, sector, 1) };
    queued(q.submit(empty(0), 0));
    merged(q.submit(empty(1), 0));
    queued(q.submit(empty(2), 0));
}

// ---- coalescing -----------------------------------------------------------------------------------------------------------

#[test]
fn a_back_merge_that_closes_a_gap_makes_one_request_of_two() {
    let (mut q, orders, task) = probed(unplugged());
    let low = queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 16, 8), 0));
    assert_eq!(merged(q.submit(read(task, 8, 8), 0)), low);
    assert_eq!((q.requests()[low].sector, q.requests()[low].sectors), (0, 24));
    assert_eq!(count(&orders, "absorbed"), 1);
    let rq = issue(&mut q, 0);
    assert_eq!(complete(&mut q, rq, 0), [0, 8, 16]);
    assert_empty(&q);
}

#[test]
fn a_front_merge_that_closes_a_gap_makes_one_request_of_two() {
    // The cache holds the upper one, so that the bio goes to its front.
    let (mut q, _, task) = probed(unplugged());
    queued(q.submit(read(task, 16, 8), 0));
    let low = queued(q.submit(read(task, 0, 8), 0));
    let answer = q.submit(read(task, 8, 8), 0);
    assert_eq!(merged(answer), low, "the lower one survives");
    assert_eq!((q.requests()[low].sector, q.requests()[low].sectors), (0, 24));
    assert_eq!(merged(q.submit(read(task, 24, 8), 0)), low, "and is found under its new end");
    let rq = issue(&mut q, 0);
    assert_eq!(complete(&mut q, rq, 0), [0, 8, 16, 24]);
    assert_empty(&q);
}

#[test]
fn the_survivor_keeps_its_flags_and_takes_the_best_priority_and_the_older_start() {
    let (mut q, _, task) = probed(unplugged());
    let with = |sector, flags, prio| fairlift_core::Bio {
        ioprio: Some(prio),
        ..bio(Op::Write, flags, task, sector, 8)
    };
    queued(q.submit(with(16, Flags::META, IoPrio::BestEffort(1)), 5));
    let low = queued(q.submit(with(0, Flags::SYNC, IoPrio::BestEffort(6)), 10));
    merged(q.submit(with(8, Flags::NOIDLE, IoPrio::BestEffort(4)), 20));
    let survivor = &q.requests()[low];
    assert_eq!(survivor.sectors, 24);
    assert_eq!(survivor.flags, Flags::SYNC);
    assert_eq!(survivor.ioprio, IoPrio::BestEffort(1));
    assert_eq!(survivor.start_ns, 5);
}

#[test]
fn a_class_beats_every_level_of_the_next() {
    let (mut q, _, task) = probed(unplugged());
    let with = |sector, prio| fairlift_core::Bio { ioprio: Some(prio), ..write(task, sector, 8) };
    let rq = queued(q.submit(with(0, IoPrio::Idle), 0));
    merged(q.submit(with(8, IoPrio::BestEffort(7)), 0));
    assert_eq!(q.requests()[rq].ioprio, IoPrio::BestEffort(7));
    merged(q.submit(with(16, IoPrio::RealTime(7)), 0));
    merged(q.submit(with(24, IoPrio::BestEffort(0)), 0));
    assert_eq!(q.requests()[rq].ioprio, IoPrio::RealTime(7));
}

#[test]
fn different_operations_do_not_coalesce() {
    let (mut q, _, task) = probed(unplugged());
    queued(q.submit(write(task, 16, 8), 0));
    queued(q.submit(read(task, 0, 8), 0));
    merged(q.submit(read(task, 8, 8), 0)); // touches the write
    assert_eq!(q.requests().taken(), 2);
}

#[test]
fn noop_coalesces_with_list_neighbours_only() {
    let mut q = queue(unplugged(), "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 5000, 8), 0)); // stands between the two
    queued(q.submit(read(task, 16, 8), 0));
    merged(q.submit(read(task, 8, 8), 0));
    assert_eq!(serve_all(&mut q, 0), [(0, 16), (5000, 8), (16, 8)]);
}

// ---- nomerges -------------------------------------------------------------------------------------------------------------

#[test]
fn nomerges_values_mean_what_sysfs_says() {
    assert_eq!([0, 1, 2, 3, 99].map(NoMerges::from_sysfs), {
        use NoMerges::*;
        [Off, Simple, All, Simple, Simple]
    });
}

/// legacy-block-layer 1.5.5: which tries each level makes: cache, hash, front, coalescing after a cache hit.
#[test]
fn nomerges_levels_switch_the_tries_off_one_by_one() {
    for (level, expected) in [(0, [true, true, true, true]), (1, [true, false, false, true]), (2, [false; 4])]
    {
        let tries = |first: &[u64], then: u64| {
            let (mut q, _, task) = probed(with_nomerges(level));
            for sector in first {
                queued(q.submit(read(task, *sector, 8), 0));
            }
            matches!(q.submit(read(task, then, 8), 0), Submitted::Merged(_))
        };
        let cache = tries(&[100], 108);
        let hash = tries(&[0, 100], 108);
        let front = tries(&[0, 100], 92);
        let coalesce = {
            let (mut q, _, task) = probed(with_nomerges(level));
            queued(q.submit(read(task, 0, 8), 0));
            queued(q.submit(read(task, 16, 8), 0));
            q.submit(read(task, 8, 8), 0);
            q.requests().taken() == 1
        };
        assert_eq!([cache, hash, front, coalesce], expected, "level {level}");
    }
}

#[test]
fn merges_found_after_nomerges_is_lifted_used_the_hash_that_was_kept() {
    let (mut q, _, task) = probed(with_nomerges(2));
    queued(q.submit(read(task, 0, 8), 0));
    let rq = queued(q.submit(read(task, 100, 8), 0));
    q.set_nomerges(NoMerges::Off);
    assert_eq!(merged(q.submit(read(task, 108, 8), 0)), rq);
}

#[test]
fn under_the_rfcs_meaning_nothing_merges_and_nothing_is_known_to_the_hash() {
    let (mut q, _, task) = probed(QueueConfig { nomerges: NoMerges::Rfc, ..unplugged() });
    queued(q.submit(read(task, 0, 8), 0));
    queued(q.submit(read(task, 100, 8), 0));
    queued(q.submit(read(task, 108, 8), 0));
    // Neither the cache nor the hash knows a request of that time; one of later merges as ever.
    q.set_nomerges(NoMerges::Off);
    let later = queued(q.submit(read(task, 116, 8), 0));
    assert_eq!(merged(q.submit(read(task, 124, 8), 0)), later);
    assert_eq!(serve_all(&mut q, 0), [(0, 8), (100, 8), (108, 8), (116, 16)]);
}

#[test]
fn a_merge_takes_no_slot_so_a_full_queue_still_takes_it() {
    use fairlift_core::queue::Admission;
    let config =
        QueueConfig { admission: Admission::Tags { nr_requests: 1 }, plugging: Plugging::Off, ..unplugged() };
    let (mut q, _, task) = probed(config);
    queued(q.submit(read(task, 0, 8), 0));
    assert_eq!(q.submit(read(task, 100, 8), 0), Submitted::Full);
    merged(q.submit(read(task, 8, 8), 0));
}

// ---- joining without asking for a slot ----------------------------------------------------------------------------------------

#[test]
fn a_bio_may_join_before_it_asks_for_a_slot() {
    let config = QueueConfig { admission: Admission::Tags { nr_requests: 1 }, ..unplugged() };
    let mut q = queue(config, "noop");
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    let rq = queued(q.submit(read(task, 0, 8), 0));
    assert_eq!(q.join_queued(read(task, 100, 8), 0), None, "nothing to join");
    assert_eq!(q.pending(), 1, "and nothing happened");
    assert_eq!(q.join_queued(read(task, 8, 8), 0), Some(rq), "although no slot is free");
    assert_eq!(issue(&mut q, 0), rq);
    assert_eq!(complete(&mut q, rq, 1), [0, 8]);
}
