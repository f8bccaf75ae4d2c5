//! Whose the device's time was, by hand: times in comments are milliseconds.

use crate::MS;
use crate::group::{GroupId, GroupParams, Groups};

/// Two groups on an idle device, and what is on their accounts.
struct Device {
    groups: Groups,
    a: GroupId,
    b: GroupId,
}

impl Device {
    fn new() -> Device {
        let mut groups = Groups::new(2);
        let mut group = || groups.create(GroupId::ROOT, GroupParams::default()).expect("there is room");
        let (a, b) = (group(), group());
        Device { groups, a, b }
    }

    fn accounts_ms(&self) -> [u64; 2] {
        [self.a, self.b].map(|id| self.groups[id].unpaid_ns / MS)
    }
}

#[test]
fn a_busy_stretch_is_of_the_group_whose_request_ends_it() {
    let mut device = Device::new();
    let (a, b) = (device.a, device.b);
    device.groups.turn_of(a, 0);
    device.groups.issued(0);
    device.groups.issued(0);
    device.groups.completed(a, 3 * MS);
    assert_eq!(device.groups.turn_over(a, 5 * MS), 3 * MS, "the stretch from 3 on has not ended");
    // b's turn begins and ends while the device still works for a.
    device.groups.turn_of(b, 5 * MS);
    device.groups.issued(6 * MS);
    assert_eq!(device.groups.turn_over(b, 8 * MS), 0);
    device.groups.completed(a, 10 * MS);
    assert_eq!(device.accounts_ms(), [7, 0]);
    device.groups.completed(b, 14 * MS);
    assert_eq!(device.accounts_ms(), [7, 4]);
}

#[test]
fn a_pause_is_of_the_group_the_device_waits_for() {
    let mut device = Device::new();
    let (a, b) = (device.a, device.b);
    device.groups.turn_of(a, 0);
    device.groups.issued(0);
    device.groups.completed(a, 3 * MS);
    device.groups.issued(7 * MS);
    assert_eq!(device.accounts_ms(), [7, 0], "3 busy, 4 waiting");
    device.groups.completed(a, 9 * MS);
    assert_eq!(device.groups.turn_over(a, 12 * MS), 12 * MS, "2 busy and 3 waiting more");
    assert_eq!(device.groups.turn_over(b, 13 * MS), 0);
}

#[test]
fn a_pause_that_nobody_asked_for_is_nobodys() {
    let mut device = Device::new();
    let (a, b) = (device.a, device.b);
    device.groups.turn_of(a, 0);
    device.groups.issued(0);
    device.groups.completed(a, 3 * MS);
    assert_eq!(device.groups.turn_over(a, 3 * MS), 3 * MS);
    device.groups.turn_of(b, 100 * MS);
    device.groups.issued(101 * MS);
    device.groups.completed(b, 105 * MS);
    assert_eq!(device.accounts_ms(), [0, 5], "its turn began at 100");
}

#[test]
fn nobody_pays_for_a_longer_pause_than_a_turn() {
    let mut device = Device::new();
    let a = device.a;
    device.groups.set("group_slice", "50").expect("a tunable");
    device.groups.turn_of(a, 0);
    device.groups.issued(200 * MS);
    assert_eq!(device.accounts_ms(), [50, 0]);
}
