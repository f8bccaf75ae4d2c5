//! Order and durability: flushes and barriers are work for who wants them.

use fairlift_core::queue::Ordering;
use fairlift_core::{Flags, MS, Op};

use crate::programs::{Every, Load, Run};
use crate::promise::{Attack, Promise, load};
use crate::rig::{FLUSH_NS, SERVICE_NS, Setup};

/// A volatile cache, and a device that does not know FUA: every flagged write brings one or two flushes.
const SEQUENCES: Promise = Promise {
    attacker_extra_ns: 2 * FLUSH_NS,
    setup: |setup| Setup { ordering: Ordering::Sequences { write_cache: true, fua: false }, ..setup },
    ..Promise::NEW
};

fn writes(flags: Flags, depth: u32) -> Load {
    Load { flags: flags | Flags::SYNC, depth, ..Load::WRITES }
}

const EMPTY_FLUSHES: Load = Load { op: Op::Flush, sectors: 0, ..Load::DEEP };

#[test]
fn flushes_are_paid_by_who_wants_them() {
    let attacks: [Attack<'_>; 6] = [
        ("PREFLUSH writes, 32 at a time", &load(writes(Flags::PREFLUSH, 32))),
        ("PREFLUSH writes, one at a time", &load(writes(Flags::PREFLUSH, 1))),
        ("FUA writes, 32 at a time", &load(writes(Flags::FUA, 32))),
        ("both flags, 32 at a time", &load(writes(Flags::PREFLUSH | Flags::FUA, 32))),
        ("empty flushes, one at a time", &load(Load { depth: 1, ..EMPTY_FLUSHES })),
        ("empty flushes, 32 at a time", &load(EMPTY_FLUSHES)),
    ];
    SEQUENCES.holds_against_each(&attacks);
}

#[test]
fn a_device_that_knows_fua_is_no_way_around() {
    let setup = |setup| Setup { ordering: Ordering::Sequences { write_cache: true, fua: true }, ..setup };
    Promise { setup, ..SEQUENCES }.holds_against(load(writes(Flags::PREFLUSH | Flags::FUA, 32)));
}

/// Two steps of the barrier, and the barrier itself; before it the device runs dry, and it may find a request of ordinary
/// size.
const BARRIER_NS: u64 = 2 * FLUSH_NS + 2 * SERVICE_NS;

fn barriers_hold(ordering: fn(Setup) -> Setup) {
    let barrier = Load { flags: Flags::BARRIER, ..Load::SYNC_WRITES };
    let attacks: [Attack<'_>; 4] = [
        ("one barrier after the other", &load(barrier)),
        ("32 barriers at a time", &load(Load { depth: 32, ..barrier })),
        ("a barrier every 50 ms", &|machine, group, _| {
            machine.tenant(group, Every::new(50 * MS, barrier));
        }),
        ("the same beside 32 reads", &|machine, group, _| {
            machine.tenant(group, Every::new(50 * MS, barrier));
            machine.tenant(group, Run::new(Load::DEEP));
        }),
    ];
    let promise = Promise { setup: ordering, extra_wait_ns: BARRIER_NS, ..Promise::NEW };
    promise.holds_against_each(&attacks);
}

#[test]
fn barriers_by_draining_gain_nothing() {
    barriers_hold(|setup| Setup { ordering: Ordering::Drain, ..setup });
}

#[test]
fn barriers_with_flushes_gain_nothing() {
    barriers_hold(|setup| Setup { ordering: Ordering::DrainFlush, ..setup });
}

#[test]
fn barriers_with_fua_gain_nothing() {
    barriers_hold(|setup| Setup { ordering: Ordering::DrainFua, ..setup });
}
