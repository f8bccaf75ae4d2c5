//! Who pays for I/O that somebody waits for.

use fairlift_core::queue::{Ordering, QueueConfig, RequestQueue};
use fairlift_core::{Bio, ContextId, Flags, GroupId, GroupParams, IoClass, IoPrio, MS, Op};

use super::rig::*;

/// Groups of weight 100, 400 and 800, a task in each; and one of weight 100 that wants the device too.
fn unequal(elevator: (&str, &str)) -> (RequestQueue, [(GroupId, ContextId); 3]) {
    let (mut q, [low, mid, high, (_, rival)]) =
        with_groups(grouped_with_sequences(), elevator, [100, 400, 800, 100]);
    queued(q.submit(Bio { cookie: RIVAL, ..write(rival, 1 << 20, 8) }, T));
    (q, [low, mid, high])
}

const RIVAL: u64 = u64::MAX;

/// The payer of what `task` sends now. Owner and counts are looked at on the way.
fn payer_of(q: &mut RequestQueue, (owner, task): (GroupId, ContextId), sector: u64) -> GroupId {
    let rq = queued(q.submit(bio(Op::Write, Flags::NOMERGE, task, sector, 8), T));
    assert_eq!(q.requests()[rq].group, owner, "it stays the owner's");
    let payer = q.requests()[rq].payer;
    assert_eq!(q.groups().queued(payer), 1, "it waits among the payer's");
    assert!(payer == owner || q.groups().queued(owner) == 0);
    assert!(cancel(q, rq, T).is_some());
    assert_eq!(q.groups().queued(payer), 0);
    payer
}

#[test]
fn there_is_no_donation_where_barriers_keep_order() {
    for ordering in [Ordering::Drain, Ordering::DrainFlush, Ordering::DrainFua] {
        let config = QueueConfig { ordering, ..grouped() };
        let (mut q, [low, high]) = with_groups(config, ("noop", ""), [100, 800]);
        assert_eq!(q.wait_begin(high.1, low.1), None, "{ordering:?}");
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{ordering:?}");
    }
}

#[test]
fn what_somebody_waits_for_is_paid_by_who_is_due_more() {
    for elevator in ELEVATORS {
        let (mut q, [low, mid, high]) = unequal(elevator);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}: nobody waits");
        let token = q.wait_begin(high.1, low.1).expect("they are two");
        assert_eq!(payer_of(&mut q, low, 0), high.0, "{elevator:?}");
        assert_eq!(payer_of(&mut q, high, 0), high.0, "{elevator:?}: nobody waits for who waits");
        assert_eq!(payer_of(&mut q, mid, 0), mid.0, "{elevator:?}: nor for others");
        q.wait_end(token);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}: it is over");
        // Who is due less gives nothing: that would slow down what it waits for.
        q.wait_begin(low.1, high.1).expect("they are two");
        assert_eq!(payer_of(&mut q, high, 0), high.0, "{elevator:?}");
    }
}

/// What is due is what would be if both wanted the device: who waits does not, and need not have anything queued.
#[test]
fn who_is_due_more_pays_whoever_else_wants_the_device() {
    for wants in ["nobody", "the owner", "who waits", "both"] {
        let (mut q, [low, high]) = with_groups(grouped_with_sequences(), ("noop", ""), [100, 800]);
        for (group, who) in [(low, "the owner"), (high, "who waits")] {
            if wants == who || wants == "both" {
                queued(q.submit(bio(Op::Write, Flags::NOMERGE, group.1, 9000, 8), T));
            }
        }
        q.wait_begin(high.1, low.1).expect("they are two");
        let rq = queued(q.submit(bio(Op::Write, Flags::NOMERGE, low.1, 100, 8), T));
        assert_eq!(q.requests()[rq].payer, high.0, "while {wants} wants the device");
    }
}

#[test]
fn the_most_entitled_of_those_who_wait_pays() {
    let (mut q, [low, mid, high]) = unequal(("noop", ""));
    q.wait_begin(mid.1, low.1).expect("they are two");
    assert_eq!(payer_of(&mut q, low, 0), mid.0);
    let token = q.wait_begin(high.1, low.1).expect("they are two");
    assert_eq!(payer_of(&mut q, low, 0), high.0);
    q.wait_end(token);
    assert_eq!(payer_of(&mut q, low, 0), mid.0);
    let urgent = GroupParams { class: IoClass::RealTime, ..GroupParams::weight(1) };
    q.groups_mut().set_params(mid.0, urgent).expect("there");
    q.wait_begin(high.1, low.1).expect("they are two");
    assert_eq!(payer_of(&mut q, low, 0), mid.0, "a better class is due more, whatever its weight");
}

#[test]
fn who_waits_for_one_who_waits_pays_for_both() {
    for elevator in ELEVATORS {
        let (mut q, [low, mid, high]) = unequal(elevator);
        let far = q.wait_begin(high.1, mid.1).expect("they are two");
        q.wait_begin(mid.1, low.1).expect("they are two");
        assert_eq!(payer_of(&mut q, low, 0), high.0, "{elevator:?}: over one in between");
        assert_eq!(payer_of(&mut q, mid, 0), high.0, "{elevator:?}");
        q.wait_end(far);
        assert_eq!(payer_of(&mut q, low, 0), mid.0, "{elevator:?}: the rest of the chain holds");
    }
}

#[test]
fn waiting_in_a_circle_is_harmless() {
    for elevator in ELEVATORS {
        let (mut q, all) = unequal(elevator);
        let [low, mid, high] = all;
        let tokens = [(low, mid), (mid, high), (high, low)]
            .map(|(from, whom)| q.wait_begin(from.1, whom.1).expect("they are two"));
        for one in all {
            assert_eq!(payer_of(&mut q, one, 0), high.0, "{elevator:?}: all of them wait for all");
        }
        tokens.into_iter().for_each(|token| q.wait_end(token));
        for one in all {
            assert_eq!(payer_of(&mut q, one, 0), one.0, "{elevator:?}");
        }
    }
}

#[test]
fn a_wait_begun_replaces_the_one_before() {
    let (mut q, [low, mid, high]) = unequal(("noop", ""));
    let first = q.wait_begin(high.1, low.1).expect("they are two");
    q.wait_begin(high.1, mid.1).expect("they are two");
    assert_eq!([payer_of(&mut q, low, 0), payer_of(&mut q, mid, 0)], [low.0, high.0]);
    q.wait_end(first);
    assert_eq!(payer_of(&mut q, mid, 0), high.0, "that token's wait was over already");
}

#[test]
fn a_token_used_twice_ends_nobody_elses_wait() {
    let (mut q, [low, mid, high]) = unequal(("noop", ""));
    let token = q.wait_begin(high.1, low.1).expect("they are two");
    q.wait_end(token);
    q.wait_end(token);
    assert_eq!(payer_of(&mut q, low, 0), low.0);
    q.wait_begin(high.1, mid.1).expect("they are two");
    q.wait_end(token);
    assert_eq!(payer_of(&mut q, mid, 0), high.0);
    // Nor that of the next tenant of its slot.
    let old = q.wait_begin(high.1, low.1).expect("they are two");
    q.context_exit(high.1, T);
    let next = q.contexts_mut().create_in(high.0, IoPrio::DEFAULT);
    assert_eq!(next, high.1, "the same slot");
    q.wait_begin(next, low.1).expect("they are two");
    q.wait_end(old);
    assert_eq!(payer_of(&mut q, low, 0), high.0);
}

#[test]
fn a_wait_ends_with_who_waits() {
    for elevator in ELEVATORS {
        let (mut q, [low, _, high]) = unequal(elevator);
        let token = q.wait_begin(high.1, low.1).expect("they are two");
        q.context_exit(high.1, T);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}");
        q.wait_end(token);
        assert_eq!(payer_of(&mut q, low, 0), low.0, "{elevator:?}");
    }
}

#[test]
fn a_wait_ends_with_who_is_waited_for() {
    for elevator in ELEVATORS {
        let (mut q, [low, mid, high]) = unequal(elevator);
        let token = q.wait_begin(high.1, low.1).expect("they are two");
        q.context_exit(low.1, T);
        let next = q.contexts_mut().create_in(low.0, IoPrio::DEFAULT);
        assert_eq!(next, low.1, "the same slot");
        assert_eq!(
            payer_of(&mut q, (low.0, next), 0),
            low.0,
            "{elevator:?}: nobody waits for its next tenant"
        );
        q.wait_end(token);
        q.wait_begin(high.1, mid.1).expect("it is free to wait again");
        assert_eq!(payer_of(&mut q, mid, 0), high.0, "{elevator:?}");
    }
}

/// Its slot is taken until its last request is done, but there is no task any more whose answer anybody could wait for.
#[test]
fn a_wait_ends_with_who_is_waited_for_even_if_it_left_requests() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    q.wait_begin(high.1, low.1).expect("they are two");
    let rq = queued(q.submit(write(low.1, 100, 8), T));
    assert_eq!(q.requests()[rq].payer, high.0);
    q.context_exit(low.1, T);
    assert_eq!(q.requests()[rq].payer, high.0, "what was sent before stays");
    let late = queued(q.submit(write(low.1, 5000, 8), T));
    assert_eq!(q.requests()[late].payer, q.requests()[late].group, "what comes after is not waited for");
}

#[test]
fn what_cannot_wait() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    let shared = q.contexts().shared_by(high.0);
    assert!(q.wait_begin(ContextId::OVERFLOW, low.1).is_none(), "several share it");
    assert!(q.wait_begin(shared, low.1).is_none(), "several share it");
    assert!(q.wait_begin(low.1, low.1).is_none(), "for itself");
    q.context_exit(high.1, T);
    assert!(q.wait_begin(high.1, low.1).is_none(), "it is gone");
    assert_eq!(payer_of(&mut q, low, 0), low.0);
}

#[test]
fn a_shared_context_can_be_waited_for() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    let shared = q.contexts().shared_by(low.0);
    q.wait_begin(high.1, shared).expect("only who waits must be alone");
    assert_eq!(payer_of(&mut q, (low.0, shared), 0), high.0);
}

#[test]
fn the_payer_is_billed_and_the_owner_has_the_counts() {
    for elevator in ELEVATORS {
        let (mut q, [low, _, high]) = unequal(elevator);
        q.wait_begin(high.1, low.1).expect("they are two");
        let rq = queued(q.submit(write(low.1, 100, 8), T));
        let mut now = T;
        loop {
            let first = next(&mut q, &mut now);
            if first == rq {
                break;
            }
            assert_eq!(complete(&mut q, first, now), [RIVAL]);
        }
        assert_eq!([high.0, low.0].map(|group| q.groups().in_flight(group)), [1, 0], "{elevator:?}");
        complete(&mut q, rq, now + 3 * MS);
        q.groups_mut().set_params(high.0, GroupParams::weight(800)).expect("settles");
        let of = |group: GroupId| *q.groups()[group].stats();
        assert_eq!([of(low.0).total().ios, of(high.0).total().ios], [1, 0], "{elevator:?}");
        let paid = |group| of(group).time_ns - of(group).idle_ns;
        assert_eq!([paid(low.0), paid(high.0)], [0, 3 * MS], "{elevator:?}");
    }
}

/// What is sent for others' sake is theirs alone.
#[test]
fn nothing_joins_a_donated_request_but_what_is_donated_too() {
    let (mut q, [low, _, high]) = unequal(("noop", ""));
    let token = q.wait_begin(high.1, low.1).expect("they are two");
    let donated = queued(q.submit(write(low.1, 100, 8), T));
    q.wait_end(token);
    queued(q.submit(write(low.1, 108, 8), T));
    queued(q.submit(write(high.1, 92, 8), T));
    assert_eq!(q.requests()[donated].sectors, 8);
}
