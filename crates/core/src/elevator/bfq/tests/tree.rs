//! B-WF2Q+ by hand. Virtual times are written in sectors at weight 1.

use std::vec::Vec;

use super::super::entity::{EntityId, Hierarchy};
use super::super::timeline::{Links, Timeline, is_after};
use crate::MS;
use crate::collections::Id;
use crate::context::IoClass;
use crate::group::GroupId;

/// One sector at weight 1.
const ONE: u64 = 1 << 22;

fn queue(tree: &mut Hierarchy, number: usize, parent: GroupId, class: IoClass, weight: u32) -> EntityId {
    let id = tree.queue(number);
    tree.adopt(id, parent, class, weight);
    id
}

fn two(weights: [u32; 2]) -> (Hierarchy, EntityId, EntityId) {
    let mut tree = Hierarchy::new(1, 2);
    let a = queue(&mut tree, 0, GroupId::ROOT, IoClass::BestEffort, weights[0]);
    let b = queue(&mut tree, 1, GroupId::ROOT, IoClass::BestEffort, weights[1]);
    (tree, a, b)
}

/// A turn in which all of the budget is used; who had it?
fn turn(tree: &mut Hierarchy, now_ns: u64, sectors: u64) -> usize {
    let id = tree.choose(now_ns).expect("somebody is backlogged");
    tree.serve(id, sectors);
    tree.end_service(id, Some(sectors));
    tree.check();
    tree.queue_of(id).expect("a queue")
}

/// Weights 1 and 2, budgets of 8. Finishes: A 8, B 4. B (V 2.7), then A, for B's next start 4 is not reached (V 5.3); B (V 8);
/// both start at 8, B finishes at 12: B (V 10.7); B starts at 12: A (V 13.3); B (V 16), and from the start.
#[test]
fn one_to_two() {
    let (mut tree, a, b) = two([1, 2]);
    tree.activate(a, 8, false);
    tree.activate(b, 8, false);
    let order: Vec<usize> = (0..12).map(|_| turn(&mut tree, 0, 8)).collect();
    assert_eq!(order, [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1]);
    let (start, finish, now) = tree.times(a);
    // 96 sectors over a weight of 3; a third rounded down at each step.
    assert_eq!((start, finish), (32 * ONE, 40 * ONE));
    assert!(32 * ONE - now < 12, "{now}");
}

/// Who used 3 of a budget of 8 next starts at 3.
#[test]
fn what_was_not_used_is_not_paid() {
    let (mut tree, a, b) = two([1, 1]);
    tree.activate(a, 8, false);
    tree.activate(b, 8, false);
    assert_eq!(tree.choose(0), Some(a));
    tree.serve(a, 3);
    tree.end_service(a, Some(8));
    assert_eq!(tree.times(a), (3 * ONE, 11 * ONE, 3 * ONE / 2));
    assert_eq!(tree.choose(0), Some(b), "finishes at 8");
}

/// A has 8 and leaves: V is 4, its finish 8. It comes back at 8, not at 4. Had V reached 8 meanwhile it would be forgotten.
#[test]
fn debt_is_remembered_until_it_is_paid() {
    let (mut tree, a, b) = two([1, 1]);
    tree.activate(a, 8, false);
    tree.activate(b, 8, false);
    assert_eq!(tree.choose(0), Some(a));
    tree.serve(a, 8);
    tree.end_service(a, None);
    assert_eq!(tree.times(a), (8 * ONE, 8 * ONE, 4 * ONE));
    tree.activate(a, 8, false);
    tree.check();
    assert_eq!(tree.times(a), (8 * ONE, 16 * ONE, 4 * ONE));
    tree.deactivate(a);
    assert_eq!(turn(&mut tree, 0, 8), 1, "V is 8");
    // Alone, B has a whole sector of virtual time for each sector.
    assert_eq!(turn(&mut tree, 0, 4), 1, "V is 12");
    tree.activate(a, 8, false);
    assert_eq!(tree.times(a), (12 * ONE, 20 * ONE, 12 * ONE));
}

/// A left with finish 8 to wait for its own next request. V is 12 when it comes back, with a budget of 2: it would finish at
/// 10, 2 before V. Not raised, that is forgiven: finish 12. Raised twofold, half of it is: 11.
#[test]
fn who_waited_comes_back_where_it_left() {
    for (raise, start, finish) in [(1, 10, 12), (2, 9, 11)] {
        let (mut tree, a, b) = two([1, 1]);
        tree.activate(a, 8, false);
        tree.activate(b, 8, false);
        assert_eq!(tree.choose(0), Some(a));
        tree.serve(a, 8);
        tree.end_service(a, None);
        turn(&mut tree, 0, 8);
        turn(&mut tree, 0, 4);
        tree.set_weight(a, IoClass::BestEffort, 1, raise);
        tree.activate(a, 2, true);
        assert_eq!(tree.times(a), (start * ONE, finish * ONE, 12 * ONE), "raise {raise}");
    }
}

/// A weight changes with the next insertion: A has its 8 at weight 1, and its next 8 cost 2 at weight 4.
#[test]
fn a_weight_changes_with_the_next_turn() {
    let (mut tree, a, b) = two([1, 1]);
    tree.activate(a, 8, false);
    tree.activate(b, 8, false);
    tree.set_weight(a, IoClass::BestEffort, 4, 1);
    assert_eq!(tree.choose(0), Some(a));
    tree.serve(a, 8);
    tree.end_service(a, Some(8));
    assert_eq!(tree.times(a), (8 * ONE, 10 * ONE, 4 * ONE));
    tree.check();
    assert_eq!(tree.choose(0), Some(b));
    tree.serve(b, 10);
    assert_eq!(tree.times(b).2, 6 * ONE, "ten sectors over a weight of five");
}

/// Real time goes first. The idle class has one turn when it has had none for 200 ms, and the next after 200 more.
#[test]
fn classes_are_strict_but_for_the_idle_ones_grace() {
    let mut tree = Hierarchy::new(1, 3);
    let classes = [IoClass::Idle, IoClass::BestEffort, IoClass::RealTime];
    let ids: Vec<_> = (0..3).map(|i| queue(&mut tree, i, GroupId::ROOT, classes[i], 10)).collect();
    tree.activate(ids[0], 8, false);
    tree.activate(ids[1], 8, false);
    assert_eq!(turn(&mut tree, 200 * MS, 8), 0, "the idle one, for the first time");
    assert_eq!(turn(&mut tree, 399 * MS, 8), 1);
    tree.activate(ids[2], 8, false);
    assert_eq!(turn(&mut tree, 399 * MS, 8), 2);
    assert_eq!(turn(&mut tree, 400 * MS, 8), 0);
    assert_eq!(turn(&mut tree, 401 * MS, 8), 2);
}

/// Groups of 300 and 100 with a queue each, and one of the second's with twice the weight of its sibling: of 24 turns 18 go to the
/// first, 2 and 4 to the others.
#[test]
fn groups_share_by_weight_and_their_queues_within() {
    let mut tree = Hierarchy::new(3, 3);
    let groups = [GroupId::from_index(1), GroupId::from_index(2)];
    tree.renew_group(groups[0], GroupId::ROOT, 300);
    tree.renew_group(groups[1], GroupId::ROOT, 100);
    let ids = [
        queue(&mut tree, 0, groups[0], IoClass::BestEffort, 40),
        queue(&mut tree, 1, groups[1], IoClass::BestEffort, 20),
        queue(&mut tree, 2, groups[1], IoClass::BestEffort, 40),
    ];
    for id in ids {
        tree.activate(id, 16, false);
        tree.check();
    }
    let mut turns = [0; 3];
    for _ in 0..24 * 10 {
        turns[turn(&mut tree, 0, 16)] += 1;
    }
    assert_eq!(turns, [180, 20, 40]);
}

/// In a deep tree one path is served, and a sibling that comes in the middle of a turn is next.
#[test]
fn a_group_in_service_takes_in_another_queue() {
    let mut tree = Hierarchy::new(3, 3);
    let (outer, inner) = (GroupId::from_index(1), GroupId::from_index(2));
    tree.renew_group(outer, GroupId::ROOT, 100);
    tree.renew_group(inner, outer, 100);
    let deep = queue(&mut tree, 0, inner, IoClass::BestEffort, 40);
    let late = queue(&mut tree, 1, inner, IoClass::BestEffort, 40);
    let beside = queue(&mut tree, 2, GroupId::ROOT, IoClass::BestEffort, 40);
    tree.activate(deep, 40, false);
    assert_eq!(tree.choose(0), Some(deep));
    tree.check();
    tree.serve(deep, 10);
    assert!(!tree.root_would_switch(), "there is nobody else");
    tree.activate(late, 40, false);
    tree.check();
    assert!(!tree.root_would_switch(), "the same group is next");
    tree.activate(beside, 4, false);
    tree.check();
    assert!(tree.root_would_switch());
    tree.serve(deep, 30);
    tree.end_service(deep, None);
    tree.check();
    assert_eq!(tree.choose(0), Some(beside), "4/40 from V on, before 40/100");
    tree.end_service(beside, None);
    assert_eq!(tree.choose(0), Some(late));
    tree.check();
}

/// The treap against a list, with times around the point where they wrap.
#[test]
fn a_timeline_agrees_with_a_list() {
    const SLOTS: usize = 48;
    let mut links = Links::new(SLOTS);
    let mut line = Timeline::default();
    let mut naive: Vec<(EntityId, u64, u64)> = Vec::new();
    let mut random = 7u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    for step in 0u64..6000 {
        let base = 0u64.wrapping_sub(3000).wrapping_add(step);
        let id = EntityId::from_index(below(SLOTS as u64) as usize);
        match naive.iter().position(|(other, ..)| *other == id) {
            Some(at) => {
                naive.remove(at);
                line.remove(&mut links, id);
            }
            None => {
                let start = base.wrapping_add(below(100));
                let finish = start.wrapping_add(below(100));
                naive.push((id, start, finish));
                line.insert(&mut links, id, start, finish);
            }
        }
        let now = base.wrapping_add(below(120));
        let best = |list: &mut dyn Iterator<Item = &(EntityId, u64, u64)>| {
            list.map(|(_, _, finish)| finish.wrapping_sub(base) as i64).min()
        };
        let finish_of = |id: EntityId| {
            let (_, _, finish) = naive.iter().find(|(other, ..)| *other == id).expect("it is in");
            finish.wrapping_sub(base) as i64
        };
        let eligible = line.first_eligible(&links, now).map(finish_of);
        assert_eq!(eligible, best(&mut naive.iter().filter(|(_, start, _)| !is_after(*start, now))));
        assert_eq!(line.first(&links).map(finish_of), best(&mut naive.iter()));
        let earliest = naive.iter().map(|(_, start, _)| start.wrapping_sub(base) as i64).min();
        assert_eq!(line.earliest_start(&links).map(|start| start.wrapping_sub(base) as i64), earliest);
        if step % 50 == 0 {
            assert_eq!(line.all(&links).len(), naive.len());
        }
    }
}
