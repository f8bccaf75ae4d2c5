//! Tags for writeback by weight, asked for as a host asks: threads that send as much as they may, and a device that completes the requests of one
//! group after the other in the order in which they were made.

use std::collections::VecDeque;

use fairlift_core::GroupId;
use fairlift_core::group::{GroupParams, Groups, Writeback};

const MS: u64 = 1_000_000;
const SECTORS: u32 = 128;

struct Host {
    groups: Groups,
    parts: Writeback,
    tags: u32,
    queue: VecDeque<GroupId>,
    now: u64,
}

impl Host {
    fn new(tags: u32) -> Host {
        let groups = Groups::new(8);
        let parts = Writeback::new(&groups);
        Host { groups, parts, tags, queue: VecDeque::new(), now: 0 }
    }

    fn group(&mut self, parent: GroupId, weight: u32) -> GroupId {
        self.groups.create(parent, GroupParams { weight, ..GroupParams::default() }).expect("room")
    }

    /// The group's thread sends one more; `false`: it waits.
    fn sends(&mut self, group: GroupId) -> bool {
        if self.parts.hold(&self.groups, group, 0, self.tags, !self.queue.is_empty(), self.now) {
            return false;
        }
        self.arrives(group);
        true
    }

    fn arrives(&mut self, group: GroupId) {
        self.parts.arrived(&self.groups, group, SECTORS, self.now);
        self.queue.push_back(group);
    }

    /// How many the thread sends until it waits.
    fn sends_all(&mut self, group: GroupId) -> u32 {
        (0..1000).find(|_| !self.sends(group)).expect("it waits at last")
    }

    /// The first request is done; who goes on sends one, and waits again for the next.
    fn completes(&mut self) -> GroupId {
        let done = self.queue.pop_front().expect("a request");
        self.now += MS;
        self.parts.done(done);
        while let Some(group) = self.parts.next(&self.groups, self.tags, false, self.now) {
            self.arrives(group);
            if self.sends(group) {
                assert!(!self.sends(group), "one more than its part");
            }
        }
        done
    }
}

/// 48 tags, weights 2:1: 32 and 16.
#[test]
fn each_group_has_its_part() {
    let mut host = Host::new(48);
    let [heavy, light] = [200, 100].map(|weight| host.group(GroupId::ROOT, weight));
    // Each is known to write before the other fills its part.
    assert!(host.sends(heavy) && host.sends(light));
    assert_eq!([host.sends_all(heavy) + 1, host.sends_all(light) + 1], [32, 16]);
    assert_eq!(host.parts.waiting(), 2);
}

/// The part of a tree's group is its part of its parent's: 1:1 above, 1:3 below.
#[test]
fn parts_follow_the_tree() {
    let mut host = Host::new(64);
    let [a, b] = [100, 100].map(|weight| host.group(GroupId::ROOT, weight));
    let [x, y] = [100, 300].map(|weight| host.group(b, weight));
    assert!([a, x, y].map(|group| host.sends(group)).iter().all(|sent| *sent));
    assert_eq!([a, x, y].map(|group| host.sends_all(group) + 1), [32, 8, 24]);
}

/// Alone a group may have them all: its thread never waits here.
#[test]
fn alone_it_waits_for_nothing() {
    let mut host = Host::new(8);
    let group = host.group(GroupId::ROOT, 100);
    assert!((0..100).all(|_| host.sends(group)));
}

/// Three tags, less than all parts together: who goes on has written least by its weight.
#[test]
fn few_tags_go_around_by_weight() {
    let mut host = Host::new(3);
    let [heavy, light] = [300, 100].map(|weight| host.group(GroupId::ROOT, weight));
    assert!(host.sends(heavy) && host.sends(light));
    host.sends_all(heavy);
    host.sends_all(light);
    let done: Vec<GroupId> = (0..4000).map(|_| host.completes()).collect();
    let of = |group| done[400..].iter().filter(|one| **one == group).count() as f64;
    let ratio = of(heavy) / of(light);
    assert!((2.7..=3.3).contains(&ratio), "{ratio}");
}

/// As long as the elevator is idle no thread waits for the sake of weights.
#[test]
fn an_idle_elevator_holds_no_thread() {
    let mut host = Host::new(48);
    let [a, b] = [100, 100].map(|weight| host.group(GroupId::ROOT, weight));
    assert!(host.sends(a) && host.sends(b));
    host.sends_all(a);
    assert!(!host.parts.hold(&host.groups, b, 40, 100, false, host.now));
}
