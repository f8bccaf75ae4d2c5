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

/// The device is kept for a heavy task that thinks for a moment (`group_idle`), and a light group that sends all the time gets its part and
/// no more: that it has all that is queued then does not matter.
#[test]
fn a_pause_of_another_that_is_waited_for_is_no_time_alone() {
    let (mut machine, [heavy, light]) = Machine::with_groups(FAST_SERIAL, [1000, 1]);
    let thinks = machine.task_in(heavy, Load { think_ns: 2 * MS, ..READS });
    machine.run(SECOND);
    machine.forget();
    machine.run(SECOND);
    let alone = machine.done(thinks);
    let deep = machine.task_in(light, DEEP);
    machine.run(SECOND);
    machine.forget();
    machine.run(SECOND);
    let [beside, got] = [thinks, deep].map(|task| machine.done(task));
    // A thousandth of a second is 100 requests.
    assert!(beside * 100 >= alone * 95 && got <= 105, "{beside} of {alone} requests; {got}");
}

/// Another group's request does not wait for the end of a shift that goes on because its group was alone.
#[test]
fn who_comes_to_one_that_was_alone_does_not_wait_for_its_shift() {
    let (mut machine, [first, second]) = Machine::with_groups(FAST_FLASH, [100, 100]);
    machine.task_in(first, DEEP);
    let comes = machine.task_in(second, Load { think_ns: 2 * MS, ..READS });
    machine.run(SECOND);
    machine.forget();
    machine.run(SECOND);
    let (longest_ns, mean_ns) = machine.waited_ns(comes);
    let access_ns = FAST_FLASH.access_ns;
    assert!(longest_ns <= 3 * access_ns && mean_ns <= 2 * access_ns, "{longest_ns}, mean {mean_ns} ns");
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
