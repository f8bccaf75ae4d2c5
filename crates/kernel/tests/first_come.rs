//! A queue that gives up its elevator loses nothing, serves oldest first, and holds nobody for a limit.

use std::collections::BTreeSet;

use fairlift_core::collections::Id;
use fairlift_core::context::IoClass;
use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, ELEVATORS, Host, Setup, Slot};
use fairlift_kernel::limits::LetIn;
use proptest::prelude::*;

const REQUESTS: u32 = 32;

fn host(elevator: &'static str) -> Host {
    let setup = Setup {
        elevator,
        profile: "",
        requests_max: REQUESTS,
        contexts_max: 4,
        groups_max: 4,
        records_max: 0,
        rotational: true,
    };
    Host::new(setup).expect("there is such an elevator")
}

fn arrival(sector: u64, context: u32, group: u32) -> Arrival {
    let flags = if sector.is_multiple_of(3) { Flags::NONE } else { Flags::SYNC };
    let op = if sector.is_multiple_of(2) { Op::Read } else { Op::Write };
    Arrival { op, flags, sector, sectors: 8, context, group, own: true, ioprio: IoPrio::DEFAULT }
}

fn issued(answer: Dispatch) -> Option<Slot> {
    match answer {
        Dispatch::Issue(rq) => Some(rq.index() as Slot),
        _ => None,
    }
}

/// What became of a host's requests, as the module would see it.
#[derive(Default)]
struct Seen {
    queued: BTreeSet<Slot>,
    in_device: Vec<Slot>,
    taken_back: Vec<Slot>,
}

impl Seen {
    fn step(&mut self, host: &mut Host, what: u8, sector: u64, now: u64) {
        match what {
            0..4 => {
                let arrival = arrival(sector, u32::from(what), u32::from(what) % 3);
                let slot =
                    if what == 3 { host.insert_head(&arrival, now) } else { host.insert(&arrival, now) };
                let all = self.queued.len() + self.in_device.len() + self.taken_back.len();
                assert_eq!(slot.is_some(), all < REQUESTS as usize, "a slot, if there is one");
                assert!(slot.is_none_or(|slot| self.queued.insert(slot)));
            }
            4..7 => {
                if let Some(slot) = issued(host.dispatch(now)) {
                    assert!(self.queued.remove(&slot), "{slot} is given away, and was not queued");
                    self.in_device.push(slot);
                }
            }
            7..9 => self.in_device.pop().into_iter().for_each(|slot| host.complete(slot, now)),
            9 => {
                if let Some(slot) = self.in_device.pop() {
                    host.take_back(slot, now);
                    self.taken_back.push(slot);
                }
            }
            _ => {
                if let Some(slot) = self.taken_back.pop() {
                    host.insert_again(slot);
                    self.queued.insert(slot);
                }
            }
        }
    }
}

proptest! {
    /// Whatever happened before and happens after, every request goes to the device once and its slot is free again.
    #[test]
    fn nothing_is_lost(
        elevator in prop::sample::select(ELEVATORS),
        before in prop::collection::vec((0u8..11, 0u64..1000), 0..200),
        after in prop::collection::vec((0u8..11, 0u64..1000), 0..200),
    ) {
        let mut host = host(elevator);
        host.group_new(0, 100, IoClass::BestEffort);
        host.context_new(0, IoPrio::DEFAULT);
        let (mut seen, mut now) = (Seen::default(), 0);
        for (what, sector) in before {
            now += 100_000;
            seen.step(&mut host, what, sector, now);
        }
        host.give_up();
        prop_assert!(host.has_given_up());
        prop_assert_eq!(host.queued(), seen.queued.len());
        for (what, sector) in after {
            now += 100_000;
            seen.step(&mut host, what, sector, now);
        }
        seen.taken_back.drain(..).for_each(|slot| host.complete(slot, now));
        seen.in_device.drain(..).for_each(|slot| host.complete(slot, now));
        while !seen.queued.is_empty() {
            let slot = issued(host.dispatch(now)).expect("who waits is served");
            prop_assert!(seen.queued.remove(&slot));
            host.complete(slot, now);
        }
        prop_assert_eq!((host.dispatch(now), host.taken(), host.in_flight()), (Dispatch::Empty, 0, [0; 2]));
    }
}

#[test]
fn the_oldest_goes_first_whatever_its_sector() {
    let mut host = host("deadline");
    let slots: Vec<_> = [900, 10, 500]
        .iter()
        .zip(1..)
        .map(|(sector, now)| host.insert(&arrival(*sector, 0, 0), now))
        .collect();
    host.give_up();
    let served: Vec<_> = (0..3).map(|_| issued(host.dispatch(10))).collect();
    assert_eq!(served, slots);
}

#[test]
fn who_waits_for_a_limit_goes() {
    let mut host = host("noop");
    let group = host.group_new(0, 100, IoClass::BestEffort).expect("there is room");
    let one_a_second = Rates { bytes_per_s: 0, ios_per_s: 1 };
    host.group_limit(group, Direction::Read, one_a_second, 0);
    assert_eq!(host.ask(group, Direction::Read, 4096, 1), None, "the first goes");
    let line = host.ask(group, Direction::Read, 4096, 2).expect("the second waits");
    assert!(matches!(host.let_in(3), LetIn::Idle(_)));

    host.give_up();
    assert_eq!(host.let_in(4), LetIn::Go(line));
    assert_eq!(host.ask(group, Direction::Read, 4096, 5), None, "there is no limit any more");
    assert_eq!(host.let_in(6), LetIn::Nobody);
    assert!(!host.limits_are_used() && !host.is_limited(group, Direction::Read));
}
