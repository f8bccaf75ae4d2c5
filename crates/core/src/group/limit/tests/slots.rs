//! Who may go and finds no slot stands back, alone.

use super::*;

/// One round in which the groups in `refused` find no slot; who went, by group, and when to begin the next.
fn round(limits: &mut Limits, whose: &[usize], refused: &[usize], now: u64) -> (Vec<usize>, Option<u64>) {
    let mut went = Vec::new();
    let mut round = limits.limiter.begin(&limits.groups, now);
    while let Some(name) = limits.limiter.next(&limits.groups, &mut round) {
        let group = whose[name as usize];
        let entered = if refused.contains(&group) { Entered::NoSlot } else { Entered::Yes };
        if entered == Entered::Yes {
            went.push(group);
        }
        limits.limiter.settle(&limits.groups, &mut round, entered);
    }
    (went, limits.limiter.end(round))
}

/// Groups 1, 2, ... each with a limit of one a second, one bio gone and two that wait. `whose[name]` is the group.
fn waiting(groups: usize) -> (Limits, Vec<usize>) {
    let mut limits = tree(&std::vec![0; groups], 64);
    let mut whose = std::vec![0];
    for g in 1..=groups {
        limits.set(group(g), WRITE, ios_per_s(1), 0);
        for _ in 0..3 {
            limits.ask(group(g), WRITE, 512, 0);
            whose.push(g);
        }
    }
    (limits, whose)
}

#[test]
fn only_who_finds_no_slot_stands_back() {
    let (mut limits, whose) = waiting(3);
    assert_eq!(round(&mut limits, &whose, &[], 0), (std::vec![], Some(SECOND)));
    assert_eq!(round(&mut limits, &whose, &[1], SECOND), (std::vec![2, 3], Some(2 * SECOND)));
    // It waits for a slot, not for a time; and the others do not wait for it.
    assert_eq!(round(&mut limits, &whose, &[1], 2 * SECOND), (std::vec![2, 3], None));
    assert_eq!(limits.waiting(group(1)), 2);
    // It is charged when it goes, and has lost nothing of its own second.
    assert_eq!(round(&mut limits, &whose, &[], 2 * SECOND), (std::vec![1, 1], None));
}

/// Reads that find no slot do not keep the group's writes.
#[test]
fn directions_stand_back_apart() {
    let mut limits = tree(&[0], 8);
    let whose = [0, 1, 2, 1, 2];
    for direction in [READ, WRITE] {
        limits.set(group(1), direction, ios_per_s(1), 0);
    }
    for _ in 0..2 {
        limits.ask(group(1), READ, 512, 0);
        limits.ask(group(1), WRITE, 512, 0);
    }
    assert_eq!(round(&mut limits, &whose, &[1], SECOND), (std::vec![2], None));
    assert_eq!(round(&mut limits, &whose, &[], SECOND), (std::vec![1], None));
}

/// A child does not stand back for its parent, nor the other way round.
#[test]
fn who_is_above_or_below_goes_on() {
    let mut limits = tree(&[0, 1], 8);
    limits.set(group(1), WRITE, ios_per_s(1), 0);
    limits.ask(group(1), WRITE, 512, 0);
    let whose = [0, 1, 1, 2, 2];
    for g in [1, 2, 2] {
        limits.ask(group(g), WRITE, 512, 0);
    }
    assert_eq!(round(&mut limits, &whose, &[1], SECOND), (std::vec![2], Some(2 * SECOND)));
    assert_eq!(round(&mut limits, &whose, &[2], 2 * SECOND), (std::vec![1], Some(3 * SECOND)));
    assert_eq!(round(&mut limits, &whose, &[], 3 * SECOND), (std::vec![2], None));
}

/// However many find no slot: each round asks for some of them, all come by, and who has a slot goes in the first round after it
/// is free.
#[test]
fn a_crowd_without_slots_is_asked_a_few_at_a_time() {
    let (mut limits, whose) = waiting(100);
    let all: Vec<usize> = (1..=100).collect();
    let mut rounds = 0;
    let mut now = SECOND;
    while let (went, Some(until)) = round(&mut limits, &whose, &all, now) {
        assert!(went.is_empty() && until == now + 1, "{went:?}, {until}");
        (now, rounds) = (until, rounds + 1);
    }
    assert!((100 / REFUSED_MAX..=100).contains(&rounds), "{rounds} rounds");
    // Two come forward each time, in turn.
    let but = |g: usize| all.iter().copied().filter(|other| *other != g).collect::<Vec<_>>();
    let found = (0..60).find(|_| !round(&mut limits, &whose, &but(50), now).0.is_empty());
    assert!(found.is_some(), "everybody comes by");
    limits.limiter.slot_freed(group(77));
    assert_eq!(round(&mut limits, &whose, &but(77), now).0, [77]);
}

/// Who stands back and is removed, or is let go out of turn, leaves nothing behind.
#[test]
fn who_stands_back_can_be_removed() {
    let (mut limits, whose) = waiting(2);
    for _ in 0..2 {
        limits.groups.hold(group(1));
    }
    assert_eq!(round(&mut limits, &whose, &[1], SECOND).0, [2]);
    limits.remove(group(1), SECOND);
    assert_eq!(round(&mut limits, &whose, &[], SECOND).0, [1, 1]);
    assert_eq!(round(&mut limits, &whose, &[2], 2 * SECOND), (std::vec![], None));
    assert!(limits.limiter.release(&limits.groups, 2 * SECOND).is_some());
    assert_eq!(
        (limits.limiter.held(), round(&mut limits, &whose, &[], 3 * SECOND)),
        (0, (std::vec![], None))
    );
}

/// Groups that stood back, ran empty and come again stand where all others do.
#[test]
fn who_ran_empty_stands_back_no_more() {
    let (mut limits, mut whose) = waiting(4);
    let all = [1, 2, 3, 4];
    assert_eq!(round(&mut limits, &whose, &all, SECOND), (std::vec![], None));
    let released = std::iter::from_fn(|| limits.limiter.release(&limits.groups, SECOND)).count();
    assert_eq!((released, limits.limiter.held()), (8, 0));
    for g in all {
        limits.ask(group(g), WRITE, 512, SECOND);
        whose.push(g);
    }
    let now = 10 * SECOND;
    assert_eq!(round(&mut limits, &whose, &all, now), (std::vec![], None));
    let mut went: Vec<usize> = (0..2).flat_map(|_| round(&mut limits, &whose, &[], now).0).collect();
    went.sort_unstable();
    assert_eq!((went.as_slice(), limits.limiter.held()), (&all[..], 0));
}
