//! What requests cost, from how long rows of them took.

use super::super::costs::Costs;

const KIB_4: usize = 3;
const KIB_64: usize = 7;

/// So many requests of each kind in turn, which are done all at once at the end of the row: what each of them takes by itself cannot be
/// seen. Answers with what was charged for the last of each.
fn rows(
    costs: &mut Costs,
    mix: impl Fn(usize) -> (u64, u64),
    true_ns: (u64, u64),
    count: usize,
) -> (u64, u64) {
    let mut charged = (0, 0);
    for row in 0..count {
        let (reads, writes) = mix(row);
        let whole_ns = reads * true_ns.0 + writes * true_ns.1;
        let each_ns = whole_ns / (reads + writes);
        (0..reads).for_each(|_| charged.0 = costs.done(false, KIB_4, each_ns));
        (0..writes).for_each(|_| charged.1 = costs.done(true, KIB_64, each_ns));
    }
    charged
}

/// A read that costs a tenth of a write, whatever the clock of completions says, is charged a tenth.
#[test]
fn what_is_mixed_in_different_parts_is_told_apart() {
    let mut costs = Costs::NEW;
    let mix = |row: usize| if row.is_multiple_of(2) { (24, 8) } else { (8, 24) };
    let (read, write) = rows(&mut costs, mix, (1_000_000, 10_000_000), 500);
    assert!((900_000..=1_100_000).contains(&read), "{read}");
    assert!((9_500_000..=10_500_000).contains(&write), "{write}");
}

/// Some reads among many writes that become ten times as slow: the writes explain it.
#[test]
fn who_is_hardly_there_is_hardly_touched() {
    let mut costs = Costs::NEW;
    rows(&mut costs, |_| (32, 0), (6_000_000, 0), 10);
    rows(&mut costs, |_| (0, 32), (0, 2_000_000), 10);
    let (read, write) = rows(&mut costs, |_| (2, 30), (6_000_000, 20_000_000), 30);
    assert!(read < 12_000_000, "{read}");
    assert!((18_000_000..=22_000_000).contains(&write), "{write}");
}

/// A drive stalls for 5 ms every 128 writes, and serves then what reads came meanwhile: a task reads 1000 times a second, whatever the
/// drive does. The reads did not cause the stall.
#[test]
fn who_comes_during_a_stall_did_not_cause_it() {
    let mut costs = Costs::NEW;
    let (mut read, mut write) = (0, 0);
    for _ in 0..400 {
        (0..3).for_each(|_| read = costs.done(false, KIB_4, 100_000));
        (0..128).for_each(|_| write = costs.done(true, KIB_64, 20_000));
        write = costs.done(true, KIB_64, 5_000_000);
        (0..5).for_each(|_| read = costs.done(false, KIB_4, 100_000));
    }
    assert!(read < 200_000, "{read}");
    assert!((50_000..=70_000).contains(&write), "{write}");
}

/// A rate limit lets a small request wait for what a large one before it has used up. So what the first one took says little.
#[test]
fn what_is_new_costs_like_the_nearest_that_is_known() {
    let mut costs = Costs::NEW;
    (0..32).for_each(|_| _ = costs.done(false, KIB_64, 2_000_000));
    // Half of a request of 64 KiB is for itself.
    let charged = costs.done(false, KIB_4, 2_000_000);
    assert_eq!(charged, 2_000_000 * (128 + 8) / (128 + 128));
}

/// A request that takes a century, or none at all, is no reason to stop.
#[test]
fn extremes_are_cut_off() {
    let mut costs = Costs::NEW;
    for took_ns in [0, u64::MAX, 1, u64::MAX] {
        (0..64).for_each(|_| assert!(costs.done(false, usize::MAX, took_ns) > 0));
    }
}
