//! Rates: exact to the nanosecond, from 1 request a second to 1,000,000, from 1 KiB/s to 10 GB/s.

use super::*;

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;

/// The k-th bio of a busy group goes at exactly ceil(k x price); what went in `window_ns` is within 0.5 % of the rate (where a
/// single bio is not more than that).
fn check(rates: Rates, bytes: u64, window_ns: u64) {
    let mut limits = tree(&[0], 4);
    limits.set(group(1), WRITE, rates, 0);
    let mut busy = Busy::new(&[(1, bytes)]);
    busy.run(&mut limits, 1, window_ns, 0);
    let exact = |k: u64| {
        let ns = |units: u64, rate: u64| match rate {
            0 => 0,
            _ => (u128::from(k) * u128::from(units) * u128::from(SECOND)).div_ceil(u128::from(rate)),
        };
        ns(bytes, rates.bytes_per_s).max(ns(1, rates.ios_per_s)) as u64
    };
    for (k, (at, _)) in busy.went.iter().enumerate() {
        assert_eq!(*at, exact(k as u64), "bio {k} of {bytes} bytes at {rates:?}");
    }
    let went = busy.went.len() as u64;
    assert!(exact(went) >= window_ns && exact(went - 1) < window_ns, "{went} of {bytes} at {rates:?}");
    if went >= 200 {
        // bios x price against the window, to 1 in 200.
        assert!(
            exact(went).abs_diff(window_ns) * 200 <= window_ns,
            "{went} of {bytes} at {rates:?}: over 0.5 % off"
        );
    }
}

/// From 1 to 1,000,000 requests a second over 10 s.
#[test]
fn requests_a_second_are_exact_over_ten_seconds() {
    for rate in [1, 2, 3, 7, 10, 99, 100, 1_000, 3_333, 10_000, 123_457, 999_999, 1_000_000] {
        check(ios_per_s(rate), 4096, 10 * SECOND);
    }
}

/// From 1 KiB/s to 10 GB/s with requests of 512 B to 32 MiB over 10 s; where a request takes longer than that, over 20
/// requests, and where more than a million would go, over a million of them.
#[test]
fn bytes_a_second_are_exact_over_ten_seconds() {
    for rate in [KIB, 10_000, MIB, 7 * MIB, 123_456_789, 1_000_000_000, 10_000_000_000] {
        for bytes in [512, 4096, 64 * KIB, MIB, 32 * MIB] {
            let bios = |n: u64| (u128::from(n * bytes) * u128::from(SECOND) / u128::from(rate)) as u64;
            check(bytes_per_s(rate), bytes, (10 * SECOND).max(bios(20)).min(bios(1_000_000)));
        }
    }
}

/// Both limits at once: the scarcer one decides, whichever it is.
#[test]
fn the_scarcer_of_two_limits_holds() {
    let rates = Rates { bytes_per_s: MIB, ios_per_s: 100 };
    check(rates, 4 * KIB, 10 * SECOND); // 100 a second are 400 KiB/s
    check(rates, 64 * KIB, 10 * SECOND); // 16 a second are 1 MiB/s
}

/// A limit far up the tree is as exact as one at the group itself.
#[test]
fn every_ancestor_holds_exactly() {
    for limited in 0..=4 {
        let mut limits = tree(&[0, 1, 2, 3], 4);
        for other in 0..=4 {
            limits.set(group(other), WRITE, ios_per_s(5000), 0);
        }
        limits.set(group(limited), WRITE, ios_per_s(300), 0);
        let mut busy = Busy::new(&[(4, 4096)]);
        busy.run(&mut limits, 1, 10 * SECOND, 0);
        assert_eq!(busy.went.len(), 3000, "limit at depth {limited}");
    }
}

/// A bucket of 3 s at 100 a second: after an hour without I/O, 300 bios at once, and then one each 10 ms; without one, 2.
#[test]
fn a_burst_is_as_deep_as_it_was_set() {
    const HOUR: u64 = 3600 * SECOND;
    for (burst_ns, at_once) in [(3 * SECOND, 300), (BURST_NS, 2), (0, 0)] {
        let mut limits = tree(&[0], 1);
        limits.set(group(1), WRITE, ios_per_s(100), 0);
        limits.limiter.set_burst(&limits.groups, group(1), WRITE, burst_ns);
        let went = (0..1000).take_while(|_| limits.ask(group(1), WRITE, 4096, HOUR) == Asked::Go).count();
        // The last one begins a debt.
        assert_eq!(went, at_once + 1, "{burst_ns} ns");
        assert_eq!(next(&mut limits, HOUR), Next::Wait { until: HOUR + SECOND / 100 });
    }
}

/// A host whose timers are 15 ms late loses nothing: that is within the burst.
#[test]
fn a_late_host_loses_nothing() {
    for rate in [50, 1000, 100_000] {
        let mut limits = tree(&[0], 4);
        limits.set(group(1), WRITE, ios_per_s(rate), 0);
        let mut busy = Busy::new(&[(1, 4096)]);
        busy.run(&mut limits, 1, 10 * SECOND, 15_000_000);
        let due = rate * 10;
        assert!(busy.bios(0).abs_diff(due) * 200 <= due, "{} of {due}", busy.bios(0));
    }
}

/// 2 a second below a parent with 5 a second and a busy sibling: waiting for the parent's next turn is not held against it.
#[test]
fn waiting_for_an_ancestor_costs_nothing() {
    let mut limits = tree(&[0, 1, 1], 8);
    limits.set(group(1), WRITE, ios_per_s(5), 0);
    limits.set(group(2), WRITE, ios_per_s(2), 0);
    let mut busy = Busy::new(&[(2, 4096), (3, 4096)]);
    busy.run(&mut limits, 2, 100 * SECOND, 0);
    assert!(busy.bios(0).abs_diff(200) <= 1, "{}", busy.bios(0));
    assert!(busy.bios(1).abs_diff(300) <= 1, "{}", busy.bios(1));
}

/// Whoever was idle for an hour may catch up 20 ms of it, no more.
#[test]
fn idleness_is_worth_the_burst() {
    let mut limits = tree(&[0], 64);
    limits.set(group(1), WRITE, ios_per_s(1000), 0);
    let mut busy = Busy::new(&[(1, 4096)]);
    busy.now = 3600 * SECOND;
    busy.run(&mut limits, 1, 3601 * SECOND, 0);
    let first = busy.went.iter().filter(|(at, _)| *at == 3600 * SECOND).count();
    assert_eq!(first, 21, "20 ms at 1000 a second, and the one that is paid for afterwards");
    assert_eq!(busy.went.len(), 1020);
}

/// A bio that waits for its own limit keeps of its parent's unused time what passes while it waits, and of the time before that
/// the burst.
#[test]
fn an_ancestors_idleness_before_the_wait_is_worth_the_burst() {
    const MS: u64 = 1_000_000;
    let mut limits = tree(&[0, 1, 1], 4);
    limits.set(group(1), WRITE, ios_per_s(10), 0);
    limits.set(group(2), WRITE, ios_per_s(1), 0);
    assert_eq!(limits.ask(group(2), WRITE, 512, 0), Asked::Go);
    // The parent is paid for at 100 ms and idle from then on.
    assert!(matches!(limits.ask(group(2), WRITE, 512, 990 * MS), Asked::Wait(_)));
    assert_eq!(next(&mut limits, 990 * MS), Next::Wait { until: SECOND });
    assert!(matches!(next(&mut limits, SECOND), Next::Go(_)));
    // 100 ms after 20 ms before the wait began.
    assert!(matches!(limits.ask(group(3), WRITE, 512, SECOND), Asked::Wait(_)));
    assert_eq!(next(&mut limits, SECOND), Next::Wait { until: 1070 * MS });
}

/// Bios that pile up behind a busy parent do not leave faster than their own limit once the parent is free.
#[test]
fn a_pile_below_a_busy_parent_keeps_its_own_limit() {
    let mut limits = tree(&[0, 1, 1], 256);
    limits.set(group(1), WRITE, ios_per_s(100), 0);
    limits.set(group(2), WRITE, ios_per_s(80), 0);
    let mut busy = Busy::new(&[(2, 4096), (3, 4096)]);
    busy.run(&mut limits, 100, SECOND, 0);
    assert!(busy.bios(0).abs_diff(50) <= 1, "half of the parent's 100 each: {}", busy.bios(0));
    // The parent is free of its limit, the sibling gone.
    limits.set(group(1), WRITE, Rates::NONE, SECOND);
    let mut own = 0;
    for ms in 1000..2000 {
        while let Next::Go(name) = next(&mut limits, ms * 1_000_000) {
            own += u64::from(busy.names[name as usize] == 0);
        }
    }
    assert!((80..=83).contains(&own), "{own} in a second at 80 a second");
}
