//! Tags: how many of them each kind of I/O may take, through a queue.

#[path = "../queue_support/mod.rs"]
mod queue_support;

use fairlift_core::elevator::set;
use fairlift_core::queue::{Admission, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{ContextId, Flags, IoPrio, Op};
use queue_support::{bio, queue, unplugged};

fn tags(elevator: &str, nr_requests: u32) -> (RequestQueue, ContextId) {
    let config = QueueConfig { admission: Admission::Tags { nr_requests }, ..unplugged() };
    let mut q = queue(config, elevator);
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    (q, task)
}

/// How many of a kind are taken in addition.
fn fill(q: &mut RequestQueue, task: ContextId, op: Op, flags: Flags) -> u32 {
    let mut taken = 0;
    let from = q.pending() as u64 * 100;
    while q.submit(bio(op, Flags::NOMERGE | flags, task, from + u64::from(taken) * 100, 8), 0)
        != Submitted::Full
    {
        taken += 1;
    }
    taken
}

#[test]
fn kyber_leaves_a_quarter_of_the_tags_to_sync_io() {
    let (mut q, task) = tags("kyber", 64);
    assert_eq!(q.tags_min(), 48);
    assert_eq!(fill(&mut q, task, Op::Write, Flags::NONE), 48);
    assert_eq!(fill(&mut q, task, Op::Write, Flags::SYNC), 16);
    let (mut q, task) = tags("kyber", 1);
    assert_eq!(fill(&mut q, task, Op::Write, Flags::NONE), 1, "at least one");
}

#[test]
fn mq_deadline_limits_writes_to_async_depth_if_it_is_set() {
    let (mut q, task) = tags("mq-deadline", 64);
    assert_eq!(q.tags_min(), 1);
    assert_eq!(fill(&mut q, task, Op::Write, Flags::SYNC), 64);
    let (mut q, task) = tags("mq-deadline", 64);
    set(q.elevator_mut(), "async_depth", "10").unwrap();
    assert_eq!(fill(&mut q, task, Op::Write, Flags::SYNC), 10, "sync writes too");
    assert_eq!(fill(&mut q, task, Op::Read, Flags::NONE), 54);
    assert_eq!(fill(&mut q, task, Op::Discard, Flags::NONE), 0);
}

#[test]
fn none_gives_all_to_everybody() {
    let (mut q, task) = tags("none", 64);
    assert_eq!(q.tags_min(), 64);
    assert_eq!(fill(&mut q, task, Op::Write, Flags::NONE), 64);
}
