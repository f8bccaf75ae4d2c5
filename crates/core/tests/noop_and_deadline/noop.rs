//! noop's schedules, bare and above the sorted dispatch list.

use fairlift_core::elevator::{self, Config, Placement};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::{Dispatch, Flags, RequestId};

use crate::bench::{Bench, DISCARD, Kind, READ, SYNC_WRITE, WRITE};

fn noop() -> Bench {
    Bench::disk("noop")
}

#[test]
fn serves_in_order_of_arrival() {
    let mut b = noop();
    b.add_all(READ, [50, 10, 90, 30]);
    assert_eq!(b.rest(), [50, 10, 90, 30]);
}

#[test]
fn kind_and_priority_do_not_matter() {
    let mut b = noop();
    b.add(WRITE, 9);
    b.add(READ.with(crate::bench::IDLE), 8);
    b.add(SYNC_WRITE, 7);
    b.add(READ.with(crate::bench::RT), 6);
    assert_eq!(b.rest(), [9, 8, 7, 6]);
}

#[test]
fn one_sector_may_be_queued_twice() {
    let mut b = noop();
    let older = b.add(READ, 10);
    let newer = b.add(READ, 10);
    assert!(b.evicted.is_empty());
    assert_eq!([b.dispatch(), b.dispatch()], [Some(older), Some(newer)]);
}

#[test]
fn neighbours_are_those_of_arrival() {
    let mut b = noop();
    let ids = [50, 10, 90].map(|sector| b.add(READ, sector));
    assert_eq!(b.former(ids[0]), None);
    assert_eq!(b.latter(ids[0]), Some(ids[1]));
    assert_eq!(b.former(ids[1]), Some(ids[0]));
    assert_eq!(b.latter(ids[1]), Some(ids[2]));
    assert_eq!(b.latter(ids[2]), None);
}

#[test]
fn what_is_dispatched_is_nobodys_neighbour() {
    let mut b = noop();
    let ids = [50, 10, 90].map(|sector| b.add(READ, sector));
    assert_eq!(b.dispatch(), Some(ids[0]));
    assert_eq!(b.former(ids[1]), None);
    assert_eq!(b.latter(ids[0]), None);
}

#[test]
fn the_absorbed_leaves_and_the_survivor_keeps_its_place() {
    let mut b = noop();
    let ids = [8, 50, 0, 90].map(|sector| b.add(READ, sector));
    // 0-7 takes over 8-15, which came first. noop does not move 0 forward.
    b.absorb(ids[2], ids[0]);
    assert_eq!(b.former(ids[1]), None);
    assert_eq!(b.rest(), [50, 0, 90]);
}

#[test]
fn growth_does_not_move_a_request() {
    let mut b = noop();
    let ids = [50, 10].map(|sector| b.add(READ, sector));
    b.grow_front(ids[0], 8);
    b.grow_back(ids[1], 8);
    assert_eq!(b.rest(), [42, 10]);
}

#[test]
fn no_front_look_up_and_no_veto() {
    let mut b = noop();
    let rq = b.add(WRITE, 16);
    assert_eq!(b.find_front(&WRITE.bio(8)), None);
    assert!(b.allow_merge(rq, &SYNC_WRITE.bio(24)));
}

#[test]
fn drains_in_order_of_arrival() {
    let mut b = noop();
    let ids = [50, 10, 90].map(|sector| b.add(READ, sector));
    assert_eq!(ids.map(|_| b.drain()), ids.map(Some));
    assert_eq!(b.drain(), None);
    assert!(b.elevator.is_empty());
}

#[test]
fn has_no_tunables() {
    let mut b = noop();
    assert!(b.elevator.tunables().is_empty());
    assert!(elevator::set(&mut *b.elevator, "fifo_batch", "1").is_err());
    assert_eq!(b.elevator.placement(), Placement::Sorted);
}

// ---- above the dispatch list ----

fn queue(name: &str) -> ElevatorQueue {
    let config = Config { requests_max: 32, contexts_max: 1, groups_max: 1, tick_ns: 0 };
    ElevatorQueue::new(32, 0, true, (elevator::find(name).expect("known").build)(&config, ""))
}

fn add(q: &mut ElevatorQueue, kind: Kind, sector: u64) -> RequestId {
    let rq = q.take(kind.at(sector, 0)).expect("a free slot");
    q.insert(rq, 0);
    rq
}

fn rest(q: &mut ElevatorQueue) -> Vec<u64> {
    let mut order = Vec::new();
    while let Dispatch::Issue(rq) = q.dispatch(0) {
        order.push(q.requests()[rq].sector);
    }
    assert!(q.is_empty());
    order
}

#[test]
fn request_by_request_the_list_has_nothing_to_sort() {
    let mut q = queue("noop");
    for sector in [50, 10, 90, 30] {
        add(&mut q, READ, sector);
    }
    assert_eq!(rest(&mut q), [50, 10, 90, 30]);
}

#[test]
fn drained_at_once_the_list_sorts_upwards_from_zero() {
    let mut q = queue("noop");
    for sector in [50, 10, 90, 30] {
        add(&mut q, READ, sector);
    }
    q.drain(0);
    assert_eq!(rest(&mut q), [10, 30, 50, 90]);
}

#[test]
fn the_sweep_starts_where_the_last_request_ended() {
    let mut q = queue("noop");
    add(&mut q, READ, 40);
    assert!(matches!(q.dispatch(0), Dispatch::Issue(_)));
    // 40 + 8 = 48 is the boundary: 48 and above first, then from the start.
    for sector in [90, 10, 48, 47, 50] {
        add(&mut q, READ, sector);
    }
    q.drain(0);
    assert_eq!(rest(&mut q), [48, 50, 90, 10, 47]);
}

#[test]
fn equal_sectors_stay_in_order() {
    let mut q = queue("noop");
    let ids = [30, 10, 10].map(|sector| add(&mut q, READ, sector));
    q.drain(0);
    assert_eq!([1, 2, 0].map(|i| Dispatch::Issue(ids[i])), [(); 3].map(|()| q.dispatch(0)));
}

#[test]
fn nothing_is_sorted_past_the_other_direction() {
    let mut q = queue("noop");
    add(&mut q, READ, 50);
    add(&mut q, READ, 10);
    add(&mut q, WRITE, 30);
    add(&mut q, WRITE, 20);
    add(&mut q, READ, 5);
    q.drain(0);
    // 10 before 50; the writes stay behind the reads and 5 behind the writes.
    assert_eq!(rest(&mut q), [10, 50, 20, 30, 5]);
}

#[test]
fn nothing_is_sorted_past_a_barrier() {
    let mut q = queue("noop");
    add(&mut q, Kind { flags: Flags::BARRIER, ..WRITE }, 60);
    for sector in [50, 10, 90] {
        add(&mut q, WRITE, sector);
    }
    q.drain(0);
    assert_eq!(rest(&mut q), [60, 10, 50, 90]);
}

#[test]
fn nothing_is_sorted_between_discards_and_writes() {
    let mut q = queue("noop");
    add(&mut q, DISCARD, 60);
    add(&mut q, WRITE, 50);
    add(&mut q, DISCARD, 10);
    add(&mut q, DISCARD, 5);
    q.drain(0);
    assert_eq!(rest(&mut q), [60, 50, 5, 10]);
}

#[test]
fn later_arrivals_are_sorted_among_what_was_drained() {
    let mut q = queue("noop");
    for sector in [30, 60, 90] {
        add(&mut q, READ, sector);
    }
    q.drain(0);
    // 30-37 goes; the boundary is 38, the list 60 90.
    assert!(matches!(q.dispatch(0), Dispatch::Issue(_)));
    add(&mut q, READ, 70);
    add(&mut q, READ, 20);
    q.drain(0);
    assert_eq!(rest(&mut q), [60, 70, 90, 20]);
}

#[test]
fn a_requeued_request_goes_next() {
    let mut q = queue("noop");
    let ids = [50, 10].map(|sector| add(&mut q, READ, sector));
    assert_eq!(q.dispatch(0), Dispatch::Issue(ids[0]));
    q.requeue(ids[0], 0);
    assert_eq!(rest(&mut q), [50, 10]);
}

#[test]
fn switching_to_deadline_and_back_loses_nothing() {
    let mut q = queue("noop");
    let config = Config { requests_max: 32, contexts_max: 1, groups_max: 1, tick_ns: 0 };
    add(&mut q, READ, 50);
    add(&mut q, READ, 10);
    q.switch((elevator::find("deadline").expect("known").build)(&config, ""), 0);
    // On the list: 10 50. Deadline appends what it drains in its own order: the oldest first, 80.
    add(&mut q, READ, 80);
    add(&mut q, READ, 5);
    q.switch((elevator::find("noop").expect("known").build)(&config, ""), 0);
    add(&mut q, READ, 1);
    assert_eq!(rest(&mut q), [10, 50, 80, 5, 1]);
}
