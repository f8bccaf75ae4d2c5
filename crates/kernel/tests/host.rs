//! What the module's host makes of groups, tasks that move, and tables that are full.

use fairlift_core::context::IoClass;
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, ELEVATORS, Host, Setup};

const MS: u64 = 1_000_000;

fn setup(elevator: &'static str) -> Setup {
    let (requests_max, contexts_max, groups_max) = (8, 2, 2);
    Setup { elevator, profile: "", requests_max, contexts_max, groups_max, records_max: 0, rotational: true }
}

fn host(elevator: &'static str) -> Host {
    Host::new(setup(elevator)).expect("known")
}

fn read(sector: u64, context: u32, group: u32) -> Arrival {
    let (op, flags, ioprio) = (Op::Read, Flags::SYNC, IoPrio::DEFAULT);
    Arrival { op, flags, sector, sectors: 8, context, group, own: true, ioprio }
}

fn with_room_for_groups(elevator: &'static str) -> Host {
    let (requests_max, contexts_max, groups_max) = (64, 8, 8);
    let mut host =
        Host::new(Setup { requests_max, contexts_max, groups_max, ..setup(elevator) }).expect("known");
    let at = (0..)
        .map_while(|i| host.get(i).map(|(t, _)| t.name))
        .position(|name| name == "fairness")
        .expect("there");
    host.set(at, 1);
    host
}

/// The group whose request is dispatched and done next.
fn serve(host: &mut Host, now: &mut u64, sent: &mut Vec<(u32, u32)>) -> u32 {
    loop {
        match host.dispatch(*now) {
            Dispatch::Issue(rq) => {
                let at = sent.iter().position(|(slot, _)| rq == host_id(*slot)).expect("sent");
                let (slot, group) = sent.swap_remove(at);
                *now += 2 * MS;
                host.complete(slot, *now);
                return group;
            }
            Dispatch::Idle { until } => *now = until,
            Dispatch::Empty | Dispatch::Busy => panic!("nothing comes"),
        }
    }
}

fn host_id(slot: u32) -> fairlift_core::RequestId {
    use fairlift_core::collections::Id;
    fairlift_core::RequestId::from_index(slot as usize)
}

/// What each of these groups gets done of 20,000 requests when each always has eight more.
fn shares(host: &mut Host, groups: &[u32]) -> Vec<u32> {
    let contexts: Vec<u32> = groups.iter().map(|group| host.context_new(*group, IoPrio::DEFAULT)).collect();
    let (mut now, mut sent, mut served) = (1, Vec::new(), vec![0; groups.len()]);
    for round in 0..20_000 {
        for (at, group) in groups.iter().enumerate() {
            while sent.iter().filter(|(_, of)| of == group).count() < 8 {
                let sector = (round * 7919 + at as u64) % 100_000 * 8;
                let slot = host.insert(&read(sector, contexts[at], *group), now).expect("a slot");
                sent.push((slot, *group));
            }
        }
        let group = serve(host, &mut now, &mut sent);
        served[groups.iter().position(|of| *of == group).expect("one of them")] += 1;
    }
    served
}

#[test]
fn weights_share_out_the_disk_under_every_elevator() {
    for elevator in ELEVATORS {
        let mut host = with_room_for_groups(elevator);
        let light = host.group_new(0, 100, IoClass::BestEffort).expect("room");
        let heavy = host.group_new(0, 300, IoClass::BestEffort).expect("room");
        let served = shares(&mut host, &[light, heavy]);
        assert!((4_900..=5_100).contains(&served[0]), "{elevator}: {served:?}");
    }
}

#[test]
fn a_tree_of_three_levels_is_shared_out_under_every_elevator() {
    for elevator in ELEVATORS {
        let mut host = with_room_for_groups(elevator);
        let mut group = |parent, weight| host.group_new(parent, weight, IoClass::BestEffort).expect("room");
        let (a, b) = (group(0, 100), group(0, 300));
        let (c, d) = (group(a, 100), group(a, 100));
        let leaves = [b, c, group(d, 100), group(d, 200)];
        let served = shares(&mut host, &leaves);
        for (served, due) in served.iter().zip([15_000, 2_500, 833, 1_667]) {
            assert!(served.abs_diff(due) * 20 <= due, "{elevator}: {served} of {due}, 5 % off is too much");
        }
    }
}

#[test]
fn data_between_two_flushes_waits_for_the_turn_of_its_group() {
    for elevator in ELEVATORS {
        let mut host = with_room_for_groups(elevator);
        let [light, heavy] =
            [1, 1000].map(|weight| host.group_new(0, weight, IoClass::BestEffort).expect("room"));
        let tasks = [light, heavy].map(|group| host.context_new(group, IoPrio::DEFAULT));
        let (mut now, mut sent, mut served) = (1, Vec::new(), [0, 0]);
        for round in 0..2_000 {
            while sent.iter().filter(|(_, of)| *of == light).count() < 8 {
                let data = Arrival { op: Op::Write, ..read(round * 7919 % 100_000 * 8, tasks[0], light) };
                sent.push((host.insert_head(&data, now).expect("a slot"), light));
            }
            while sent.iter().filter(|(_, of)| *of == heavy).count() < 8 {
                let read = read((round * 7907 + 1) % 100_000 * 8, tasks[1], heavy);
                sent.push((host.insert(&read, now).expect("a slot"), heavy));
            }
            served[usize::from(serve(&mut host, &mut now, &mut sent) == heavy)] += 1;
        }
        assert!(served[0] <= 100, "{elevator}: {served:?}");
    }
}

#[test]
fn data_between_two_flushes_goes_before_the_others_of_its_group() {
    for elevator in ["noop", "deadline", "anticipatory"] {
        let mut host = with_room_for_groups(elevator);
        let group = host.group_new(0, 100, IoClass::BestEffort).expect("room");
        let task = host.context_new(group, IoPrio::DEFAULT);
        let write = |sector| Arrival { op: Op::Write, ..read(sector, task, group) };
        host.insert(&write(80), 1).expect("a slot");
        let data = host.insert_head(&write(8000), 2).expect("a slot");
        assert_eq!(host.dispatch(3), Dispatch::Issue(host_id(data)), "{elevator}");
    }
}

#[test]
fn data_that_goes_out_of_turn_is_paid_for() {
    for elevator in ["noop", "deadline", "anticipatory", "cfq"] {
        let mut host = with_room_for_groups(elevator);
        let [one, other] = [(); 2].map(|()| host.group_new(0, 100, IoClass::BestEffort).expect("room"));
        let tasks = [one, other].map(|group| host.context_new(group, IoPrio::DEFAULT));
        let (mut now, mut sent, mut served, mut around) = (1, Vec::new(), [0u64, 0], 0);
        for round in 0..4_000u64 {
            // Every tenth is the first group's, and nobody asked for it.
            if round % 10 == 0 {
                let data = Arrival { op: Op::Write, own: false, ..read(round * 8, 0, one) };
                let slot = host.issue_around(&data, now).expect("a slot");
                now += 2 * MS;
                host.complete(slot, now);
                around += 1;
            }
            for at in [0, 1] {
                let group = [one, other][at];
                while sent.iter().filter(|(_, of)| *of == group).count() < 8 {
                    let next = read((round * 7919 + at as u64) % 100_000 * 8, tasks[at], group);
                    sent.push((host.insert(&next, now).expect("a slot"), group));
                }
            }
            served[usize::from(serve(&mut host, &mut now, &mut sent) == other)] += 1;
        }
        let all = served[0] + around;
        assert!(all.abs_diff(served[1]) * 20 <= served[1], "{elevator}: {around} + {served:?}");
    }
}

#[test]
fn a_groups_own_tasks_have_their_leaf_weight_beside_its_children() {
    for elevator in ["noop", "deadline", "anticipatory", "cfq"] {
        let mut host = with_room_for_groups(elevator);
        let parent = host.group_new(0, 100, IoClass::BestEffort).expect("room");
        let child = host.group_new(parent, 100, IoClass::BestEffort).expect("room");
        host.group_leaf(parent, 300);
        // Another weight of the group leaves that alone.
        host.group_set(parent, 200, IoClass::BestEffort);
        host.group_leaf(0, 200);
        // The root's own 200 beside 200, and of these three to one.
        let served = shares(&mut host, &[0, parent, child]);
        for (served, due) in served.iter().zip([10_000u32, 7_500, 2_500]) {
            assert!(served.abs_diff(due) * 20 <= due, "{elevator}: {served} of {due}, 5 % off is too much");
        }
    }
}

#[test]
fn a_task_begins_in_its_group() {
    let mut host = host("cfq");
    let group = host.group_new(0, 100, IoClass::BestEffort).expect("room");
    let [one, two] = [0, 1].map(|_| host.context_new(group, IoPrio::DEFAULT));
    // Not said to be sent for itself: that would move it. As below, a queue of its own shows that it is in the group.
    let sent = |task, sector| Arrival { own: false, ..read(sector, task, group) };
    let first = host.insert(&sent(one, 80), 1).expect("a slot");
    host.insert(&sent(two, 8000), 1).expect("a slot");
    assert!(host.allow_merge(first, &sent(one, 88), 2));
    assert!(!host.allow_merge(first, &sent(two, 88), 2));
}

#[test]
fn tasks_that_send_for_themselves_are_in_the_group_they_send_for() {
    let mut host = host("cfq");
    let group = host.group_new(0, 100, IoClass::BestEffort).expect("room");
    let [one, two] = [host.context_new(0, IoPrio::DEFAULT), host.context_new(0, IoPrio::DEFAULT)];
    let first = host.insert(&read(80, one, group), 1).expect("a slot");
    host.insert(&read(8000, two, group), 1).expect("a slot");
    // cfq merges within a task's queue only: one that sends for others would share it with all that do.
    assert!(host.allow_merge(first, &read(88, one, group), 2));
    assert!(!host.allow_merge(first, &read(88, two, group), 2));
}

/// What is learnt of one group's tasks that have no context of their own says nothing of another's.
#[test]
fn tasks_without_a_context_of_their_own_are_waited_for_by_what_their_own_group_does() {
    let mut host = host("anticipatory");
    let [slow, quick] = [0, 0].map(|_| host.group_new(0, 100, IoClass::BestEffort).expect("room"));
    let task = host.context_new(quick, IoPrio::DEFAULT);
    let mut now = 1;
    let mut read_by = |host: &mut Host, group, sector, thinks_ns| {
        now += thinks_ns;
        let slot = host.insert(&read(sector, 0, group), now).expect("a slot");
        while let Dispatch::Idle { until } = host.dispatch(now) {
            now = until;
        }
        now += MS;
        host.complete(slot, now);
        now
    };
    for i in 0..50 {
        read_by(&mut host, slow, i * 8, 200 * MS);
    }
    let mut done = 0;
    for i in 0..4 {
        done = read_by(&mut host, quick, i * 8, MS);
    }
    host.insert(&read(80_000, task, quick), done).expect("a slot");
    assert!(
        matches!(host.dispatch(done), Dispatch::Idle { .. }),
        "the next read of the quick ones comes soon"
    );
}

#[test]
fn time_does_not_go_back() {
    let setup = Setup { contexts_max: 0, groups_max: 0, records_max: 8, ..setup("deadline") };
    let mut host = Host::new(setup).expect("known");
    // Two processors' clocks, read before the lock was taken.
    host.insert(&read(80, 0, 0), 100);
    host.insert(&read(90, 0, 0), 50);
    assert!(host.recorder().entries().iter().all(|entry| entry.now == 100));
}

#[test]
fn an_idle_group_gives_way() {
    let mut host = host("cfq");
    let idle = host.group_new(0, 100, IoClass::Idle).expect("room");
    let task = host.context_new(0, IoPrio::DEFAULT);
    let (mut now, mut sent) = (1, Vec::new());
    sent.push((host.insert(&read(80, task, idle), now).expect("a slot"), idle));
    sent.push((host.insert(&read(8000, 0, 0), now).expect("a slot"), 0));
    assert_eq!(serve(&mut host, &mut now, &mut sent), 0);
    assert_eq!(serve(&mut host, &mut now, &mut sent), idle);
    // Told otherwise, it does not.
    host.group_set(idle, 100, IoClass::RealTime);
    sent.push((host.insert(&read(8000, 0, 0), now).expect("a slot"), 0));
    sent.push((host.insert(&read(80, task, idle), now).expect("a slot"), idle));
    assert_eq!(serve(&mut host, &mut now, &mut sent), idle);
}

#[test]
fn a_full_table_of_groups_says_so_and_a_removed_group_makes_room() {
    let mut host = host("deadline");
    // Two places, and two in reserve.
    let mut last = 0;
    for _ in 0..4 {
        last = host.group_new(0, 100, IoClass::BestEffort).expect("room");
    }
    assert_eq!(host.group_new(0, 100, IoClass::BestEffort), None);
    assert_eq!(host.groups(), 5);
    // What it sent is served after its end, and counts for nobody who has its slot later.
    let slot = host.insert(&read(80, 0, last), 1).expect("a slot");
    host.group_remove(last, 2);
    assert_eq!(host.group_new(0, 100, IoClass::BestEffort), None, "its request is not done");
    assert!(matches!(host.dispatch(3), Dispatch::Issue(_)));
    host.complete(slot, 4);
    assert!(host.queued() == 0 && host.taken() == 0);
    // A group that is gone, or never was: the nearest that is left, never an error.
    let slot = host.insert(&read(80, 0, 77), 5).expect("a slot");
    assert!(matches!(host.dispatch(1000 * MS), Dispatch::Issue(_)));
    host.complete(slot, 1001 * MS);
    assert_eq!(host.group_stats(77).total().ios, host.group_stats(0).total().ios);
    assert!(host.group_new(0, 100, IoClass::BestEffort).is_some());
}

#[test]
fn who_makes_many_groups_leaves_places_for_others() {
    let mut host = with_room_for_groups("noop");
    let mut group = |parent| host.group_new(parent, 100, IoClass::BestEffort);
    let greedy = group(0).expect("room");
    while group(greedy).is_some() {}
    let later = group(0).expect("a place in reserve");
    assert!(group(later).is_some() && group(greedy).is_none());
}

#[test]
fn who_has_many_tasks_leaves_contexts_for_others() {
    let mut host = host("cfq");
    let [greedy, later] =
        [0, 0].map(|parent| host.group_new(parent, 100, IoClass::BestEffort).expect("room"));
    while host.context_new(greedy, IoPrio::DEFAULT) != 0 {}
    assert_ne!(host.context_new(later, IoPrio::DEFAULT), 0);
}

#[test]
fn a_task_without_a_context_of_its_own_counts_for_its_own_group() {
    let mut host = host("cfq");
    let [one, two] = [0, 0].map(|parent| host.group_new(parent, 100, IoClass::BestEffort).expect("room"));
    // Sync reads of one group's shared context and of the other's: neighbours on the disk, but not of one queue.
    let first = host.insert(&read(80, 0, one), 1).expect("a slot");
    host.insert(&read(8000, 0, two), 1).expect("a slot");
    assert!(host.allow_merge(first, &read(88, 0, one), 2));
    assert!(!host.allow_merge(first, &read(88, 0, two), 2));
    // A number of nobody's, and of one that is gone: the same.
    let task = host.context_new(two, IoPrio::DEFAULT);
    assert_eq!(task, 1, "numbers count those who have one of their own");
    host.context_exit(task, 3);
    for nobody in [task, 77, u32::MAX] {
        assert!(host.allow_merge(first, &read(88, nobody, one), 4), "{nobody}");
    }
    assert_eq!(host.contexts(), 1);
}

#[test]
fn tunables_of_the_groups_follow_the_elevators() {
    let mut host = host("deadline");
    let names: Vec<&str> = (0..).map_while(|i| host.get(i).map(|(tunable, _)| tunable.name)).collect();
    assert!(names.contains(&"fifo_batch") && names.contains(&"group_idle"), "{names:?}");
    assert!(!names.contains(&"nr_group_requests"), "the kernel's to say");
    let fairness = names.iter().position(|name| *name == "fairness").expect("there");
    host.set(fairness, 1);
    assert_eq!(host.get(fairness).map(|(_, value)| value), Some(1));
}

#[test]
fn the_shim_has_room_for_every_tunable() {
    let tunables = include_str!("../../../kernel/src/tunables.c");
    let line = tunables.lines().find(|line| line.starts_with("#define FL_TUNABLES_MAX")).expect("there");
    let room: usize = line.split_whitespace().last().and_then(|n| n.parse().ok()).expect("a number");
    for elevator in ELEVATORS {
        let mut host = host(elevator);
        assert!((0..).take_while(|i| host.get(*i).is_some()).count() <= room, "{elevator}");
    }
}

#[test]
fn cfq_protects_seeking_groups_when_there_can_be_groups() {
    for (groups_max, isolated) in [(2, 1), (0, 0)] {
        let mut host = Host::new(Setup { profile: "2.6.37", groups_max, ..setup("cfq") }).expect("known");
        let mut tunables = (0..).map_while(|i| host.get(i).map(|(tunable, value)| (tunable.name, value)));
        let isolation = tunables.find(|(name, _)| *name == "group_isolation");
        assert_eq!(isolation, Some(("group_isolation", isolated)), "room for {groups_max} groups");
    }
}

#[test]
fn who_was_let_go_before_it_was_known_what_he_sends_is_counted_for_what_he_sent() {
    for elevator in ELEVATORS {
        let mut host = with_room_for_groups(elevator);
        let sender = host.group_new(0, 100, IoClass::BestEffort).expect("room");
        let place = Arrival { op: Op::Write, sectors: 1, ..read(0, 0, sender) };
        let slot = host.insert(&place, 1).expect("a slot");
        assert!(matches!(host.dispatch(2), Dispatch::Issue(rq) if rq == host_id(slot)), "{elevator}");
        host.fill(slot, 4096, 64, 3);
        host.complete(slot, 2 * MS);
        assert_eq!(host.group_stats(sender).total().sectors, 64, "{elevator}");
        let slot = host.insert(&place, 2 * MS).expect("a slot");
        assert!(matches!(host.dispatch(2 * MS), Dispatch::Issue(_)), "{elevator}");
        host.fill(slot, 0, 0, 2 * MS);
        host.complete(slot, 3 * MS);
        let done = (host.group_stats(sender).total().ios, host.group_flushes(sender));
        assert_eq!(done, (2, 1), "{elevator}: a flush alone is told from writes");
        // What is done, or was never there, cannot be filled any more.
        host.fill(slot, 0, 8, 3 * MS);
        host.fill(77, 0, 8, 3 * MS);
        assert_eq!(host.group_stats(sender).total().sectors, 64, "{elevator}");
    }
}

#[test]
fn fair_holds_back_while_the_device_flushes() {
    for elevator in ELEVATORS {
        let mut host = host(elevator);
        let task = host.context_new(0, IoPrio::DEFAULT);
        let slot = host.insert(&read(80, task, 0), 1).expect("a slot");
        host.flushing(true, 2);
        let answer = host.dispatch(3);
        assert_eq!(answer != Dispatch::Issue(host_id(slot)), *elevator == "fair", "{elevator}: {answer:?}");
        if *elevator == "fair" {
            host.flushing(false, 4);
            assert_eq!(host.dispatch(5), Dispatch::Issue(host_id(slot)));
        }
    }
}

/// The first of two cgroups is done and may come back, while the second has sent so many requests that all tags are taken, or all
/// that async requests may take. (cfq idles for no async queue.)
#[test]
fn the_device_idles_for_no_group_that_finds_no_tag() {
    let rows = [(Op::Read, 2, 1), (Op::Read, 2, 2), (Op::Write, 3, 2), (Op::Write, 3, 3)];
    for elevator in ELEVATORS {
        for (op, tags, others) in rows.into_iter().filter(|row| *elevator != "cfq" || row.0 == Op::Read) {
            let mut host = with_room_for_groups(elevator);
            let groups =
                [1000, 1].map(|weight| host.group_new(0, weight, IoClass::BestEffort).expect("room"));
            let tasks = groups.map(|group| host.context_new(group, IoPrio::DEFAULT));
            let flags = if op == Op::Read { Flags::SYNC } else { Flags::NONE };
            let request = |of: usize, sector| Arrival { op, flags, ..read(sector, tasks[of], groups[of]) };
            host.request_slots(if op == Op::Read { tags } else { 8 }, tags, MS);
            // The second has had more than its due.
            let (mut now, mut sent) = (MS, Vec::new());
            for of in [1, 0] {
                sent.push((
                    host.insert(&request(of, 80 + 8_000 * of as u64), now).expect("a slot"),
                    groups[of],
                ));
                if of == 1 {
                    serve(&mut host, &mut now, &mut sent);
                }
            }
            let slot = sent[0].0;
            while let Dispatch::Idle { until } = host.dispatch(now) {
                now = until;
            }
            for sector in 0..others {
                host.insert(&request(1, 9_000 + 100 * u64::from(sector)), now).expect("a slot");
            }
            host.complete(slot, now + MS);
            let answer = host.dispatch(now + MS);
            let idles = matches!(answer, Dispatch::Idle { .. });
            assert_eq!(idles, others < tags, "{elevator}, {op:?}, {others} of {tags}: {answer:?}");
        }
    }
}
