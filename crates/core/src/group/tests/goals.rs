//! Latency goals by themselves: whose claim holds.

use std::prelude::v1::*;

use crate::MS;
use crate::group::{Bill, GroupId, GroupParams, Groups};

/// The claims of forty groups that have had more than their due are put off, a few at each choice: those of a light group that has
/// not, behind them, are looked at in the third choice. By weight the heavy one goes first.
#[test]
fn claims_that_do_not_hold_hide_no_other() {
    let mut groups = Groups::new(64);
    let of = |weight, latency_ns| GroupParams { latency_ns, ..GroupParams::weight(weight) };
    let greedy: Vec<GroupId> =
        (0..40).map(|_| groups.create(GroupId::ROOT, of(100, MS)).expect("room")).collect();
    let heavy = groups.create(GroupId::ROOT, of(10_000, 0)).expect("room");
    let light = groups.create(GroupId::ROOT, of(1, 2 * MS)).expect("room");
    for group in greedy.iter().chain([&heavy, &light]) {
        groups.set_busy(*group, true);
    }
    for group in &greedy {
        groups.charge(*group, &Bill { time_ns: 100 * MS, ..Bill::NONE });
        groups.goal_arrived(*group, true, MS);
    }
    groups.goal_arrived(light, true, MS);
    let chosen: Vec<_> = (0..3).map(|_| groups.next(10 * MS)).collect();
    assert_eq!(chosen, [Some(heavy), Some(heavy), Some(light)]);
}
