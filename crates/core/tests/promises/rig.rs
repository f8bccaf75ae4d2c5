//! A machine to run tenants on: one request queue above one modelled device, in virtual time.
//!
//! All that is asked of the core's API is asked here. Service is measured at the device, by the owner of the sectors or of the
//! bios served; the core's own statistics are not looked at.

use std::collections::{BTreeSet, HashMap, VecDeque};

use fairlift_core::elevator::AnyElevator;
use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::group::{GroupError, GroupParams};
use fairlift_core::queue::{Admission, Ordering, Plugging, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, IoPrio, Op, RequestId, elevator};

pub use crate::device::{ACCESS_NS, FLUSH_NS, RETURN_NS, SECTOR_NS, SERVICE_NS, SLOW_NS, SLOW_PLACE};
use crate::device::{Command, Device, REGION_SECTORS, SHARED_REGION};

// ---- what tenants see ------------------------------------------------------------------------------------------------------

/// What runs on the machine: hooks that may do anything to the [`Host`].
pub trait Program {
    fn start(&mut self, host: &mut Host<'_>);
    /// One of its bios is done.
    fn done(&mut self, _host: &mut Host<'_>, _io: Io) {}
    /// A timer it set rings.
    fn timer(&mut self, _host: &mut Host<'_>, _tag: u64) {}
}

/// A bio in the terms of programs.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    pub task: Task,
    pub op: Op,
    pub flags: Flags,
    /// In the tenant's own region, or behind [`Place::Shared`].
    pub place: Place,
    pub sectors: u32,
    pub ioprio: Option<IoPrio>,
    /// Handed back with [`Program::done`].
    pub tag: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Place {
    Own(u64),
    /// In the region that the tenants 0 and 1 have in common: blocks of 8 sectors, whose number is even for tenant 0.
    Shared(u64),
    /// In another tenant's region.
    Of(TenantId, u64),
}

pub type TenantId = usize;

/// A task of a tenant's. One that has to wait for a request slot, or for room behind a limit, sleeps, and what it is to send goes
/// after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task(usize);

struct TaskState {
    context: ContextId,
    asleep: bool,
    /// What it sends when it is awake again.
    backlog: VecDeque<usize>,
}

/// What a tenant got.
#[derive(Clone, Copy, Default, Debug)]
pub struct Got {
    /// Device time, flushes it asked for included.
    pub time_ns: u64,
    /// Requests the device served.
    pub requests: u64,
    pub sectors: u64,
    /// Bios done.
    pub bios: u64,
    /// Longest time from a bio's submission to its completion, or to the end of the run.
    pub wait_max_ns: u64,
}

struct Tenant {
    program: Option<Box<dyn Program>>,
    group: GroupId,
    got: Got,
    /// Bios of it under way that want a flush.
    wants_flush: u64,
    /// How often the device gives each of its requests back before it serves it.
    returns: u32,
    /// Its requests take their time and fail.
    fails: bool,
}

struct Sent {
    owner: TenantId,
    io: Io,
    submitted_ns: u64,
    done: bool,
}

enum Event {
    Start,
    Done(Io),
    Timer(u64),
}

// ---- the machine -----------------------------------------------------------------------------------------------------------

/// An elevator as it is chosen and set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    pub elevator: &'static str,
    pub profile: &'static str,
    pub settings: &'static [(&'static str, &'static str)],
}

/// All of them. cfq 2.6.34 has `group_isolation=1`: with 0, that kernel's default, random readers are in the root and have no
/// protection, as documented.
pub const POLICIES: [Policy; 6] = [
    Policy { elevator: "noop", profile: "", settings: &[] },
    Policy { elevator: "deadline", profile: "", settings: &[] },
    Policy { elevator: "fair", profile: "", settings: &[] },
    Policy { elevator: "anticipatory", profile: "", settings: &[] },
    Policy { elevator: "cfq", profile: "2.6.31", settings: &[] },
    Policy { elevator: "cfq", profile: "2.6.34", settings: &[("group_isolation", "1")] },
];

impl Policy {
    fn build(self, config: &QueueConfig) -> AnyElevator {
        let descriptor = elevator::find(self.elevator).expect("a known elevator");
        let mut built = (descriptor.build)(&config.elevator(), self.profile);
        for (name, text) in self.settings {
            elevator::set(&mut *built, name, text).expect("a tunable of it");
        }
        built
    }
}

/// How a machine is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    pub policy: Policy,
    pub charge: &'static str,
    /// Requests the device takes at a time.
    pub depth: usize,
    /// What a request takes beside its sectors.
    pub access_ns: u64,
    pub contexts_max: usize,
    pub groups_max: usize,
    pub ordering: Ordering,
    pub plugging: Plugging,
    pub nr_requests: u32,
}

impl Setup {
    pub fn new(policy: Policy, charge: &'static str, depth: usize) -> Setup {
        Setup {
            policy,
            charge,
            depth,
            access_ns: ACCESS_NS,
            contexts_max: 256,
            groups_max: 160,
            ordering: Ordering::DrainFlush,
            plugging: Plugging::Off,
            nr_requests: 128,
        }
    }

    fn config(&self) -> QueueConfig {
        QueueConfig {
            contexts_max: self.contexts_max,
            groups_max: self.groups_max,
            ordering: self.ordering,
            plugging: self.plugging,
            admission: Admission::Pools { nr_requests: self.nr_requests },
            ..QueueConfig::default()
        }
    }
}

pub struct Machine {
    q: RequestQueue,
    policy: Policy,
    pub now: u64,
    device: Device,
    tenants: Vec<Tenant>,
    tasks: Vec<TaskState>,
    sent: Vec<Sent>,
    events: VecDeque<(TenantId, Event)>,
    timers: BTreeSet<(u64, u64, TenantId, u64)>,
    timers_set: u64,
    /// Bios refused for want of a slot, by whom a wake-up will name; and of room behind a limit.
    waiting: HashMap<(GroupId, bool), VecDeque<usize>>,
    waiting_for_room: VecDeque<usize>,
    /// When the queue wants to be asked again.
    again_ns: Option<u64>,
    /// How often each request that is to be given back was given back.
    returned: HashMap<RequestId, u32>,
    /// How often the queue was asked for a request.
    asked: u64,
}

impl Machine {
    pub fn new(setup: &Setup) -> Machine {
        let config = setup.config();
        let mut q = RequestQueue::new(config, setup.policy.build(&config));
        q.groups_mut().set("charge", setup.charge).expect("a tunable of groups");
        Machine {
            q,
            policy: setup.policy,
            now: 0,
            device: Device::new(setup.depth, setup.access_ns),
            tenants: Vec::new(),
            tasks: Vec::new(),
            sent: Vec::new(),
            events: VecDeque::new(),
            timers: BTreeSet::new(),
            timers_set: 0,
            waiting: HashMap::new(),
            waiting_for_room: VecDeque::new(),
            again_ns: None,
            returned: HashMap::new(),
            asked: 0,
        }
    }

    // ---- the operator ----

    pub fn group(&mut self, parent: GroupId, weight: u32) -> GroupId {
        self.try_group(parent, weight).expect("a group for everybody who may make one")
    }

    pub fn try_group(&mut self, parent: GroupId, weight: u32) -> Result<GroupId, GroupError> {
        self.q.groups_mut().create(parent, GroupParams::weight(weight))
    }

    pub fn set_weight(&mut self, group: GroupId, weight: u32) {
        self.q.groups_mut().set_params(group, GroupParams::weight(weight)).expect("it is there");
    }

    /// A group with all that may be asked for it.
    pub fn group_with(&mut self, parent: GroupId, params: GroupParams) -> GroupId {
        self.q.groups_mut().create(parent, params).expect("there is room")
    }

    /// A latency goal for a group of this weight.
    pub fn set_goal(&mut self, group: GroupId, weight: u32, latency_ns: u64) {
        let params = GroupParams { latency_ns, ..GroupParams::weight(weight) };
        self.q.groups_mut().set_params(group, params).expect("it is there");
    }

    /// So many requests a second, of reads and of writes each.
    pub fn limit_ios(&mut self, group: GroupId, ios_per_s: u64) {
        for direction in Direction::ALL {
            let rates = Rates { bytes_per_s: 0, ios_per_s };
            self.q.set_limit(group, direction, rates, self.now).expect("it is there");
        }
    }

    pub fn set(&mut self, name: &str, text: &str) {
        self.q.groups_mut().set(name, text).expect("a tunable of groups");
    }

    pub fn set_elevator(&mut self, name: &str, text: &str) -> bool {
        elevator::set(self.q.elevator_mut(), name, text).is_ok()
    }

    pub fn policy(&self) -> Policy {
        self.policy
    }

    pub fn switch(&mut self, policy: Policy) {
        self.policy = policy;
        let built = policy.build(self.q.config());
        self.q.switch(built, self.now);
    }

    /// A tenant whose tasks are in `group`; it starts with the next [`Machine::run`].
    pub fn tenant(&mut self, group: GroupId, program: impl Program + 'static) -> TenantId {
        let tenant = Tenant {
            program: Some(Box::new(program)),
            group,
            got: Got::default(),
            wants_flush: 0,
            returns: 0,
            fails: false,
        };
        self.tenants.push(tenant);
        self.events.push_back((self.tenants.len() - 1, Event::Start));
        self.tenants.len() - 1
    }

    /// The device gives each request of `tenant` back so often before it serves it.
    pub fn return_requests_of(&mut self, tenant: TenantId, times: u32) {
        self.tenants[tenant].returns = times;
    }

    /// All requests of `tenant` fail, after the usual time.
    pub fn fail_requests_of(&mut self, tenant: TenantId) {
        self.tenants[tenant].fails = true;
    }

    // ---- what was measured ----

    pub fn got(&self, tenant: TenantId) -> Got {
        let now = self.now;
        let left = self.sent.iter().filter(|sent| sent.owner == tenant && !sent.done);
        let oldest_ns = left.map(|sent| now - sent.submitted_ns).max().unwrap_or(0);
        let got = self.tenants[tenant].got;
        Got { wait_max_ns: got.wait_max_ns.max(oldest_ns), ..got }
    }

    /// All tenants but `tenant`.
    pub fn got_by_others(&self, tenant: TenantId) -> Got {
        let others = (0..self.tenants.len()).filter(|other| *other != tenant).map(|other| self.got(other));
        others.fold(Got::default(), |sum, got| Got {
            time_ns: sum.time_ns + got.time_ns,
            requests: sum.requests + got.requests,
            sectors: sum.sectors + got.sectors,
            bios: sum.bios + got.bios,
            wait_max_ns: sum.wait_max_ns.max(got.wait_max_ns),
        })
    }

    pub fn group_of(&self, tenant: TenantId) -> GroupId {
        self.tenants[tenant].group
    }

    pub fn asked(&self) -> u64 {
        self.asked
    }

    pub fn busy_ns(&self) -> u64 {
        self.device.busy_ns
    }

    // ---- time ----

    /// Let everything happen up to `until_ns`.
    pub fn run(&mut self, until_ns: u64) {
        loop {
            self.settle();
            let timer_ns = self.timers.first().map_or(u64::MAX, |timer| timer.0);
            let at = timer_ns.min(self.device.done_ns).min(self.again_ns.unwrap_or(u64::MAX));
            if at > until_ns {
                self.now = until_ns;
                return;
            }
            self.now = at;
            if self.device.done_ns == at {
                self.finish_one();
            }
            while let Some(&(at, order, tenant, tag)) = self.timers.first()
                && at <= self.now
            {
                self.timers.remove(&(at, order, tenant, tag));
                self.events.push_back((tenant, Event::Timer(tag)));
            }
        }
    }

    /// Hand out events, wake-ups and requests until nothing more happens at this time.
    fn settle(&mut self) {
        for _round in 0..100_000 {
            // Who waits came before those who are answered now.
            self.q.let_in(self.now, |_, _| {});
            let woken = self.wake();
            while let Some((tenant, event)) = self.events.pop_front() {
                self.hand_out(tenant, event);
            }
            let issued = self.fill_device();
            if !woken && !issued && self.events.is_empty() {
                return;
            }
        }
        panic!("no end of events at {} ns", self.now);
    }

    fn hand_out(&mut self, me: TenantId, event: Event) {
        let Some(mut program) = self.tenants[me].program.take() else { return };
        let mut host = Host { machine: self, me };
        match event {
            Event::Start => program.start(&mut host),
            Event::Done(io) => program.done(&mut host, io),
            Event::Timer(tag) => program.timer(&mut host, tag),
        }
        self.tenants[me].program = Some(program);
    }

    /// Was there a request for it?
    fn fill_device(&mut self) -> bool {
        self.again_ns = None;
        let mut issued = false;
        while self.device.holds.len() < self.device.depth {
            self.asked += 1;
            match self.q.dispatch(self.now) {
                Dispatch::Issue(rq) => self.issue(rq),
                Dispatch::Idle { until } => {
                    assert!(until > self.now, "to be asked again at a time that has passed");
                    self.again_ns = Some(until);
                    return issued;
                }
                Dispatch::Empty | Dispatch::Busy => return issued,
            }
            issued = true;
        }
        // A full device is no reason to leave bios behind limits waiting.
        self.again_ns = self.q.let_in(self.now, |_, _| {});
        issued
    }

    /// Those who may try again do; was there one?
    fn wake(&mut self) -> bool {
        let mut woken = false;
        while let Some((group, sync)) = self.q.next_wakeup() {
            let waiter = self.waiting.get_mut(&(group, sync)).and_then(VecDeque::pop_front);
            if let Some(cookie) = waiter {
                woken |= self.try_again(cookie, true);
            }
        }
        if self.q.take_room() {
            for cookie in std::mem::take(&mut self.waiting_for_room) {
                woken |= self.try_again(cookie, false);
            }
        }
        woken
    }

    /// The bio of a task that sleeps; is the task awake now?
    fn try_again(&mut self, cookie: usize, for_slot: bool) -> bool {
        let task = self.sent[cookie].io.task;
        self.tasks[task.0].asleep = false;
        self.offer(cookie, for_slot);
        let awake = !self.tasks[task.0].asleep;
        while !self.tasks[task.0].asleep
            && let Some(next) = self.tasks[task.0].backlog.pop_front()
        {
            self.offer(next, false);
        }
        awake
    }

    // ---- a bio's way ----

    fn send(&mut self, cookie: usize) {
        let task = &mut self.tasks[self.sent[cookie].io.task.0];
        match task.asleep {
            true => task.backlog.push_back(cookie),
            false => self.offer(cookie, false),
        }
    }

    fn offer(&mut self, cookie: usize, again: bool) {
        let bio = self.bio(cookie);
        let task = self.sent[cookie].io.task;
        let answer = match again {
            true => self.q.resubmit(bio, self.now),
            false => self.q.submit(bio, self.now),
        };
        match answer {
            Submitted::Queued(_) | Submitted::Merged(_) | Submitted::Held => {}
            Submitted::Done => self.bio_done(cookie),
            Submitted::Full => {
                self.tasks[task.0].asleep = true;
                let waiters = self.waiting.entry((self.q.group_of(&bio), bio.is_sync())).or_default();
                // Who was woken in vain stays the first.
                if again { waiters.push_front(cookie) } else { waiters.push_back(cookie) }
            }
            Submitted::NoRoom => {
                self.tasks[task.0].asleep = true;
                self.waiting_for_room.push_back(cookie);
            }
            Submitted::Refused(why) => panic!("{bio:?} was refused: {why:?}"),
        }
    }

    fn bio(&self, cookie: usize) -> Bio {
        let Sent { owner, io, .. } = self.sent[cookie];
        let own = |tenant: TenantId| (tenant as u64 + 1) * REGION_SECTORS;
        let sector = match io.place {
            Place::Own(place) => own(owner) + place,
            Place::Of(tenant, place) => own(tenant) + place,
            Place::Shared(block) => SHARED_REGION + 8 * block,
        };
        Bio {
            cookie: cookie as u64,
            op: io.op,
            flags: io.flags,
            sector: if io.op == Op::Flush { 0 } else { sector },
            sectors: io.sectors,
            segments: 1,
            context: self.tasks[io.task.0].context,
            ioprio: io.ioprio,
            group: None,
        }
    }

    fn issue(&mut self, rq: RequestId) {
        let request = &self.q.requests()[rq];
        let (op, sector, sectors) = (request.op, request.sector, request.sectors);
        let returned = op != Op::Flush && self.is_to_be_returned(rq, sector);
        self.device.push(Command { rq, op, sector, sectors, service_ns: 0, returned }, self.now);
    }

    fn is_to_be_returned(&mut self, rq: RequestId, sector: u64) -> bool {
        let times = self.tenants[owner_of(sector)].returns;
        if times == 0 {
            return false;
        }
        let so_far = self.returned.entry(rq).or_default();
        *so_far += 1;
        if *so_far <= times {
            return true;
        }
        self.returned.remove(&rq);
        false
    }

    fn finish_one(&mut self) {
        let command = self.device.finish(self.now);
        if command.returned {
            self.tenants[owner_of(command.sector)].got.time_ns += command.service_ns;
            self.q.requeue(command.rq, self.now);
            return;
        }
        let mut cookies = Vec::new();
        if command.op == Op::Flush {
            self.bill_flush(command.service_ns);
        }
        // The core takes no status yet; this is where it will be told.
        let _failed = command.op != Op::Flush && self.tenants[owner_of(command.sector)].fails;
        self.q.complete(command.rq, self.now, |cookie| cookies.push(cookie as usize));
        if command.op != Op::Flush {
            self.bill(&command, &cookies);
        }
        cookies.into_iter().for_each(|cookie| self.bio_done(cookie));
    }

    /// Split among those who want a flush, by bios.
    fn bill_flush(&mut self, service_ns: u64) {
        let wanted: u64 = self.tenants.iter().map(|tenant| tenant.wants_flush).sum();
        for tenant in self.tenants.iter_mut().filter(|tenant| tenant.wants_flush > 0) {
            tenant.got.time_ns += service_ns * tenant.wants_flush / wanted;
        }
    }

    /// Split among those whose bios are in it, by sectors; where the bios are not done yet (a flush follows), among those whose
    /// sectors they are.
    fn bill(&mut self, command: &Command, cookies: &[usize]) {
        let mut parts: Vec<(TenantId, u64)> = Vec::new();
        for cookie in cookies {
            parts.push((self.sent[*cookie].owner, self.sent[*cookie].io.sectors.into()));
        }
        if cookies.is_empty() {
            parts.push((owner_of(command.sector), command.sectors.into()));
        }
        let all: u64 = parts.iter().map(|part| part.1).sum();
        for (tenant, sectors) in &parts {
            let got = &mut self.tenants[*tenant].got;
            got.time_ns += command.service_ns * sectors / all.max(1);
            got.sectors += sectors;
        }
        self.tenants[parts[0].0].got.requests += 1;
    }

    fn bio_done(&mut self, cookie: usize) {
        let now = self.now;
        let sent = &mut self.sent[cookie];
        assert!(!std::mem::replace(&mut sent.done, true), "done twice");
        let (io, owner) = (sent.io, sent.owner);
        let tenant = &mut self.tenants[owner];
        tenant.got.bios += 1;
        tenant.got.wait_max_ns = tenant.got.wait_max_ns.max(now - sent.submitted_ns);
        tenant.wants_flush -= u64::from(wants_flush(&io));
        self.events.push_back((owner, Event::Done(io)));
    }
}

fn wants_flush(io: &Io) -> bool {
    io.op == Op::Flush || io.flags.intersects(Flags::PREFLUSH | Flags::FUA | Flags::BARRIER)
}

fn owner_of(sector: u64) -> TenantId {
    match sector / REGION_SECTORS {
        SHARED_REGION => (sector / 8 % 2) as TenantId,
        region => region as TenantId - 1,
    }
}

/// What a program can do.
pub struct Host<'a> {
    machine: &'a mut Machine,
    me: TenantId,
}

impl Host<'_> {
    pub fn now(&self) -> u64 {
        self.machine.now
    }

    /// The machine, for the operator's programs.
    pub fn machine(&mut self) -> &mut Machine {
        self.machine
    }

    /// The tenant's own group.
    pub fn my_group(&self) -> GroupId {
        self.machine.tenants[self.me].group
    }

    /// A new task in `group`.
    pub fn task(&mut self, group: GroupId) -> Task {
        self.task_with(group, IoPrio::DEFAULT)
    }

    pub fn task_with(&mut self, group: GroupId, ioprio: IoPrio) -> Task {
        let context = self.machine.q.contexts_mut().create_in(group, ioprio);
        self.machine.tasks.push(TaskState { context, asleep: false, backlog: VecDeque::new() });
        Task(self.machine.tasks.len() - 1)
    }

    fn context(&self, task: Task) -> ContextId {
        self.machine.tasks[task.0].context
    }

    pub fn exit(&mut self, task: Task) {
        let (context, now) = (self.context(task), self.now());
        self.machine.q.context_exit(context, now);
    }

    pub fn move_task(&mut self, task: Task, group: GroupId) {
        let (context, now) = (self.context(task), self.now());
        self.machine.q.move_context(context, group, now);
    }

    pub fn set_ioprio(&mut self, task: Task, ioprio: IoPrio) {
        let (context, now) = (self.context(task), self.now());
        self.machine.q.set_ioprio(context, ioprio, now);
    }

    pub fn yield_to(&mut self, from: Task, to: Option<Task>) {
        let (from, to, now) = (self.context(from), to.map(|to| self.context(to)), self.now());
        self.machine.q.yield_to(from, to, now);
    }

    pub fn try_group(&mut self, parent: GroupId, weight: u32) -> Result<GroupId, GroupError> {
        self.machine.try_group(parent, weight)
    }

    pub fn remove_group(&mut self, group: GroupId) {
        let now = self.now();
        self.machine.q.remove_group(group, now).expect("it is there");
    }

    pub fn submit(&mut self, io: Io) {
        let owner = self.me;
        let submitted_ns = self.now();
        self.machine.tenants[owner].wants_flush += u64::from(wants_flush(&io));
        self.machine.sent.push(Sent { owner, io, submitted_ns, done: false });
        self.machine.send(self.machine.sent.len() - 1);
    }

    /// Ring [`Program::timer`] with `tag` in so many nanoseconds.
    pub fn wake_in(&mut self, delay_ns: u64, tag: u64) {
        let machine = &mut *self.machine;
        machine.timers_set += 1;
        machine.timers.insert((machine.now + delay_ns, machine.timers_set, self.me, tag));
    }
}
