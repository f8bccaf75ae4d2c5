//! The round by itself.

use std::vec::Vec;

use super::super::flow::FlowId;
use super::super::round::{Place, Round, RoundLinks};
use crate::collections::{Id, Table, TreeLinks};
use crate::context::IoPrio;

struct Rig {
    round: Round,
    links: RoundLinks,
    places: Table<Place>,
}

fn flow(index: usize) -> FlowId {
    FlowId::from_index(index)
}

impl Rig {
    fn of(priorities: &[IoPrio]) -> Rig {
        let places = Table::new(Place::NEW, priorities.len());
        Rig::with(places, priorities)
    }

    fn with(places: Table<Place>, priorities: &[IoPrio]) -> Rig {
        let mut rig = Rig { round: Round::NEW, links: TreeLinks::new(places.len()), places };
        for (index, ioprio) in priorities.iter().enumerate() {
            rig.join(index, *ioprio);
        }
        rig
    }

    fn join(&mut self, index: usize, ioprio: IoPrio) {
        self.round.join(&mut self.links, (flow(index), &mut self.places[index]), ioprio, 0);
    }

    fn leave(&mut self, index: usize) {
        self.round.leave(&mut self.links, (flow(index), &mut self.places[index]));
    }

    fn charge(&mut self, index: usize, cost_ns: u64) {
        self.round.charge(&mut self.links, (flow(index), &mut self.places[index]), cost_ns, 0);
    }

    fn bound_debt(&mut self, index: usize, lag_ns: u64) {
        self.round.bound_debt(&mut self.links, (flow(index), &mut self.places[index]), lag_ns);
    }

    fn first(&mut self) -> usize {
        self.round.first(&mut self.links, &mut self.places).expect("somebody is there").index()
    }

    /// Serve whoever is first until `served` in all, `cost_ns(flow)` at a time; what each got.
    fn serve(&mut self, whole_ns: u64, cost_ns: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut got = std::vec![0; self.places.len()];
        while got.iter().sum::<u64>() < whole_ns {
            let at = self.first();
            got[at] += cost_ns(at);
            self.charge(at, cost_ns(at));
        }
        got
    }
}

/// Levels 0 to 7 weigh 9 to 2. Nobody is ever further from its part than the largest single cost, whatever requests cost.
#[test]
fn everybody_gets_a_part_by_level_whatever_requests_cost() {
    let mut rig = Rig::of(&[0, 2, 4, 7].map(IoPrio::BestEffort));
    let cost_ns = |at: usize| [10_000, 300_000, 7_000, 50_000][at];
    let whole_ns = 2_000_000_000;
    let got = rig.serve(whole_ns, cost_ns);
    let weights = [9, 7, 5, 2];
    for (at, got_ns) in got.iter().enumerate() {
        let due_ns = whole_ns * weights[at] / weights.iter().sum::<u64>();
        assert!(got_ns.abs_diff(due_ns) <= 2 * 300_000, "{at}: {got_ns} of {due_ns}");
    }
}

#[test]
fn classes_are_strict() {
    let mut rig = Rig::of(&[IoPrio::Idle, IoPrio::BestEffort(7), IoPrio::RealTime(7)]);
    assert_eq!(rig.serve(1_000_000, |_| 1000), [0, 0, 1_000_000]);
    rig.leave(2);
    assert_eq!(rig.serve(1_000_000, |_| 1000), [0, 1_000_000, 0]);
    rig.leave(1);
    assert_eq!(rig.first(), 0);
}

/// A flow of single requests beside sixteen that take 60 ms at a time waits three of their turns at most, not sixteen: two until
/// it has no more than its due, 6 of 102 ms, and one that has begun by then.
#[test]
fn a_flow_of_single_requests_goes_between_long_turns() {
    let mut places = Table::new(Place::NEW, 17);
    for (at, place) in places.iter_mut().enumerate() {
        place.quantum_ns = if at == 0 { 6_000_000 } else { 60_000_000 };
    }
    let mut rig = Rig::with(places, &[IoPrio::DEFAULT; 17]);
    let (mut since_ns, mut longest_ns) = (0, 0);
    for _ in 0..2000 {
        let at = rig.first();
        let cost_ns = if at == 0 { 6_000_000 } else { 60_000_000 };
        since_ns = if at == 0 { 0 } else { since_ns + cost_ns };
        longest_ns = longest_ns.max(since_ns);
        rig.charge(at, cost_ns);
    }
    assert!(longest_ns <= 180_000_000, "{longest_ns}");
}

#[test]
fn who_sleeps_gains_no_credit_and_loses_no_debt() {
    let mut rig = Rig::of(&[IoPrio::DEFAULT; 2]);
    rig.leave(1);
    rig.serve(1_000_000, |_| 1000);
    rig.join(1, IoPrio::DEFAULT);
    let got = rig.serve(100_000, |_| 1000);
    assert!(got[0].abs_diff(got[1]) <= 1000, "{got:?}: the time it was away is nobody's credit");
    rig.charge(1, 500_000);
    rig.leave(1);
    rig.join(1, IoPrio::DEFAULT);
    assert_eq!(rig.serve(400_000, |_| 1000), [400_000, 0]);
}

/// An estimate that was too high is given back.
#[test]
fn a_charge_is_put_right() {
    let mut rig = Rig::of(&[IoPrio::DEFAULT; 2]);
    rig.charge(0, 1_000_000);
    rig.round.charge(&mut rig.links, (flow(0), &mut rig.places[0]), 1000, 1_000_000);
    assert_eq!(rig.places[0].start, 1000);
    assert_eq!(rig.places[0].served_since(0), 1000);
}

/// While a writer has to wait for the drive, a reader goes on, ten seconds long. It owes next to nothing of that afterwards, and who comes
/// then does not stand behind what the writer did not get.
#[test]
fn what_nobody_else_could_have_is_no_debt() {
    let mut rig = Rig::of(&[IoPrio::DEFAULT; 3]);
    rig.leave(2);
    for _ in 0..1000 {
        rig.bound_debt(1, 20_000_000);
        rig.charge(1, 10_000_000);
    }
    rig.join(2, IoPrio::DEFAULT);
    let got = rig.serve(3_000_000_000, |_| 10_000_000);
    for each in got {
        assert!((940_000_000..=1_060_000_000).contains(&each), "{each}");
    }
}

/// Who takes longer at a time than when its deadline was set has a later one: the short one goes first.
#[test]
fn a_deadline_follows_what_a_flow_takes_at_a_time() {
    let mut rig = Rig::of(&[IoPrio::DEFAULT; 3]);
    for index in 0..3 {
        rig.places[index].quantum_ns = [10, 5, 1][index];
        let quantum_ns = rig.places[index].quantum_ns;
        rig.round.takes(&mut rig.links, (flow(index), &mut rig.places[index]), quantum_ns);
    }
    assert_eq!(rig.first(), 2);
    rig.round.takes(&mut rig.links, (flow(2), &mut rig.places[2]), 100);
    assert_eq!(rig.first(), 1);
    rig.leave(1);
    assert_eq!(rig.first(), 0);
}
