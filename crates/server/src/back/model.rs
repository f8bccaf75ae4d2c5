//! Memory that answers when a modelled device would: a device file of the lab, driven by the real clock.
//!
//! Data is stored at once; the answer waits for the model. What the model cannot know is how late this machine is: that is
//! measured ([`Histogram`]).

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairlift_core::Op;
use fairlift_core::collections::Id;
use fairlift_sim::device::{Command, Completion, Device, DeviceSpec};

use super::ram::Store;
use super::{BackEnd, Extent, Figures, Job, Limits};
use crate::clock;
use crate::histogram::Histogram;
use crate::io::{Action, Fault};

/// The back end.
#[derive(Debug)]
pub struct Model {
    limits: Limits,
    store: Store,
    inside: Mutex<Inside>,
    lateness: Histogram,
}

#[derive(Debug)]
struct Inside {
    device: Box<dyn Device + Send>,
    /// The model's time is the clock's since this.
    since_ns: u64,
    /// Jobs in the device, by request slot.
    jobs: Vec<Option<Job>>,
    finished: Vec<Completion>,
    /// The model's time, which must not go back: threads come here with times they read before.
    model_ns: u64,
}

impl Model {
    /// The device of `spec`, of which the first `bytes` are offered; `None`: all.
    ///
    /// # Errors
    /// With the device's size if it is smaller.
    pub fn new(spec: &DeviceSpec, bytes: Option<u64>, seed: u64) -> Result<Model, u64> {
        let whole = *spec.limits();
        let sectors = bytes.map_or(whole.sectors, |bytes| bytes / 512);
        if sectors > whole.sectors || sectors == 0 {
            return Err(whole.sectors * 512);
        }
        let inside = Inside {
            device: spec.build(seed),
            since_ns: clock::now(),
            jobs: Vec::new(),
            finished: Vec::new(),
            model_ns: 0,
        };
        Ok(Model {
            limits: Limits { sectors, ..whole },
            store: Store::default(),
            inside: Mutex::new(inside),
            lateness: Histogram::default(),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn advance(&mut self, now: u64, lateness: &Histogram, done: &mut Vec<Job>) {
        let model_ns = now.saturating_sub(self.since_ns).max(self.model_ns);
        self.model_ns = model_ns;
        self.device.advance(model_ns, &mut self.finished);
        for completion in self.finished.drain(..) {
            lateness.add(model_ns.saturating_sub(completion.at_ns));
            done.extend(self.jobs.get_mut(completion.tag as usize).and_then(Option::take));
        }
    }
}

fn command(job: &Job) -> Command {
    let op = match job.action {
        Action::Read => Op::Read,
        Action::Write | Action::Zero { .. } => Op::Write,
        Action::Trim => Op::Discard,
        Action::Flush => Op::Flush,
    };
    let end = (job.offset + job.bytes).div_ceil(512);
    Command {
        tag: job.request.index() as u32,
        op,
        sector: job.offset / 512,
        sectors: (end - job.offset / 512) as u32,
        fua: job.fua,
    }
}

impl BackEnd for Model {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        // The device has them from now on: what copying takes is a part of its time, not on top of that.
        let now = clock::now();
        jobs.iter_mut().for_each(|job| self.store.serve(job));
        let mut inside = self.inside();
        inside.advance(now, &self.lateness, done);
        for job in jobs.drain(..) {
            let at = job.request.index();
            let (command, model_ns) = (command(&job), inside.model_ns);
            if inside.jobs.len() <= at {
                inside.jobs.resize_with(at + 1, || None);
            }
            inside.jobs[at] = Some(job);
            inside.device.submit(command, model_ns);
        }
    }

    fn advance(&self, now: u64, done: &mut Vec<Job>) {
        self.inside().advance(now, &self.lateness, done);
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<u64> {
        let inside = self.inside();
        inside.device.next_event().map(|at| at.saturating_add(inside.since_ns))
    }

    fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, Fault> {
        Ok(self.store.extents(offset, bytes))
    }

    fn figures(&self) -> Figures {
        Figures { lateness: Some(self.lateness.summary()), ..Figures::default() }
    }
}
