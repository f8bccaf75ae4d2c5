//! One queue of a disk: the requests that its thread has taken and not answered.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::super::answers::Answers;
use super::super::nbd::Bounds;
use super::super::operations::{Operation, Operations};
use super::request::{self, Wish};
use crate::device::Port;
use crate::exports::Export;
use crate::io::{Action, Fault, Io, Ios};
use crate::uring::ublk::{self, Event};

/// A request in flight.
struct Request {
    tag: u16,
    bytes: u32,
}

/// A queue.
pub(super) struct Queue {
    export: Arc<Export>,
    bounds: Bounds,
    number: u16,
    commands: ublk::Queue,
    answers: Arc<Answers>,
    port: Port,
    operations: Operations<Request>,
    ios: Ios,
    /// Bytes of data in flight.
    bytes: u64,
    /// Tags of requests that are not taken in yet.
    waiting: VecDeque<u16>,
    /// Tags that the kernel may ask with.
    tags: u16,
}

impl Queue {
    pub(super) fn new(
        export: &Arc<Export>,
        bounds: Bounds,
        file: &Arc<File>,
        number: u16,
        depth: u16,
    ) -> Result<Queue, String> {
        let answers = Arc::new(Answers::new()?);
        let device = &export.device;
        Ok(Queue {
            export: export.clone(),
            bounds,
            number,
            commands: ublk::Queue::new(file, number, depth).map_err(|error| format!("io_uring: {error}"))?,
            port: export.open(answers.clone()),
            answers,
            operations: Operations::new(device.limits().max_sectors, device.back().block_bytes()),
            ios: Vec::new(),
            bytes: 0,
            waiting: VecDeque::new(),
            tags: depth,
        })
    }

    /// Serve until the kernel asks for nothing any more. Tells `ready` once the kernel may ask.
    pub(super) fn run(mut self, ready: &Sender<Result<(), String>>) {
        let mut events = Vec::new();
        (0..self.commands.depth()).for_each(|tag| self.commands.fetch(tag));
        self.commands.watch(&*self.answers);
        self.commands.enter(false, &mut events);
        let refused = events.iter().any(|event| matches!(event, Event::Gone(_)));
        // Nobody listens once another queue has failed.
        let _ = ready.send(if refused { Err("the kernel refused a queue".to_owned()) } else { Ok(()) });
        while self.tags > 0 {
            let came = self.sort(&mut events);
            self.answers.wake(came);
            self.port.watch();
            let any = self.answer() | self.take_in();
            if !self.ios.is_empty() {
                self.port.submit(&mut self.ios);
            }
            let wait = self.tags > 0 && !any && self.port.may_sleep() && self.answers.sleep();
            self.commands.enter(wait, &mut events);
        }
    }

    /// What woke this thread; was it an answer?
    fn sort(&mut self, events: &mut Vec<Event>) -> bool {
        let mut came = false;
        for event in events.drain(..) {
            match event {
                Event::Request(tag) => self.waiting.push_back(tag),
                Event::Gone(_) => self.tags -= 1,
                Event::Woken => {
                    came = true;
                    self.commands.watch(&*self.answers);
                }
            }
        }
        came
    }

    /// Take in what the kernel asks for, as far as there is room; was there something? If there is no room, an answer makes some.
    fn take_in(&mut self) -> bool {
        let mut any = false;
        while self.operations.len() < self.bounds.requests && self.bytes < self.bounds.bytes {
            let Some(tag) = self.waiting.pop_front() else { break };
            any = true;
            self.begin(tag);
        }
        any
    }

    fn begin(&mut self, tag: u16) {
        let wish = request::parse(self.commands.descriptor(tag));
        let allowed = wish.and_then(|wish| {
            self.export.check(wish.action, wish.offset, wish.bytes)?;
            Ok(wish)
        });
        match allowed {
            Ok(wish) => self.submit(tag, wish),
            Err(fault) => self.refuse(tag, fault),
        }
    }

    fn submit(&mut self, tag: u16, wish: Wish) {
        let Wish { action, fua, offset, bytes } = wish;
        let start = self.export.options.offset + offset;
        let range = start..start + u64::from(bytes);
        let data = if matches!(action, Action::Read | Action::Write) { bytes } else { 0 };
        let mut parts = Vec::new();
        let request = Request { tag, bytes: data };
        let wanted = self.port.part_bytes_max();
        let operation = self.operations.begin(request, action, fua, range, wanted, &mut parts);
        self.bytes += u64::from(data);
        if action == Action::Write
            && let Err(error) = self.fetch(tag, &mut parts)
        {
            // A request that the kernel has taken back: what its parts write then, nobody asked for.
            parts.iter_mut().for_each(|io| io.result = Err(Fault::of(&error)));
            for io in parts {
                self.part_done(io);
            }
            return;
        }
        self.ios.append(&mut parts);
        if let Some(done) = self.operations.take_done(operation) {
            self.finish(done); // it has no bytes
        }
    }

    fn refuse(&mut self, tag: u16, fault: Fault) {
        self.export.count(true);
        self.commands.commit(tag, -request::errno(fault));
    }

    /// Fill a write's parts with the kernel's data.
    fn fetch(&self, tag: u16, parts: &mut [Box<Io>]) -> io::Result<()> {
        let mut at = request::place(self.number, tag);
        for io in parts {
            self.commands.file().read_exact_at(&mut io.data, at)?;
            at += u64::from(io.bytes);
        }
        Ok(())
    }

    /// Give the kernel what was read.
    fn give(&self, tag: u16, parts: &[Option<Box<Io>>]) -> io::Result<()> {
        let mut at = request::place(self.number, tag);
        for io in parts.iter().flatten() {
            self.commands.file().write_all_at(&io.data, at)?;
            at += u64::from(io.bytes);
        }
        Ok(())
    }

    /// Tell the kernel what is done; was there something?
    fn answer(&mut self) -> bool {
        let answered = self.answers.take();
        let any = !answered.is_empty();
        answered.into_iter().for_each(|io| self.part_done(io));
        any
    }

    fn part_done(&mut self, io: Box<Io>) {
        if let Some(operation) = self.operations.part_done(io, &mut self.ios) {
            self.finish(operation);
        }
    }

    fn finish(&mut self, operation: Operation<Request>) {
        let Operation { request: Request { tag, bytes }, action, mut parts, mut error, .. } = operation;
        self.bytes -= u64::from(bytes);
        if error.is_none() && action == Action::Read {
            error = self.give(tag, &parts).err().map(|error| Fault::of(&error));
        }
        self.export.count(error.is_some());
        parts.drain(..).flatten().for_each(|io| self.operations.recycle(io));
        self.operations.recycle_list(parts);
        // At most `REQUEST_BYTES_MAX`.
        self.commands.commit(tag, error.map_or(bytes as i32, |fault| -request::errno(fault)));
    }
}
