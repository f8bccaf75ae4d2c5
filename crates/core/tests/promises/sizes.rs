//! Sizes: however the attacker cuts its requests, it gets its due of what is charged.

use fairlift_core::Op;

use crate::programs::Load;
use crate::promise::{Attack, Measure, Promise, Victim, load};

/// The largest: 512 KiB.
const LARGE: u32 = 1024;
const SIZES: Promise = Promise {
    victims: &[Victim::Deep, Victim::Small, Victim::Large],
    measure: Measure::Charged,
    ..Promise::NEW
};

#[test]
fn splitting_requests_gains_nothing() {
    let attacks: [Attack<'_>; 2] = [
        ("1 sector, 32 at a time", &load(Load { sectors: 1, ..Load::DEEP })),
        ("1 sector, 128 at a time", &load(Load { sectors: 1, depth: 128, ..Load::DEEP })),
    ];
    Promise { attacker_sectors: 1, ..SIZES }.holds_against_each(&attacks);
}

#[test]
fn large_requests_gain_nothing() {
    let attacks: [Attack<'_>; 2] = [
        ("1024 sectors, 32 at a time", &load(Load { sectors: LARGE, ..Load::DEEP })),
        ("1024 sectors, one at a time", &load(Load { sectors: LARGE, ..Load::SERIAL })),
    ];
    Promise { attacker_sectors: LARGE, ..SIZES }.holds_against_each(&attacks);
}

/// They transfer nothing: what they take of the device is its time.
#[test]
fn discards_gain_nothing() {
    let discard = |sectors| load(Load { op: Op::Discard, sectors, ..Load::DEEP });
    let attacks: [Attack<'_>; 3] =
        [("8 sectors", &discard(8)), ("1 sector", &discard(1)), ("1024 sectors", &discard(LARGE))];
    Promise::NEW.holds_against_each(&attacks);
}
