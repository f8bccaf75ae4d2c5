//! Golden schedules: who is served when, worked out by hand.

use std::vec::Vec;

use super::*;

/// Everything that goes out without a completion: whose it is, in runs.
fn runs(rig: &mut Rig) -> (Vec<(ContextId, usize)>, Vec<RequestId>) {
    let (mut runs, mut sent): (Vec<(ContextId, usize)>, Vec<_>) = (Vec::new(), Vec::new());
    while let Dispatch::Issue(rq) = rig.ask() {
        let context = rig.q.requests()[rq].context;
        sent.push(rq);
        match runs.last_mut() {
            Some((last, count)) if *last == context => *count += 1,
            _ => runs.push((context, 1)),
        }
    }
    (runs, sent)
}

/// So many 4 KiB reads, one behind the other.
fn stream(rig: &mut Rig, context: ContextId, from: u64, count: u64) {
    for i in 0..count {
        rig.read(context, from + 8 * i);
    }
}

fn plain() -> Rig {
    let mut rig = Rig::new();
    rig.set("low_latency", "0");
    rig.set("max_budget", "64");
    rig
}

/// Of 64 sectors a new queue gets two thirds: 42, five requests. Who used it up gets fourfold, at most 64: eight. A has 3 left,
/// and is waited for while they are in the device, though B has some: it is sequential. B's follow 8 ms after A's are done.
#[test]
fn budgets_grow_to_the_largest() {
    let mut rig = plain();
    let (a, b) = (rig.context(), rig.context());
    stream(&mut rig, a, FAR, 16);
    stream(&mut rig, b, 5 * FAR, 16);
    let (order, sent) = runs(&mut rig);
    assert_eq!(order, [(a, 5), (b, 5), (a, 8), (b, 8), (a, 3)]);
    rig.holds();
    rig.pass(5);
    sent.into_iter().for_each(|rq| rig.complete(rq));
    rig.idles_for(8);
    rig.pass(8);
    assert_eq!(runs(&mut rig).0, [(b, 3)]);
}

/// Level 0 weighs 80, level 4 40: finishes 42/80 and 42/40. A (V .35), then B, whose start 0 and finish 1.05 come before A's start
/// .5: no: A starts at .5, after V. So B (V .68), A (64 sectors; S .5), ...: two to one in sectors.
#[test]
fn better_levels_have_more() {
    let mut rig = plain();
    let a = rig.context_at(IoPrio::BestEffort(0));
    let b = rig.context_at(IoPrio::BestEffort(4));
    stream(&mut rig, a, FAR, 64);
    stream(&mut rig, b, 5 * FAR, 64);
    let (order, _) = runs(&mut rig);
    assert_eq!(order[..2], [(a, 5), (b, 5)]);
    let until_a_is_done = order.iter().take_while(|(_, count)| *count >= 5).collect::<Vec<_>>();
    let served =
        |context| until_a_is_done.iter().filter(|(c, _)| *c == context).map(|(_, n)| n).sum::<usize>();
    assert!((27..=37).contains(&served(b)), "{order:?}");
    assert_eq!(served(a), 61, "5 and seven times 8: 3 are left: {order:?}");
}

/// A reads one after the other and is waited for; B's request waits until A pauses for 8 ms.
#[test]
fn a_sequential_reader_is_waited_for() {
    let mut rig = plain();
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, FAR);
    rig.issues(first);
    let other = rig.read(b, 5 * FAR);
    rig.holds();
    rig.pass(1).complete(first);
    rig.idles_for(8);
    rig.pass(3);
    let second = rig.read(a, FAR + 8);
    rig.serves(second, 1);
    rig.idles_for(8);
    rig.pass(8);
    rig.serves(other, 1);
}

/// A turn lasts `timeout_sync`, here 20 ms, whatever is left of the budget (64 requests, not 8).
#[test]
fn a_turn_ends_with_its_time() {
    let mut rig = plain();
    rig.set("max_budget", "100000");
    rig.set("timeout_sync", "20");
    let (a, b) = (rig.context(), rig.context());
    stream(&mut rig, a, FAR, 30);
    stream(&mut rig, b, 5 * FAR, 30);
    let mut order = Vec::new();
    for _ in 0..20 {
        let Dispatch::Issue(rq) = rig.ask() else { panic!("{order:?}") };
        order.push(rig.q.requests()[rq].context);
        rig.pass(5).complete(rq);
    }
    // Four of 5 ms each; then each has 5 sequential ones' worth more to pay by time, and turns alternate.
    assert_eq!(order[..8], [a, a, a, a, b, b, b, b]);
    assert_eq!(order[8..16], [a, a, a, a, b, b, b, b]);
}

/// In a queue: upwards from the last request, a short way back (here 80 sectors, which count double) before a long way ahead, what lies
/// more than 16 MiB back last; and the overdue one first, once.
#[test]
fn order_within_a_queue() {
    let mut rig = plain();
    rig.set("max_budget", "100000");
    let a = rig.context();
    let at = rig.read(a, FAR);
    rig.issues(at);
    let ahead = rig.read(a, FAR + 200);
    let behind = rig.read(a, FAR - 72);
    let far_behind = rig.read(a, FAR - 40_000);
    rig.issues(behind);
    rig.issues(ahead);
    rig.issues(far_behind);
}

#[test]
fn the_overdue_request_goes_first_once_a_turn() {
    let mut rig = plain();
    rig.set("max_budget", "100000");
    rig.set("fifo_expire_sync", "30");
    let a = rig.context();
    let high = rig.read(a, 2 * FAR);
    let first = rig.read(a, FAR);
    let (second, third) = (rig.read(a, FAR + 8), rig.read(a, FAR + 16));
    rig.issues(first);
    rig.pass(31);
    // It was looked at when the first went.
    rig.issues(second);
    rig.issues(third);
    rig.issues(high);
}

/// Metadata before others, wherever it is.
#[test]
fn metadata_first() {
    let mut rig = plain();
    let a = rig.context();
    let near = rig.read(a, 8);
    let meta = rig.insert(Op::Read, Flags::META, FAR, 8, a);
    rig.issues(meta);
    rig.issues(near);
}

/// Nobody waits for them: three writers' requests go by level, and a reader goes first since its charge is a third.
#[test]
fn writes_count_threefold() {
    let mut rig = plain();
    let (r, w) = (rig.context(), rig.context());
    for i in 0..12 {
        rig.write(w, 5 * FAR + 8 * i);
    }
    stream(&mut rig, r, FAR, 48);
    // An async queue has the whole 64 at once: two requests at 24. The reader has 42 of 64: five.
    let (order, _) = runs(&mut rig);
    assert_eq!(order[..2], [(r, 5), (w, 2)]);
    let sectors = |context, charge: usize| {
        let first = order.iter().take_while(|(_, n)| *n != 3 || charge == 1).take(8);
        first.filter(|(c, _)| *c == context).map(|(_, n)| n * 8 * charge).sum::<usize>()
    };
    assert!(sectors(r, 1).abs_diff(sectors(w, 3)) <= 64, "{order:?}");
}
