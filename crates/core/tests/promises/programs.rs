//! What tenants run. Most are a [`Load`]; attacks of their own are next to their promise.

use fairlift_core::{Flags, GroupId, IoPrio, Op};

use crate::rig::{Host, Io, Place, Program, Task, TenantId};

/// Where a load's requests go.
#[derive(Clone, Copy, Debug)]
pub enum Where {
    /// Anywhere, never next to each other.
    Random,
    /// Ever higher, far from each other: whatever an elevator sorts by, their order stays.
    Ascending,
    /// One sector.
    Same,
    /// One sector of another tenant's.
    SameOf(TenantId),
    /// One after the other.
    Next,
    /// Every other block of the region in common: the even ones, or the odd ones.
    SharedEven,
    SharedOdd,
}

/// Tasks that send the next request when one is done.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub tasks: u32,
    /// Requests of a task at a time.
    pub depth: u32,
    pub op: Op,
    pub flags: Flags,
    pub sectors: u32,
    pub place: Where,
    /// Between an answer and the next request.
    pub think_ns: u64,
    pub ioprio: IoPrio,
}

impl Load {
    /// One task that reads 4 KiB here and there, one at a time.
    pub const SERIAL: Load = Load {
        tasks: 1,
        depth: 1,
        op: Op::Read,
        flags: Flags::NONE,
        sectors: 8,
        place: Where::Random,
        think_ns: 0,
        ioprio: IoPrio::DEFAULT,
    };
    /// The same, 32 at a time.
    pub const DEEP: Load = Load { depth: 32, ..Load::SERIAL };
    /// Writes that nobody waits for.
    pub const WRITES: Load = Load { op: Op::Write, ..Load::DEEP };
    /// Writes that somebody waits for, one at a time.
    pub const SYNC_WRITES: Load = Load { op: Op::Write, flags: Flags::SYNC, ..Load::SERIAL };

    pub fn io(&self, task: Task, place: Place) -> Io {
        Io { task, op: self.op, flags: self.flags, place, sectors: self.sectors, ioprio: None, tag: 0 }
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Clone, Copy)]
pub struct Dice(u64);

impl Dice {
    pub const NEW: Dice = Dice(0x9E37_79B9_7F4A_7C15);

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A place that touches no other.
    pub fn place(&mut self) -> Place {
        Place::Own(self.below(1 << 18) * 4096)
    }
}

/// A [`Load`] at work.
pub struct Run {
    load: Load,
    tasks: Vec<Task>,
    sent: u64,
    dice: Dice,
}

impl Run {
    pub fn new(load: Load) -> Run {
        Run { load, tasks: Vec::new(), sent: 0, dice: Dice::NEW }
    }

    fn send(&mut self, host: &mut Host<'_>, task: u64) {
        let place = self.next_place();
        host.submit(Io { tag: task, ..self.load.io(self.tasks[task as usize], place) });
    }

    fn next_place(&mut self) -> Place {
        let number = self.sent;
        self.sent += 1;
        match self.load.place {
            Where::Random => self.dice.place(),
            Where::Ascending => Place::Own(number << 16),
            Where::Same => Place::Own(0),
            Where::SameOf(tenant) => Place::Of(tenant, 0),
            Where::Next => Place::Own(number * u64::from(self.load.sectors) % (1 << 30)),
            Where::SharedEven => Place::Shared(2 * number),
            Where::SharedOdd => Place::Shared(2 * number + 1),
        }
    }
}

impl Program for Run {
    fn start(&mut self, host: &mut Host<'_>) {
        for task in 0..self.load.tasks {
            self.tasks.push(host.task_with(host.my_group(), self.load.ioprio));
            (0..self.load.depth).for_each(|_| self.send(host, task.into()));
        }
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        match self.load.think_ns {
            0 => self.send(host, io.tag),
            think_ns => host.wake_in(think_ns, io.tag),
        }
    }

    fn timer(&mut self, host: &mut Host<'_>, task: u64) {
        self.send(host, task);
    }
}

/// Sends one request every so often, whether the last one is done or not.
pub struct Every {
    pub period_ns: u64,
    pub load: Load,
    task: Option<Task>,
    dice: Dice,
}

impl Every {
    pub fn new(period_ns: u64, load: Load) -> Every {
        Every { period_ns, load, task: None, dice: Dice::NEW }
    }
}

impl Program for Every {
    fn start(&mut self, host: &mut Host<'_>) {
        self.task = Some(host.task(host.my_group()));
        host.wake_in(self.period_ns, 0);
    }

    fn timer(&mut self, host: &mut Host<'_>, _tag: u64) {
        let task = self.task.expect("started");
        let place = self.dice.place();
        host.submit(self.load.io(task, place));
        host.wake_in(self.period_ns, 0);
    }
}

/// Does something at once and then every so often.
pub struct Ticker<F> {
    period_ns: u64,
    tick: F,
}

impl<F: FnMut(&mut Host<'_>, u64)> Ticker<F> {
    /// `tick` is told how often it was called before.
    pub fn new(period_ns: u64, tick: F) -> Ticker<F> {
        Ticker { period_ns, tick }
    }
}

impl<F: FnMut(&mut Host<'_>, u64)> Program for Ticker<F> {
    fn start(&mut self, host: &mut Host<'_>) {
        (self.tick)(host, 0);
        host.wake_in(self.period_ns, 1);
    }

    fn timer(&mut self, host: &mut Host<'_>, count: u64) {
        (self.tick)(host, count);
        host.wake_in(self.period_ns, count + 1);
    }
}

/// A tenant that keeps so many requests under way, each sent as `send` likes.
pub struct Keep<F> {
    depth: u32,
    send: F,
    dice: Dice,
}

impl<F: FnMut(&mut Host<'_>, &mut Dice, Option<Io>)> Keep<F> {
    /// `send` is given the request that is done, and must send another.
    pub fn new(depth: u32, send: F) -> Keep<F> {
        Keep { depth, send, dice: Dice::NEW }
    }
}

impl<F: FnMut(&mut Host<'_>, &mut Dice, Option<Io>)> Program for Keep<F> {
    fn start(&mut self, host: &mut Host<'_>) {
        (0..self.depth).for_each(|_| (self.send)(host, &mut self.dice, None));
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        (self.send)(host, &mut self.dice, Some(io));
    }
}

/// Reads with tasks in each of these groups.
pub fn readers_in(groups: Vec<GroupId>, depth: u32) -> impl Program {
    let mut tasks: Vec<Task> = Vec::new();
    let mut sent = 0;
    Keep::new(depth * groups.len() as u32, move |host, dice, done: Option<Io>| {
        if tasks.is_empty() {
            tasks.extend(groups.iter().map(|group| host.task(*group)));
        }
        let task = done.map_or(tasks[sent % tasks.len()], |io| io.task);
        sent += 1;
        host.submit(Load::SERIAL.io(task, dice.place()));
    })
}
