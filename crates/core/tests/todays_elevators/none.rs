//! none: in order of arrival, merging equal priorities only.

use crate::bench::{BE, Bench, IDLE, READ, RT, WRITE};

#[test]
fn first_come_first_served_whatever_it_is() {
    let mut b = Bench::disk("none");
    b.add(READ, 50);
    b.add(WRITE.with(IDLE), 10);
    b.add(READ.with(RT), 30);
    assert_eq!(b.rest(), [50, 10, 30]);
}

#[test]
fn bios_of_another_priority_are_not_merged() {
    for name in ["none", "mq-deadline", "kyber"] {
        let mut b = Bench::disk(name);
        let rq = b.add(READ.with(BE), 50);
        assert!(b.allow_merge(rq, &READ.with(BE).bio(58)), "{name}");
        assert!(!b.allow_merge(rq, &READ.with(RT).bio(58)), "{name}");
    }
}
