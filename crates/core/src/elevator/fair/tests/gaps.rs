//! What a request costs a device that serves one after the other, from the gaps between completions.

use super::super::gaps::Gaps;
use crate::MS;

const KIB_4: usize = 3;
const KIB_128: usize = 8;
const LITTLE: u64 = 5 * MS / 2;
const MUCH: u64 = 10 * MS;

/// Reads, a quarter of them large, in no order; one in `pauses_every` takes a second more. What the device is busy with is said before
/// it is done (`before`), or after. Answers with what the last small and large one were charged.
fn served(before: bool, count: u64, pauses_every: u64) -> (u64, u64) {
    let (mut gaps, mut dice, mut left) = (Gaps::NEW, 1_u64, 0);
    let mut charged = (0, 0);
    for number in 0..count {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_large = dice >> 62 == 0;
        let (size, own) = if is_large { (KIB_128, MUCH) } else { (KIB_4, LITTLE) };
        let pause = if number % pauses_every == pauses_every - 1 { 1000 * MS } else { 0 };
        let gap = pause + if before { left } else { own };
        left = own;
        // Rows say: all alike.
        let charge = gaps.done(false, size, gap, 0, (3 * LITTLE + MUCH) / 4);
        *(if is_large { &mut charged.1 } else { &mut charged.0 }) = charge;
    }
    charged
}

fn within(percent: u64, what: u64, due: u64) -> bool {
    what.abs_diff(due) * 100 <= percent * due
}

/// Most devices say that a request is done when it is; a rate limit in tokens lets it go and makes the next one wait.
#[test]
fn small_and_large_are_told_apart_whichever_of_two_pays_with_its_wait() {
    for before in [false, true] {
        let (small, large) = served(before, 600, u64::MAX);
        assert!(within(5, small, LITTLE), "{before}: {small}");
        assert!(within(5, large, MUCH), "{before}: {large}");
    }
}

/// A pause of a second in a hundred requests of 2.5 and 10 ms moves what they cost by less than their difference.
#[test]
fn a_pause_is_not_what_a_request_costs() {
    for before in [false, true] {
        for count in [598, 601, 610] {
            let (small, large) = served(before, count, 100);
            assert!(small * 2 < large && large < 2 * MUCH, "{before}, {count}: {small} {large}");
        }
    }
}

/// A limit that lets a burst pass makes a request wait for what went long before: then the rows count.
#[test]
fn where_gaps_say_nothing_rows_count() {
    let mut gaps = Gaps::NEW;
    let row_ns = 3 * MS;
    let mut dice = 1_u64;
    for _ in 0..2000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = if dice >> 62 == 0 { KIB_128 } else { KIB_4 };
        // Nothing, or the wait for many.
        let gap_ns = if (dice >> 40).is_multiple_of(4) { 12 * MS } else { 0 };
        assert_eq!(gaps.done(false, size, gap_ns, 0, row_ns), row_ns);
    }
}

/// While the device had nothing to do it worked off what the one before had left.
#[test]
fn idling_is_not_charged() {
    let mut gaps = Gaps::NEW;
    let mut charged = 0;
    for number in 0..400 {
        // Every second one comes 1 ms after the device was done.
        let idle = number % 2 * MS;
        charged = gaps.done(false, KIB_4, LITTLE - idle, idle, 100 * MS);
    }
    assert!(within(5, charged, LITTLE), "{charged}");
}

/// A request that takes a century, or none at all, is no reason to stop.
#[test]
fn extremes_are_cut_off() {
    let mut gaps = Gaps::NEW;
    for took_ns in [0, u64::MAX, 1, u64::MAX] {
        for idle_ns in [0, u64::MAX] {
            (0..64).for_each(|_| assert!(gaps.done(true, usize::MAX, took_ns, idle_ns, took_ns) < u64::MAX));
        }
    }
}
