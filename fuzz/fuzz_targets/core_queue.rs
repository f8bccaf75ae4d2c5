//! The request queue under any sequence of operations: every accepted bio completes exactly once, and an idling queue goes on.
#![no_main]

use fairlift_core::elevator::ELEVATORS;
use fairlift_core::queue::{Admission, MergeLimits, NoMerges, Ordering, Plugging, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, IoPrio, MS, Op, RequestId};
use libfuzzer_sys::fuzz_target;

const TASKS: usize = 4;

/// The input, a byte at a time.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    /// A number below `n`; 0 at the end of the input.
    fn below(&mut self, n: u8) -> u8 {
        self.next().unwrap_or(0) % n
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.below(of.len() as u8))]
    }
}

fn config(bytes: &mut Bytes) -> QueueConfig {
    QueueConfig {
        contexts_max: TASKS,
        groups_max: 0,
        rotational: bytes.below(2) == 0,
        tagged: bytes.below(2) == 0,
        admission: bytes.one_of(&[
            Admission::Pools { nr_requests: 4 },
            Admission::Pools { nr_requests: 16 },
            Admission::Tags { nr_requests: 2 },
            Admission::Tags { nr_requests: 8 },
        ]),
        plugging: bytes.one_of(&[Plugging::QUEUE, Plugging::Task, Plugging::Off]),
        limits: MergeLimits { max_sectors: 32, max_segments: 8 },
        nomerges: bytes.one_of(&[NoMerges::Off, NoMerges::Simple, NoMerges::All]),
        ordering: bytes.one_of(&[
            Ordering::NoBarriers,
            Ordering::Drain,
            Ordering::DrainFlush,
            Ordering::DrainFua,
            Ordering::Sequences { write_cache: true, fua: false },
            Ordering::Sequences { write_cache: true, fua: true },
            Ordering::Sequences { write_cache: false, fua: false },
        ]),
        tick_ns: bytes.one_of(&[0, MS, 4 * MS]),
    }
}

/// The queue, and what a host knows of it.
struct Host {
    queue: RequestQueue,
    tasks: Vec<ContextId>,
    now: u64,
    in_device: Vec<RequestId>,
    /// By cookie: is it still to come back?
    pending: Vec<bool>,
}

impl Host {
    fn new(bytes: &mut Bytes) -> Host {
        let config = config(bytes);
        let descriptor = bytes.one_of(ELEVATORS);
        let profile = descriptor.profiles.get(usize::from(bytes.below(4))).copied().unwrap_or_default();
        let mut queue = RequestQueue::new(config, (descriptor.build)(&config.elevator(), profile));
        let prios = [IoPrio::DEFAULT, IoPrio::RealTime(2), IoPrio::BestEffort(7), IoPrio::Idle];
        let tasks = prios.map(|prio| queue.contexts_mut().create(prio)).to_vec();
        Host { queue, tasks, now: 0, in_device: Vec::new(), pending: Vec::new() }
    }

    fn step(&mut self, operation: u8, bytes: &mut Bytes) {
        let task = self.tasks[usize::from(bytes.below(TASKS as u8))];
        match operation % 16 {
            0..=5 => self.submit(task, bytes),
            6..=8 => self.dispatch(),
            9..=11 => self.complete(usize::from(bytes.below(32))),
            12 => self.now += u64::from(bytes.below(255)) * MS / 8,
            13 => self.queue.unplug(),
            14 => match bytes.below(3) {
                0 => self.queue.open_plug(task),
                1 => self.queue.close_plug(task, self.now),
                _ => self.queue.yield_to(task, None, self.now),
            },
            _ => match bytes.below(3) {
                0 => self.requeue(usize::from(bytes.below(32))),
                1 => self.queue.set_ioprio(task, IoPrio::BestEffort(bytes.below(8)), self.now),
                _ => self.switch(bytes),
            },
        }
    }

    fn submit(&mut self, context: ContextId, bytes: &mut Bytes) {
        let op = bytes.one_of(&[Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard, Op::Flush]);
        let mut flags = Flags::NONE;
        let bits = bytes.below(255);
        for (bit, flag) in [Flags::SYNC, Flags::NOIDLE, Flags::META, Flags::UNPLUG].into_iter().enumerate() {
            if bits >> bit & 1 == 1 {
                flags.insert(flag);
            }
        }
        if op == Op::Write && bits >> 4 == 1 {
            flags.insert(bytes.one_of(&[Flags::BARRIER, Flags::FUA, Flags::PREFLUSH]));
        }
        let sectors = if op == Op::Flush { 0 } else { u32::from(bytes.one_of(&[1u8, 2, 8, 32])) };
        let sector = u64::from(bytes.below(128));
        let cookie = self.pending.len() as u64;
        let bio = Bio { cookie, op, flags, sector, sectors, segments: 1, context, ioprio: None, group: None };
        let accepted = match bits & 64 {
            0 => self.queue.submit(bio, self.now),
            _ => self.queue.resubmit(bio, self.now),
        };
        if matches!(accepted, Submitted::Queued(_) | Submitted::Merged(_)) {
            self.pending.push(true);
        }
    }

    fn dispatch(&mut self) {
        if let Dispatch::Issue(rq) = self.queue.dispatch(self.now) {
            self.in_device.push(rq);
        }
    }

    fn complete(&mut self, nth: usize) {
        if self.in_device.is_empty() {
            return;
        }
        let rq = self.in_device.swap_remove(nth % self.in_device.len());
        let pending = &mut self.pending;
        self.queue.complete(rq, self.now, |cookie| {
            assert!(std::mem::take(&mut pending[cookie as usize]), "completed twice: {cookie}");
        });
    }

    fn requeue(&mut self, nth: usize) {
        if !self.in_device.is_empty() {
            let rq = self.in_device.swap_remove(nth % self.in_device.len());
            self.queue.requeue(rq, self.now);
        }
    }

    fn switch(&mut self, bytes: &mut Bytes) {
        let config = self.queue.config().elevator();
        let descriptor = bytes.one_of(ELEVATORS);
        self.queue.switch((descriptor.build)(&config, ""), self.now);
    }

    /// Serve everything: the queue has to come to an end by itself.
    fn finish(mut self) {
        for task in self.tasks.clone() {
            self.queue.close_plug(task, self.now);
        }
        for _ in 0..100_000 {
            match self.queue.dispatch(self.now) {
                Dispatch::Issue(rq) => self.in_device.push(rq),
                _ if !self.in_device.is_empty() => self.complete(0),
                Dispatch::Idle { until } => {
                    assert!(until > self.now, "idles into the past");
                    self.now = until;
                }
                Dispatch::Empty => break,
            }
        }
        assert!(!self.pending.contains(&true), "lost a bio");
        assert_eq!(self.queue.pending(), 0, "a slot leaks");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input.iter());
    let mut host = Host::new(&mut bytes);
    while let Some(operation) = bytes.next() {
        host.step(operation, &mut bytes);
    }
    host.finish();
});
