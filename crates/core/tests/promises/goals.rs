//! Reserves and latency goals: what they give, and that no tenant takes more with them than its due.

use fairlift_core::group::GroupParams;
use fairlift_core::{GroupId, MS};

use crate::programs::{Every, Load, Run, readers_in};
use crate::promise::{Promise, RUN_NS, Report, Victim};
use crate::rig::{Machine, POLICIES, Setup};

/// The attacker's weight in [`Promise::NEW`].
const LIGHT: u32 = 1;

#[test]
fn a_goal_of_1_ms_gives_one_who_floods_no_more_than_its_due() {
    Promise::NEW.holds_against_each(&[
        ("floods", &|machine, group, _| {
            machine.set_goal(group, LIGHT, MS);
            machine.tenant(group, Run::new(Load::DEEP));
        }),
        ("sync writes", &|machine, group, _| {
            machine.set_goal(group, LIGHT, MS);
            machine.tenant(group, Run::new(Load { tasks: 8, ..Load::SYNC_WRITES }));
        }),
    ]);
}

#[test]
fn a_goal_gives_one_who_thinks_no_more_than_its_due() {
    let think = |think_ns: u64| {
        move |machine: &mut Machine, group: GroupId, _| {
            machine.set_goal(group, LIGHT, MS);
            machine.tenant(group, Run::new(Load { think_ns, ..Load::SERIAL }));
        }
    };
    let quick = Promise { depths: &[1], victims: &[Victim::Deep], ..Promise::NEW };
    quick.holds_against_each(&[
        ("thinks 1 ms", &think(MS)),
        ("thinks 7 ms", &think(7 * MS)),
        ("thinks 20 ms", &think(20 * MS)),
        ("every 5 ms", &|machine, group, _| {
            machine.set_goal(group, LIGHT, MS);
            machine.tenant(group, Every::new(5 * MS, Load::SERIAL));
        }),
    ]);
}

#[test]
fn many_groups_with_goals_get_no_more_than_their_parents_due() {
    Promise::NEW.holds_against(|machine, group, _| {
        let goal = GroupParams { latency_ns: MS, ..GroupParams::weight(10_000) };
        let groups = (0..40).map(|_| machine.group_with(group, goal)).collect();
        machine.tenant(group, readers_in(groups, 1));
    });
}

/// The claims of many that have had their due do not hide the one of a group that has not.
#[test]
fn a_goal_is_kept_beside_many_that_cannot_be() {
    const GOAL_NS: u64 = 20 * MS;
    let mut report = Report::new("");
    for policy in POLICIES {
        let mut machine = Machine::new(&Setup::new(policy, "time", 1));
        let crowd = machine.group(GroupId::ROOT, 100);
        let goal = |latency_ns| GroupParams { latency_ns, ..GroupParams::weight(100) };
        let groups = (0..40).map(|_| machine.group_with(crowd, goal(MS))).collect();
        machine.tenant(crowd, readers_in(groups, 1));
        let light = machine.group_with(GroupId::ROOT, goal(GOAL_NS));
        let light = machine.tenant(light, Every::new(50 * MS, Load::SERIAL));
        machine.run(RUN_NS);
        let longest_ns = machine.got(light).wait_max_ns;
        report.row(longest_ns > GOAL_NS, || {
            format!("{} {}: {} ms", policy.elevator, policy.profile, longest_ns / MS)
        });
    }
    report.check();
}

/// Reserve and weight of each group, and its due. The reserves come to all that may be reserved in the last.
const RESERVES: &[&[(u32, u32, f64)]] = &[
    &[(40, 100, 0.55), (0, 100, 0.15), (0, 200, 0.30)],
    &[(50, 1, 0.5005), (0, 1000, 0.4995)],
    // 70 % are left for 1501.
    &[(20, 1000, 0.6664), (10, 500, 0.3332), (0, 1, 0.0005)],
    &[(60, 1, 0.60), (35, 1, 0.35), (0, 10_000, 0.05)],
];

#[test]
fn each_gets_its_reserve_and_its_part_of_the_rest() {
    let mut report = Report::new("");
    for setup in POLICIES.iter().flat_map(|policy| [1, 32].map(|depth| Setup::new(*policy, "time", depth))) {
        for load in [Load::SERIAL, Load::DEEP] {
            for groups in RESERVES {
                let mut machine = Machine::new(&setup);
                let tenants: Vec<_> = groups
                    .iter()
                    .map(|(reserve, weight, due)| {
                        let params = GroupParams { reserve: *reserve, ..GroupParams::weight(*weight) };
                        let group = machine.group_with(GroupId::ROOT, params);
                        (machine.tenant(group, Run::new(load)), *due)
                    })
                    .collect();
                machine.run(RUN_NS);
                let parts: Vec<_> = tenants
                    .iter()
                    .map(|(tenant, due)| (machine.got(*tenant).time_ns as f64 / RUN_NS as f64, *due))
                    .collect();
                // No tenant is further from its due than a turn.
                report.row(parts.iter().any(|(got, due)| (got - due).abs() > 0.0115), || {
                    let Setup { policy, depth, .. } = setup;
                    format!("{} {} {depth} of {}: {parts:.4?}", policy.elevator, policy.profile, load.depth)
                });
            }
        }
    }
    report.check();
}
