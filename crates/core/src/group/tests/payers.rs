//! Who pays for a wait that goes over from one group to another before it is over.

use std::prelude::v1::*;

use crate::MS;
use crate::collections::Id;
use crate::group::GroupId;
use crate::group::ledger::Ledger;

fn waited(ledger: &mut Ledger) -> Vec<(GroupId, u64)> {
    core::iter::from_fn(|| ledger.take_bill()).map(|(payer, bill)| (payer, bill.waited_ns)).collect()
}

#[test]
fn a_wait_passed_on_is_paid_by_each_up_to_where_it_was_passed_on() {
    let (first, second) = (GroupId::from_index(1), GroupId::from_index(2));
    for (passed_ms, later_ms, shares_ms) in [(4, 9, [4, 5]), (10, 15, [10, 5]), (12, 15, [10, 3])] {
        let mut ledger = Ledger::new(3);
        ledger.wait(first, 0, 10 * MS);
        ledger.wait(second, passed_ms * MS, 20 * MS);
        ledger.stop_waiting(later_ms * MS);
        let [one, other] = shares_ms.map(|ms| ms * MS);
        assert_eq!(waited(&mut ledger), [(first, one), (second, other)], "passed on after {passed_ms} ms");
        assert_eq!(ledger.totals().waited_ns, one + other, "passed on after {passed_ms} ms");
    }
}

#[test]
fn a_wait_for_the_same_group_that_gets_longer_is_one_wait() {
    let group = GroupId::from_index(1);
    let mut ledger = Ledger::new(2);
    ledger.wait(group, 0, 10 * MS);
    ledger.wait(group, 4 * MS, 20 * MS);
    ledger.stop_waiting(15 * MS);
    assert_eq!(waited(&mut ledger), [(group, 15 * MS)]);
}
