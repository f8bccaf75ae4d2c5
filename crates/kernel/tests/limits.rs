//! Limits of groups in the module: what is over one waits outside the elevator, exactly as long as it must.

use fairlift_core::collections::Id;
use fairlift_core::context::IoClass;
use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, Host, Setup, Slot};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const ELEVATORS: [&str; 4] = ["noop", "deadline", "anticipatory", "cfq"];

fn host(elevator: &'static str) -> Host {
    let (requests_max, contexts_max, groups_max) = (64, 2, 3);
    let setup = Setup {
        elevator,
        profile: "",
        requests_max,
        contexts_max,
        groups_max,
        records_max: 0,
        rotational: false,
    };
    Host::new(setup).expect("known")
}

fn bio(op: Op, sector: u64, group: u32) -> Arrival {
    let flags = if op == Op::Read { Flags::SYNC } else { Flags::NONE };
    Arrival { op, flags, sector, sectors: 8, context: 0, group, own: false, ioprio: IoPrio::DEFAULT }
}

fn new_group(host: &mut Host, parent: u32) -> u32 {
    host.group_new(parent, 100, IoClass::BestEffort).expect("room")
}

fn limit(host: &mut Host, group: u32, direction: Direction, bytes_per_s: u64, ios_per_s: u64) {
    assert_eq!(host.group_limit(group, direction, Rates { bytes_per_s, ios_per_s }, 0), Some(group));
}

/// So many reads of a group.
fn send(host: &mut Host, reads: u64, group: u32, now: u64) {
    for i in 0..reads {
        host.insert(&bio(Op::Read, i * 800, group), now).expect("a slot");
    }
}

/// Everything that is dispatched up to `until`, as (when, slot); each is done at once.
fn serve(host: &mut Host, mut now: u64, until: u64) -> Vec<(u64, Slot)> {
    let mut served = Vec::new();
    while now <= until {
        match host.dispatch(now) {
            Dispatch::Issue(rq) => {
                let slot = rq.index() as Slot;
                host.complete(slot, now);
                served.push((now, slot));
            }
            Dispatch::Idle { until: time } => {
                assert!(time > now, "asked again at a time that is past");
                now = time;
            }
            Dispatch::Empty | Dispatch::Busy => break,
        }
    }
    served
}

#[test]
fn a_limited_group_goes_at_its_rate_and_others_at_once() {
    for elevator in ELEVATORS {
        let mut host = host(elevator);
        let (limited, free) = (new_group(&mut host, 0), new_group(&mut host, 0));
        limit(&mut host, limited, Direction::Read, 0, 10);
        let slots: Vec<Slot> =
            (0..5).map(|i| host.insert(&bio(Op::Read, i * 800, limited), 1).expect("a slot")).collect();
        let other = host.insert(&bio(Op::Read, 80_000, free), 1).expect("a slot");
        let write = host.insert(&bio(Op::Write, 90_000, limited), 1).expect("a slot");
        assert_eq!((host.held(), host.group_held(limited), host.group_held(free)), (4, 4, 0), "{elevator}");
        let served = serve(&mut host, 1, SECOND);
        let when = |slot: Slot| served.iter().find(|(_, served)| *served == slot).expect("served").0;
        assert!(when(other) < 50 * MS && when(write) < 50 * MS, "{elevator}: {served:?}");
        // The first one goes, 100 ms before the second; the elevator may wait a little for somebody better.
        for (i, slot) in slots.iter().enumerate() {
            let due = (i as u64 * 100).saturating_sub(20) * MS;
            assert!((due..due + 40 * MS).contains(&when(*slot)), "{elevator}: request {i}: {served:?}");
        }
        assert_eq!((host.held(), host.queued(), host.taken()), (0, 0, 0), "{elevator}");
    }
}

#[test]
fn a_parents_limit_holds_for_all_below_it() {
    let mut host = host("deadline");
    let parent = new_group(&mut host, 0);
    let children = [new_group(&mut host, parent), new_group(&mut host, parent)];
    limit(&mut host, parent, Direction::Write, 40 * 4096, 0);
    let last = (0..20)
        .map(|i| host.insert(&bio(Op::Write, i * 800, children[i as usize % 2]), 1).expect("a slot"))
        .last();
    let served = serve(&mut host, 1, SECOND);
    assert_eq!(served.len(), 20);
    let (end, slot) = *served.last().expect("some");
    assert_eq!(Some(slot), last, "each child in its turn");
    // 19 of 40 a second are paid for before the last one goes, less the burst of 20 ms.
    assert!((455 * MS..=476 * MS).contains(&end), "{end}");
}

#[test]
fn what_merges_is_paid_for() {
    let mut host = host("deadline");
    let group = new_group(&mut host, 0);
    limit(&mut host, group, Direction::Read, 8192, 0);
    let first = host.insert(&bio(Op::Read, 800, group), 1).expect("a slot");
    assert!(host.allow_merge(first, &bio(Op::Read, 808, group), 1));
    host.grew(first, false, 800, 16, 1);
    // 8 KiB are a second's worth.
    let second = host.insert(&bio(Op::Read, 8000, group), 1).expect("a slot");
    // The block layer may put a request that it did not insert yet behind one that waits, and asks nobody.
    host.grew(second, false, 8000, 16, 1);
    let served = serve(&mut host, 1, 5 * SECOND);
    assert_eq!(served.iter().map(|(_, slot)| *slot).collect::<Vec<_>>(), [first, second]);
    assert!(served[0].0 < 50 * MS, "{served:?}");
    assert!(
        (SECOND + 470 * MS..SECOND + 501 * MS).contains(&served[1].0),
        "4 KiB each before it was inserted, and its own: {served:?}"
    );
}

#[test]
fn metadata_goes_at_once_and_is_charged() {
    let mut host = host("noop");
    let group = new_group(&mut host, 0);
    limit(&mut host, group, Direction::Write, 0, 10);
    host.insert(&bio(Op::Write, 800, group), 1).expect("a slot");
    let meta = Arrival { flags: Flags::META, ..bio(Op::Write, 8000, group) };
    host.insert(&meta, 1).expect("a slot");
    assert_eq!(host.held(), 0);
    let held = host.insert(&bio(Op::Write, 16_000, group), 1).expect("a slot");
    let served = serve(&mut host, 1, SECOND);
    assert_eq!(served[2].1, held);
    assert!((175 * MS..=201 * MS).contains(&served[2].0), "{served:?}");
}

/// The block layer sends it to the head. It is held back and charged.
#[test]
fn data_between_two_flushes_is_limited_like_any_other() {
    for elevator in ELEVATORS {
        let mut host = host(elevator);
        let group = new_group(&mut host, 0);
        limit(&mut host, group, Direction::Write, 0, 10);
        for i in 0..5 {
            let data = Arrival { flags: Flags::SYNC, ..bio(Op::Write, i * 800, group) };
            host.insert_head(&data, 1).expect("a slot");
        }
        assert_eq!(host.held(), 4, "{elevator}");
        let served = serve(&mut host, 1, SECOND);
        assert_eq!(served.len(), 5, "{elevator}");
        assert!((375 * MS..=420 * MS).contains(&served[4].0), "{elevator}: {served:?}");
        // One of them and one other, which owes for it.
        host.insert_head(&bio(Op::Write, 8000, group), SECOND).expect("a slot");
        let other = host.insert(&bio(Op::Write, 16_000, group), SECOND).expect("a slot");
        let served = serve(&mut host, SECOND, 2 * SECOND);
        assert_eq!(served[1].1, other, "{elevator}");
        assert!((SECOND + 75 * MS..=SECOND + 120 * MS).contains(&served[1].0), "{elevator}: {served:?}");
    }
}

#[test]
fn a_queue_that_has_to_run_dry_waits_for_no_limit() {
    for elevator in ELEVATORS {
        let mut host = host(elevator);
        let group = new_group(&mut host, 0);
        limit(&mut host, group, Direction::Read, 0, 1);
        send(&mut host, 9, group, 1);
        assert_eq!(host.held(), 8, "{elevator}");
        host.open_limits(2);
        assert_eq!(host.held(), 0, "{elevator}");
        assert_eq!(serve(&mut host, 2, SECOND).len(), 9, "{elevator}");
        // What they owe is owed.
        host.insert(&bio(Op::Read, 80, group), SECOND);
        assert_eq!(host.held(), 1, "{elevator}");
        assert_eq!(serve(&mut host, SECOND, 8 * SECOND).len(), 0, "{elevator}");
        assert_eq!(serve(&mut host, 8 * SECOND, 10 * SECOND).len(), 1, "{elevator}");
    }
}

#[test]
fn a_limit_goes_with_its_group_and_what_waits_goes_to_the_parent() {
    let mut host = host("deadline");
    let group = new_group(&mut host, 0);
    limit(&mut host, group, Direction::Read, 0, 1);
    send(&mut host, 3, group, 1);
    host.group_remove(group, 2);
    assert_eq!(serve(&mut host, 2, SECOND / 2).len(), 3, "the root has no limit");
    // Whoever gets a removed group's number later has no limit.
    let second = new_group(&mut host, 0);
    limit(&mut host, second, Direction::Read, 0, 1);
    host.group_remove(second, 3);
    let third = new_group(&mut host, 0);
    assert_eq!(third, second, "else this shows nothing");
    send(&mut host, 3, third, SECOND);
    assert_eq!(host.held(), 0);
    assert_eq!(host.group_limit(77, Direction::Read, Rates { bytes_per_s: 1, ios_per_s: 0 }, 3), None);
}

#[test]
fn a_group_with_many_held_requests_takes_no_more_tags_from_others() {
    let mut host = host("deadline");
    let (limited, free) = (new_group(&mut host, 0), new_group(&mut host, 0));
    limit(&mut host, limited, Direction::Read, 0, 1);
    send(&mut host, 4, limited, 1);
    assert!(!host.has_its_share(limited, 32), "3 of 32");
    host.insert(&bio(Op::Read, 8000, limited), 1);
    assert!(host.has_its_share(limited, 32), "4 of 32");
    assert!(!host.has_its_share(free, 32));
}

#[test]
fn who_has_most_of_the_tags_leaves_the_rest_to_others() {
    let mut host = host("noop");
    let greedy = new_group(&mut host, 0);
    let child = new_group(&mut host, greedy);
    let other = new_group(&mut host, 0);
    send(&mut host, 7, child, 1);
    assert!(!host.takes_too_many(child, 16), "the first half is for whoever comes first");
    send(&mut host, 5, child, 1);
    for group in [child, greedy] {
        assert!(host.takes_too_many(group, 16), "12 of 12 + 4, below {greedy}: three quarters");
    }
    assert!(!host.takes_too_many(other, 16));
    send(&mut host, 3, other, 1);
    assert!(host.takes_too_many(other, 16), "3 of 3 + 1");
    let third = new_group(&mut host, 0);
    assert!(!host.takes_too_many(third, 16), "a first one");
    assert!(!host.takes_too_many(0, 16) && !host.takes_too_many(77, 16), "the root's own");
    // What is done is not counted any more, nor what went up in another.
    assert_eq!(serve(&mut host, 1, SECOND).len(), 15);
    send(&mut host, 8, other, SECOND);
    for group in [child, greedy] {
        assert!(!host.takes_too_many(group, 16));
    }
    assert!(!host.takes_too_many(other, 16), "8 of 8 + 8");
}
