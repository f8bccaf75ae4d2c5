//! Requests that the device gives back or fails: its time is paid for, whatever comes of it.

use crate::programs::{Load, Run};
use crate::promise::{Attack, Promise, load};
use crate::rig::RETURN_NS;

#[test]
fn requests_that_the_device_gives_back_gain_nothing() {
    let returned = |load: Load, times: u32| {
        move |machine: &mut crate::rig::Machine, group, _| {
            let tenant = machine.tenant(group, Run::new(load));
            machine.return_requests_of(tenant, times);
        }
    };
    let attacks: [Attack<'_>; 3] = [
        ("32 reads, 3 times each", &returned(Load::DEEP, 3)),
        ("one at a time, 3 times each", &returned(Load::SERIAL, 3)),
        ("32 reads, 50 times each", &returned(Load::DEEP, 50)),
    ];
    // All of the attacker's that the device holds may come back as often.
    Promise { extra_wait_ns: 32 * 50 * RETURN_NS, ..Promise::NEW }.holds_against_each(&attacks);
}

/// The core is not told yet that a request failed; a failed one must count like any other.
#[test]
fn requests_that_fail_count_as_served() {
    Promise::NEW.holds_against(|machine, group, victim| {
        load(Load::DEEP)(machine, group, victim);
        machine.fail_requests_of(victim + 1);
    });
}
