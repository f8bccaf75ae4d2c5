//! The 2.6.34 round: trees, their shares, and slices that fit them.

use super::*;

/// How long a turn lasts with `n` equal readers that always have requests of 1 ms queued, once the average number of
/// busy queues is known.
fn turn_ms(n: usize, low_latency: bool) -> u64 {
    let mut rig = Rig::new("2.6.34");
    if !low_latency {
        rig.set("low_latency", "0");
    }
    let contexts: Vec<ContextId> = (0..n).map(|_| rig.context()).collect();
    let mut sectors: Vec<u64> = (0..n as u64).map(|i| (i + 1) * 10 * FAR).collect();
    for (i, c) in contexts.iter().enumerate() {
        for _ in 0..2 {
            rig.read(*c, sectors[i]);
            sectors[i] += PAGE;
        }
    }
    let (mut last, mut turns) = (None, Vec::new());
    let mut begun = rig.now;
    // A reader replaces each request served, so that it never runs dry.
    for _ in 0..3000 {
        let (_, who) = rig.serve_next(1);
        let i = contexts.iter().position(|c| *c == who).unwrap();
        rig.read(who, sectors[i]);
        sectors[i] += PAGE;
        if last != Some(who) {
            if last.is_some() {
                turns.push((rig.now - MS - begun) / MS);
            }
            (last, begun) = (Some(who), rig.now - MS);
        }
    }
    *turns.last().unwrap()
}

#[test]
fn slices_shrink_so_that_a_round_takes_300_ms() {
    // The slice begins with the first completion, 1 ms into the turn: turn = slice + 1.
    assert_eq!(turn_ms(2, true), 101); // 2 x 100 fit
    assert_eq!(turn_ms(10, true), 31); // 300 / 10
    assert_eq!(turn_ms(15, true), 21); // 300 / 15
    assert_eq!(turn_ms(18, true), 17); // 300 / 18 = 16.7 -> 16
    assert_eq!(turn_ms(19, true), 17); // 15.8: the floor of two idle waits
    assert_eq!(turn_ms(30, true), 17);
}

#[test]
fn slices_are_whole_without_low_latency() {
    assert_eq!(turn_ms(10, false), 101);
}

#[test]
fn async_gets_its_share_of_the_round() {
    // One writer next to two readers, all backlogged. Async workload: min(300 x 1/3, 300 x 1/3) x 40/100 = 40; a reader
    // has 100 each at a time, the sync workload 300 x 2/3 = 200.
    let mut rig = Rig::new("2.6.34");
    let (a, b, w) = (rig.context(), rig.context(), rig.context());
    let mut next = 1000;
    let mut served = [0u64; 3];
    for c in [a, b] {
        for i in 0..4 {
            rig.read(c, next + i * PAGE);
        }
        next += 10 * FAR;
    }
    for i in 0..4 {
        rig.write(w, next + i * PAGE);
    }
    let mut sectors = [1000 + 4 * PAGE, 1000 + 10 * FAR + 4 * PAGE, next + 4 * PAGE];
    for _ in 0..6000 {
        let (_, who) = rig.serve_next(1);
        let i = [a, b, w].iter().position(|c| *c == who).unwrap();
        served[i] += 1;
        if i < 2 {
            rig.read(who, sectors[i]);
        } else {
            rig.write(who, sectors[i]);
        }
        sectors[i] += PAGE;
    }
    // Sync reads served within 125 ms of their start would not slow async; here each waits for two other turns.
    assert!(served[0].abs_diff(served[1]) < 300, "{served:?}");
    let share = 100 * served[2] / 6000;
    assert!((5..=20).contains(&share), "async has {share} %");
}

#[test]
fn a_lone_queue_at_the_end_of_its_slice_is_waited_for() {
    // a is alone. Its slice is 1..101; a completion at 100, one tick before the end, extends it by 8: 108. At 105 b
    // comes: nothing happens until a's wait is over (108), although the slice ended at 101.
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, 1000);
    rig.serves(first, 1);
    let mut sector = 1008;
    while rig.now < 1000 * MS + 99 * MS {
        let rq = rig.read(a, sector);
        rig.serves(rq, 1);
        sector += PAGE;
    }
    let rq = rig.read(a, sector);
    rig.serves(rq, 1); // 99..100
    let rb = rig.at(105).read(b, FAR);
    rig.idles_until(108);
    rig.at(108).issues(rb);
}

#[test]
fn the_wait_at_the_end_is_over_with_the_next_request() {
    // As above, but a's request comes, at 105: a expires (its group has kept its place), and b, which came at 104, goes.
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, 1000);
    rig.serves(first, 1);
    let mut sector = 1008;
    while rig.now < 1000 * MS + 100 * MS {
        let rq = rig.read(a, sector);
        rig.serves(rq, 1);
        sector += PAGE;
    }
    let rb = rig.at(104).read(b, FAR);
    rig.at(105).read(a, sector);
    rig.issues(rb);
}

#[test]
fn a_lone_queue_is_waited_for_when_its_slice_ends_before_it_comes_back() {
    // a thinks 6 between requests of 1, so completions are at 1, 8, .., 92, 99. Its slice ends at 101: at 99, with 2
    // left, its mean think time of 6 is more: the slice is extended to 107.
    let mut rig = Rig::new("2.6.34");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, 1000);
    rig.serves(first, 1);
    for i in 1..=14 {
        rig.pass(6);
        let rq = rig.read(a, 1000 + i * PAGE);
        rig.serves(rq, 1);
    }
    let rb = rig.read(b, FAR);
    rig.idles_until(107); // else b at once: nobody is waited for beyond the slice
    rig.at(107).issues(rb);
}

#[test]
fn the_usual_number_of_queues_falls_slowly() {
    // Ten readers for a while, then nobody, then a alone: the average is (3 x 10 + 1 + 2) / 4 = 8, a's slice 300 / 8 = 37
    // although it is alone at its first completion. b comes right after that.
    let mut rig = Rig::new("2.6.34");
    let contexts: Vec<ContextId> = (0..10).map(|_| rig.context()).collect();
    for i in 0..60 {
        for (n, c) in contexts.iter().enumerate() {
            rig.read(*c, n as u64 * 10 * FAR + i * PAGE);
        }
    }
    for _ in 0..320 {
        rig.serve_next(1);
    }
    rig.q.drain(rig.now); // all gone at once: the average is still 10
    while !rig.q.is_empty() {
        rig.serve_next(1);
    }
    let (a, b) = (rig.context(), rig.context());
    rig.pass(100);
    for i in 0..150 {
        rig.read(a, 500 * FAR + i * PAGE);
    }
    assert_eq!(rig.serve_next(1).1, a);
    rig.read(b, FAR);
    let turn = 1 + (0..).take_while(|_| rig.serve_next(1).1 == a).count();
    assert_eq!(turn, 38, "the slice and the millisecond before");
}
