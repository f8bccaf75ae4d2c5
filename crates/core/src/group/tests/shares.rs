//! Under every elevator groups get what their weights say, of what the charge policy says, and are shielded from each other.

use std::prelude::v1::*;

use super::closed_loop::{Load, Loop};
use super::properties::ELEVATORS;
use crate::collections::Id;
use crate::context::IoClass;
use crate::group::{GroupId, GroupParams};
use crate::{Flags, MS, Op};

/// Without fair, which serves one request of a group after the other where the device does: it need not wait for a group that
/// thinks while another one is being served, and never fills a serial device.
fn in_turns() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    ELEVATORS.iter().filter(|(name, _)| *name != "fair")
}

/// Half of the device for a reader that thinks 1 ms while the others are served, and half for eight that never do.
#[test]
fn fair_serves_others_while_a_group_thinks() {
    let mut machine = Loop::new(("fair", ""), 1);
    let (thinker, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
    machine.task(thinker, Load { depth: 1, service_ns: 4 * MS, think_ns: MS, ..Load::READS });
    (0..8).for_each(|_| machine.task(crowd, Load { service_ns: 4 * MS, ..Load::READS }));
    machine.run(40 * SECOND, |_| {});
    for group in [thinker, crowd] {
        let share = permille(machine.time_ns[group.index()], machine.now);
        assert!(share.abs_diff(500) <= 10, "{share} of 500");
    }
}

const ROOT: GroupId = GroupId::ROOT;
const SECOND: u64 = 1000 * MS;
/// The longest slice: `group_slice`, and cfq's `slice_sync`.
const SLICE_NS: u64 = 100 * MS;

/// Part of the whole, in thousandths.
fn permille(part: u64, whole: u64) -> u64 {
    1000 * part / whole
}

/// The bound of `docs/groups.md`, of the device's real time: from the moment both are there nobody is further from its due
/// than a slice and a request.
#[test]
fn nobodys_device_time_is_further_from_its_due_than_a_slice_and_a_request() {
    for elevator in ELEVATORS {
        // cfq's slices begin with the first answer.
        let slice_begins_ns = if elevator.0 == "cfq" { 9 * MS } else { 0 };
        let mut machine = Loop::new(*elevator, 1);
        let weights = [1000_u64, 300, 100];
        // Requests of very different cost, of tasks in different numbers.
        let service_ns = [4 * MS, MS / 5, 9 * MS];
        let groups = weights.map(|weight| machine.group(ROOT, weight as u32));
        for (tenant, group) in groups.into_iter().enumerate() {
            for _ in 0..=tenant {
                machine.task(group, Load { service_ns: service_ns[tenant], ..Load::READS });
            }
        }
        // The tree is asked by what was charged: with overruns charged that is the time that was used.
        machine.set("fairness", "1");
        machine.run(20 * SECOND, |machine| {
            let total: u64 = groups.iter().map(|group| machine.time_ns[group.index()]).sum();
            for (tenant, group) in groups.into_iter().enumerate() {
                let due_ns = total * weights[tenant] / 1400;
                let lag_ns = machine.time_ns[group.index()].abs_diff(due_ns);
                assert!(
                    lag_ns <= slice_begins_ns + SLICE_NS + 9 * MS,
                    "{elevator:?}: group {tenant} is {} ms from its due at {} ms",
                    lag_ns / MS,
                    machine.now / MS
                );
            }
        });
    }
}

/// `a` (weight 300) with tasks of its own (100) and `aa` (200) below, `aa` with `aaa` as its only busy child; `b` (100).
#[test]
fn a_tree_of_three_levels() {
    for elevator in ELEVATORS {
        let mut machine = Loop::new(*elevator, 1);
        let a = machine.group(ROOT, 300);
        let aa = machine.group(a, 200);
        let aaa = machine.group(aa, 7);
        let b = machine.group(ROOT, 100);
        for group in [a, aaa, b] {
            machine.task(group, Load::READS);
            machine.task(group, Load { service_ns: 3 * MS, ..Load::READS });
        }
        machine.set("fairness", "1");
        machine.run(40 * SECOND, |_| {});
        let total: u64 = machine.time_ns.iter().sum();
        let shares = [a, aaa, b].map(|group| permille(machine.time_ns[group.index()], total));
        for (share, due) in shares.into_iter().zip([250, 500, 250]) {
            assert!(share.abs_diff(due) <= 10, "{elevator:?}: {shares:?} of 250, 500, 250");
        }
    }
}

/// A reader that thinks 1 ms between two blocks beside eight that never do: it is waited for, so that its group gets its
/// half (less what it thinks: that time is its own, too).
#[test]
fn a_group_keeps_its_share_by_being_waited_for() {
    for elevator in in_turns().filter(|(_, profile)| *profile != "2.6.34") {
        let mut machine = Loop::new(*elevator, 1);
        let (thinker, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
        machine.task(thinker, Load { depth: 1, service_ns: 4 * MS, think_ns: MS, ..Load::READS });
        (0..8).for_each(|_| machine.task(crowd, Load { service_ns: 4 * MS, ..Load::READS }));
        machine.run(40 * SECOND, |_| {});
        // Of its 500 ‰ it thinks a fifth.
        let share = permille(machine.time_ns[thinker.index()], machine.now);
        assert!((360..=440).contains(&share), "{elevator:?}: {share} of 400");
    }
}

/// One synchronous write after the other, of the kind that is not worth a wait by itself (what fsync waits for).
#[test]
fn a_group_of_synchronous_writes_is_waited_for() {
    for elevator in ELEVATORS.iter().filter(|(_, profile)| *profile != "2.6.34") {
        let mut machine = Loop::new(*elevator, 1);
        let (writer, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
        let flags = Flags::SYNC | Flags::NOIDLE;
        machine.task(writer, Load { depth: 1, op: Op::Write, flags, ..Load::READS });
        (0..8).for_each(|_| machine.task(crowd, Load::READS));
        machine.run(40 * SECOND, |_| {});
        let share = permille(machine.time_ns[writer.index()], machine.now);
        assert!(share.abs_diff(500) <= 20, "{elevator:?}: {share} of 500");
    }
}

/// Without waiting it loses its place with every request.
#[test]
fn without_group_idle_a_thinker_loses_its_share() {
    for elevator in &ELEVATORS[..2] {
        let mut machine = Loop::new(*elevator, 1);
        machine.set("group_idle", "0");
        let (thinker, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
        machine.task(thinker, Load { depth: 1, service_ns: 4 * MS, think_ns: MS, ..Load::READS });
        (0..8).for_each(|_| machine.task(crowd, Load { service_ns: 4 * MS, ..Load::READS }));
        machine.run(20 * SECOND, |_| {});
        let share = permille(machine.time_ns[thinker.index()], machine.now);
        assert!(share < 100, "{elevator:?}: {share}");
    }
}

/// 2:1 of whatever is charged; what is not comes out as the requests are.
#[test]
fn the_charge_policy_says_what_is_shared() {
    for elevator in ELEVATORS {
        for charge in ["time", "bytes", "requests"] {
            let mut machine = Loop::new(*elevator, 1);
            machine.set("charge", charge);
            machine.set("fairness", "1");
            let (a, b) = (machine.group(ROOT, 200), machine.group(ROOT, 100));
            machine.task(a, Load { service_ns: 5 * MS, sectors: 8, ..Load::READS });
            machine.task(b, Load { service_ns: MS, sectors: 64, ..Load::READS });
            machine.run(100 * SECOND, |_| {});
            let got = match charge {
                "time" => &machine.time_ns,
                "bytes" => &machine.sectors,
                _ => &machine.requests,
            };
            let share = permille(got[a.index()], got[a.index()] + got[b.index()]);
            assert!((647..=687).contains(&share), "{elevator:?}, {charge}: {share} of 667");
        }
    }
}

/// A request may take longer than the slice it began in.
#[test]
fn what_overran_a_slice_is_forgiven_or_charged() {
    for (fairness, expected) in [("0", 600), ("1", 500)] {
        let mut machine = Loop::new(("deadline", ""), 1);
        machine.set("fairness", fairness);
        let (slow, quick) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
        // Longer than a slice.
        machine.task(slow, Load { service_ns: 150 * MS, ..Load::READS });
        machine.task(quick, Load::READS);
        machine.run(100 * SECOND, |_| {});
        let total = machine.time_ns[slow.index()] + machine.time_ns[quick.index()];
        let share = permille(machine.time_ns[slow.index()], total);
        assert!(share.abs_diff(expected) <= 60, "fairness {fairness}: {share} of {expected}");
    }
}

/// A turn's last requests are still in a device that queues when the next one's begin.
#[test]
fn what_is_in_the_device_at_the_end_of_a_turn_is_charged_as_overrun() {
    for elevator in ELEVATORS {
        for fairness in ["1", "2"] {
            let mut machine = Loop::new(*elevator, 31);
            machine.set("fairness", fairness);
            let groups = [200, 100].map(|weight| machine.group(ROOT, weight));
            for group in groups {
                machine.task(group, Load { depth: 64, ..Load::READS });
            }
            machine.run(40 * SECOND, |_| {});
            let [a, b] = groups.map(|group| machine.time_ns[group.index()]);
            let share = permille(a, a + b);
            assert!(share.abs_diff(667) <= 10, "{elevator:?}, fairness {fairness}: {share} of 667");
        }
    }
}

/// With 16 requests of 4 ms in the device a turn of 10 ms ends with 60 ms still to do: its group pays for them too. Otherwise
/// what both have over by each turn would draw the shares together.
#[test]
fn what_the_device_still_does_after_a_turn_is_paid_for() {
    for elevator in ELEVATORS.iter().filter(|(name, _)| *name != "cfq") {
        for fairness in ["1", "2"] {
            let mut machine = Loop::new(*elevator, 16);
            machine.set("fairness", fairness);
            machine.set("group_slice", "10");
            let (a, b) = (machine.group(ROOT, 300), machine.group(ROOT, 100));
            for group in [a, b] {
                machine.task(group, Load { depth: 16, service_ns: 4 * MS, ..Load::READS });
            }
            machine.run(60 * SECOND, |_| {});
            let total = machine.time_ns[a.index()] + machine.time_ns[b.index()];
            let share = permille(machine.time_ns[a.index()], total);
            assert!(share.abs_diff(750) <= 10, "{elevator:?}, fairness {fairness}: {share} of 750");
        }
    }
}

/// Who thinks for as long as its requests take has the device for twice their time, and is charged for that.
#[test]
fn who_is_waited_for_pays_for_the_wait() {
    for elevator in in_turns() {
        for fairness in ["1", "2"] {
            let mut machine = Loop::new(*elevator, 1);
            machine.set("fairness", fairness);
            let (thinker, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
            machine.task(thinker, Load { depth: 1, service_ns: 3 * MS, think_ns: 3 * MS, ..Load::READS });
            machine.task(crowd, Load::READS);
            machine.run(40 * SECOND, |_| {});
            let time_ns = machine.time_ns[thinker.index()];
            let share = permille(2 * time_ns, 2 * time_ns + machine.time_ns[crowd.index()]);
            assert!(share.abs_diff(500) <= 20, "{elevator:?}, fairness {fairness}: {share} of 500");
        }
    }
}

/// A group that has the device to itself may fill it; beside others it keeps to `group_depth`.
#[test]
fn a_limited_group_leaves_room_in_the_device() {
    for elevator in in_turns().filter(|(name, _)| *name != "cfq") {
        let waited_ms = ["0", "2"].map(|group_depth| {
            let mut machine = Loop::new(*elevator, 16);
            // Where overruns are charged a turn ends when the device has enough to do: the limit matters in history's mode.
            machine.set("fairness", "0");
            machine.set("group_depth", group_depth);
            let (alone, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
            machine.task(alone, Load { depth: 1, ..Load::READS });
            machine.task(crowd, Load { depth: 32, service_ns: 10 * MS, ..Load::READS });
            machine.run(20 * SECOND, |_| {});
            machine.latency_max_ns[alone.index()] / MS
        });
        // A turn or two, and what is in the device then: 16 requests or 2.
        assert!(waited_ms[1] + 100 <= waited_ms[0], "{elevator:?}: {waited_ms:?} ms");
    }
}

#[test]
fn a_drained_device_holds_requests_of_one_group_at_a_time() {
    for elevator in in_turns() {
        let mixed = ["1", "2"].map(|fairness| {
            let mut machine = Loop::new(*elevator, 8);
            machine.set("fairness", fairness);
            for weight in [100, 300] {
                let group = machine.group(ROOT, weight);
                machine.task(group, Load { depth: 16, ..Load::READS });
            }
            machine.run(5 * SECOND, |_| {});
            machine.mixed
        });
        assert_eq!(mixed, [true, false], "{elevator:?}");
    }
}

#[test]
fn a_better_class_has_the_device_to_itself() {
    for elevator in ELEVATORS {
        let mut machine = Loop::new(*elevator, 1);
        let classes = [IoClass::RealTime, IoClass::BestEffort, IoClass::Idle];
        let groups = classes.map(|class| {
            let params = GroupParams { class, ..GroupParams::weight(100) };
            let group = machine.q.groups_mut().create(ROOT, params).unwrap();
            machine.task(group, Load::READS);
            group
        });
        machine.run(5 * SECOND, |_| {});
        let served = groups.map(|group| machine.requests[group.index()]);
        assert!(served[0] > 4900 && served[1] + served[2] < 50, "{elevator:?}: {served:?}");
    }
}

/// Tests 2 and 3 of the founding posts: more readers in one group are no matter of the other's.
#[test]
fn the_neighbours_number_of_queues_is_not_felt() {
    for elevator in ELEVATORS.iter().filter(|(_, profile)| *profile != "2.6.34") {
        let latency = [1, 4, 16, 64].map(|neighbours| {
            let mut machine = Loop::new(*elevator, 1);
            let (alone, crowd) = (machine.group(ROOT, 100), machine.group(ROOT, 100));
            machine.task(alone, Load { depth: 1, service_ns: 8 * MS, ..Load::READS });
            (0..neighbours).for_each(|_| machine.task(crowd, Load { depth: 1, ..Load::READS }));
            machine.run(20 * SECOND, |_| {});
            machine.latency_max_ns[alone.index()] / MS
        });
        // Two turns of the others at most, with an overrun each, and one's own request.
        assert!(latency.iter().all(|ms| *ms <= 2 * (100 + 1) + 8), "{elevator:?}: {latency:?} ms");
    }
}

/// Writes of a group's tasks go to queues of the group, under cfq too.
#[test]
fn async_writes_are_shared_out_by_weight() {
    for elevator in ELEVATORS {
        let mut machine = Loop::new(*elevator, 1);
        let (a, b) = (machine.group(ROOT, 200), machine.group(ROOT, 100));
        for group in [a, b] {
            machine.task(group, Load { depth: 64, op: Op::Write, ..Load::READS });
        }
        machine.run(40 * SECOND, |_| {});
        let total = machine.time_ns[a.index()] + machine.time_ns[b.index()];
        let share = permille(machine.time_ns[a.index()], total);
        assert!((647..=687).contains(&share), "{elevator:?}: {share} of 667");
    }
}
