//! Limits of groups in the module: who is over one waits before there is a request, exactly as long as it must.

use std::collections::VecDeque;

use fairlift_core::collections::Id;
use fairlift_core::context::IoClass;
use fairlift_core::group::limit::{Direction, Rates, bytes_of};
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, ELEVATORS, Host, Setup, Slot};
use fairlift_kernel::limits::LetIn;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// A queue with its lines, as `kernel/src/lines.c` keeps them. Every bio is a request of its own; each is done at once.
struct Module {
    host: Host,
    lines: Vec<VecDeque<Arrival>>,
    /// By slot: the first sector of its request.
    sectors: Vec<u64>,
}

fn module(elevator: &'static str) -> Module {
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
    let host = Host::new(setup).expect("known");
    let lines = vec![VecDeque::new(); host.lines()];
    Module { host, lines, sectors: vec![0; 64] }
}

impl Module {
    fn ask(&mut self, bio: &Arrival, now: u64) -> Option<u32> {
        self.host.ask(bio.group, Direction::of(bio.op), bytes_of(bio.op, bio.sectors), now)
    }

    fn insert(&mut self, bio: &Arrival, now: u64) {
        let slot = self.host.insert(bio, now).expect("a slot");
        self.sectors[slot as usize] = bio.sector;
    }

    /// Someone sends a bio, which may have to wait.
    fn send(&mut self, bio: Arrival, now: u64) {
        match self.ask(&bio, now) {
            None => self.insert(&bio, now),
            Some(line) => self.lines[line as usize].push_back(bio),
        }
    }

    fn held(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    /// Whoever may go by now goes; when the next may.
    fn let_in(&mut self, now: u64) -> Option<u64> {
        loop {
            let line = match self.host.let_in(now) {
                LetIn::Go(line) => line as usize,
                LetIn::Idle(until) => return Some(until),
                LetIn::Nobody => return None,
            };
            let first = self.lines[line].pop_front().expect("somebody stands there");
            self.insert(&first, now);
            self.ask_for_first(line, now);
        }
    }

    fn ask_for_first(&mut self, line: usize, now: u64) {
        while let Some(first) = self.lines[line].front().copied() {
            if self.ask(&first, now).is_some() {
                return;
            }
            self.lines[line].pop_front();
            self.insert(&first, now);
        }
    }

    /// A group goes: all but the first of its lines wait in its parent's.
    fn remove(&mut self, group: u32, parent: u32, now: u64) {
        for direction in 0..2 {
            let (from, to) = ((2 * group + direction) as usize, (2 * parent + direction) as usize);
            let first = self.lines[from].len().min(1);
            let rest: Vec<Arrival> = self.lines[from].drain(first..).collect();
            let is_new = self.lines[to].is_empty();
            self.lines[to].extend(rest.into_iter().map(|bio| Arrival { group: parent, ..bio }));
            if is_new {
                self.ask_for_first(to, now);
            }
        }
        self.host.group_remove(group, now);
    }

    /// Everything that is dispatched up to `until`, as (when, first sector); each is done at once.
    fn serve(&mut self, mut now: u64, until: u64) -> Vec<(u64, u64)> {
        let mut served = Vec::new();
        while now <= until {
            let lets_in = self.let_in(now);
            let again = match self.host.dispatch(now) {
                Dispatch::Issue(rq) => {
                    let slot = rq.index() as Slot;
                    self.host.complete(slot, now);
                    served.push((now, self.sectors[slot as usize]));
                    continue;
                }
                Dispatch::Idle { until } => Some(until),
                Dispatch::Empty | Dispatch::Busy => None,
            };
            now = match (again, lets_in) {
                (Some(a), Some(b)) => a.min(b).max(now + 1),
                (Some(a), None) | (None, Some(a)) => a.max(now + 1),
                (None, None) => break,
            };
        }
        served
    }
}

fn bio(op: Op, sector: u64, group: u32) -> Arrival {
    let flags = if op == Op::Read { Flags::SYNC } else { Flags::NONE };
    Arrival { op, flags, sector, sectors: 8, context: 0, group, own: false, ioprio: IoPrio::DEFAULT }
}

fn new_group(module: &mut Module, parent: u32) -> u32 {
    module.host.group_new(parent, 100, IoClass::BestEffort).expect("room")
}

fn limit(module: &mut Module, group: u32, direction: Direction, bytes_per_s: u64, ios_per_s: u64) {
    assert_eq!(module.host.group_limit(group, direction, Rates { bytes_per_s, ios_per_s }, 0), Some(group));
}

/// So many reads of a group.
fn send(module: &mut Module, reads: u64, group: u32, now: u64) {
    (0..reads).for_each(|i| module.send(bio(Op::Read, i * 800, group), now));
}

#[test]
fn a_limited_group_goes_at_its_rate_and_others_at_once() {
    for elevator in ELEVATORS {
        let mut module = module(elevator);
        let (limited, free) = (new_group(&mut module, 0), new_group(&mut module, 0));
        limit(&mut module, limited, Direction::Read, 0, 10);
        send(&mut module, 5, limited, 1);
        module.send(bio(Op::Read, 80_000, free), 1);
        module.send(bio(Op::Write, 90_000, limited), 1);
        assert_eq!((module.held(), module.host.queued()), (4, 3), "{elevator}");
        let served = module.serve(1, SECOND);
        let when = |sector: u64| served.iter().find(|(_, served)| *served == sector).expect("served").0;
        assert!(when(80_000) < 50 * MS && when(90_000) < 50 * MS, "{elevator}: {served:?}");
        // The first one goes, 100 ms before the second; the elevator may wait a little for somebody better.
        for i in 0..5 {
            let due = (i * 100u64).saturating_sub(20) * MS;
            assert!((due..due + 40 * MS).contains(&when(i * 800)), "{elevator}: request {i}: {served:?}");
        }
        assert_eq!((module.held(), module.host.queued(), module.host.taken()), (0, 0, 0), "{elevator}");
    }
}

/// 1,000 wait of a queue of 64 slots, for ten seconds: they have none of these, and the limit is kept to 1 %.
#[test]
fn who_waits_has_no_slot_and_the_limit_holds() {
    let mut module = module("deadline");
    let (limited, free) = (new_group(&mut module, 0), new_group(&mut module, 0));
    limit(&mut module, limited, Direction::Read, 0, 50);
    send(&mut module, 1_000, limited, 1);
    assert_eq!((module.held(), module.host.taken()), (999, 1));
    send(&mut module, 63, free, 1);
    let served = module.serve(1, 10 * SECOND);
    assert!((63 + 495..=63 + 505).contains(&served.len()), "{}", served.len());
}

#[test]
fn a_parents_limit_holds_for_all_below_it() {
    let mut module = module("deadline");
    let parent = new_group(&mut module, 0);
    let children = [new_group(&mut module, parent), new_group(&mut module, parent)];
    limit(&mut module, parent, Direction::Write, 40 * 4096, 0);
    (0..20).for_each(|i| module.send(bio(Op::Write, i * 800, children[i as usize % 2]), 1));
    let served = module.serve(1, SECOND);
    assert_eq!(served.len(), 20);
    let (end, sector) = *served.last().expect("some");
    assert_eq!(sector, 19 * 800, "each child in its turn");
    // 19 of 40 a second are paid for before the last one goes, less the burst of 20 ms.
    assert!((455 * MS..=476 * MS).contains(&end), "{end}");
    assert!(module.host.is_limited(children[0], Direction::Write));
    assert!(!module.host.is_limited(children[0], Direction::Read));
}

/// Metadata, and what a journal's thread sends.
#[test]
fn what_nobody_may_hold_up_is_owed() {
    let mut module = module("noop");
    let group = new_group(&mut module, 0);
    limit(&mut module, group, Direction::Write, 0, 10);
    for sector in [800, 8000] {
        module.insert(&bio(Op::Write, sector, group), 1);
        module.host.charge(group, Direction::Write, 4096, true, 1);
    }
    module.send(bio(Op::Write, 16_000, group), 1);
    assert_eq!(module.held(), 1);
    let served = module.serve(1, SECOND);
    assert_eq!(served[2].1, 16_000);
    assert!((175 * MS..=201 * MS).contains(&served[2].0), "{served:?}");
}

/// Who writes with a flush asks for a sector before he has a tag; what is left of 8 KiB is charged when it comes.
#[test]
fn a_sender_is_charged_for_a_sector_and_then_for_the_rest() {
    let mut module = module("deadline");
    let group = new_group(&mut module, 0);
    limit(&mut module, group, Direction::Write, 8192, 2);
    assert_eq!(module.host.ask(group, Direction::Write, 512, 1), None);
    module.host.charge(group, Direction::Write, 8192 - 512, false, 1);
    module.send(bio(Op::Write, 800, group), 1);
    let served = module.serve(1, 2 * SECOND);
    // A second's worth of bytes and half a second's of bios, less the burst.
    assert!((975 * MS..=1001 * MS).contains(&served[0].0), "{served:?}");
}

/// Two writes of 10 a second, each with a flush behind it that carries nothing: the flush waits, and costs nothing.
#[test]
fn a_flush_without_data_is_not_charged() {
    let mut module = module("deadline");
    let group = new_group(&mut module, 0);
    limit(&mut module, group, Direction::Write, 0, 10);
    module.send(bio(Op::Write, 800, group), 1);
    let line = module.host.ask(group, Direction::Write, 512, 1).expect("it waits");
    assert_eq!(module.host.let_in(101 * MS), LetIn::Go(line));
    module.host.refund(group, Direction::Write, 512, 101 * MS);
    module.send(bio(Op::Write, 1600, group), 101 * MS);
    assert_eq!(module.held(), 0, "as if there had been no flush");
}

#[test]
fn a_limit_goes_with_its_group_and_what_waits_goes_to_the_parent() {
    let mut module = module("deadline");
    let parent = new_group(&mut module, 0);
    let group = new_group(&mut module, parent);
    limit(&mut module, group, Direction::Read, 0, 1);
    send(&mut module, 9, group, 1);
    assert_eq!(module.held(), 8);
    module.remove(group, parent, 2);
    assert_eq!(module.serve(2, SECOND / 2).len(), 9, "the parent has no limit");
    // Whoever gets a removed group's number later has no limit, and the first of a line keeps it until he is gone.
    let second = new_group(&mut module, parent);
    assert_eq!(second, group, "else this shows nothing");
    limit(&mut module, parent, Direction::Read, 0, 1);
    send(&mut module, 4, second, SECOND);
    module.remove(second, parent, SECOND);
    assert_eq!((module.held(), module.lines[2 * second as usize].len()), (3, 1));
    assert_ne!(new_group(&mut module, parent), second, "somebody waits there");
    assert_eq!(module.serve(SECOND, 6 * SECOND).len(), 4);
    assert_eq!(new_group(&mut module, parent), second, "free again");
    assert_eq!(module.host.group_limit(77, Direction::Read, Rates { bytes_per_s: 1, ios_per_s: 0 }, 3), None);
}

/// The timer is never asked for the past or for a time that it cannot count.
#[test]
fn a_debt_of_centuries_is_looked_at_every_hour() {
    let mut module = module("noop");
    let group = new_group(&mut module, 0);
    limit(&mut module, group, Direction::Write, 1, 0);
    for _ in 0..1_000 {
        module.host.charge(group, Direction::Write, u64::from(u32::MAX) * 512, true, 1);
    }
    module.send(bio(Op::Write, 800, group), 1);
    let until = module.let_in(SECOND).expect("somebody waits");
    assert!(until > SECOND && until <= SECOND + 3600 * SECOND, "{until}");
}

#[test]
fn who_has_most_of_the_tags_leaves_the_rest_to_others() {
    let mut module = module("noop");
    let greedy = new_group(&mut module, 0);
    let child = new_group(&mut module, greedy);
    let other = new_group(&mut module, 0);
    send(&mut module, 7, child, 1);
    assert!(!module.host.takes_too_many(child, 16), "the first half is for whoever comes first");
    send(&mut module, 5, child, 1);
    for group in [child, greedy] {
        assert!(module.host.takes_too_many(group, 16), "12 of 12 + 4, below {greedy}: three quarters");
    }
    assert!(!module.host.takes_too_many(other, 16));
    send(&mut module, 3, other, 1);
    assert!(module.host.takes_too_many(other, 16), "3 of 3 + 1");
    let third = new_group(&mut module, 0);
    assert!(!module.host.takes_too_many(third, 16), "a first one");
    assert!(!module.host.takes_too_many(0, 16) && !module.host.takes_too_many(77, 16), "the root's own");
    // What is done is not counted any more, nor what went up in another.
    assert_eq!(module.serve(1, SECOND).len(), 15);
    send(&mut module, 8, other, SECOND);
    for group in [child, greedy] {
        assert!(!module.host.takes_too_many(group, 16));
    }
    assert!(!module.host.takes_too_many(other, 16), "8 of 8 + 8");
}
