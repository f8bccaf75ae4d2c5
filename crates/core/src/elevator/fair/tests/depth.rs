//! How many requests at a time, from the work that a device does at each depth.

use super::super::depth::Depth;
use crate::MS;

const SEEDS: u64 = 2_000;

/// Numbers without pattern; the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

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

/// A serial device that pauses now and then: the smaller depth looks slow when the pause falls into its measurement. Of each 1,000
/// seeds, how many ever came to a depth above 3, by which a device is taken to serve many at a time.
fn misjudged(seeds: u64, service_ns: impl Fn(&mut Random) -> u64) -> u64 {
    let is_misjudged = |seed: &u64| {
        let (mut random, mut depth, mut now) = (Random(*seed), Depth::NEW, 1);
        while now < 30 * crate::SECOND {
            let busy_ns = service_ns(&mut random);
            now += busy_ns;
            depth.done(depth.now, 128, busy_ns, now);
            if depth.now > 3 {
                return true;
            }
        }
        false
    };
    (1..=seeds).filter(is_misjudged).count() as u64 * 1000 / seeds
}

/// One request in a hundred takes 50 ms in place of 1 ms; one in 500 takes 300 ms in place of 2 ms; they take a tenth of a millisecond or
/// 2 ms. When a larger depth counted at once it was 646, 187 and 119 of 1,000.
#[test]
fn a_serial_device_that_pauses_is_seldom_taken_for_a_parallel_one() {
    let rare = misjudged(SEEDS, |random| if random.below(100) == 0 { 50 * MS } else { MS });
    let rarer = misjudged(SEEDS, |random| if random.below(500) == 0 { 300 * MS } else { 2 * MS });
    let two = misjudged(SEEDS, |random| if random.below(2) == 0 { MS / 10 } else { 2 * MS });
    assert!(rare <= 100 && rarer <= 20 && two <= 50, "{rare}, {rarer} and {two} of 1,000");
}
