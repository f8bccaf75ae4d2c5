//! kyber: schedules computed by hand from the algorithm (docs of `elevator::kyber`; histograms: `kyber/latency.rs`).

use fairlift_core::{MS, RequestId};

use crate::bench::{Bench, DISCARD, Kind, READ, WRITE};

fn kyber() -> Bench {
    Bench::build("kyber", 1024, false, 0)
}

/// Dispatch and issue all there is.
fn issue_all(b: &mut Bench) -> Vec<RequestId> {
    core::iter::from_fn(|| {
        let rq = b.dispatch()?;
        b.requests[rq].issued_ns = b.now;
        Some(rq)
    })
    .collect()
}

/// `count` requests of a kind, one after another, each of which takes `latency_ns`.
fn serve(b: &mut Bench, kind: Kind, count: u32, latency_ns: u64) {
    for n in 0..count {
        b.add(kind, u64::from(n) * 100);
        let issued = issue_all(b);
        b.now += latency_ns;
        issued.into_iter().for_each(|rq| b.completed(rq));
    }
}

/// How many requests of a kind go to the device at a time.
fn tokens(b: &mut Bench, kind: Kind) -> usize {
    b.add_all(kind, (0..300).map(|n| n * 100));
    let issued = issue_all(b);
    let count = issued.len();
    // Queued ones are taken back, so that nothing of this is left.
    while let Some(rq) = b.drain() {
        b.requests.release(rq);
    }
    let at = b.now;
    issued.into_iter().for_each(|rq| {
        b.requests[rq].start_ns = at;
        b.completed(rq);
    });
    count
}

// ---- the decision ----

#[test]
fn first_come_first_served_within_a_domain() {
    let mut b = kyber();
    b.add_all(READ, [50, 10, 90]);
    assert_eq!(b.next(9), [50, 10, 90]);
}

/// 16 reads, 8 writes, 1 discard, and around again. Reads are first: the round starts with them.
#[test]
fn domains_take_turns_in_batches() {
    let mut b = kyber();
    b.add_all(READ, 1000..1020);
    b.add_all(WRITE, 2000..2020);
    b.add_all(DISCARD, 3000..3003);
    let expected: Vec<u64> = (1000..1016)
        .chain(2000..2008)
        .chain([3000])
        .chain(1016..1020)
        .chain(2008..2016)
        .chain([3001])
        .chain(2016..2020)
        .chain([3002])
        .collect();
    assert_eq!(b.next(99), expected);
}

/// Alone, a domain starts a new batch each time it has come around.
#[test]
fn a_domain_alone_goes_on() {
    let mut b = kyber();
    b.add_all(WRITE, 0..100);
    assert_eq!(b.next(999).len(), 100);
}

#[test]
fn a_domain_has_so_many_in_the_device() {
    for (kind, most) in [(READ, 256), (WRITE, 128), (DISCARD, 64)] {
        assert_eq!(tokens(&mut kyber(), kind), most, "{kind:?}");
    }
}

#[test]
fn a_domain_without_a_token_does_not_hold_up_the_others() {
    let mut b = kyber();
    b.add_all(WRITE, 0..200);
    let writes = issue_all(&mut b);
    assert_eq!(writes.len(), 128);
    b.add_all(READ, [5000, 5001]);
    assert_eq!(b.next(9), [5000, 5001]);
    b.completed(writes[7]);
    assert_eq!(b.next(9), [128]);
}

#[test]
fn a_request_handed_back_gives_its_token_back_once() {
    let mut b = kyber();
    b.add_all(DISCARD, 0..100);
    let issued = issue_all(&mut b);
    assert_eq!(issued.len(), 64);
    b.requeued(issued[0]);
    assert_eq!(b.next(9), [64]);
    b.completed(issued[0]);
    assert_eq!(b.next(9), [], "it had none any more");
}

// ---- merging ----

/// Only the newest eight of a domain that are still in the software queue.
#[test]
fn a_bio_meets_the_newest_eight() {
    let mut b = kyber();
    let all: Vec<_> = (0..10).map(|n| b.add(READ, n * 100)).collect();
    b.add_all(WRITE, [7000; 20]);
    let bio = |n: u64| READ.bio(n * 100 + 8);
    assert_eq!((0..10).map(|n| b.allow_merge(all[n as usize], &bio(n))).filter(|may| *may).count(), 8);
    assert!(!b.allow_merge(all[1], &bio(1)) && b.allow_merge(all[2], &bio(2)));
    assert_eq!(b.find_front(&READ.bio(900 - 8)), Some(all[9]));
    assert_eq!(b.find_front(&READ.bio(100 - 8)), None);
}

/// The first dispatch moves all that are there to the hardware queue, where no bio finds them.
#[test]
fn nobody_joins_what_is_in_the_hardware_queue() {
    let mut b = kyber();
    b.add(READ, 0);
    let moved = b.add(READ, 100);
    assert_eq!(b.next(1), [0]);
    let fresh = b.add(READ, 200);
    assert!(!b.allow_merge(moved, &READ.bio(108)));
    assert!(b.allow_merge(fresh, &READ.bio(208)));
}

// ---- tokens follow latencies ----

/// 600 reads of 1.8 ms each are within 2 ms: nothing changes, however long.
#[test]
fn within_the_targets_nobody_loses_tokens() {
    let mut b = kyber();
    serve(&mut b, READ, 600, 1_800_000);
    assert_eq!(tokens(&mut b, READ), 256);
}

/// 500 writes of 9 ms are good (bucket 3 of 2.5 ms each); 500 reads of 0.4 ms are in the first quarter of 2 ms. Then writes of 60
/// ms: bad. Reads with a 99th percentile in bucket 0 keep a quarter of 256; writes, in bucket 7, may double, but 128 is the most.
#[test]
fn slow_writes_take_tokens_from_fast_reads() {
    let mut b = kyber();
    // All within one interval of 100 ms, so that both are looked at together.
    let start = b.now;
    let all: Vec<_> = (0..500).map(|n| b.add(READ, n)).collect();
    let reads = issue_all(&mut b);
    assert_eq!((all.len(), reads.len()), (500, 256));
    b.now = start + 400_000;
    reads.into_iter().for_each(|rq| b.completed(rq));
    let rest = issue_all(&mut b);
    b.now += 100_000; // 0.5 ms since they came, 0.1 ms in the device
    rest.into_iter().for_each(|rq| b.completed(rq));
    for _ in 0..4 {
        // 125 at a time, 60 ms ago.
        b.add_all(WRITE, 0..125);
        let writes = issue_all(&mut b);
        for rq in writes {
            b.requests[rq].start_ns = start;
            b.requests[rq].issued_ns = start;
            b.now = b.now.max(start + 60 * MS);
            b.completed(rq);
        }
    }
    // 100 ms after the first completion.
    b.now = start + 400_000 + 100 * MS;
    assert_eq!(tokens(&mut b, READ), 64);
    assert_eq!(tokens(&mut b, WRITE), 128);
}

/// A domain whose own latencies are bad gets tokens back: 64 x (4 + 1) / 4 = 80.
#[test]
fn who_misses_its_target_gets_tokens_back() {
    let mut b = kyber();
    b.set("read_lat_nsec", "4000000000");
    b.set("write_lat_nsec", "1");
    // Writes miss a target of 1 ns, reads are far within theirs: 256 -> 64.
    half_and_half(&mut b, MS);
    assert_eq!(tokens(&mut b, READ), 64);
    // Now reads miss theirs: 1.1 times 1 ms is in bucket 4.
    b.now += 1000 * MS;
    b.set("read_lat_nsec", "1000000");
    b.set("write_lat_nsec", "4000000000");
    half_and_half(&mut b, 1_100_000);
    assert_eq!(tokens(&mut b, READ), 80);
}

/// 512 reads and 512 writes of that latency, and the look at them.
fn half_and_half(b: &mut Bench, latency_ns: u64) {
    let mut seen = 0;
    while seen < 512 {
        b.add_all(READ, 0..32);
        b.add_all(WRITE, 0..32);
        let issued = issue_all(b);
        let done = b.now + latency_ns;
        for rq in issued {
            b.now = done;
            b.completed(rq);
        }
        seen += 32;
    }
    b.now += 100 * MS;
}
