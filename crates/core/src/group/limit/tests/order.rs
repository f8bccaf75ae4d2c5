//! Who goes first, and what happens while somebody waits.

use super::*;

fn wait(answer: Asked) -> u64 {
    match answer {
        Asked::Wait(name) => name,
        other => panic!("{other:?}"),
    }
}

/// First come, first served, whatever the sizes; nobody who just came passes those who wait.
#[test]
fn a_group_is_served_in_order() {
    let mut limits = tree(&[0], 4);
    limits.set(group(1), WRITE, bytes_per_s(1000), 0);
    assert_eq!(limits.ask(group(1), WRITE, 1000, 0), Asked::Go);
    let large = wait(limits.ask(group(1), WRITE, 2000, 0));
    let small = wait(limits.ask(group(1), WRITE, 1, 0));
    assert_eq!(next(&mut limits, 0), Next::Wait { until: SECOND });
    let late = wait(limits.ask(group(1), WRITE, 1, SECOND));
    assert_eq!(next(&mut limits, SECOND), Next::Go(large));
    assert_eq!(next(&mut limits, SECOND), Next::Wait { until: 3 * SECOND });
    assert_eq!(next(&mut limits, 3 * SECOND), Next::Go(small));
    assert_eq!(next(&mut limits, 3 * SECOND + 1_000_000), Next::Go(late));
    assert_eq!(next(&mut limits, 3 * SECOND + 1_000_000), Next::Empty);
}

/// Those who wait go first even when there is no limit any more that holds them back.
#[test]
fn a_newcomer_passes_nobody_whose_limit_just_went() {
    let mut limits = tree(&[0], 4);
    limits.set(group(1), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Go);
    let first = wait(limits.ask(group(1), WRITE, 512, 0));
    limits.set(group(1), WRITE, Rates::NONE, 1);
    let second = wait(limits.ask(group(1), WRITE, 512, 2));
    assert_eq!([next(&mut limits, 2), next(&mut limits, 2)], [Next::Go(first), Next::Go(second)]);
    assert_eq!(limits.ask(group(1), WRITE, 512, 2), Asked::Go);
}

/// Reads do not wait for writes.
#[test]
fn directions_do_not_see_each_other() {
    let mut limits = tree(&[0], 4);
    limits.set(group(1), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Go);
    wait(limits.ask(group(1), WRITE, 512, 0));
    assert_eq!(limits.ask(group(1), READ, 512, 0), Asked::Go);
    limits.set(group(1), READ, ios_per_s(2), 0);
    assert_eq!(limits.ask(group(1), READ, 512, 0), Asked::Go);
    let read = wait(limits.ask(group(1), READ, 512, 0));
    assert_eq!(next(&mut limits, 0), Next::Wait { until: SECOND / 2 });
    assert_eq!(next(&mut limits, SECOND / 2), Next::Go(read));
}

/// A group without a limit on its way is not held up by its neighbour's queue.
#[test]
fn neighbours_are_free() {
    let mut limits = tree(&[0, 0], 4);
    limits.set(group(1), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Go);
    wait(limits.ask(group(1), WRITE, 512, 0));
    assert_eq!(limits.ask(group(2), WRITE, 512, 0), Asked::Go);
    assert_eq!(limits.ask(GroupId::ROOT, WRITE, 512, 0), Asked::Go, "its parent's own neither");
}

/// Weights 100 : 300 below one limit share it 1 : 3, and so do their children with what they get.
#[test]
fn a_common_ancestor_is_shared_by_weight() {
    let mut limits = on(table(&[(0, 100), (1, 100), (1, 300), (3, 200), (3, 100)]), 64);
    limits.set(group(1), WRITE, bytes_per_s(100 << 20), 0);
    let mut busy = Busy::new(&[(2, 4096), (4, 65536), (5, 4096)]);
    busy.run(&mut limits, 8, 10 * SECOND, 0);
    let all = 1000u64 << 20;
    for (who, share) in [(0, all / 4), (1, all / 2), (2, all / 4)] {
        assert!(busy.bytes(who).abs_diff(share) * 100 <= share, "{who}: {} of {share}", busy.bytes(who));
    }
}

/// What is scarce is shared: bytes below a limit of bytes, requests below one of requests.
#[test]
fn large_and_small_requests_share_what_is_scarce() {
    for (rates, by_bytes) in [(bytes_per_s(10 << 20), true), (ios_per_s(1000), false)] {
        let mut limits = tree(&[0, 0], 64);
        limits.set(GroupId::ROOT, WRITE, rates, 0);
        let mut busy = Busy::new(&[(1, 4096), (2, 1 << 20)]);
        busy.run(&mut limits, 4, 60 * SECOND, 0);
        let of = |who| if by_bytes { busy.bytes(who) } else { busy.bios(who) };
        assert!(of(0).abs_diff(of(1)) * 50 <= of(0), "{} and {} under {rates:?}", of(0), of(1));
    }
}

/// A group with a limit of its own gets it in full beside a hungry sibling, and no lead over it when its limit goes.
#[test]
fn an_own_limit_is_no_lead() {
    let mut limits = tree(&[0, 1, 1], 64);
    limits.set(group(1), WRITE, ios_per_s(1000), 0);
    limits.set(group(2), WRITE, ios_per_s(100), 0);
    let mut busy = Busy::new(&[(2, 4096), (3, 4096)]);
    busy.run(&mut limits, 4, 10 * SECOND, 0);
    assert!(busy.bios(0).abs_diff(1000) <= 1, "{}", busy.bios(0));
    let before = [busy.bios(0), busy.bios(1)];
    limits.set(group(2), WRITE, Rates::NONE, busy.now);
    busy.run(&mut limits, 4, 11 * SECOND, 0);
    let since = [busy.bios(0) - before[0], busy.bios(1) - before[1]];
    assert!(since[0].abs_diff(500) <= 5 && since[1].abs_diff(500) <= 5, "{since:?}");
}

/// A limit that is raised, lowered or taken away while somebody waits.
#[test]
fn limits_change_under_those_who_wait() {
    let mut limits = tree(&[0], 4);
    limits.set(group(1), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Go);
    let first = wait(limits.ask(group(1), WRITE, 512, 0));
    let second = wait(limits.ask(group(1), WRITE, 512, 0));
    // Half of it is paid for at 1 a second, the other half at 10.
    limits.set(group(1), WRITE, ios_per_s(10), SECOND / 2);
    assert_eq!(next(&mut limits, SECOND / 2), Next::Wait { until: SECOND * 55 / 100 });
    assert_eq!(next(&mut limits, SECOND * 55 / 100), Next::Go(first));
    limits.set(group(1), WRITE, ios_per_s(1), SECOND * 60 / 100);
    assert_eq!(next(&mut limits, SECOND * 60 / 100), Next::Wait { until: SECOND * 110 / 100 });
    limits.set(group(1), WRITE, Rates::NONE, SECOND * 61 / 100);
    assert_eq!(next(&mut limits, SECOND * 61 / 100), Next::Go(second));
    assert_eq!(next(&mut limits, SECOND * 61 / 100), Next::Empty);
}

/// Metadata goes at once; the group pays for it all the same.
#[test]
fn what_may_not_wait_is_charged() {
    let mut limits = tree(&[0], 4);
    limits.set(group(1), WRITE, ios_per_s(10), 0);
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Go);
    let waiting = wait(limits.ask(group(1), WRITE, 512, 0));
    limits.charge(group(1), WRITE, 512, 0);
    limits.charge(group(1), WRITE, 512, 0);
    assert_eq!(next(&mut limits, 0), Next::Wait { until: SECOND * 3 / 10 });
    assert_eq!(next(&mut limits, SECOND * 3 / 10), Next::Go(waiting));
}

/// Who waits at a group that is removed waits for those above it only, in its place; and a group that has the slot later has
/// nothing of it.
#[test]
fn nobody_is_lost_when_a_group_is_removed() {
    let mut limits = tree(&[0, 1], 8);
    limits.set(group(1), WRITE, ios_per_s(4), 0);
    limits.set(group(2), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(2), WRITE, 512, 0), Asked::Go);
    let names: [_; 3] = core::array::from_fn(|_| wait(limits.ask(group(2), WRITE, 512, 0)));
    // As a queue does for each.
    names.iter().for_each(|_| _ = limits.groups.hold(group(2)));
    limits.remove(group(2), SECOND / 8);
    assert_eq!([limits.waiting(group(1)), limits.waiting(group(2))], [3, 3]);
    for (turn, name) in names.iter().enumerate() {
        let due = SECOND / 4 * (turn as u64 + 1);
        assert_eq!(next(&mut limits, due - 1), Next::Wait { until: due });
        assert_eq!(next(&mut limits, due), Next::Go(*name));
        limits.groups.drop_hold(group(2));
    }
    assert_eq!(next(&mut limits, SECOND), Next::Empty);
    assert_eq!(limits.groups.create(GroupId::ROOT, GroupParams::default()), Ok(group(2)));
    assert_eq!(
        [limits.ask(group(2), WRITE, 512, SECOND), limits.ask(group(2), WRITE, 512, SECOND)],
        [Asked::Go; 2]
    );
    assert_eq!(limits.limiter.rates(&limits.groups, group(2), WRITE), Rates::NONE);
}

/// A debt is not got rid of: not by another limit, nor by none for a moment, nor by limiting bytes and bios in turn.
#[test]
fn a_rewritten_limit_forgives_nothing() {
    let mut limits = tree(&[0], 64);
    let (mut now, mut went) = (0, 0);
    for turn in 0..1000 {
        now += 10_000_000;
        let rates = [ios_per_s(10), Rates::NONE, bytes_per_s(40_960), ios_per_s(20)][turn % 4];
        limits.set(group(1), WRITE, Rates::NONE, now);
        limits.set(group(1), WRITE, rates, now);
        if rates != Rates::NONE {
            went += u64::from(limits.ask(group(1), WRITE, 4096, now) == Asked::Go);
        }
        while let Next::Go(_) = next(&mut limits, now) {
            went += u64::from(rates != Rates::NONE);
        }
    }
    // 20 a second by the one and 10 by the other, and a few at the beginning; 750 if every limit began with nothing owed.
    assert!(went <= 304, "{went} bios in 10 s");
}

/// A limit that owes centuries names a time that a timer can count, again and again.
#[test]
fn a_debt_of_centuries_is_asked_again_every_hour() {
    let mut limits = tree(&[0], 4);
    for now in [0, SECOND, u64::MAX / 2, u64::MAX - 2 * WAIT_MAX_NS] {
        limits.set(group(1), WRITE, bytes_per_s(1), now);
        limits.charge(group(1), WRITE, u64::MAX, now);
        limits.charge(group(1), WRITE, u64::MAX, now);
        let name = wait(limits.ask(group(1), WRITE, 512, now));
        for hour in 0..2 {
            let now = now + hour * WAIT_MAX_NS;
            assert_eq!(next(&mut limits, now), Next::Wait { until: now + WAIT_MAX_NS });
        }
        assert_eq!(limits.limiter.release(&limits.groups, now), Some(name));
        limits.remove(group(1), now);
        assert_eq!(limits.groups.create(GroupId::ROOT, GroupParams::default()), Ok(group(1)));
    }
}

/// No room to wait is an answer, not a loss.
#[test]
fn the_waiting_room_has_an_end() {
    let mut limits = tree(&[0], 1);
    limits.set(group(1), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Go);
    let waiting = wait(limits.ask(group(1), WRITE, 512, 0));
    assert_eq!(limits.ask(group(1), WRITE, 512, 0), Asked::Full);
    assert_eq!(next(&mut limits, SECOND), Next::Go(waiting));
    wait(limits.ask(group(1), WRITE, 512, SECOND));
}

#[test]
fn who_is_let_go_out_of_turn_is_charged_and_leaves_nothing_behind() {
    let mut limits = tree(&[0, 1, 1], 4);
    limits.set(group(1), READ, ios_per_s(10), 0);
    limits.set(group(3), READ, ios_per_s(2), 0);
    let asked: Vec<Asked> = [1, 2, 3, 3].iter().map(|of| limits.ask(group(*of), READ, 4096, 0)).collect();
    assert!(matches!(asked[..], [Asked::Go, Asked::Wait(_), Asked::Wait(_), Asked::Wait(_)]), "{asked:?}");
    let mut gone = 0;
    while limits.limiter.release(&limits.groups, 1).is_some() {
        gone += 1;
    }
    assert_eq!((gone, limits.waiting(group(1)), next(&mut limits, 1)), (3, 0, Next::Empty));
    // Group 1 paid for four of 100 ms, group 3 for two of 500 ms.
    assert!(matches!(limits.ask(group(2), READ, 4096, 2), Asked::Wait(_)));
    assert!(matches!(limits.ask(group(3), READ, 4096, 2), Asked::Wait(_)));
    assert_eq!(next(&mut limits, 2), Next::Wait { until: SECOND * 4 / 10 });
    assert!(matches!(next(&mut limits, SECOND * 4 / 10), Next::Go(_)));
    assert_eq!(next(&mut limits, SECOND * 4 / 10), Next::Wait { until: SECOND });
    assert!(matches!(next(&mut limits, SECOND), Next::Go(_)));
}
