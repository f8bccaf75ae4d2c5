//! Requests for one sector: the elevators of the 2.6 era send such an alias out at once.

use crate::programs::{Load, Where};
use crate::promise::{Promise, Victim, load};

#[test]
fn reading_one_sector_again_and_again_gains_nothing() {
    Promise::NEW.holds_against(load(Load { place: Where::Same, ..Load::DEEP }));
}

#[test]
fn writing_one_sector_again_and_again_gains_nothing() {
    Promise::NEW.holds_against(load(Load { place: Where::Same, ..Load::WRITES }));
}

/// Not even who is told where the victim reads.
#[test]
fn reading_the_victims_sector_gains_nothing() {
    let promise = Promise { victims: &[Victim::OneSector], ..Promise::NEW };
    promise.holds_against(|machine, group, victim| {
        load(Load { place: Where::SameOf(victim), ..Load::DEEP })(machine, group, victim);
    });
}
