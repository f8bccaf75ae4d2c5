//! Writeback of groups by weight: each group's thread sends bios as fast as it gets tags for them, in order of arrival; the device
//! serves one request after the other, 1 ms each, in the order of the elevator.

use std::collections::VecDeque;

use fairlift_core::context::IoClass;
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, ELEVATORS, Host, Setup, Slot};

const MS: u64 = 1_000_000;
const SECTORS: u32 = 128;

/// One disk with its threads, as `kernel/src/writeback.c` keeps them.
struct Disk {
    host: Host,
    /// Of async requests.
    tags: u32,
    taken: u32,
    now: u64,
    /// By group.
    lines: Vec<VecDeque<Arrival>>,
    /// Bios that wait for a tag, in order: threads', and those that were sent on.
    at_the_pool: VecDeque<Arrival>,
    /// Bios of the batch that is on its way.
    going: u32,
    in_device: Option<(Slot, u32)>,
    by_slot: Vec<u32>,
    done: Vec<u64>,
    /// Does the module share out the tags?
    shares: bool,
    next_sector: u64,
}

impl Disk {
    fn new(elevator: &'static str, tags: u32) -> Disk {
        let (requests_max, contexts_max, groups_max) = (256, 2, 40);
        let setup = Setup {
            elevator,
            profile: "",
            requests_max,
            contexts_max,
            groups_max,
            records_max: 0,
            rotational: false,
        };
        let mut host = Host::new(setup).expect("known");
        host.request_slots(tags, tags, 0);
        let groups = host.lines() / 2;
        Disk {
            host,
            tags,
            taken: 0,
            now: 0,
            lines: vec![VecDeque::new(); groups],
            at_the_pool: VecDeque::new(),
            going: 0,
            in_device: None,
            by_slot: vec![0; 256],
            done: vec![0; groups],
            shares: true,
            next_sector: 0,
        }
    }

    fn group(&mut self, weight: u32) -> u32 {
        self.host.group_new(0, weight, IoClass::BestEffort).expect("room")
    }

    fn bio(&mut self, group: u32) -> Arrival {
        self.next_sector += 10_000;
        let (op, flags, context, own) = (Op::Write, Flags::NONE, 0, false);
        Arrival {
            op,
            flags,
            sector: self.next_sector,
            sectors: SECTORS,
            context,
            group,
            own,
            ioprio: IoPrio::DEFAULT,
        }
    }

    /// The threads of these groups send until all of them wait for a tag; each has but one bio there, though any number in its line.
    fn send(&mut self, groups: &[u32]) {
        for group in groups {
            while !self.at_the_pool.iter().any(|bio| bio.group == *group)
                && self.lines[*group as usize].len() < 100
            {
                let bio = self.bio(*group);
                if self.shares && self.host.hold_write(*group, 0, self.tags, self.now) {
                    self.lines[*group as usize].push_back(bio);
                    self.let_go();
                } else {
                    self.at_the_pool.push_back(bio);
                    self.take_tags();
                }
            }
        }
    }

    fn let_go(&mut self) {
        if self.going > 0 {
            return;
        }
        while let Some(group) = self.host.next_write(self.tags, self.now) {
            let bio = self.lines[group as usize].pop_front().expect("it waits");
            self.at_the_pool.push_back(bio);
            self.going += 1;
        }
    }

    fn take_tags(&mut self) {
        while self.taken < self.tags
            && let Some(bio) = self.at_the_pool.pop_front()
        {
            self.taken += 1;
            let slot = self.host.insert(&bio, self.now).expect("a slot");
            self.by_slot[slot as usize] = bio.group;
        }
        if self.going > 0 && self.at_the_pool.is_empty() {
            self.going = 0;
            self.host.writes_came();
            self.let_go();
            if self.going > 0 {
                self.take_tags();
            }
        }
    }

    /// One request is done, if one is in the device, and the next goes.
    fn step(&mut self) {
        self.now += MS;
        if let Some((slot, group)) = self.in_device.take() {
            self.host.complete(slot, self.now);
            self.done[group as usize] += 1;
            self.taken -= 1;
            self.let_go();
            self.take_tags();
        }
        if let Dispatch::Issue(rq) = self.host.dispatch(self.now) {
            let slot = fairlift_core::collections::Id::index(rq) as Slot;
            self.in_device = Some((slot, self.by_slot[slot as usize]));
        }
    }

    fn run(&mut self, groups: &[u32], ms: u32) {
        for _ in 0..ms {
            self.send(groups);
            self.step();
        }
    }

    fn waiting(&self) -> u64 {
        self.lines.iter().map(|line| line.len() as u64).sum()
    }
}

#[test]
fn weights_reach_writeback_whatever_the_number_of_tags() {
    for elevator in ELEVATORS {
        for tags in [1, 2, 3, 8, 46, 192] {
            let mut disk = Disk::new(elevator, tags);
            let [heavy, light] = [200, 100].map(|weight| disk.group(weight));
            disk.run(&[heavy, light], 20_000);
            let [heavy, light] = [heavy, light].map(|group| disk.done[group as usize] as f64);

            assert!((heavy / light - 2.0).abs() < 0.05, "{elevator}, {tags} tags: {heavy} : {light}");
            // An elevator that idles for who has no request here would serve less.
            assert!(heavy + light > 19_000.0, "{elevator}, {tags} tags: {heavy} + {light} of 20,000");
        }
    }
}

#[test]
fn without_it_the_tags_are_the_light_ones() {
    let mut disk = Disk::new("deadline", 46);
    disk.shares = false;
    let [heavy, light] = [200, 100].map(|weight| disk.group(weight));
    disk.run(&[heavy, light], 20_000);
    let [heavy, light] = [heavy, light].map(|group| disk.done[group as usize] as f64);
    assert!(heavy / light < 1.2, "the test would not notice: {heavy} : {light}");
}

#[test]
fn more_groups_than_tags_are_served_by_weight() {
    for elevator in ["noop", "cfq", "fair"] {
        let mut disk = Disk::new(elevator, 8);
        let groups: Vec<u32> = (0..30).map(|i| disk.group(if i < 15 { 100 } else { 300 })).collect();
        disk.run(&groups, 60_000);
        let got =
            |range: &[u32]| range.iter().map(|group| disk.done[*group as usize] as f64).collect::<Vec<_>>();
        let (light, heavy) = (got(&groups[..15]), got(&groups[15..]));
        let (few, many) = (light.iter().sum::<f64>() / 15.0, heavy.iter().sum::<f64>() / 15.0);
        assert!((many / few - 3.0).abs() < 0.2, "{elevator}: {few} : {many}");
        for (all, mean) in [(&light, few), (&heavy, many)] {
            assert!(
                all.iter().all(|one| (one / mean - 1.0).abs() < 0.1),
                "{elevator}: {all:?} beside {mean}"
            );
        }
    }
}

#[test]
fn alone_a_group_has_all_tags_and_gets_them_back_when_the_other_rests() {
    let mut disk = Disk::new("deadline", 46);
    let [one, other] = [100, 10_000].map(|weight| disk.group(weight));
    disk.run(&[one], 100);
    assert_eq!((disk.taken, disk.waiting()), (46, 0));
    // The other comes: the first goes down to its part, one tag.
    disk.run(&[one, other], 300);
    let ones = disk.by_slot.iter().filter(|group| **group == one).count();
    assert!(ones <= 256 && disk.waiting() > 0);
    let before = disk.done[one as usize];
    disk.run(&[one, other], 1_000);
    assert!(disk.done[one as usize] - before <= 1_000 / 101 + 2, "{}", disk.done[one as usize] - before);
    // Its last requests are done, and a while later it does not count any more.
    disk.run(&[one], 2_000);
    assert_eq!((disk.taken, disk.lines[other as usize].len()), (46, 0));
}

#[test]
fn nothing_stays_behind() {
    for elevator in ELEVATORS {
        for tags in [1, 2, 46] {
            let mut disk = Disk::new(elevator, tags);
            let groups = [1, 100, 10_000].map(|weight| disk.group(weight));
            disk.run(&groups, 500);
            assert!(disk.waiting() > 0);
            // No thread sends any more: what waits comes out all the same.
            let mut steps = 0;
            while disk.waiting() > 0 || disk.taken > 0 || !disk.at_the_pool.is_empty() {
                disk.step();
                steps += 1;
                assert!(
                    steps < 5_000,
                    "{elevator}, {tags} tags: {} wait, {} taken",
                    disk.waiting(),
                    disk.taken
                );
            }
            assert_eq!(disk.host.writes_waiting(), 0);
        }
    }
}

#[test]
fn what_waits_when_its_group_goes_waits_above_it() {
    let mut disk = Disk::new("deadline", 8);
    let (outer, other) = (disk.group(100), disk.group(100));
    let inner = disk.host.group_new(outer, 100, IoClass::BestEffort).expect("room");
    disk.run(&[inner, other], 100);
    let moved = disk.lines[inner as usize].len();
    assert!(moved > 0);
    let bios = std::mem::take(&mut disk.lines[inner as usize]);
    disk.lines[outer as usize].extend(bios);
    disk.host.move_writes(inner, outer, disk.now);
    disk.host.group_remove(inner, disk.now);
    disk.run(&[other], 3_000);
    assert!(disk.lines[outer as usize].is_empty(), "{} left", disk.lines[outer as usize].len());
    // Those of the root do not wait.
    disk.run(&[outer, other], 100);
    assert!(!disk.lines[outer as usize].is_empty());
    let others = disk.lines[other as usize].len() as u64;
    disk.host.move_writes(outer, 0, disk.now);
    assert_eq!(disk.host.writes_waiting(), others);
}
