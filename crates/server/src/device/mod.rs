//! A device: the core's queue between front ends and a back end.
//!
//! The queue is one object without locks. Every thread that has something for it, a bio or a finished job, leaves it in the
//! *inbox*; whichever finds the machine free hands in what all have left, takes what the queue lets go, and starts it (a
//! *combiner*). Nothing else orders: what is left in the inbox goes in as it came, and what the queue lets go is given to the back end at once.

mod machine;
mod port;
mod tenants;
mod timer;
mod trace;
mod waiters;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

pub use port::{Mailbox, Port, PortOptions};
pub use tenants::{Share, TenantFigures};

use crate::back::{BackEnd, Finisher, Job, Limits};
use crate::clock;
use crate::io::{Io, Ios};
pub use machine::DeviceOptions;
use machine::Machine;
use timer::{AHEAD_NS, Timer};
pub use watch::Sleep;
use watch::Watch;

/// Rounds a thread combines for others before it hands over to the device's timer thread.
const ROUNDS_MAX: usize = 64;

/// What threads have left for the machine.
#[derive(Debug, Default)]
struct Inbox {
    /// Bios with their port.
    ios: Vec<(u32, Box<Io>)>,
    finished: Vec<Job>,
}

impl Inbox {
    fn is_empty(&self) -> bool {
        self.ios.is_empty() && self.finished.is_empty()
    }
}

/// A device that several tenants share.
pub struct Device {
    name: String,
    back: Box<dyn BackEnd>,
    limits: Limits,
    inbox: Mutex<Inbox>,
    machine: Mutex<Machine>,
    timer: Timer,
    watch: Watch,
    /// Does the back end depend on a clock, and are there processors to look at it?
    is_timed: bool,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Device {
    /// A device of this name above `back`.
    ///
    /// # Errors
    /// What of `options` does not suit the back end, or why its thread cannot be started.
    pub fn new(name: &str, back: Box<dyn BackEnd>, options: &DeviceOptions) -> Result<Arc<Device>, String> {
        let limits = back.limits();
        // With one processor, who looks at the clock keeps others from their work.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_timed = back.is_timed() && processors > 1;
        let device = Arc::new(Device {
            name: name.to_owned(),
            machine: Mutex::new(Machine::new(&limits, options)?),
            back,
            limits,
            inbox: Mutex::default(),
            timer: Timer::new(if is_timed { AHEAD_NS } else { 0 }),
            watch: Watch::default(),
            is_timed,
        });
        device.back.attach(Finisher::new(Arc::downgrade(&device)));
        device.timer.start(Arc::downgrade(&device)).map_err(|error| format!("no thread: {error}"))?;
        Ok(device)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What serves it.
    pub fn back(&self) -> &dyn BackEnd {
        &*self.back
    }

    /// What the back end can do.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free_machine(&self) -> Option<MutexGuard<'_, Machine>> {
        match self.machine.try_lock() {
            Ok(machine) => Some(machine),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Change something about the queue, and let it go on.
    fn change<T>(&self, what: impl FnOnce(&mut Machine, u64) -> T) -> T {
        let answer = what(&mut self.machine(), clock::now());
        self.combine();
        answer
    }

    /// Look at the queue, and let it go on: who found it taken meanwhile has left again.
    fn look<T>(&self, what: impl FnOnce(&Machine) -> T) -> T {
        let answer = what(&self.machine());
        self.combine();
        answer
    }

    /// Bios of a port.
    fn submit(&self, port: u32, ios: &mut Ios) {
        self.inbox().ios.extend(ios.drain(..).map(|io| (port, io)));
        self.combine_for(Some(port));
    }

    /// Jobs that the back end is done with.
    pub(crate) fn finish(&self, jobs: &mut Vec<Job>) {
        self.inbox().finished.append(jobs);
        self.combine();
    }

    /// The time the timer was set to has come.
    fn tick(&self) {
        let mut done = Vec::new();
        self.back.advance(clock::now(), &mut done);
        self.inbox().finished.append(&mut done);
        self.combine();
        if let Some(at) = self.back.next_event() {
            self.expect(at);
        }
    }

    fn combine(&self) {
        self.combine_for(None);
    }

    /// Hand in what all have left, unless another thread is at it: that thread looks into the inbox once more after it has let go.
    /// `caller`: the port whose thread this is.
    fn combine_for(&self, caller: Option<u32>) {
        let (mut jobs, mut done) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS_MAX {
            let Some(mut machine) = self.free_machine() else { return };
            let left = std::mem::take(&mut *self.inbox());
            let now = clock::now();
            let timer = machine.round(left, now, &mut jobs);
            let mut answers = machine.take_answers(now);
            machine.let_wait(&mut jobs, caller);
            drop(machine);
            answers.iter_mut().for_each(|(mailbox, ios)| mailbox.deliver(ios));
            if let Some(at) = timer {
                self.timer.set(at);
            }
            if !jobs.is_empty() {
                self.back.start(&mut jobs, &mut done);
                if let Some(at) = self.back.next_event() {
                    self.expect(at);
                }
            }
            let mut inbox = self.inbox();
            inbox.finished.append(&mut done);
            if inbox.is_empty() {
                return;
            }
        }
        self.timer.set(0);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.timer.stop();
    }
}
