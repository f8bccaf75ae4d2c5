//! A group that has all that is queued: the tree is charged later, and nothing else is different.

use super::machine::{Device, Load, Machine, READS};
use crate::{MS, SECOND};

const FAST_SERIAL: Device =
    Device { at_a_time: 1, access_ns: MS / 100, seek_ns: 0, slots: 32, rotational: false };
const FAST_FLASH: Device =
    Device { at_a_time: 16, access_ns: MS / 10, seek_ns: 0, slots: 64, rotational: false };
const DEEP: Load = Load { depth: 64, ..READS };

/// Who was alone for a second owes nothing for that, and has no credit: from the first 40 ms on, each of two gets its part. (Of a
/// device that serves many at a time 3:1 is shared out by time, which is not the number of requests.)
#[test]
fn who_was_alone_shares_at_once_with_who_comes() {
    for (device, weights, due) in
        [(FAST_SERIAL, [100, 100], 500), (FAST_SERIAL, [300, 100], 750), (FAST_FLASH, [100, 100], 500)]
    {
        let (mut machine, [first, second]) = Machine::with_groups(device, weights);
        let alone = machine.task_in(first, DEEP);
        machine.run(SECOND);
        machine.task_in(second, DEEP);
        for (span_ns, off) in [(40 * MS, 50), (SECOND, 5)] {
            machine.forget();
            machine.run(span_ns);
            let got = machine.permille(alone);
            assert!(got.abs_diff(due) <= off, "{weights:?}: {got} of {due} per mille in {span_ns} ns");
        }
    }
}

/// Who waits until the other one pauses, every time, gets no more of the device than its part while both want it: a light group that sends
/// whenever a heavy one thinks for a moment.
#[test]
fn who_uses_the_pauses_of_another_gains_nothing_by_it() {
    for device in [FAST_SERIAL, FAST_FLASH] {
        let (mut machine, [heavy, light]) = Machine::with_groups(device, [1000, 1]);
        let thinks = machine.task_in(heavy, Load { depth: 8, think_ns: MS / 20, ..READS });
        machine.run(SECOND);
        let alone = machine.done(thinks);
        machine.task_in(light, DEEP);
        machine.run(SECOND);
        machine.forget();
        machine.run(SECOND);
        // In the device it finds the light one's requests, as many as the device gains from.
        let beside = machine.done(thinks);
        assert!(beside * 10 >= alone * 4, "{beside} of {alone} requests");
    }
}

/// What was billed while it was alone is charged in the end: the groups' statistics add up to what the device did.
#[test]
fn what_was_not_charged_at_once_is_charged_in_the_end() {
    let (mut machine, [first, second]) = Machine::with_groups(FAST_SERIAL, [100, 100]);
    machine.task_in(first, DEEP);
    machine.run(SECOND);
    machine.task_in(second, DEEP);
    machine.run(SECOND);
    let billed_ns =
        [first, second].map(|group| machine.q.groups()[group].stats().time_ns).iter().sum::<u64>();
    // All but what the turn that goes on has cost so far.
    assert!((2 * SECOND - 2 * MS..=2 * SECOND).contains(&billed_ns), "{billed_ns}");
}
