//! One queue of a disk: the requests that its thread has taken and not answered.

use std::io;
use std::sync::Arc;

use super::super::answers::Answers;
use super::super::operations::{Operation, Operations};
use super::chain::{Chain, Spare};
use super::request::{self, Kind, Request, Status};
use super::ring::Ring;
use crate::device::Port;
use crate::exports::Export;
use crate::front::nbd::{Bounds, PAYLOAD_MAX};
use crate::io::{Action, Ios};

/// Lists of pieces kept for later.
const SPARE_MAX: usize = 256;

/// A queue.
pub(super) struct Queue {
    export: Arc<Export>,
    bounds: Bounds,
    pub(super) answers: Arc<Answers>,
    port: Port,
    operations: Operations<Request>,
    ios: Ios,
    spare: Vec<Spare>,
    /// Bytes of data in flight.
    bytes: u64,
    /// Has the guest chains back that it was not told of?
    owes_notice: bool,
    /// Is each write on stable storage before it is answered?
    pub(super) writes_through: bool,
}

impl Queue {
    pub(super) fn new(export: &Arc<Export>, bounds: Bounds) -> Result<Queue, String> {
        let answers = Arc::new(Answers::new()?);
        let device = &export.device;
        Ok(Queue {
            export: export.clone(),
            bounds,
            port: export.open(answers.clone()),
            answers,
            operations: Operations::new(device.limits().max_sectors, device.back().block_bytes()),
            ios: Vec::new(),
            spare: Vec::new(),
            bytes: 0,
            owes_notice: false,
            writes_through: false,
        })
    }

    /// Requests that are not answered.
    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    fn has_room(&self) -> bool {
        self.operations.len() < self.bounds.requests && self.bytes < self.bounds.bytes
    }

    /// Take in what the guest asks for and answer what is done, until there is neither. `came`: an answer has woken this thread.
    pub(super) fn serve(&mut self, ring: &mut Ring<'_>, came: bool) -> io::Result<()> {
        self.answers.wake(came);
        let served = self.serve_all(ring);
        // A ring that is broken may never come again.
        self.port.stop_watching();
        served
    }

    fn serve_all(&mut self, ring: &mut Ring<'_>) -> io::Result<()> {
        loop {
            ring.look_again();
            self.port.watch();
            let mut any = self.answer(ring)?;
            self.notify(ring)?;
            let runs = ring.is_running();
            if runs {
                ring.disable_notification()?;
                any |= self.take_in(ring)?;
                self.notify(ring)?;
            }
            if !self.ios.is_empty() {
                self.port.submit(&mut self.ios);
            }
            // With no room the guest's kicks can wait: an answer makes some.
            let more = runs && ring.enable_notification()? && self.has_room();
            if !any && !more && self.port.may_sleep() {
                if self.answers.sleep() {
                    return Ok(());
                }
                self.answers.wake(false);
            }
        }
    }

    fn take_in(&mut self, ring: &Ring<'_>) -> io::Result<bool> {
        let mut any = false;
        while self.has_room() {
            let Some(chain) = ring.next(|| self.spare.pop().unwrap_or_default()) else { break };
            any = true;
            self.begin(ring, chain)?;
        }
        Ok(any)
    }

    fn begin(&mut self, ring: &Ring<'_>, chain: Chain) -> io::Result<()> {
        match request::parse(&chain, PAYLOAD_MAX) {
            Ok(Kind::Do { action, offset, bytes }) => match self.export.check(action, offset, bytes) {
                Ok(()) => self.submit(ring, chain, action, offset, bytes),
                Err(_) => self.refuse(ring, chain, Status::IoError),
            },
            Ok(Kind::Name) => {
                let name = request::name(&self.export.options.name);
                self.give_back(ring, chain, [&name[..]].into_iter(), Status::Ok)
            }
            Err(Some(status)) => self.refuse(ring, chain, status),
            Err(None) => self.push(ring, chain, 0),
        }
    }

    fn submit(
        &mut self,
        ring: &Ring<'_>,
        chain: Chain,
        action: Action,
        offset: u64,
        bytes: u32,
    ) -> io::Result<()> {
        let start = self.export.options.offset + offset;
        let (range, first) = (start..start + u64::from(bytes), self.ios.len());
        let data = if matches!(action, Action::Read | Action::Write) { bytes } else { 0 };
        let request = Request { chain, bytes: data };
        let wanted = self.port.part_bytes_max();
        let operation =
            self.operations.begin(request, action, self.writes_through, range, wanted, &mut self.ios);
        self.bytes += u64::from(data);
        if action == Action::Write
            && let Some(request) = self.operations.request(operation)
            && let Err(error) = request::fetch(&request.chain, &mut self.ios[first..])
        {
            self.ios.truncate(first); // not half of it
            return Err(error);
        }
        match self.operations.take_done(operation) {
            Some(done) => self.finish(ring, done), // it has no bytes
            None => Ok(()),
        }
    }

    fn refuse(&mut self, ring: &Ring<'_>, chain: Chain, status: Status) -> io::Result<()> {
        self.export.count(true);
        self.give_back(ring, chain, std::iter::empty(), status)
    }

    fn give_back<'a>(
        &mut self,
        ring: &Ring<'_>,
        chain: Chain,
        data: impl Iterator<Item = &'a [u8]>,
        status: Status,
    ) -> io::Result<()> {
        let len = chain.answer(data, status as u8)?;
        self.push(ring, chain, len)
    }

    fn push(&mut self, ring: &Ring<'_>, chain: Chain, len: u32) -> io::Result<()> {
        ring.push(&chain, len)?;
        self.owes_notice = true;
        if self.spare.len() < SPARE_MAX {
            self.spare.push(chain.spare());
        }
        Ok(())
    }

    fn notify(&mut self, ring: &Ring<'_>) -> io::Result<()> {
        if std::mem::take(&mut self.owes_notice) { ring.notify() } else { Ok(()) }
    }

    /// Tell the guest what is done; was there something?
    fn answer(&mut self, ring: &Ring<'_>) -> io::Result<bool> {
        let answered = self.answers.take();
        let any = !answered.is_empty();
        for io in answered {
            if let Some(operation) = self.operations.part_done(io, &mut self.ios) {
                self.finish(ring, operation)?;
            }
        }
        Ok(any)
    }

    fn finish(&mut self, ring: &Ring<'_>, operation: Operation<Request>) -> io::Result<()> {
        let Operation { request, action, mut parts, error, .. } = operation;
        self.bytes -= u64::from(request.bytes);
        self.export.count(error.is_some());
        let data =
            parts.iter().flatten().filter(|_| error.is_none() && action == Action::Read).map(|io| &*io.data);
        self.give_back(ring, request.chain, data, error.map_or(Status::Ok, Status::from))?;
        parts.drain(..).flatten().for_each(|io| self.operations.recycle(io));
        self.operations.recycle_list(parts);
        Ok(())
    }
}
