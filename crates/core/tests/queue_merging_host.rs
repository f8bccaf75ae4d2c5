//! A host that merges by itself and takes requests back (the kernel module), under every elevator: what it says happened is
//! what the queue goes by.

use fairlift_core::context::IoPrio;
use fairlift_core::elevator::{self, Config, Growth};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::request::{RequestState, request};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, MS, Op, RequestId};

const ELEVATORS: [&str; 4] = ["noop", "deadline", "anticipatory", "cfq"];
const SYNC: Flags = Flags::SYNC;

fn queue(name: &str) -> ElevatorQueue {
    let config = Config::for_queue(16, 4, 2, 0);
    let built = (elevator::find(name).expect("known").build)(&config, "");
    ElevatorQueue::new(config.requests_max, 4, true, built).with_groups(2)
}

fn add(q: &mut ElevatorQueue, (sector, sectors): (u64, u32), group: GroupId, now: u64) -> RequestId {
    let mut new = request(Op::Read, SYNC, sector, sectors, ContextId::OVERFLOW, now);
    new.group = group;
    let rq = q.take(new).expect("room");
    q.insert(rq, now);
    rq
}

fn bio(sector: u64, sectors: u32) -> Bio {
    let (context, ioprio) = (ContextId::OVERFLOW, None);
    Bio { cookie: 0, op: Op::Read, flags: SYNC, sector, sectors, segments: 1, context, ioprio, group: None }
}

/// The next request, however long the elevator wants to wait for a better one.
fn next(q: &mut ElevatorQueue, now: &mut u64) -> RequestId {
    for _ in 0..10 {
        match q.dispatch(*now) {
            Dispatch::Issue(rq) => return rq,
            Dispatch::Idle { until } => *now = until,
            Dispatch::Empty | Dispatch::Busy => *now += 10 * MS,
        }
    }
    panic!("nothing comes although {} are queued", q.queued());
}

fn finish(q: &mut ElevatorQueue, rq: RequestId, now: u64) {
    q.complete(rq, now);
    q.release(rq);
}

#[test]
fn a_request_that_grew_is_found_where_it_now_starts() {
    for name in ELEVATORS {
        let mut q = queue(name);
        let rq = add(&mut q, (1000, 8), GroupId::ROOT, 0);
        q.grow(rq, Growth::Front, (992, 16), IoPrio::RealTime(1), 1);
        let grown = &q.requests()[rq];
        assert_eq!((grown.sector, grown.sectors, grown.ioprio), (992, 16, IoPrio::RealTime(1)), "{name}");
        // Who looks for front merges of reads (noop does not; anticipatory, as Linux's, looks among the writes) finds it where
        // it starts now; nobody does where it started.
        let looks = matches!(name, "deadline" | "cfq");
        assert_eq!(q.find_front(&bio(984, 8), 2), looks.then_some(rq), "{name}");
        assert_eq!(q.find_front(&bio(992, 8), 2), None, "{name}: it no longer starts at 1000");
        q.grow(rq, Growth::Back, (992, 24), IoPrio::DEFAULT, 3);
        assert_eq!(q.requests()[rq].ioprio, IoPrio::RealTime(1), "{name}: the best of what it is made of");
        let mut now = 4;
        assert_eq!(next(&mut q, &mut now), rq, "{name}");
        // Past the elevator it may still be told of; nothing but the extent changes.
        q.grow(rq, Growth::Back, (992, 32), IoPrio::DEFAULT, now);
        assert_eq!(q.requests()[rq].sectors, 32, "{name}");
        finish(&mut q, rq, now);
    }
}

#[test]
fn a_request_merged_into_its_neighbour_is_gone_and_leaves_its_age_and_priority() {
    for name in ELEVATORS {
        let mut q = queue(name);
        let high = add(&mut q, (1008, 8), GroupId::ROOT, 5);
        let low = add(&mut q, (1000, 8), GroupId::ROOT, 9);
        q.grow(high, Growth::Back, (1008, 8), IoPrio::RealTime(0), 9);
        q.absorb(low, high, 16, 10);
        let merged = &q.requests()[low];
        assert_eq!((merged.sectors, merged.start_ns, merged.ioprio), (16, 5, IoPrio::RealTime(0)), "{name}");
        assert_eq!(q.requests()[high].state, RequestState::Held, "{name}");
        assert_eq!(q.queued(), 1, "{name}");
        q.release(high);
        let mut now = 11;
        assert_eq!(next(&mut q, &mut now), low, "{name}");
        finish(&mut q, low, now);
        assert!(q.is_empty() && q.requests().taken() == 0, "{name}");
    }
}

#[test]
fn what_the_device_gave_back_goes_before_everything_else() {
    for name in ELEVATORS {
        let mut q = queue(name);
        let mut now = 1;
        let first = add(&mut q, (5000, 8), GroupId::ROOT, 0);
        assert_eq!(next(&mut q, &mut now), first, "{name}");
        q.take_back(first, now);
        assert_eq!((q.in_flight(), q.queued()), ([0, 0], 0), "{name}: it is in the host's hands");
        let other = add(&mut q, (10, 8), GroupId::ROOT, now);
        q.insert_again(first, now);
        assert_eq!(q.queued(), 2, "{name}");
        assert_eq!(next(&mut q, &mut now), first, "{name}");
        finish(&mut q, first, now);
        assert_eq!(next(&mut q, &mut now), other, "{name}");
        finish(&mut q, other, now);
        assert_eq!((q.in_flight(), q.queued()), ([0, 0], 0), "{name}");
    }
}

#[test]
fn what_the_host_sends_again_by_itself_counts_as_in_the_device() {
    for name in ELEVATORS {
        let mut q = queue(name);
        let mut now = 1;
        let rq = add(&mut q, (5000, 8), GroupId::ROOT, 0);
        assert_eq!(next(&mut q, &mut now), rq, "{name}");
        q.take_back(rq, now);
        q.issue_again(rq, now);
        assert_eq!((q.in_flight(), q.queued()), ([0, 1], 0), "{name}");
        finish(&mut q, rq, now);
        assert_eq!((q.in_flight(), q.queued()), ([0, 0], 0), "{name}");
    }
}

#[test]
fn a_group_is_counted_for_all_of_it_and_can_be_removed() {
    for name in ELEVATORS {
        let mut q = queue(name);
        let group = q.groups_mut().create(GroupId::ROOT, GroupParams::default()).expect("room");
        let mut now = 1;
        let first = add(&mut q, (5000, 8), group, 0);
        assert_eq!(next(&mut q, &mut now), first, "{name}");
        q.take_back(first, now);
        assert_eq!((q.groups().queued(group), q.groups().in_flight(group)), (0, 0), "{name}");
        q.issue_again(first, now);
        assert_eq!(q.groups().in_flight(group), 1, "{name}");
        finish(&mut q, first, now);
        let low = add(&mut q, (1000, 8), group, now);
        let high = add(&mut q, (1008, 8), group, now);
        q.absorb(low, high, 16, now);
        q.release(high);
        assert_eq!(q.groups().queued(group), 1, "{name}");
        q.remove_group(group).expect("there");
        assert_eq!(next(&mut q, &mut now), low, "{name}: still served");
        finish(&mut q, low, now);
        // Its turn ends when somebody else's begins.
        now += 1000 * MS;
        let last = add(&mut q, (10, 8), GroupId::ROOT, now);
        assert_eq!(next(&mut q, &mut now), last, "{name}");
        finish(&mut q, last, now);
        // A table for two has as many in reserve.
        let again = (0..5).filter(|_| q.groups_mut().create(GroupId::ROOT, GroupParams::default()).is_ok());
        assert_eq!(again.count(), 4, "{name}: its slot is free again");
    }
}

/// A heavy group is done and may come back. It is worth waiting for while a slot is left; once a light one has the last, it could not
/// come, and the device serves that.
#[test]
fn the_device_idles_for_no_group_that_finds_no_slot() {
    for (name, left) in
        ["noop", "deadline", "anticipatory", "cfq", "fair"].into_iter().flat_map(|e| [(e, 1), (e, 0)])
    {
        let mut q = queue(name);
        q.set_request_slots(3, 3);
        let [heavy, light] = [1000, 1].map(|weight| {
            let group = q.groups_mut().create(GroupId::ROOT, GroupParams::weight(weight)).expect("room");
            (group, q.contexts_mut().create_in(group, IoPrio::DEFAULT))
        });
        let add = |q: &mut ElevatorQueue, (group, context), sector, now| {
            let mut new = request(Op::Read, SYNC, sector, 8, context, now);
            new.group = group;
            let rq = q.take(new).expect("room");
            q.insert(rq, now);
        };
        // The light one has had more than its due.
        let mut now = MS;
        for (who, sector) in [(light, 9_000_000), (heavy, 1000)] {
            add(&mut q, who, sector, now);
            let rq = next(&mut q, &mut now);
            if who == heavy {
                (0..2 - left).for_each(|at| add(&mut q, light, 9_100_000 + 1000 * at, now));
            }
            now += MS;
            finish(&mut q, rq, now);
        }
        add(&mut q, light, 9_200_000, now);
        let answer = q.dispatch(now);
        assert_eq!(matches!(answer, Dispatch::Idle { .. }), left > 0, "{name}, {left} left: {answer:?}");
    }
}
