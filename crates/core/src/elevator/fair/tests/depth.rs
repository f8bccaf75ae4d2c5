//! How many requests at a time, from the work that a device does at each depth.

use super::super::depth::Depth;
use crate::MS;

/// A device that serves `most` at a time, a millisecond each, always full; the depth after each second.
fn depths(most: u32, seconds: usize) -> std::vec::Vec<u32> {
    let (mut depth, mut now) = (Depth::NEW, 1);
    let second = |depth: &mut Depth, now: &mut u64| {
        let end = *now + crate::SECOND;
        while *now < end {
            let busy_ns = MS / u64::from(depth.now.min(most));
            *now += busy_ns;
            depth.done(depth.now, 128, busy_ns, *now);
        }
        depth.now
    };
    (0..seconds).map(|_| second(&mut depth, &mut now)).collect()
}

#[test]
fn a_device_that_serves_one_after_the_other_gets_one_at_a_time() {
    let depths = depths(1, 30);
    assert!(depths.iter().filter(|depth| **depth == 1).count() >= 25, "{depths:?}");
    assert!(depths.iter().all(|depth| *depth <= 2), "{depths:?}");
}

#[test]
fn one_that_serves_sixteen_gets_about_as_many() {
    let depths = depths(16, 30);
    assert!(depths[2..].iter().all(|depth| (12..=20).contains(depth)), "{depths:?}");
}

/// It never goes below what it is told to.
#[test]
fn there_is_a_least_depth() {
    let mut depth = Depth::NEW;
    depth.is_at_least(4);
    let mut now = 1;
    for _ in 0..10_000 {
        now += MS;
        depth.done(depth.now, 128, MS, now);
        assert!(depth.now >= 4);
    }
}
