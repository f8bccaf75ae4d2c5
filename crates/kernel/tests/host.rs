//! What the module's host makes of groups, tasks that move, and tables that are full.

use fairlift_core::context::IoClass;
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, Host, Setup};

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
            Dispatch::Empty => panic!("nothing comes"),
        }
    }
}

fn host_id(slot: u32) -> fairlift_core::RequestId {
    use fairlift_core::collections::Id;
    fairlift_core::RequestId::from_index(slot as usize)
}

/// What each of these groups gets done of 20,000 requests when each always has eight more.
fn shares(host: &mut Host, groups: &[u32]) -> Vec<u32> {
    let contexts: Vec<u32> = groups.iter().map(|_| host.context_new(IoPrio::DEFAULT)).collect();
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
    for elevator in ["noop", "deadline", "anticipatory", "cfq"] {
        let mut host = with_room_for_groups(elevator);
        let light = host.group_new(0, 100, IoClass::BestEffort).expect("room");
        let heavy = host.group_new(0, 300, IoClass::BestEffort).expect("room");
        let served = shares(&mut host, &[light, heavy]);
        assert!((4_900..=5_100).contains(&served[0]), "{elevator}: {served:?}");
    }
}

#[test]
fn a_tree_of_three_levels_is_shared_out_under_every_elevator() {
    for elevator in ["noop", "deadline", "anticipatory", "cfq"] {
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
fn tasks_that_send_for_themselves_are_in_the_group_they_send_for() {
    let mut host = host("cfq");
    let group = host.group_new(0, 100, IoClass::BestEffort).expect("room");
    let [one, two] = [host.context_new(IoPrio::DEFAULT), host.context_new(IoPrio::DEFAULT)];
    let first = host.insert(&read(80, one, group), 1).expect("a slot");
    host.insert(&read(8000, two, group), 1).expect("a slot");
    // cfq merges within a task's queue only: one that sends for others would share it with all that do.
    assert!(host.allow_merge(first, &read(88, one, group), 2));
    assert!(!host.allow_merge(first, &read(88, two, group), 2));
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
    let task = host.context_new(IoPrio::DEFAULT);
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
    let first = host.group_new(0, 100, IoClass::BestEffort).expect("room");
    let second = host.group_new(first, 100, IoClass::BestEffort).expect("room");
    assert_eq!(host.group_new(0, 100, IoClass::BestEffort), None);
    assert_eq!(host.groups(), 3);
    // What it sent is served after its end, and counts for nobody who has its slot later.
    let slot = host.insert(&read(80, 0, second), 1).expect("a slot");
    host.group_remove(second, 2);
    assert_eq!(host.groups(), 2);
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
    for elevator in ["noop", "deadline", "anticipatory", "cfq"] {
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
