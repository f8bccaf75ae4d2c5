//! Records of the module in a virtual machine (Linux 6.12.117, `kernel/test/run record`; the first 1,500 lines): the core
//! still answers every call as it did in the kernel.

use fairlift_kernel::replay::{Disagreement, replay};

const CFQ: &str = include_str!("records/fl-cfq-files.record");
const ANTICIPATORY: &str = include_str!("records/fl-as-raw.record");

#[test]
fn the_core_decides_as_it_did_in_the_kernel() {
    for record in [CFQ, ANTICIPATORY] {
        let agreement = replay(record).unwrap_or_else(|difference| panic!("{difference}"));
        assert!(agreement.calls == 1_499 && agreement.issued > 100, "{agreement:?}");
    }
}

#[test]
fn another_decision_is_noticed() {
    let line = ANTICIPATORY.lines().find(|l| l.contains(" dispatch -> ") && !l.ends_with('-')).unwrap();
    let (call, _) = line.split_once(" -> ").unwrap();
    let changed = ANTICIPATORY.replacen(line, &format!("{call} -> 4000"), 1);
    assert!(matches!(replay(&changed), Err(Disagreement::Differs { .. })));
}

#[test]
fn what_is_no_record_is_named_by_line() {
    assert_eq!(replay("hello"), Err(Disagreement::NoRecord));
    let header = CFQ.lines().next().unwrap();
    assert_eq!(replay(&format!("{header}\n12 dance -> -\n")), Err(Disagreement::NoCall(2)));
}
