//! Limits of groups: who waits for one waits for his own, and shares of a common one are by weight.

use fairlift_core::queue::Ordering;
use fairlift_core::{Flags, GroupId, MS, SECOND};

use crate::programs::{Load, Run, Ticker};
use crate::promise::{RUN_NS, Report, SHARE_MAX, part};
use crate::rig::{FLUSH_NS, Machine, POLICIES, Setup, TenantId};

/// Every elevator and depth; `charge` has no part in limits.
fn in_all_machines(adjust: fn(Setup) -> Setup, check: impl Fn(&mut Machine) -> Option<String>) {
    let mut report = Report::new("");
    for policy in POLICIES {
        for depth in [1, 32] {
            let mut machine = Machine::new(&adjust(Setup::new(policy, "time", depth)));
            let wrong = check(&mut machine);
            report.row(wrong.is_some(), || {
                let name = format!("{:<13} {:<8} depth {depth:>2}", policy.elevator, policy.profile);
                format!("{name}: {}", wrong.unwrap_or_default())
            });
        }
    }
    report.check();
}

/// `tenant` has got what a limit of 100 requests a second gives, and none waited longer than that.
fn gets_100_a_second(machine: &Machine, tenant: TenantId, wait_max_ns: u64) -> Option<String> {
    let got = machine.got(tenant);
    let text = || format!("{} requests in 10 s, longest wait {} ms", got.bios, got.wait_max_ns / MS);
    (!(950..=1010).contains(&got.bios) || got.wait_max_ns > wait_max_ns).then(text)
}

/// 32 requests at 100 a second, and a turn of everybody else's.
const WAIT_MAX_NS: u64 = 32 * SECOND / 100 + 200 * MS;

#[test]
fn a_limit_lets_through_what_it_says() {
    in_all_machines(
        |setup| setup,
        |machine| {
            let [limited, busy] = [1000, 1000].map(|weight| machine.group(GroupId::ROOT, weight));
            machine.limit_ios(limited, 100);
            let tenant = machine.tenant(limited, Run::new(Load::DEEP));
            machine.tenant(busy, Run::new(Load::DEEP));
            machine.run(RUN_NS);
            gets_100_a_second(machine, tenant, WAIT_MAX_NS)
        },
    );
}

/// The attacker's limit lets more through than the device serves it, so that all its request slots are taken and the next bio
/// waits for one; its neighbour's limit is kept all the same.
fn a_full_group_is_its_own_problem(flood: Load) {
    in_all_machines(
        |setup| setup,
        |machine| {
            let attacker = machine.group(GroupId::ROOT, 1);
            machine.limit_ios(attacker, 1000);
            let [limited, busy] = [1000, 1000].map(|weight| machine.group(GroupId::ROOT, weight));
            machine.limit_ios(limited, 100);
            machine.tenant(attacker, Run::new(flood));
            let tenant = machine.tenant(limited, Run::new(Load::DEEP));
            machine.tenant(busy, Run::new(Load::DEEP));
            machine.run(RUN_NS);
            gets_100_a_second(machine, tenant, WAIT_MAX_NS)
        },
    );
}

#[test]
fn reads_that_wait_for_a_slot_behind_their_limit_hold_up_nobody_else() {
    a_full_group_is_its_own_problem(Load { depth: 400, ..Load::SERIAL });
}

#[test]
fn writes_that_wait_for_a_slot_behind_their_limit_hold_up_nobody_else() {
    a_full_group_is_its_own_problem(Load { depth: 400, ..Load::WRITES });
}

/// 1:1000 under a common limit of 100 a second, while `churn` goes on below the same parent.
fn a_common_limit_is_shared_by_weight(churn: fn(&mut Machine, GroupId)) {
    in_all_machines(
        |setup| setup,
        |machine| {
            let parent = machine.group(GroupId::ROOT, 100);
            machine.limit_ios(parent, 100);
            let tenants = [1, 1000].map(|weight| {
                let group = machine.group(parent, weight);
                machine.tenant(group, Run::new(Load::DEEP))
            });
            churn(machine, parent);
            machine.run(RUN_NS);
            let [light, heavy] = tenants.map(|tenant| machine.got(tenant).bios);
            let share = part(light, heavy);
            let kept = share <= SHARE_MAX && light + heavy >= 950;
            (!kept).then(|| format!("{light} and {heavy} requests, {:.1} %", 100.0 * share))
        },
    );
}

#[test]
fn weights_under_a_common_limit_are_kept() {
    a_common_limit_is_shared_by_weight(|_, _| {});
}

#[test]
fn weights_under_a_common_limit_are_kept_while_groups_come_and_go() {
    a_common_limit_is_shared_by_weight(|machine, parent| {
        let mut last = None;
        machine.tenant(
            parent,
            Ticker::new(5 * MS, move |host, _| {
                if let Some(last) = last.take() {
                    host.remove_group(last);
                }
                last = host.try_group(host.my_group(), 1).ok();
            }),
        );
    });
}

#[test]
fn weights_under_a_common_limit_are_kept_while_other_weights_change() {
    a_common_limit_is_shared_by_weight(|machine, parent| {
        let other = machine.group(parent, 1);
        machine.tenant(
            parent,
            Ticker::new(5 * MS, move |host, count| host.machine().set_weight(other, 1 + count as u32 % 2)),
        );
    });
}

#[test]
fn weights_under_a_common_limit_are_kept_while_limits_are_set_again() {
    a_common_limit_is_shared_by_weight(|machine, parent| {
        let other = machine.group(parent, 1);
        machine.tenant(
            parent,
            Ticker::new(5 * MS, move |host, count| host.machine().limit_ios(other, 1000 + count % 2)),
        );
    });
}

/// Each is one write, whatever steps it takes.
fn flagged_writes_keep_their_limit(flags: Flags) {
    in_all_machines(
        |setup| Setup { ordering: Ordering::Sequences { write_cache: true, fua: false }, ..setup },
        |machine| {
            let [limited, busy] = [1, 1000].map(|weight| machine.group(GroupId::ROOT, weight));
            machine.limit_ios(limited, 10);
            let load = Load { flags, depth: 8, ..Load::SYNC_WRITES };
            let tenant = machine.tenant(limited, Run::new(load));
            let victim = machine.tenant(busy, Run::new(Load::SERIAL));
            machine.run(RUN_NS);
            let (got, others) = (machine.got(tenant), machine.got(victim));
            let time_max_ns = 102 * (2 * FLUSH_NS + MS);
            let kept = got.bios <= 102 && got.time_ns <= time_max_ns;
            (!kept).then(|| {
                let [mine, others] = [got.time_ns, others.time_ns].map(|ns| ns / MS);
                format!("{} writes under a limit of 10 a second, {mine} ms beside {others} ms", got.bios)
            })
        },
    );
}

#[test]
fn writes_with_a_flush_before_keep_their_limit() {
    flagged_writes_keep_their_limit(Flags::PREFLUSH);
}

#[test]
fn writes_with_a_flush_behind_keep_their_limit() {
    flagged_writes_keep_their_limit(Flags::FUA);
}

/// One request an hour: the queue is not asked over and over until then.
#[test]
fn a_timer_far_in_the_future_is_no_storm() {
    in_all_machines(
        |setup| setup,
        |machine| {
            let [limited, busy] = [100, 100].map(|weight| machine.group(GroupId::ROOT, weight));
            machine.limit_ios(limited, 1);
            machine.tenant(limited, Run::new(Load::DEEP));
            machine.tenant(busy, Run::new(Load { think_ns: 100 * MS, ..Load::SERIAL }));
            machine.run(RUN_NS);
            // For each of about 110 requests: it comes, it is waited for, it is done.
            let asked = machine.asked();
            (asked > 1000).then(|| format!("asked {asked} times"))
        },
    );
}
