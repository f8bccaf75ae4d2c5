//! What honest tenants are promised; with these the rig itself is checked too.

use fairlift_core::{GroupId, MS};

use crate::programs::{Load, Run, Ticker, readers_in};
use crate::promise::{Promise, RUN_NS, Report, Victim, load};
use crate::rig::{Machine, POLICIES, Policy, Setup};

/// A share may be off by this part of what is due.
const SHARE_ERROR_MAX: f64 = 0.02;

fn setups() -> Vec<Setup> {
    let both = |policy: &Policy| [1, 32].map(|depth| Setup::new(*policy, "time", depth));
    POLICIES.iter().flat_map(both).collect()
}

/// Equal requests by tenants of these weights: each gets its due part of the device's time, under each `charge`.
fn shares_hold(loads: &[(&str, [Load; 2])], weights: [u32; 2]) {
    let mut report = Report::new("");
    for setup in setups() {
        for charge in ["time", "bytes", "requests"] {
            for (name, loads) in loads {
                let shares = shares_of_two(&Setup { charge, ..setup }, *loads, weights);
                add(&mut report, &format!("{name} {charge}"), &setup, &shares);
            }
        }
    }
    report.check();
}

fn shares_of_two(setup: &Setup, loads: [Load; 2], weights: [u32; 2]) -> Vec<(f64, f64)> {
    let mut machine = Machine::new(setup);
    let tenants = [0, 1].map(|i| {
        let group = machine.group(GroupId::ROOT, weights[i]);
        machine.tenant(group, Run::new(loads[i]))
    });
    machine.run(RUN_NS);
    let all = f64::from(weights[0] + weights[1]);
    let got = |i: usize| machine.got(tenants[i]).time_ns as f64 / RUN_NS as f64;
    [0, 1].map(|i| (got(i), f64::from(weights[i]) / all)).into()
}

/// A row with what everybody got and what was due to him.
fn add(report: &mut Report, name: &str, setup: &Setup, shares: &[(f64, f64)]) {
    // Exactly 2 %, one turn, is within 2 %: a part in 10^9 is what floats may be off by.
    let off = |(got, due): &(f64, f64)| (got / due - 1.0).abs() > SHARE_ERROR_MAX + 1e-9;
    report.row(shares.iter().any(off), || {
        let parts: Vec<_> = shares.iter().map(|(got, due)| format!("{got:.4} of {due:.4}")).collect();
        let Setup { policy, depth, .. } = setup;
        format!(
            "{name:<28} {:<13} {:<8} depth {depth:>2}: {}",
            policy.elevator,
            policy.profile,
            parts.join(", ")
        )
    });
}

const LOADS: &[(&str, [Load; 2])] = &[
    ("serial", [Load::SERIAL; 2]),
    ("deep", [Load::DEEP; 2]),
    ("light deep", [Load::DEEP, Load::SERIAL]),
    ("heavy deep", [Load::SERIAL, Load::DEEP]),
];

#[test]
fn weights_of_one_to_three_share_one_to_three() {
    shares_hold(LOADS, [100, 300]);
}

#[test]
fn weights_of_one_to_ten_share_one_to_ten() {
    shares_hold(LOADS, [100, 1000]);
}

#[test]
fn a_tree_shares_on_each_level() {
    let mut report = Report::new("");
    for setup in setups() {
        for (name, load) in [("serial", Load::SERIAL), ("deep", Load::DEEP)] {
            let mut machine = Machine::new(&setup);
            let [one, two] = [100, 300].map(|weight| machine.group(GroupId::ROOT, weight));
            let places = [(one, 100, 0.125), (one, 100, 0.125), (two, 200, 0.5), (two, 100, 0.25)];
            let tenants = places.map(|(parent, weight, due)| {
                let group = machine.group(parent, weight);
                (machine.tenant(group, Run::new(load)), due)
            });
            machine.run(RUN_NS);
            let got = |tenant| machine.got(tenant).time_ns as f64 / RUN_NS as f64;
            add(&mut report, name, &setup, &tenants.map(|(tenant, due)| (got(tenant), due)));
        }
    }
    report.check();
}

/// A tree: where each tenant's group is (0 is the root, others by their place in the list), its weight, and the tenant's due if
/// there is a tenant.
type Tree = &'static [(usize, u32, Option<f64>)];

const TREES: &[(&str, Tree)] = &[
    ("1:3", &[(0, 100, Some(0.25)), (0, 300, Some(0.75))]),
    ("1:7", &[(0, 100, Some(0.125)), (0, 700, Some(0.875))]),
    ("2:3:5", &[(0, 200, Some(0.2)), (0, 300, Some(0.3)), (0, 500, Some(0.5))]),
    (
        "two levels",
        &[
            (0, 100, None),
            (0, 300, None),
            (1, 100, Some(0.125)),
            (1, 100, Some(0.125)),
            (2, 200, Some(0.5)),
            (2, 100, Some(0.25)),
        ],
    ),
    (
        "three levels",
        &[
            (0, 400, None),
            (0, 600, Some(0.6)),
            (1, 300, None),
            (1, 100, Some(0.1)),
            (3, 100, Some(0.15)),
            (3, 100, Some(0.15)),
        ],
    ),
];

/// Over any ten seconds, not only over those that begin with an idle device: at both ends somebody is in the middle of a turn.
#[test]
fn over_any_ten_seconds_shares_hold_on_each_level() {
    const STEP_NS: u64 = 370 * MS;
    const STEPS: u64 = 20;
    let mut report = Report::new("");
    for setup in setups() {
        for (tree, groups) in TREES {
            let mut machine = Machine::new(&setup);
            let mut made = vec![GroupId::ROOT];
            let mut tenants = Vec::new();
            for (parent, weight, due) in *groups {
                let group = machine.group(made[*parent], *weight);
                made.push(group);
                tenants.extend(due.map(|due| (machine.tenant(group, Run::new(Load::SERIAL)), due)));
            }
            let got_until = |machine: &mut Machine, at_ns| {
                machine.run(at_ns);
                tenants.iter().map(|(tenant, _)| machine.got(*tenant).time_ns).collect::<Vec<_>>()
            };
            let begins: Vec<_> = (1..=STEPS).map(|step| got_until(&mut machine, step * STEP_NS)).collect();
            let ends: Vec<_> =
                (1..=STEPS).map(|step| got_until(&mut machine, step * STEP_NS + RUN_NS)).collect();
            for (begin, end) in begins.iter().zip(ends) {
                let part = |(from, to): (&u64, u64)| (to - from) as f64 / RUN_NS as f64;
                let got = begin.iter().zip(end).map(part);
                let shares: Vec<_> = got.zip(tenants.iter().map(|(_, due)| *due)).collect();
                add(&mut report, tree, &setup, &shares);
            }
        }
    }
    report.check();
}

/// The rig: two groups of one weight and one load each get a half, whoever has more tasks.
#[test]
fn equal_tenants_get_equal_parts() {
    shares_hold(&[("deep", [Load::DEEP; 2])], [100, 100]);
}

/// Its share is its due even with five programs in the group next to it.
#[test]
fn more_tasks_get_no_more() {
    shares_hold(&[("five tasks", [Load { tasks: 5, ..Load::SERIAL }, Load::SERIAL])], [100, 300]);
}

/// A tenant that thinks for 2 ms between reads of 1 ms gets as many done as alone: it is waited for.
#[test]
fn a_thinking_tenant_loses_nothing() {
    let thinker = Load { think_ns: 2 * MS, ..Load::SERIAL };
    let mut report = Report::new("");
    for setup in setups() {
        let done = |others: &[Load]| {
            let mut machine = Machine::new(&setup);
            let (light, heavy) = (machine.group(GroupId::ROOT, 1), machine.group(GroupId::ROOT, 1000));
            let thinker = machine.tenant(heavy, Run::new(thinker));
            for load in others {
                machine.tenant(light, Run::new(*load));
            }
            machine.run(RUN_NS);
            machine.got(thinker).bios as f64
        };
        let part = done(&[Load::DEEP]) / done(&[]);
        report.row(part < 0.95, || {
            let Setup { policy, depth, .. } = setup;
            format!("{} {} depth {depth}: {:.1} %", policy.elevator, policy.profile, 100.0 * part)
        });
    }
    report.check();
}

/// What the heavy tenant leaves is the light one's: all of it while the other is away, nearly all beside one that asks for a
/// request ten times a second.
#[test]
fn what_nobody_else_wants_is_everybodys() {
    let mut report = Report::new("");
    for setup in setups() {
        for busy in [false, true] {
            let mut machine = Machine::new(&setup);
            let (light, heavy) = (machine.group(GroupId::ROOT, 1), machine.group(GroupId::ROOT, 1000));
            let worker = machine.tenant(light, Run::new(Load::DEEP));
            let thinker = Load { think_ns: 100 * MS, ..Load::SERIAL };
            if busy {
                machine.tenant(heavy, Run::new(thinker));
            }
            machine.run(RUN_NS);
            let share = machine.got(worker).time_ns as f64 / RUN_NS as f64;
            let Setup { policy, depth, .. } = setup;
            report.row(share < 0.95, || {
                format!("{} {} depth {depth} {busy}: {:.1} %", policy.elevator, policy.profile, 100.0 * share)
            });
        }
    }
    report.check();
}

/// The rig: nothing is served that is billed to nobody, or twice.
#[test]
fn all_busy_time_is_somebodys() {
    for setup in setups() {
        let mut machine = Machine::new(&setup);
        let groups = [1, 1000].map(|weight| machine.group(GroupId::ROOT, weight));
        machine.tenant(groups[0], Run::new(Load { place: crate::programs::Where::Next, ..Load::WRITES }));
        let victim = machine.tenant(groups[1], Run::new(Load::SERIAL));
        let barrier = Load { flags: fairlift_core::Flags::BARRIER, ..Load::SYNC_WRITES };
        machine.tenant(groups[1], Run::new(barrier));
        machine.run(RUN_NS);
        let all = machine.got(victim).time_ns + machine.got_by_others(victim).time_ns;
        let rounding_ns = 1_000_000;
        assert!(machine.busy_ns() - all < rounding_ns, "{all} of {} ns", machine.busy_ns());
    }
}

/// An honest neighbour of weight 1, one request at a time, keeps the promise.
#[test]
fn a_light_reader_takes_no_more_than_its_due() {
    Promise::NEW.holds_against(load(Load::SERIAL));
}

/// Nobody beside a writer that nobody waits for is slowed down by more than its due.
#[test]
fn a_light_writer_takes_no_more_than_its_due() {
    Promise { victims: &[Victim::Deep, Victim::Serial, Victim::Writer], ..Promise::NEW }
        .holds_against(load(Load::SYNC_WRITES));
}

/// Groups that only exist cost nothing.
#[test]
fn idle_groups_cost_nothing() {
    Promise::NEW.holds_against(|machine, group, _| {
        for _ in 0..100 {
            machine.group(group, 10_000);
        }
        let group = machine.group(group, 10_000);
        machine.tenant(group, readers_in(vec![group], 1));
        machine.tenant(group, Ticker::new(100 * MS, |_, _| {}));
    });
}
