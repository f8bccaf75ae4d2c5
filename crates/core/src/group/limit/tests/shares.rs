//! Shares of a common limit survive whatever happens around it.

use super::*;

/// Two groups of weights 1 and 1000 below group 1, which has a limit, and group 4, also below it, for others to play with.
fn light_and_heavy(rates: Rates) -> (Limits, Busy) {
    let mut limits = on(table(&[(0, 100), (1, 1), (1, 1000), (1, 100)]), 64);
    limits.set(group(1), WRITE, rates, 0);
    (limits, Busy::new(&[(2, 4096), (3, 4096)]))
}

/// What the two got in 100 s, when `change` is made every 5 ms.
fn shares(rates: Rates, mut change: impl FnMut(&mut Limits, u64)) -> [u64; 2] {
    let (mut limits, mut busy) = light_and_heavy(rates);
    for turn in 1..=20_000 {
        busy.run(&mut limits, 4, turn * 5_000_000, 0);
        change(&mut limits, busy.now);
    }
    [busy.bios(0), busy.bios(1)]
}

fn check([light, heavy]: [u64; 2], what: &str) {
    let due = (light + heavy) / 1001;
    assert!(heavy > 5_000 && light.abs_diff(due) <= 2, "{what}: {light} beside {heavy}, {due} due");
}

#[test]
fn groups_that_come_and_go_change_nothing() {
    let got = shares(ios_per_s(100), |limits, now| {
        limits.remove(group(4), now);
        assert_eq!(limits.groups.create(group(1), GroupParams::default()), Ok(group(4)));
    });
    check(got, "a group made and removed every 5 ms");
}

#[test]
fn groups_that_are_reweighed_change_nothing() {
    let mut weight = 0;
    let got = shares(ios_per_s(100), |limits, _| {
        weight = weight % 1000 + 1;
        limits.groups.set_params(group(4), GroupParams::weight(weight)).expect("it is there");
    });
    check(got, "another group's weight changed every 5 ms");
}

/// Limits of another group, of the common parent, of the root, of one of the two; by bytes, by bios, by both.
#[test]
fn limits_that_change_change_nothing() {
    for (of, what) in [(4, "another group's"), (1, "the parent's"), (0, "the root's"), (2, "the light one's")]
    {
        let mut turn = 0;
        let got = shares(ios_per_s(100), |limits, now| {
            turn += 1;
            let rates = [
                bytes_per_s(409_600),
                ios_per_s(99 + turn % 3),
                Rates { bytes_per_s: 800_000, ios_per_s: 100 },
            ];
            limits.set(group(of), WRITE, rates[turn as usize % 3], now);
        });
        check(got, what);
    }
}

/// The light one, with metadata beside its bios, has no more of the common limit than its weight says: what may not wait is paid
/// for in turns too.
#[test]
fn what_may_not_wait_counts_for_the_share() {
    let mut limits = on(table(&[(0, 100), (1, 100), (1, 100)]), 64);
    limits.set(group(1), WRITE, ios_per_s(100), 0);
    let mut busy = Busy::new(&[(2, 4096), (3, 4096)]);
    let mut metadata = 0;
    for turn in 1..=1000 {
        busy.run(&mut limits, 4, turn * 50_000_000, 0);
        limits.charge(group(2), WRITE, 4096, busy.now);
        metadata += 1;
    }
    let [one, other] = [busy.bios(0) + metadata, busy.bios(1)];
    assert!(one.abs_diff(other) <= 4, "{one} with metadata, {other} without");
}

/// Nobody who leaves and comes back, or changes its weight meanwhile, has lost what it owes its siblings.
#[test]
fn a_debt_is_not_shed_by_leaving() {
    let mut limits = on(table(&[(0, 100), (1, 1), (1, 1000)]), 64);
    limits.set(group(1), WRITE, ios_per_s(1000), 0);
    let (mut got, mut now) = ([0u64; 2], 0);
    // The heavy one always has bios waiting; the light one has one at a time, and leaves when it goes.
    let mut light = None;
    let mut heavy = 0;
    for turn in 0..200_000u32 {
        while heavy < 4 {
            match limits.ask(group(3), WRITE, 4096, now) {
                Asked::Wait(_) => heavy += 1,
                Asked::Go => got[1] += 1,
                Asked::Full => panic!("there is room"),
            }
        }
        if light.is_none() {
            limits.groups.set_params(group(2), GroupParams::weight(1000)).expect("it is there");
            limits.groups.set_params(group(2), GroupParams::weight(1)).expect("it is there");
            match limits.ask(group(2), WRITE, 4096, now) {
                Asked::Wait(name) => light = Some(name),
                Asked::Go => got[0] += 1,
                Asked::Full => panic!("there is room"),
            }
        }
        match next(&mut limits, now) {
            Next::Go(name) if light == Some(name) => {
                got[0] += 1;
                light = None;
            }
            Next::Go(_) => {
                got[1] += 1;
                heavy -= 1;
            }
            Next::Wait { until } => now = until,
            Next::Empty => panic!("somebody waits, turn {turn}"),
        }
    }
    let due = (got[0] + got[1]) / 1001;
    assert!(got[0].abs_diff(due) <= 2, "{got:?}, {due} due");
}

/// Who gets the slot of a group that had much begins where its new siblings are.
#[test]
fn a_new_group_has_nothing_of_who_had_its_slot() {
    let mut limits = tree(&[0, 0, 1, 2], 64);
    limits.set(group(1), WRITE, ios_per_s(1000), 0);
    let mut busy = Busy::new(&[(3, 4096)]);
    busy.run(&mut limits, 1, 100 * SECOND, 0);
    while limits.limiter.release(&limits.groups, busy.now).is_some() {}
    limits.remove(group(3), busy.now);
    assert_eq!(limits.groups.create(group(2), GroupParams::default()), Ok(group(3)));
    limits.set(group(2), WRITE, ios_per_s(1000), busy.now);
    let mut busy = Busy { now: busy.now, ..Busy::new(&[(3, 4096), (4, 4096)]) };
    let end = busy.now + 10 * SECOND;
    busy.run(&mut limits, 4, end, 0);
    assert!(busy.bios(0).abs_diff(busy.bios(1)) <= 21, "{} and {}", busy.bios(0), busy.bios(1));
}

/// From bytes to bios and back: who had the larger bios owes no more than a turn, whatever that is measured in.
#[test]
fn another_measure_starves_nobody() {
    for measures in [[bytes_per_s(1 << 20), ios_per_s(100)], [ios_per_s(100), bytes_per_s(1 << 20)]] {
        let mut limits = tree(&[0, 1, 1], 64);
        limits.set(group(1), WRITE, measures[0], 0);
        let mut busy = Busy::new(&[(2, 1 << 20), (3, 4096)]);
        busy.run(&mut limits, 4, 100 * SECOND, 0);
        let before = [busy.bios(0), busy.bios(1)];
        limits.set(group(1), WRITE, measures[1], busy.now);
        busy.run(&mut limits, 4, 200 * SECOND, 0);
        let since = [busy.bios(0) - before[0], busy.bios(1) - before[1]];
        if measures[1].bytes_per_s == 0 {
            assert!(since[0].abs_diff(since[1]) <= 4, "bios: {since:?}");
        } else {
            let bytes = [since[0] << 20, since[1] << 12];
            assert!(bytes[0].abs_diff(bytes[1]) <= 3 << 20, "bytes: {bytes:?}");
        }
    }
}
