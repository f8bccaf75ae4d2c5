//! What the operator changes meanwhile is no opportunity.

use fairlift_core::queue::Plugging;
use fairlift_core::{GroupId, MS};

use crate::programs::{Load, Run, Ticker, Where};
use crate::promise::{Attack, Promise, Victim};
use crate::rig::{Host, Machine, POLICIES, Setup, TenantId};

/// `change` is called every 100 ms, while the attacker reads at random and one sector.
fn holds_while(promise: Promise, change: impl Fn(&mut Host<'_>, u64, [GroupId; 2]) + Copy + 'static) {
    let attack = |load: Load| {
        move |machine: &mut Machine, group: GroupId, victim: TenantId| {
            let groups = [group, machine.group_of(victim)];
            machine
                .tenant(GroupId::ROOT, Ticker::new(100 * MS, move |host, count| change(host, count, groups)));
            machine.tenant(group, Run::new(load));
        }
    };
    let attacks: [Attack<'_>; 3] = [
        ("32 reads", &attack(Load::DEEP)),
        ("128 reads", &attack(Load { depth: 128, ..Load::SERIAL })),
        ("one sector", &attack(Load { place: Where::Same, ..Load::DEEP })),
    ];
    promise.holds_against_each(&attacks);
}

/// The one that a run begins with has no part in it: the others follow at once.
#[test]
fn switching_elevators_gives_nobody_more() {
    let promise = Promise { policies: &[POLICIES[0]], ..Promise::NEW };
    holds_while(promise, |host, count, _| host.machine().switch(POLICIES[count as usize % POLICIES.len()]));
}

/// Each to itself.
#[test]
fn switching_to_the_same_elevator_gives_nobody_more() {
    holds_while(Promise { charges: &["time"], ..Promise::NEW }, |host, _, _| {
        let policy = host.machine().policy();
        host.machine().switch(policy);
    });
}

#[test]
fn changing_the_charge_gives_nobody_more() {
    let promise = Promise { charges: &["time"], ..Promise::NEW };
    holds_while(promise, |host, count, _| {
        host.machine().set("charge", ["time", "bytes", "requests"][count as usize % 3]);
    });
}

#[test]
fn changing_times_gives_nobody_more() {
    holds_while(Promise::NEW, |host, count, _| {
        host.machine().set("group_slice", ["100", "10"][count as usize % 2]);
        host.machine().set("group_idle", ["8", "2"][count as usize % 2]);
    });
}

#[test]
fn changing_weights_gives_nobody_more() {
    holds_while(Promise::NEW, |host, count, [attacker, victim]| {
        host.machine().set_weight(attacker, 1 + count as u32 % 2);
        host.machine().set_weight(victim, 1000 - count as u32 % 2);
    });
}

/// 3 ms, or 4 requests: a plugged queue is held up once more for each.
#[test]
fn plugs_delay_nobody_longer_than_they_may() {
    let setup = |setup| Setup { plugging: Plugging::QUEUE, ..setup };
    let promise = Promise { setup, victims: &[Victim::Deep], extra_wait_ns: 3 * MS, ..Promise::NEW };
    promise.holds_against(|machine, group, _| {
        machine.tenant(group, Run::new(Load { think_ns: MS, ..Load::WRITES }));
    });
}
