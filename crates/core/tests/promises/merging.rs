//! Merging: nobody rides in another's request, and a request does not grow for ever.

use crate::programs::{Load, Where};
use crate::promise::{Attack, Promise, Victim, load};

/// What requests grow to.
const LONGEST: u32 = 1024;

#[test]
fn requests_next_to_the_victims_gain_nothing() {
    let promise = Promise { victims: &[Victim::EvenBlocks], attacker_sectors: LONGEST, ..Promise::NEW };
    promise.holds_against(load(Load { place: Where::SharedOdd, ..Load::DEEP }));
}

/// 512 KiB a request, and one after the other without a seek.
#[test]
fn a_request_that_grows_for_ever_gains_nothing() {
    let sequential = Load { place: Where::Next, ..Load::DEEP };
    let attacks: [Attack<'_>; 3] = [
        ("reads", &load(sequential)),
        ("512 reads", &load(Load { depth: 512, ..sequential })),
        ("512 writes", &load(Load { depth: 512, place: Where::Next, ..Load::WRITES })),
    ];
    Promise { attacker_sectors: LONGEST, ..Promise::NEW }.holds_against_each(&attacks);
}

#[test]
fn a_sequential_reader_gains_nothing() {
    let load = load(Load { place: Where::Next, ..Load::SERIAL });
    Promise { attacker_sectors: LONGEST, ..Promise::NEW }.holds_against(load);
}
