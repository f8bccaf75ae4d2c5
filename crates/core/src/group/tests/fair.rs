//! The tree by itself: schedules worked out by hand, and random ones against an ideal fluid that serves everybody at once.

use std::prelude::v1::*;
use std::vec;

use super::properties::Random;
use crate::MS;
use crate::context::IoClass;
use crate::group::fair::Fair;
use crate::group::{Bill, GroupId, GroupParams, Groups};

const ROOT: GroupId = GroupId::ROOT;

fn weight(weight: u32) -> GroupParams {
    GroupParams::weight(weight)
}

/// Who is served in `turns` turns of this length, each for the whole of it.
fn order(groups: &mut Groups, turns: usize, turn_ns: u64) -> Vec<GroupId> {
    let serve = |groups: &mut Groups| {
        let group = groups.next(0).expect("somebody is busy");
        groups.charge(group, &Bill { time_ns: turn_ns, ..Bill::NONE });
        group
    };
    (0..turns).map(|_| serve(groups)).collect()
}

fn busy(groups: &mut Groups, ids: &[GroupId]) {
    for id in ids {
        groups.set_busy(*id, true);
    }
}

#[test]
fn two_to_one() {
    let mut groups = Groups::new(2);
    let a = groups.create(ROOT, weight(200)).unwrap();
    let b = groups.create(ROOT, weight(100)).unwrap();
    busy(&mut groups, &[b, a]);
    // In units of 100 ms: deadlines a 0.5, b 1 (weights 2 and 1). a: its start 0.5, now 1/3: not eligible. b: its start 1,
    // now 2/3. a (0.5, deadline 1), then its start and now are 1: a round.
    assert_eq!(order(&mut groups, 6, 100 * MS), [a, b, a, a, b, a]);
}

/// A charge of 3 ns is less than a unit of virtual time for groups of these weights; all of them together are not.
#[test]
fn charges_below_a_unit_of_virtual_time_count() {
    let mut groups = Groups::new(2);
    groups.set("group_idle", "0").unwrap();
    groups.set("group_slice", "1").unwrap();
    let pair = [10_000, 5_000].map(|w| groups.create(ROOT, weight(w)).unwrap());
    busy(&mut groups, &pair);
    // 30 ms of charges, in turns of 1 ms: nobody is further from its due than one of those.
    let order = order(&mut groups, 10_000_000, 3);
    let served = pair.map(|group| 3 * order.iter().filter(|served| **served == group).count() as u64);
    assert!(served[0].abs_diff(20 * MS) <= MS && served[1].abs_diff(10 * MS) <= MS, "{served:?}");
}

/// Serving the smallest start would give each light one a turn before the heavy one's second.
#[test]
fn a_heavy_group_does_not_wait_for_every_light_one() {
    let mut groups = Groups::new(11);
    // Turns are of one length here, and are to be reckoned with as such.
    groups.set("group_latency", "0").unwrap();
    let heavy = groups.create(ROOT, weight(1000)).unwrap();
    let light: Vec<_> = (0..10).map(|_| groups.create(ROOT, weight(100)).unwrap()).collect();
    busy(&mut groups, &light);
    busy(&mut groups, &[heavy]);
    let order = order(&mut groups, 40, 100 * MS);
    let turns: Vec<_> = (0..40).filter(|turn| order[*turn] == heavy).collect();
    assert_eq!(turns.len(), 20, "half of the weight, half of the turns");
    // Twice when a round ends: the last light one has the same deadline.
    assert!(turns.windows(2).all(|pair| pair[1] - pair[0] <= 3), "{turns:?}");
    assert!(turns.windows(2).filter(|pair| pair[1] - pair[0] == 3).count() <= 3, "{turns:?}");
}

/// The example of the kernel's documentation (cfq-iosched.txt): root's tasks 125; A 500 with its own 750; B 250; below A:
/// AA 500 and AB 1000. Root's tasks get 14 %, A's 19 %, AA 12 %, AB 25 %, B 28 %.
#[test]
fn the_documentations_example() {
    let mut groups = Groups::new(4);
    groups.set_params(ROOT, GroupParams { leaf_weight: 125, ..weight(100) }).unwrap();
    let a = groups.create(ROOT, GroupParams { leaf_weight: 750, ..weight(500) }).unwrap();
    let b = groups.create(ROOT, weight(250)).unwrap();
    let aa = groups.create(a, weight(500)).unwrap();
    let ab = groups.create(a, weight(1000)).unwrap();
    let all = [ROOT, a, aa, ab, b];
    busy(&mut groups, &all);
    let percent = |part: u64, of: u64| 100 * part / of;
    assert_eq!(all.map(|group| percent(groups.share(group), 1 << 20)), [14, 19, 12, 25, 28]);
    order(&mut groups, 10_000, 10 * MS);
    let time = all.map(|group| groups[group].stats().time_ns);
    assert_eq!(time.map(|time| percent(time, 100_000 * MS)), [14, 19, 12, 25, 28]);
}

#[test]
fn a_class_given_later_counts() {
    let mut groups = Groups::new(2);
    let [a, b] = [100, 100].map(|w| groups.create(ROOT, weight(w)).unwrap());
    assert!(!groups.fair().outranks(a, b));
    groups.set_params(a, GroupParams { class: IoClass::RealTime, ..weight(100) }).unwrap();
    assert!(groups.fair().outranks(a, b) && !groups.fair().outranks(b, a));
}

#[test]
fn classes_are_strict_where_groups_compete() {
    let mut groups = Groups::new(4);
    let best = groups.create(ROOT, weight(10_000)).unwrap();
    let urgent = groups.create(ROOT, GroupParams { class: IoClass::RealTime, ..weight(1) }).unwrap();
    let idle = groups.create(ROOT, GroupParams { class: IoClass::Idle, ..weight(10_000) }).unwrap();
    // Real time among its siblings, which are all below `idle`.
    let inner = groups.create(idle, GroupParams { class: IoClass::RealTime, ..weight(100) }).unwrap();
    busy(&mut groups, &[inner, idle]);
    assert_eq!(order(&mut groups, 3, MS), [inner; 3]);
    busy(&mut groups, &[best]);
    assert_eq!(order(&mut groups, 3, MS), [best; 3]);
    busy(&mut groups, &[urgent]);
    assert_eq!(order(&mut groups, 3, MS), [urgent; 3]);
    groups.set_busy(urgent, false);
    groups.set_busy(best, false);
    groups.set_busy(inner, false);
    assert_eq!(order(&mut groups, 2, MS), [idle; 2]);
    assert!(groups.fair().outranks(urgent, inner) && !groups.fair().outranks(inner, urgent));
}

#[test]
fn sleeping_gains_nothing() {
    let mut groups = Groups::new(2);
    let awake = groups.create(ROOT, weight(100)).unwrap();
    let sleeper = groups.create(ROOT, weight(100)).unwrap();
    busy(&mut groups, &[awake, sleeper]);
    order(&mut groups, 4, 100 * MS);
    groups.set_busy(sleeper, false);
    order(&mut groups, 50, 100 * MS);
    groups.set_busy(sleeper, true);
    let turns = order(&mut groups, 10, 100 * MS).iter().filter(|group| **group == sleeper).count();
    assert_eq!(turns, 5, "5 s asleep are not made up for");
}

/// Whoever takes a turn, leaves, and is back before the next is no better off than who stays.
#[test]
fn leaving_after_a_turn_gains_nothing() {
    let mut groups = Groups::new(2);
    let steady = groups.create(ROOT, weight(300)).unwrap();
    let fickle = groups.create(ROOT, weight(100)).unwrap();
    busy(&mut groups, &[steady, fickle]);
    let mut turns = 0;
    for _ in 0..400 {
        let served = order(&mut groups, 1, 100 * MS)[0];
        if served == fickle {
            turns += 1;
            groups.set_busy(fickle, false);
            groups.set_busy(fickle, true);
        }
    }
    assert!((99..=101).contains(&turns), "{turns} of 400 turns at a quarter of the weight");
}

#[test]
fn a_new_weight_holds_from_the_next_turn_on() {
    let mut groups = Groups::new(2);
    let a = groups.create(ROOT, weight(100)).unwrap();
    let b = groups.create(ROOT, weight(100)).unwrap();
    busy(&mut groups, &[a, b]);
    order(&mut groups, 10, 10 * MS);
    groups.set_params(a, weight(900)).unwrap();
    let turns = order(&mut groups, 1000, 10 * MS).iter().filter(|group| **group == a).count();
    assert!((899..=901).contains(&turns), "{turns} of 1000");
}

#[test]
fn the_table_refuses_what_makes_no_tree() {
    use crate::group::GroupError::{Root, Unknown, Weight};
    let mut groups = Groups::new(3);
    let a = groups.create(ROOT, weight(100)).unwrap();
    let b = groups.create(a, weight(100)).unwrap();
    let c = groups.create(b, weight(100)).unwrap();
    assert_eq!(groups.create(ROOT, weight(0)), Err(Weight));
    assert_eq!(groups.set_params(a, weight(10_001)), Err(Weight));
    assert_eq!(groups.remove(ROOT), Err(Root));
    // b's child keeps its place; what still names b goes to a; the slot is free once the child is gone.
    assert_eq!(groups.remove(b), Ok(()));
    assert_eq!((groups[c].parent(), groups.set_params(b, weight(1))), (b, Err(Unknown)));
    assert_eq!(groups.known(b), a);
    assert_eq!(groups.create(b, weight(1)), Err(Unknown));
    assert_eq!(groups.remove(c), Ok(()));
    assert_eq!(groups.known(b), ROOT);
}

#[test]
fn nothing_is_deeper_than_32_levels() {
    let mut groups = Groups::new(64);
    let mut parent = ROOT;
    for _ in 0..crate::group::DEPTH_MAX {
        parent = groups.create(parent, weight(100)).unwrap();
    }
    assert_eq!(groups.create(parent, weight(100)), Err(crate::group::GroupError::Depth));
}

/// A tenant that makes groups until it is refused has what the table was built for; those beside it, and beside the groups above
/// it, still find places, for several of their own.
#[test]
fn nobody_can_take_all_places_of_the_table() {
    let mut groups = Groups::new(64);
    let shelf = groups.create(ROOT, weight(100)).unwrap();
    let greedy = groups.create(shelf, weight(100)).unwrap();
    let mut made = 0;
    while groups.create(greedy, weight(100)).is_ok() {
        made += 1;
    }
    assert!((62..=72).contains(&made), "{made}");
    let beside = groups.create(shelf, weight(100)).unwrap();
    assert!(groups.create(beside, weight(100)).is_ok(), "one of its own");
    for _ in 0..8 {
        let later = groups.create(ROOT, weight(100)).unwrap();
        assert!(groups.create(later, weight(100)).is_ok(), "one of its own");
    }
}

// ---- against the fluid ----

/// A node's children as the fluid serves them: each gets its part of every charge at once.
#[derive(Clone, Copy, Default)]
struct Fluid {
    /// What it got less what it was due, times the total weight's worth: nanoseconds.
    ahead_ns: f64,
}

/// Random flat bands and trees; every busy child of every node stays within a slice and a request of the fluid.
#[test]
fn nobody_is_further_from_its_due_than_a_slice_and_a_request() {
    let (slice_ns, request_ns) = (100 * MS, 12 * MS);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let slots = 2 + random.below(30) as usize;
        let mut groups = Groups::new(slots);
        let mut ids = vec![ROOT];
        for _ in 0..slots {
            let parent = random.one_of(&ids);
            let weights = [1 + random.below(10_000) as u32, random.one_of(&[1, 100, 10_000])];
            let params = GroupParams {
                weight: random.one_of(&weights),
                leaf_weight: random.one_of(&[1, 100, 10_000]),
                ..GroupParams::default()
            };
            ids.push(groups.create(parent, params).unwrap());
        }
        busy(&mut groups, &ids);
        // Index 2g: the tasks of g; 2g + 1: g itself.
        let mut fluid = vec![Fluid::default(); 2 * ids.len()];
        for _ in 0..3000 {
            let served = groups.next(0).expect("all are busy");
            // A whole slice, a part of one, or one that a request overran.
            let turn_ns = groups.settings().slice_ns(groups.share(served));
            let charge_ns = match random.below(3) {
                0 => turn_ns,
                1 => random.below(turn_ns),
                _ => turn_ns + random.below(request_ns),
            };
            groups.charge(served, &Bill { time_ns: charge_ns, ..Bill::NONE });
            let bound_ns = (slice_ns + request_ns) as f64;
            account(&groups, &ids, &mut fluid, served, charge_ns);
            for (entity, fluid) in fluid.iter().enumerate() {
                assert!(
                    fluid.ahead_ns.abs() <= bound_ns,
                    "seed {seed}: entity {entity} is {} ms ahead",
                    fluid.ahead_ns / MS as f64
                );
            }
        }
    }
}

/// `served` got `charge_ns`: on every level of its path the fluid spreads that over all children.
fn account(groups: &Groups, ids: &[GroupId], fluid: &mut [Fluid], served: GroupId, charge_ns: u64) {
    use crate::collections::Id;
    let mut winner = 2 * served.index();
    for node in groups.path(served) {
        let children = ids.iter().filter(|id| **id != ROOT && groups[**id].parent() == node);
        let mut weights: Vec<(usize, f64)> =
            children.map(|id| (2 * id.index() + 1, f64::from(groups[*id].params().weight))).collect();
        weights.push((2 * node.index(), f64::from(groups[node].params().leaf_weight)));
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        for (child, weight) in weights {
            fluid[child].ahead_ns -= charge_ns as f64 * weight / total;
        }
        fluid[winner].ahead_ns += charge_ns as f64;
        winner = 2 * node.index() + 1;
    }
}

/// With groups coming, going and changing weight all the time, two that stay are served in proportion.
#[test]
fn who_stays_gets_its_share_whatever_the_others_do() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut groups = Groups::new(8);
        let a = groups.create(ROOT, weight(300)).unwrap();
        let b = groups.create(ROOT, weight(100)).unwrap();
        let others: Vec<_> = (0..5).map(|_| groups.create(ROOT, weight(100)).unwrap()).collect();
        busy(&mut groups, &[a, b]);
        let mut got = [0u64; 2];
        for step in 0..4000 {
            let other = random.one_of(&others);
            match random.below(6) {
                0 => _ = groups.set_busy(other, true),
                1 => _ = groups.set_busy(other, false),
                2 => groups.set_params(other, weight(1 + random.below(10_000) as u32)).unwrap(),
                _ => {}
            }
            let charge_ns = 1 + random.below(100 * MS);
            let served = groups.next(0).expect("two are busy");
            groups.charge(served, &Bill { time_ns: charge_ns, ..Bill::NONE });
            for (index, id) in [a, b].into_iter().enumerate() {
                got[index] += if served == id { charge_ns } else { 0 };
            }
            // Each is within a slice of its due, before and after: by weight, two slices of each.
            let apart_ns = (got[0] as f64 / 3.0 - got[1] as f64).abs();
            assert!(
                apart_ns <= 2.0 * (100.0 / 3.0 + 100.0) * MS as f64,
                "seed {seed}, step {step}: {apart_ns}"
            );
        }
        assert!(got[0] > 0 && got[1] > 0);
    }
}

#[test]
fn largest_charges_do_not_overflow() {
    let mut fair = Fair::new(1, crate::group::Settings::DEFAULT.quantum());
    fair.enter(ROOT, ROOT, &GroupParams { leaf_weight: 1, ..weight(1) });
    fair.activate(ROOT);
    for _ in 0..100 {
        fair.charge(ROOT, u64::MAX);
    }
    assert_eq!(fair.pick(), Some(ROOT));
}
