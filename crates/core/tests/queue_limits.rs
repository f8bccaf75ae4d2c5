//! Limits at the door of the queue: what waits, when it goes in, and that it comes out once.

use std::collections::{BTreeSet, VecDeque};

use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::queue::{Admission, Ordering, Plugging, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{
    Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoPrio, MS, Op, RequestId, SECOND, elevator,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

fn queue(config: QueueConfig) -> RequestQueue {
    let noop = elevator::find("noop").expect("there is a noop");
    RequestQueue::new(config, (noop.build)(&config.elevator(), ""))
}

fn config() -> QueueConfig {
    QueueConfig { groups_max: 4, held_max: 4, plugging: Plugging::Off, ..QueueConfig::default() }
}

/// A queue, a group of one write a second, and a task in it.
fn one_a_second(config: QueueConfig) -> (RequestQueue, GroupId, ContextId) {
    let mut q = queue(config);
    let group = q.groups_mut().create(GroupId::ROOT, GroupParams::default()).expect("a slot");
    let task = q.contexts_mut().create_in(group, IoPrio::DEFAULT);
    let rates = Rates { bytes_per_s: 0, ios_per_s: 1 };
    q.set_limit(group, Direction::Write, rates, 0).expect("it is there");
    (q, group, task)
}

fn write(context: ContextId, cookie: u64, sector: u64) -> Bio {
    Bio {
        cookie,
        op: Op::Write,
        flags: Flags::SYNC,
        sector,
        sectors: 8,
        segments: 1,
        context,
        ioprio: None,
        group: None,
    }
}

fn issue(q: &mut RequestQueue, now: u64) -> RequestId {
    match q.dispatch(now) {
        Dispatch::Issue(rq) => rq,
        other => panic!("{other:?} instead of a request at {now}"),
    }
}

fn complete(q: &mut RequestQueue, rq: RequestId, now: u64) -> Vec<u64> {
    let mut done = Vec::new();
    q.complete(rq, now, |cookie| done.push(cookie));
    done
}

/// The second write waits a second; the queue says when to come back, and it goes by itself.
#[test]
fn a_held_bio_goes_in_when_its_limit_allows() {
    let (mut q, _, task) = one_a_second(config());
    assert!(matches!(q.submit(write(task, 1, 0), 0), Submitted::Queued(_)));
    assert_eq!(q.submit(write(task, 2, 100), 0), Submitted::Held);
    let first = issue(&mut q, 0);
    assert_eq!(q.dispatch(0), Dispatch::Idle { until: SECOND });
    assert_eq!(complete(&mut q, first, MS), [1]);
    assert_eq!([q.held(), q.pending()], [1, 0]);
    let second = issue(&mut q, SECOND);
    assert_eq!(complete(&mut q, second, SECOND), [2]);
    assert_eq!([q.held(), q.pending()], [0, 0]);
    assert_eq!(q.dispatch(SECOND), Dispatch::Empty);
}

/// A bio merges when it is let in, not before: with what is in the queue then.
#[test]
fn a_held_bio_merges_when_it_is_let_in() {
    let (mut q, _, task) = one_a_second(config());
    assert!(matches!(q.submit(write(task, 1, 500), 0), Submitted::Queued(_)));
    assert_eq!(q.submit(write(task, 2, 8), 0), Submitted::Held);
    // Metadata passes the limit, and is one more that 2 has to wait for.
    let metadata = Bio { flags: Flags::SYNC.or(Flags::META), ..write(task, 3, 0) };
    assert!(matches!(q.submit(metadata, 0), Submitted::Queued(_)));
    assert_eq!(q.let_in(MS, |_, _| {}), Some(2 * SECOND));
    assert_eq!(q.pending(), 2);
    assert_eq!(q.let_in(2 * SECOND, |_, _| {}), None);
    assert_eq!([q.pending(), q.held()], [2, 0]);
    for bios in [&[1][..], &[3, 2]] {
        let rq = issue(&mut q, 2 * SECOND);
        assert_eq!(complete(&mut q, rq, 2 * SECOND), bios);
    }
}

/// Metadata goes in at once and is paid for by what comes after.
#[test]
fn metadata_does_not_wait() {
    let (mut q, _, task) = one_a_second(config());
    for cookie in 0..3 {
        let bio = Bio { flags: Flags::SYNC.or(Flags::META), ..write(task, cookie, cookie * 100) };
        assert!(matches!(q.submit(bio, 0), Submitted::Queued(_)));
    }
    assert_eq!(q.submit(write(task, 3, 1000), 0), Submitted::Held);
    assert_eq!(q.let_in(0, |_, _| {}), Some(3 * SECOND));
}

/// Four may wait; the fifth's task sleeps until one of them went.
#[test]
fn the_room_to_wait_ends_and_is_made() {
    let (mut q, _, task) = one_a_second(config());
    assert!(matches!(q.submit(write(task, 0, 0), 0), Submitted::Queued(_)));
    for cookie in 1..=4 {
        assert_eq!(q.submit(write(task, cookie, cookie * 100), 0), Submitted::Held);
    }
    assert_eq!(q.submit(write(task, 5, 500), 0), Submitted::NoRoom);
    assert!(!q.take_room());
    assert_eq!(q.let_in(SECOND, |_, _| {}), Some(2 * SECOND));
    assert!(q.take_room() && !q.take_room());
    assert_eq!(q.submit(write(task, 5, 500), SECOND), Submitted::Held);
}

/// A bio that its limit lets go while every slot is taken has the next one, and is charged once.
#[test]
fn a_bio_at_the_door_gets_the_next_slot() {
    let (mut q, _, task) =
        one_a_second(QueueConfig { admission: Admission::Tags { nr_requests: 1 }, ..config() });
    let other = q.contexts_mut().create(IoPrio::DEFAULT);
    assert!(matches!(q.submit(write(task, 1, 0), 0), Submitted::Queued(_)));
    assert_eq!(q.submit(write(task, 2, 100), 0), Submitted::Held);
    let first = issue(&mut q, 0);
    assert_eq!(q.submit(write(other, 3, 200), 0), Submitted::Full);
    assert_eq!(q.let_in(SECOND, |_, _| {}), None, "it waits for a slot, not for a time");
    assert_eq!([q.pending(), q.held()], [1, 1]);
    assert_eq!(complete(&mut q, first, SECOND + MS), [1]);
    let mut entered = Vec::new();
    assert_eq!(q.let_in(SECOND + MS, |bio, _| entered.push(bio.cookie)), None);
    assert_eq!((entered, q.pending(), q.held()), (vec![2], 1, 0));
    let second = issue(&mut q, SECOND + MS);
    assert_eq!(complete(&mut q, second, SECOND + MS), [2]);
    // Its own second began when its limit let it go.
    assert!(matches!(q.submit(write(task, 4, 0), 2 * SECOND), Submitted::Queued(_)));
}

/// A group whose bios its limit lets go and which has no slot for them keeps nobody else waiting: beside one whose part of the
/// slots is full for a second at a time, a group limited to 100 writes a second gets them.
#[test]
fn who_finds_no_slot_is_no_door_for_others() {
    let mut q = queue(QueueConfig { admission: Admission::Tags { nr_requests: 8 }, ..config() });
    // No turns at the device either: this is about slots.
    for (name, value) in [("nr_group_requests", "2"), ("fairness", "0"), ("group_idle", "0")] {
        q.groups_mut().set(name, value).expect("a setting");
    }
    let tasks = [100, 10_000].map(|ios_per_s| {
        let group = q.groups_mut().create(GroupId::ROOT, GroupParams::default()).expect("a slot");
        q.set_limit(group, Direction::Write, Rates { bytes_per_s: 0, ios_per_s }, 0).expect("it is there");
        q.contexts_mut().create_in(group, IoPrio::DEFAULT)
    });
    let (mut open, mut done, mut cookie) = ([0u32; 2], [0u32; 2], 0);
    let mut stuck = VecDeque::new();
    for ms in 0..10_000u64 {
        let now = ms * MS;
        for (who, task) in tasks.into_iter().enumerate() {
            while open[who] < 4 {
                cookie += 1;
                // Far apart, so that nothing merges; the group is in the lowest bit.
                match q.submit(write(task, cookie * 2 + who as u64, cookie * 100), now) {
                    Submitted::Full => {
                        while q.next_wakeup().is_some() {}
                        break;
                    }
                    answer => assert!(matches!(answer, Submitted::Queued(_) | Submitted::Held), "{answer:?}"),
                }
                open[who] += 1;
            }
        }
        while let Dispatch::Issue(rq) = q.dispatch(now) {
            if q.requests()[rq].group == q.contexts()[tasks[1]].group {
                stuck.push_back(rq);
            } else {
                done[0] += complete(&mut q, rq, now).len() as u32;
                open[0] -= 1;
            }
        }
        if ms % 1000 == 999
            && let Some(rq) = stuck.pop_front()
        {
            done[1] += complete(&mut q, rq, now).len() as u32;
            open[1] -= 1;
        }
    }
    assert!(done[0].abs_diff(1000) <= 4 && done[1] == 10, "{done:?}");
}

/// Writes that go behind a flush, or through the cache, wait for their limit like all others, before their sequence begins.
#[test]
fn writes_with_flushes_are_held() {
    for flag in [Flags::PREFLUSH, Flags::FUA] {
        let ordering = Ordering::Sequences { write_cache: true, fua: false };
        let (mut q, _, task) = one_a_second(QueueConfig { ordering, ..config() });
        let flushing = |cookie| Bio { flags: Flags::SYNC.or(flag), ..write(task, cookie, cookie * 100) };
        assert!(matches!(q.submit(flushing(1), 0), Submitted::Queued(_)));
        for cookie in 2..5 {
            assert_eq!(q.submit(flushing(cookie), 0), Submitted::Held);
        }
        let mut done = Vec::new();
        for second in 0..4 {
            let now = second * SECOND;
            while let Dispatch::Issue(rq) = q.dispatch(now) {
                done.extend(complete(&mut q, rq, now));
            }
            assert_eq!(done.len() as u64, second + 1, "{flag:?}");
        }
    }
}

/// The task is gone, its group removed: its bios still go, at the ancestor's limits.
#[test]
fn bios_outlive_their_task_and_group() {
    let (mut q, group, task) = one_a_second(config());
    assert!(matches!(q.submit(write(task, 1, 0), 0), Submitted::Queued(_)));
    assert_eq!(q.submit(write(task, 2, 100), 0), Submitted::Held);
    q.context_exit(task, 0);
    let next = q.contexts_mut().create(IoPrio::DEFAULT);
    assert_ne!(next, task, "the slot is still taken");
    q.remove_group(group, MS).expect("it is there");
    let first = issue(&mut q, MS);
    let second = issue(&mut q, MS);
    assert_eq!(q.requests()[second].group, GroupId::ROOT);
    assert_eq!([complete(&mut q, first, MS), complete(&mut q, second, MS)], [[1], [2]]);
    assert_eq!(q.groups().known(group), GroupId::ROOT, "the slot is free");
}

#[derive(Clone, Debug)]
enum Step {
    Submit { task: usize, read: bool, sector: u64, meta: bool },
    Limit { group: usize, read: bool, rates: Rates },
    Remove { group: usize },
    Move { task: usize, group: usize },
    Exit { task: usize },
    Pass { ms: u64 },
    Complete,
}

fn step() -> impl Strategy<Value = Step> {
    let rate = || prop_oneof![Just(0u64), Just(1), 1u64..1000];
    prop_oneof![
        10 => (0usize..4, any::<bool>(), 0u64..64, prop::bool::weighted(0.1))
            .prop_map(|(task, read, sector, meta)| Step::Submit { task, read, sector: sector * 8, meta }),
        2 => (0usize..4, any::<bool>(), rate(), rate()).prop_map(|(group, read, kib, ios_per_s)| Step::Limit {
            group, read, rates: Rates { bytes_per_s: kib * 1024, ios_per_s }
        }),
        1 => (1usize..4).prop_map(|group| Step::Remove { group }),
        1 => (0usize..4, 0usize..4).prop_map(|(task, group)| Step::Move { task, group }),
        1 => (0usize..4).prop_map(|task| Step::Exit { task }),
        6 => (1u64..1500).prop_map(|ms| Step::Pass { ms }),
        4 => Just(Step::Complete),
    ]
}

/// A host that does all it is told.
struct Host {
    q: RequestQueue,
    tasks: [ContextId; 4],
    groups: [GroupId; 4],
    now: u64,
    /// When the queue wants to be asked.
    timer: Option<u64>,
    in_device: VecDeque<RequestId>,
    waiting_for_slot: VecDeque<(GroupId, Bio)>,
    waiting_for_room: VecDeque<Bio>,
    accepted: BTreeSet<u64>,
    cookie: u64,
}

impl Host {
    fn new() -> Host {
        let mut q = queue(QueueConfig { admission: Admission::Pools { nr_requests: 4 }, ..config() });
        let mut groups = [GroupId::ROOT; 4];
        for at in 1..4 {
            groups[at] = q.groups_mut().create(groups[at / 2], GroupParams::default()).expect("a slot");
        }
        let tasks = groups.map(|group| q.contexts_mut().create_in(group, IoPrio::DEFAULT));
        Host {
            q,
            tasks,
            groups,
            now: 0,
            timer: None,
            in_device: VecDeque::new(),
            waiting_for_slot: VecDeque::new(),
            waiting_for_room: VecDeque::new(),
            accepted: BTreeSet::new(),
            cookie: 0,
        }
    }

    fn submit(&mut self, bio: Bio, again: bool) {
        let answer = if again { self.q.resubmit(bio, self.now) } else { self.q.submit(bio, self.now) };
        match answer {
            Submitted::Queued(_) | Submitted::Merged(_) | Submitted::Held => {
                assert!(self.accepted.insert(bio.cookie));
            }
            Submitted::Full => self.waiting_for_slot.push_back((self.q.group_of(&bio), bio)),
            Submitted::NoRoom => self.waiting_for_room.push_back(bio),
            other => panic!("{other:?}"),
        }
    }

    /// Hand the device what there is, wake who may try again.
    fn settle(&mut self) {
        loop {
            self.timer = None;
            while self.in_device.len() < 2 {
                match self.q.dispatch(self.now) {
                    Dispatch::Issue(rq) => self.in_device.push_back(rq),
                    Dispatch::Idle { until } => {
                        assert!(until > self.now);
                        self.timer = Some(until);
                        break;
                    }
                    Dispatch::Empty | Dispatch::Busy => break,
                }
            }
            if self.in_device.len() == 2 {
                self.timer = self.q.let_in(self.now, |_, _| {});
            }
            let woken: Vec<_> = core::iter::from_fn(|| self.q.next_wakeup()).collect();
            let room = self.q.take_room();
            if woken.is_empty() && !room {
                return;
            }
            for (group, sync) in woken {
                let who =
                    self.waiting_for_slot.iter().position(|(of, bio)| *of == group && bio.is_sync() == sync);
                if let Some((_, bio)) = who.and_then(|who| self.waiting_for_slot.remove(who)) {
                    self.submit(bio, true);
                }
            }
            for bio in if room { core::mem::take(&mut self.waiting_for_room) } else { VecDeque::new() } {
                self.submit(bio, false);
            }
        }
    }

    fn complete(&mut self) {
        if let Some(rq) = self.in_device.pop_front() {
            let accepted = &mut self.accepted;
            self.q.complete(rq, self.now, |cookie| {
                assert!(accepted.remove(&cookie), "{cookie} twice or never");
            });
        }
    }

    fn apply(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Submit { task, read, sector, meta } => {
                self.cookie += 1;
                let op = if read { Op::Read } else { Op::Write };
                let flags = if meta { Flags::META } else { Flags::NONE };
                self.submit(Bio { op, flags, ..write(self.tasks[task], self.cookie, sector) }, false);
            }
            Step::Limit { group, read, rates } => {
                let direction = if read { Direction::Read } else { Direction::Write };
                self.q.set_limit(self.groups[group], direction, rates, now).expect("it is there");
            }
            Step::Remove { group } => {
                self.q.remove_group(self.groups[group], now).expect("it is there");
                match self.q.groups_mut().create(GroupId::ROOT, GroupParams::default()) {
                    Ok(new) => self.groups[group] = new,
                    // Its slot is still taken by what it has queued.
                    Err(_) => self.groups[group] = GroupId::ROOT,
                }
            }
            Step::Move { task, group } => self.q.move_context(self.tasks[task], self.groups[group], now),
            Step::Exit { task } => {
                self.q.context_exit(self.tasks[task], now);
                self.tasks[task] = self.q.contexts_mut().create_in(self.groups[task], IoPrio::DEFAULT);
            }
            Step::Pass { ms } => {
                let end = now + ms * MS;
                while let Some(at) = self.timer.filter(|at| *at <= end) {
                    self.now = at;
                    self.settle();
                }
                self.now = end;
            }
            Step::Complete => self.complete(),
        }
        self.settle();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Every accepted bio comes out exactly once, whatever limits, groups and tasks do meanwhile; and the queue always names the
    /// time at which it goes on.
    #[test]
    fn every_bio_comes_out_once(steps in prop::collection::vec(step(), 1..120)) {
        let mut host = Host::new();
        for step in steps {
            // The root and a group that lost its slot are one: removing it again is refused.
            if let Step::Remove { group } = step && host.groups[group] == GroupId::ROOT {
                continue;
            }
            host.apply(step);
        }
        for _ in 0..10_000 {
            if host.in_device.is_empty() {
                match host.timer {
                    Some(at) => host.now = at,
                    None => break,
                }
            }
            host.complete();
            host.settle();
        }
        let left = [host.q.held(), host.q.pending(), host.waiting_for_slot.len(), host.waiting_for_room.len()];
        if left != [0; 4] || !host.accepted.is_empty() {
            return Err(TestCaseError::fail(format!("left behind: {left:?}, {:?}", host.accepted)));
        }
    }
}
