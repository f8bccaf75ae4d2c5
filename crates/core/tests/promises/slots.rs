//! Tables: request slots, contexts and groups. Who takes many of them takes them from itself.

use fairlift_core::{GroupId, MS, Op};

use crate::programs::{Keep, Load, Run, readers_in};
use crate::promise::{Attack, Promise, RUN_NS, Report, Victim, all_hold, load};
use crate::rig::{Host, Io, Machine, POLICIES, Program, Setup};

// ---- the device's own slots ----

fn depth_gains_nothing(setup: fn(Setup) -> Setup) {
    let deep = Load { depth: 31, ..Load::SERIAL };
    let attacks: [Attack<'_>; 2] =
        [("31 at a time", &load(deep)), ("128 at a time", &load(Load { depth: 128, ..deep }))];
    all_hold(
        &[10, 1000].map(|weight_of_victim| Promise { weight_of_victim, setup, ..Promise::NEW }),
        &attacks,
    );
}

#[test]
fn a_deep_queue_does_not_gain_share() {
    depth_gains_nothing(|setup| setup);
}

/// 10 ms a request: what is in the device lasts longer than a turn.
#[test]
fn a_deep_queue_does_not_gain_share_on_a_slow_device() {
    depth_gains_nothing(|setup| Setup { access_ns: 10 * MS, ..setup });
}

#[test]
fn a_deep_queue_does_not_gain_share_on_flash() {
    depth_gains_nothing(|setup| Setup { access_ns: MS / 10, ..setup });
}

// ---- request slots ----

/// More of them than there are request slots.
#[test]
fn a_hundred_groups_that_fill_all_request_slots_gain_nothing() {
    let flood = |depth| {
        move |machine: &mut Machine, group, _| {
            let children = (0..100).map(|_| machine.group(group, 100)).collect();
            machine.tenant(group, readers_in(children, depth));
        }
    };
    let promise = Promise { victim_comes_last: true, ..Promise::NEW };
    promise.holds_against_each(&[
        ("2 each", &|m, g, v| flood(2)(m, g, v)),
        ("32 each", &|m, g, v| flood(32)(m, g, v)),
    ]);
}

#[test]
fn a_group_that_fills_its_request_slots_gains_nothing() {
    let attacks: [Attack<'_>; 2] = [
        ("reads", &load(Load { depth: 300, ..Load::SERIAL })),
        ("writes", &load(Load { depth: 300, op: Op::Write, ..Load::SERIAL })),
    ];
    Promise { victim_comes_last: true, ..Promise::NEW }.holds_against_each(&attacks);
}

// ---- contexts ----

/// The table holds 16: those beyond stay in their own group, and so does the victim's task, which comes last.
#[test]
fn more_tasks_than_the_table_holds_stay_in_their_group() {
    let setup = |setup| Setup { contexts_max: 16, ..setup };
    let promise = Promise { setup, victim_comes_last: true, ..Promise::NEW };
    all_hold(
        &[
            promise,
            Promise { weight_of_victim: 100, ..promise },
            Promise { victim_comes_last: false, ..promise },
        ],
        &[("32 tasks", &load(Load { tasks: 32, ..Load::SERIAL }))],
    );
}

/// Each of 32 tasks sends one request and exits: when it is done, or before.
#[test]
fn tasks_that_send_one_request_and_exit_gain_nothing() {
    let one_request_each = |exits_early: bool| {
        Keep::new(32, move |host, dice, done: Option<Io>| {
            if let Some(done) = done
                && !exits_early
            {
                host.exit(done.task);
            }
            let task = host.task(host.my_group());
            host.submit(Load::SERIAL.io(task, dice.place()));
            if exits_early {
                host.exit(task);
            }
        })
    };
    let attacks: [Attack<'_>; 2] = [
        ("exit when it is done", &|machine, group, _| {
            machine.tenant(group, one_request_each(false));
        }),
        ("exit before it is done", &|machine, group, _| {
            machine.tenant(group, one_request_each(true));
        }),
    ];
    Promise::NEW.holds_against_each(&attacks);
}

#[test]
fn a_hundred_tasks_gain_nothing() {
    Promise::NEW.holds_against(load(Load { tasks: 100, ..Load::SERIAL }));
}

// ---- groups ----

/// Makes groups below its own until it is refused, and reads in all of them.
struct Hoarder(Vec<GroupId>);

impl Program for Hoarder {
    fn start(&mut self, host: &mut Host<'_>) {
        let mine = host.my_group();
        self.0.extend(std::iter::from_fn(|| host.try_group(mine, 10_000).ok()));
        for group in std::iter::once(mine).chain(self.0.iter().copied()) {
            let task = host.task(group);
            host.submit(Load::SERIAL.io(task, crate::rig::Place::Own(8 * 4096)));
        }
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        host.submit(io);
    }
}

fn few_groups(setup: Setup) -> Setup {
    Setup { groups_max: 16, ..setup }
}

/// A group of the top level that is made later, and its weight.
#[test]
fn a_tenant_that_makes_all_groups_leaves_others_theirs() {
    let promise = Promise { setup: few_groups, victim_comes_last: true, ..Promise::NEW };
    promise.holds_against(|machine, group, _| {
        machine.tenant(group, Hoarder(Vec::new()));
    });
}

/// And its limit.
#[test]
fn a_tenant_that_makes_all_groups_leaves_others_their_limits() {
    let mut report = Report::new("");
    for policy in POLICIES {
        let mut machine = Machine::new(&few_groups(Setup::new(policy, "time", 1)));
        let hoarder = machine.group(GroupId::ROOT, 1);
        machine.tenant(hoarder, Hoarder(Vec::new()));
        machine.run(0);
        let Ok(late) = machine.try_group(GroupId::ROOT, 1000) else {
            report.row(true, || format!("{} {}: a later group is refused", policy.elevator, policy.profile));
            continue;
        };
        machine.limit_ios(late, 100);
        let tenant = machine.tenant(late, Run::new(Load::DEEP));
        machine.run(RUN_NS);
        let done = machine.got(tenant).bios;
        report
            .row(!(950..=1010).contains(&done), || format!("{} {}: {done}", policy.elevator, policy.profile));
    }
    report.check();
}

/// One below the other as deep as it gets, and tasks at the bottom; beside a victim in a flat group.
#[test]
fn a_deep_tree_gains_nothing() {
    Promise { victims: &[Victim::Deep, Victim::Serial], ..Promise::NEW }.holds_against(
        |machine, group, _| {
            let mut bottom = group;
            for _ in 0..31 {
                match machine.try_group(bottom, 10_000) {
                    Ok(deeper) => bottom = deeper,
                    Err(_) => break,
                }
            }
            machine.tenant(bottom, Run::new(Load::DEEP));
        },
    );
}

/// 32 levels are allowed, and deeper ones refused with a clear error.
#[test]
fn a_tree_is_no_deeper_than_32() {
    let mut machine = Machine::new(&Setup::new(POLICIES[0], "time", 1));
    let mut bottom = GroupId::ROOT;
    for level in 1..=32 {
        bottom = machine.try_group(bottom, 100).unwrap_or_else(|why| panic!("level {level}: {why:?}"));
    }
    // By its name, for as long as not every core has it.
    assert_eq!(machine.try_group(bottom, 100).map_err(|why| format!("{why:?}")), Err("Depth".into()));
}
