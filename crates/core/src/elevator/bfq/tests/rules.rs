//! Each rule by itself, as a host sees it.

use std::vec::Vec;

use super::*;

fn plain() -> Rig {
    let mut rig = Rig::new();
    rig.set("low_latency", "0");
    rig
}

// ---- classes and guarantees ----

#[test]
fn real_time_preempts_and_the_idle_class_waits() {
    let mut rig = plain();
    let be = rig.context();
    let rt = rig.context_at(IoPrio::RealTime(4));
    let idle = rig.context_at(IoPrio::Idle);
    let lowest = rig.read(idle, 9 * FAR);
    let (one, two) = (rig.read(be, FAR), rig.read(be, FAR + 8));
    rig.pass(300);
    // The idle class has not been asked for 200 ms: its one request.
    rig.issues(lowest);
    rig.issues(one);
    let urgent = rig.read(rt, 5 * FAR);
    rig.issues(urgent);
    // With several classes every sync queue is waited for.
    rig.holds();
    rig.complete(urgent);
    rig.idles_for(8);
    rig.pass(8);
    rig.issues(two);
}

#[test]
fn an_idle_class_queue_has_one_request_at_a_time_beside_others() {
    let mut rig = plain();
    let idle = rig.context_at(IoPrio::Idle);
    let be = rig.context();
    let low: Vec<_> = (0..3).map(|i| rig.read(idle, FAR + 8 * i)).collect();
    rig.issues(low[0]);
    let high = rig.read(be, 5 * FAR);
    rig.serves(high, 1);
    rig.idles_for(8);
    // It has the class's turn only after 200 ms; but B's wait is over first.
    rig.pass(8);
    rig.issues(low[1]);
}

#[test]
fn strict_guarantees_mean_one_request_at_a_time() {
    let mut rig = plain();
    rig.set("slice_idle", "0");
    rig.set("strict_guarantees", "1");
    let seeker = rig.context();
    let other = rig.context();
    let requests: Vec<_> = (0..4).map(|i| rig.read(seeker, (1 + i) * FAR)).collect();
    let last = rig.read(other, 50 * FAR);
    for rq in requests {
        rig.issues(rq);
        rig.holds();
        rig.pass(1).complete(rq);
    }
    // The wait is as long as the default, though it was set to 0.
    rig.idles_for(8);
    rig.pass(8);
    rig.issues(last);
}

#[test]
fn without_slice_idle_nobody_is_waited_for() {
    let mut rig = plain();
    rig.set("slice_idle_us", "0");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, FAR);
    rig.issues(first);
    let other = rig.read(b, 5 * FAR);
    rig.issues(other);
}

/// 30 random reads make it a seeker: among equals its wait ends with the next request of anybody's.
#[test]
fn a_seeker_is_not_waited_for_among_equals() {
    let mut rig = plain();
    let (a, b) = (rig.context(), rig.context());
    for i in 0..30 {
        let rq = rig.read(a, (i * 7 % 30) * FAR);
        rig.serves(rq, 1);
    }
    let other = rig.read(b, 5 * FAR);
    rig.issues(other);
}

#[test]
fn a_seeker_keeps_its_share_beside_another_group() {
    let mut rig = plain();
    let (x, y) = (rig.group(GroupId::ROOT, 100), rig.group(GroupId::ROOT, 100));
    let (a, b) = (rig.context_in(x), rig.context_in(y));
    for i in 0..30 {
        let rq = rig.read(a, (i * 7 % 30) * FAR);
        rig.serves(rq, 1);
    }
    let last = rig.read(a, 99 * FAR);
    rig.issues(last);
    let others = [rig.read(b, 5 * FAR), rig.read(b, 5 * FAR + 8)];
    rig.holds();
    rig.pass(1).complete(last);
    // One of the others' may be in the device meanwhile, but A is waited for, and goes on.
    rig.issues(others[0]);
    rig.idles_for(8);
    let next = rig.read(a, 50 * FAR);
    rig.issues(next);
    rig.holds();
}

/// Neither a task that is gone nor its last request holds the device.
#[test]
fn nobody_waits_for_the_dead() {
    let mut rig = plain();
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, FAR);
    rig.issues(first);
    let other = rig.read(b, 5 * FAR);
    rig.holds();
    rig.q.context_exit(a, rig.now);
    rig.issues(other);
}

// ---- raising ----

/// B's turn has begun, with 300 requests; A starts up: it goes before B at once, for 2 least budgets of 512 sectors at a time, and is waited for.
#[test]
fn a_program_that_starts_goes_before_the_others() {
    let mut rig = Rig::sized(400, 8, 0, true);
    let b = rig.context();
    let mut bulk = Vec::new();
    for i in 0..300 {
        bulk.push(rig.read_of(b, 5 * FAR + 256 * i, 256));
    }
    // B starts as well, and has 61 MB raised: 468 of them. It is raised until 10.5 s are over.
    rig.issues(bulk[0]);
    rig.pass(11_000).complete(bulk[0]);
    rig.issues(bulk[1]);
    rig.pass(1).complete(bulk[1]);
    rig.issues(bulk[2]);
    let a = rig.context();
    let first = rig.read(a, FAR);
    rig.issues(first);
    rig.holds();
    rig.pass(1).complete(first);
    // 20 ms for a raised queue, not 8.
    rig.idles_for(20);
}

/// A new reader is interactive. With `low_latency` off it is as good as any.
#[test]
fn low_latency_can_be_switched_off() {
    for (low_latency, ms) in [("1", 20), ("0", 8)] {
        let mut rig = Rig::new();
        rig.set("low_latency", low_latency);
        let a = rig.context();
        let rq = rig.read(a, FAR);
        rig.serves(rq, 1);
        rig.idles_for_or_empty(ms);
    }
}

impl Rig {
    /// As [`Rig::idles_for`], told by what another queue's request has to wait for.
    #[track_caller]
    fn idles_for_or_empty(&mut self, ms: u64) {
        let other = self.context();
        self.write(other, 50 * FAR);
        self.idles_for(ms);
    }
}

/// How long a reader that just had a request served is waited for while somebody's write waits, ms; `None`: not at all.
fn wait_ms(rig: &mut Rig) -> Option<u64> {
    let writer = rig.context();
    let write = rig.write(writer, 90 * FAR);
    let Dispatch::Idle { until } = rig.ask() else { return None };
    assert!(rig.q.cancel(write, rig.now));
    rig.q.release(write);
    rig.q.context_exit(writer, rig.now);
    Some((until - rig.now) / MS)
}

/// Raised from its start, at 1 s, for 10.5 s; then it is waited for 8 ms, as others are.
#[test]
fn an_interactive_raise_ends() {
    let mut rig = Rig::new();
    let a = rig.context();
    let mut waits = Vec::new();
    for i in 0..1200 {
        let rq = rig.read(a, FAR + 8 * i);
        rig.serves(rq, 10);
        if i % 10 == 0 {
            waits.push((rig.now / MS, wait_ms(&mut rig).expect("it is waited for")));
        }
        rig.pass(1);
    }
    let ends = waits.iter().position(|(_, ms)| *ms == 8).expect("it ends");
    assert!(waits[..ends].iter().all(|(_, ms)| *ms == 20) && waits[ends..].iter().all(|(_, ms)| *ms == 8));
    assert!((11_500..11_620).contains(&waits[ends].0), "{:?}", waits[ends]);
}

/// Eight queues created together are a burst: none is raised. Seven are.
#[test]
fn many_queues_at_once_are_not_interactive() {
    for (count, raised) in [(7, true), (8, false)] {
        let mut rig = Rig::new();
        let contexts: Vec<_> = (0..count).map(|_| rig.context()).collect();
        for (i, context) in contexts.iter().enumerate() {
            rig.read(*context, (2 + i as u64) * 20 * FAR);
        }
        let mut served = 0;
        while served < count {
            match rig.ask() {
                Dispatch::Issue(rq) => {
                    rig.pass(1).complete(rq);
                    served += 1;
                }
                Dispatch::Idle { until } => rig.now = until,
                _ => panic!("{served} of {count}"),
            }
        }
        rig.pass(50);
        let again = rig.read(contexts[0], 40 * FAR + 8);
        rig.serves(again, 1);
        assert_eq!(wait_ms(&mut rig) == Some(20), raised, "{count}");
    }
}

// ---- injection and wakers ----

/// A reads in a group of weight 1000, half a millisecond after its last request is done, which takes 4; B in a group of weight 100 has many, and those
/// injected take as long. How many of B's go out while A is waited for, in 200 times?
fn injected(sequential: bool) -> u32 {
    let mut rig = plain();
    let (x, y) = (rig.group(GroupId::ROOT, 1000), rig.group(GroupId::ROOT, 100));
    let (a, b) = (rig.context_in(x), rig.context_in(y));
    let (mut injected, mut sent) = (0, 0);
    for i in 0..200 {
        while rig.q.queued() < 20 {
            rig.read(b, 500 * FAR + 8 * sent);
            sent += 1;
        }
        let sector = if sequential { FAR + 8 * i } else { FAR * (1 + i * 37 % 200) };
        let rq = rig.read(a, sector);
        while rig.q.requests()[rq].state != crate::request::RequestState::Issued {
            match rig.ask() {
                Dispatch::Issue(other) if other != rq => {
                    rig.pass(1).complete(other);
                    // It never runs dry: else it would seem to be woken by A.
                    rig.read(b, 500 * FAR + 8 * sent);
                    sent += 1;
                }
                Dispatch::Idle { until } => rig.now = until,
                Dispatch::Issue(_) => {}
                answer => panic!("{answer:?}"),
            }
        }
        rig.pass(4).complete(rq);
        let mut under_way = Vec::new();
        while rig.q.elevator().idling_for() == Some(a)
            && let Dispatch::Issue(other) = rig.ask()
        {
            under_way.push(other);
        }
        injected += under_way.len() as u32;
        rig.now += MS / 2;
        under_way.into_iter().for_each(|rq| rig.complete(rq));
    }
    injected
}

/// Waiting for a seeker keeps its share, but makes nothing faster: meanwhile others' requests are let through, until its own take half
/// as long again. Waiting for a sequential reader does: nothing may disturb it.
#[test]
fn others_are_injected_while_a_seeker_is_waited_for() {
    let (among_seeks, among_sequential) = (injected(false), injected(true));
    assert!(among_seeks > 0, "{among_seeks}");
    assert_eq!(among_sequential, 0);
}

// ---- merging ----

/// Two read side by side, every other page each: from the second's request on they are one queue, sorted.
#[test]
fn readers_side_by_side_become_one_queue() {
    let mut rig = plain();
    rig.set("max_budget", "10000");
    let (a, b) = (rig.context(), rig.context());
    let first = rig.read(a, FAR);
    let second = rig.read(b, FAR + 8);
    let third = rig.read(a, FAR + 16);
    let fourth = rig.read(b, FAR + 24);
    for rq in [first, second, third, fourth] {
        rig.issues(rq);
    }
}

#[test]
fn readers_of_different_groups_or_levels_do_not() {
    let mut rig = plain();
    let (x, y) = (rig.group(GroupId::ROOT, 100), rig.group(GroupId::ROOT, 100));
    let (a, b) = (rig.context_in(x), rig.context_in(y));
    let first = rig.read(a, FAR);
    rig.read(b, FAR + 8);
    let third = rig.read(a, FAR + 16);
    rig.issues(first);
    rig.issues(third);
    rig.holds();
}

/// On a device that queues and does not seek, queues created together by equals are one from the start: nobody is waited for
/// between them.
#[test]
fn on_flash_queues_born_together_are_one() {
    for (gap_ms, together) in [(0, true), (200, false)] {
        let mut rig = Rig::on(false);
        rig.set("low_latency", "0");
        rig.set("max_budget", "24");
        let (a, b) = (rig.context(), rig.context());
        let low = rig.read(a, 8);
        rig.pass(gap_ms);
        let mid = rig.read(b, FAR);
        let high = rig.read(a, 2 * FAR);
        rig.issues(low);
        rig.issues(if together { mid } else { high });
    }
}

// ---- groups ----

/// A group's slot is another group's later on: nothing of the first is left.
#[test]
fn a_group_that_is_gone_leaves_nothing() {
    let mut rig = Rig::sized(16, 4, 1, true);
    for round in 0..50u64 {
        let group = rig.group(GroupId::ROOT, 1 + round as u32);
        let context = rig.context_in(group);
        let read = rig.read(context, FAR * (1 + round));
        let write = rig.write(context, 9 * FAR);
        for _ in 0..2 {
            let rq = match rig.ask() {
                Dispatch::Idle { until } => {
                    rig.now = until;
                    rig.ask()
                }
                answer => answer,
            };
            let Dispatch::Issue(rq) = rq else { panic!("{rq:?}") };
            assert!(rq == read || rq == write);
            rig.pass(1).complete(rq);
        }
        rig.q.context_exit(context, rig.now);
        rig.q.remove_group(group).unwrap();
    }
}

#[test]
fn a_weight_above_a_thousand_counts_as_a_thousand() {
    let mut rig = plain();
    rig.set("max_budget", "8");
    let groups = [rig.group(GroupId::ROOT, 10_000), rig.group(GroupId::ROOT, 1000)];
    let contexts = groups.map(|group| rig.context_in(group));
    for i in 0..20 {
        rig.read(contexts[0], FAR + 8 * i);
        rig.read(contexts[1], 5 * FAR + 8 * i);
    }
    let mut served = [0; 2];
    for _ in 0..20 {
        let Dispatch::Issue(rq) = rig.ask() else { panic!("{served:?}") };
        served[usize::from(rig.q.requests()[rq].context == contexts[1])] += 1;
    }
    assert_eq!(served, [10, 10]);
}

/// A lighter queue that has only something in the device still counts: the heavier one is waited for. (The kernel's tree of weights
/// holds a queue until its last request is done: `bfq_weights_tree_remove` in `bfq_completed_request`.)
#[test]
fn who_has_something_in_the_device_counts_among_the_levels() {
    let mut rig = Rig::on(false);
    rig.set("low_latency", "0");
    let light = rig.context();
    let heavy = [rig.context_at(IoPrio::BestEffort(3)), rig.context_at(IoPrio::BestEffort(3))];
    let long = rig.read(light, FAR);
    rig.issues(long);
    // Not within 180 ms, or they become one queue.
    rig.pass(200);
    let one = rig.read(heavy[0], 2 * FAR);
    rig.issues(one);
    rig.pass(200);
    let two = rig.read(heavy[1], 3 * FAR);
    rig.holds();
    rig.complete(long);
    rig.issues(two);
}
