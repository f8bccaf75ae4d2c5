//! A connection behind its handshake: one thread, which takes in what came, submits it at once, and sends what is answered.
//!
//! It waits for three things: bytes from the client, room to send, and answers from the device. Nothing blocks it but that; what
//! it may have in flight is bounded ([`Bounds`]), so a client that sends without reading stops being read.

use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::answers::Answers;
use super::super::operations::Operations;
use super::receive::Receive;
use super::requests::{Task, check, has_payload};
use super::transmit::Transmit;
use super::wire::{Error, Request, flag};
use super::{Bounds, Session};
use crate::back::{Extent, joined};
use crate::device::{Port, Sleep};
use crate::io::{Action, Ios};
use crate::net::Stream;

/// How often a connection that waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// Pieces of replies that may wait before no more requests are taken in.
const PIECES_MAX: usize = 4096;
/// Payload that is not there yet and as long as this is read to its place.
const DIRECT: usize = 32 << 10;

/// A payload that is on its way.
enum Payload {
    /// Of this operation: its parts, the one that is being filled, and how far it is.
    Write { operation: u32, parts: Ios, part: usize, filled: usize },
    /// Of a request that failed: bytes to skip.
    Skip(usize),
}

/// A client behind its handshake.
pub(super) struct Connection {
    stream: Stream,
    session: Session,
    bounds: Bounds,
    answers: Arc<Answers>,
    port: Port,
    receive: Receive,
    transmit: Transmit,
    operations: Operations<Request>,
    payload: Option<Payload>,
    /// Understood, and to be submitted.
    ios: Ios,
    /// Bytes of payload in flight.
    bytes: u64,
    /// It takes in no more.
    leaving: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, session: Session, bounds: Bounds) -> Result<Connection, String> {
        stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        let answers = Arc::new(Answers::new()?);
        let export = &session.export;
        let port = export.open(answers.clone());
        Ok(Connection {
            receive: Receive::new(),
            transmit: Transmit::new(session.structured),
            operations: Operations::new(
                export.device.limits().max_sectors,
                export.device.back().block_bytes(),
            ),
            payload: None,
            ios: Vec::new(),
            bytes: 0,
            leaving: false,
            stream,
            session,
            bounds,
            answers,
            port,
        })
    }

    /// Serve it to its end.
    pub(super) fn run(mut self, drain: &AtomicBool) -> Result<(), String> {
        let ended = |error: io::Error| format!("connection: {error}");
        // It may sleep until a modelled device is about to answer. Where timers cannot be made exact it sleeps longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            self.port.watch();
            self.take_answers();
            let mut progress = self.send().map_err(ended)?;
            self.leaving |=
                drain.load(Ordering::Relaxed) || self.session.export.drain.load(Ordering::Relaxed);
            if self.leaving && self.operations.len() == 0 && !self.has_to_send() {
                return Ok(());
            }
            if self.has_room() {
                let understood = self.understand()?;
                if !self.ios.is_empty() {
                    self.port.submit(&mut self.ios);
                }
                progress |= understood;
                if !understood && self.has_room() {
                    match self.read() {
                        Ok(0) => return Ok(()), // it is gone
                        Ok(_) => progress = true,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => progress = true,
                        Err(error) => return Err(ended(error)),
                    }
                }
            }
            if !progress {
                self.wait().map_err(ended)?;
            }
        }
    }

    /// May another request be taken in?
    fn has_room(&self) -> bool {
        !self.leaving
            && self.operations.len() < self.bounds.requests
            && self.bytes < self.bounds.bytes
            && self.transmit.len() < PIECES_MAX
            || self.payload.is_some()
    }

    // ---- in -----------------------------------------------------------------------------------------------------------------

    /// Read once, to where it belongs if that is known.
    fn read(&mut self) -> io::Result<usize> {
        if self.receive.len() == 0
            && let Some(Payload::Write { parts, part, filled, .. }) = &mut self.payload
            && let Some(rest) = parts[*part].data.get_mut(*filled..).filter(|rest| rest.len() >= DIRECT)
        {
            let bytes = self.stream.read(rest)?;
            *filled += bytes;
            return Ok(bytes);
        }
        self.receive.fill(&mut self.stream)
    }

    /// Take in what is there, as far as there is room; was there something?
    fn understand(&mut self) -> Result<bool, String> {
        let mut any = false;
        loop {
            if self.payload.is_some() && !self.take_payload() {
                return Ok(any);
            }
            if !self.has_room() {
                return Ok(any);
            }
            let Ok(header) = self.receive.header() else {
                return Err("the client sends something that is no request".to_owned());
            };
            let Some(request) = header else { return Ok(any) };
            any = true;
            self.take_in(&request);
        }
    }

    /// Take of the payload what is there; is that all?
    fn take_payload(&mut self) -> bool {
        match &mut self.payload {
            Some(Payload::Write { parts, part, filled, .. }) => {
                while let Some(io) = parts.get_mut(*part) {
                    *filled += self.receive.take(&mut io.data[*filled..]);
                    if *filled < io.data.len() {
                        return false;
                    }
                    (*part, *filled) = (*part + 1, 0);
                }
            }
            Some(Payload::Skip(left)) => {
                *left -= self.receive.skip(*left);
                if *left > 0 {
                    return false;
                }
            }
            None => return true,
        }
        if let Some(Payload::Write { operation, parts, .. }) = self.payload.take() {
            self.ios.extend(parts);
            self.finish(operation);
        }
        true
    }

    fn take_in(&mut self, request: &Request) {
        match check(request, &self.session) {
            Ok(Task::Do(action)) => self.begin(request, action),
            Ok(Task::Status { one }) => self.tell_status(request, one),
            Ok(Task::Disconnect) => self.leaving = true,
            Err(error) => {
                self.refuse(request.cookie, error);
                if has_payload(request) && request.bytes > 0 {
                    self.payload = Some(Payload::Skip(request.bytes as usize));
                }
            }
        }
    }

    fn begin(&mut self, request: &Request, action: Action) {
        let offset = self.session.export.options.offset + request.offset;
        let (range, fua) = (offset..offset + u64::from(request.bytes), request.flags & flag::FUA != 0);
        let wanted = self.port.part_bytes_max();
        if !has_payload(request) {
            self.bytes += if action == Action::Read { u64::from(request.bytes) } else { 0 };
            let operation = self.operations.begin(*request, action, fua, range, wanted, &mut self.ios);
            return self.finish(operation);
        }
        let mut parts = Vec::new();
        let operation = self.operations.begin(*request, action, fua, range, wanted, &mut parts);
        self.bytes += u64::from(request.bytes);
        self.payload = Some(Payload::Write { operation, parts, part: 0, filled: 0 });
    }

    /// Answer `operation` if there is nothing to do for it: it has no bytes.
    fn finish(&mut self, operation: u32) {
        if let Some(done) = self.operations.take_done(operation) {
            self.session.export.count(false);
            self.transmit.answer(done, &mut self.operations);
        }
    }

    fn tell_status(&mut self, request: &Request, one: bool) {
        let offset = self.session.export.options.offset + request.offset;
        let mut left = u64::from(request.bytes);
        let clip = |extent: Extent| {
            let bytes = extent.bytes.min(left);
            left -= bytes;
            Extent { bytes, ..extent }
        };
        match self.session.export.device.back().extents(offset, request.bytes.into()) {
            Ok(extents) => {
                let extents = extents.into_iter().map(clip).filter(|extent| extent.bytes > 0);
                let extents = joined(extents, if one { 1 } else { usize::MAX });
                self.session.export.count(false);
                self.transmit.status(request.cookie, &extents);
            }
            Err(fault) => self.refuse(request.cookie, fault.into()),
        }
    }

    fn refuse(&mut self, cookie: u64, error: Error) {
        self.session.export.count(true);
        self.transmit.error(cookie, error);
    }

    // ---- out ----------------------------------------------------------------------------------------------------------------

    /// Make replies of what the device has answered.
    fn take_answers(&mut self) {
        let answered = self.answers.take();
        for io in answered {
            let Some(operation) = self.operations.part_done(io, &mut self.ios) else { continue };
            let sends = operation.action == Action::Read && operation.error.is_none();
            if matches!(operation.action, Action::Read | Action::Write) && !sends {
                self.bytes -= u64::from(operation.request.bytes);
            }
            self.session.export.count(operation.error.is_some());
            self.transmit.answer(operation, &mut self.operations);
        }
        if !self.ios.is_empty() {
            self.port.submit(&mut self.ios);
        }
    }

    fn send(&mut self) -> io::Result<bool> {
        let (data, any) = self.transmit.send(&mut self.stream, &mut self.operations)?;
        self.bytes -= data;
        if self.transmit.len() == 0 && self.stream.is_pending() {
            match self.stream.flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                answer => answer?,
            }
        }
        Ok(any)
    }

    /// Waits something for the client to read?
    fn has_to_send(&self) -> bool {
        self.transmit.len() > 0 || self.stream.is_pending()
    }

    /// Sleep until something can be done.
    fn wait(&mut self) -> io::Result<()> {
        let most = match self.port.sleep() {
            Sleep::No => return Ok(()),
            Sleep::For(most) => most.min(LOOK),
            Sleep::Any => LOOK,
        };
        let mut came = false;
        if self.answers.sleep() {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, self.has_room());
            wanted.set(PollFlags::OUT, self.has_to_send());
            let mut fds = [PollFd::new(&self.stream, wanted), PollFd::new(&*self.answers, PollFlags::IN)];
            let most = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
            match poll(&mut fds, Some(&most)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) && !self.has_room() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            came = fds[1].revents().contains(PollFlags::IN);
        }
        self.answers.wake(came);
        Ok(())
    }
}
