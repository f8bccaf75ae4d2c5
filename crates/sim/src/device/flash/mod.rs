//! Flash drive: a delay D, k dies, a channel, a link, a write buffer, garbage collection, and the state it is in.
//!
//! A read spends D in the firmware, then its pages are sensed on their dies (first come, first served per die), pass
//! the channel and share the host link. A write crosses the link and is acknowledged by the buffer; full flash pages
//! are programmed to the dies in turn, and every programmed page makes its die pay its share of garbage collection.
//! Reads and programs wait for one another on the dies, or a read suspends what it finds there.
//!
//! Three states: *fresh* (nothing to collect, the SLC cache empty), *sequential* (written once from front to back:
//! nothing to collect, the cache used up until the drive has been idle), *steady* (overwritten at random for long).
//!
//! A memory before the drive may answer reads (a host's page cache): what it holds takes the same short time and the link.
//!
//! Not modelled: the mapping table and its cache, where garbage collection really finds its victims, wear, read disturb,
//! planes, thermal limits, power states, contention for a channel (its transfer is a delay: the link is the narrower
//! part), and merging of overwritten data in the write buffer. Discard costs the firmware delay and frees nothing.

mod cache;
mod spec;
mod streams;

use std::collections::VecDeque;

use super::events::{BusyClock, Events};
use super::rng::{Lognormal, Rng};
use super::{Command, Completion, Device, Limits, Op};
use cache::Cache;
use streams::Streams;

pub(super) use spec::FlashSpec;

#[derive(Clone, Copy, Debug, Default)]
struct Die {
    free_at: u64,
    /// When its last read is done: reads that suspend programs do not suspend one another.
    read_free_at: u64,
    /// The page last sensed, plus 1, and when it is in the die's register: reading more of it needs no new sensing.
    page: u64,
    page_at: u64,
    /// Host pages programmed since garbage collection was last paid.
    host_pages: u64,
    /// From when to when it collects at once, which no read suspends.
    collects: (u64, u64),
}

/// A read on its way.
#[derive(Clone, Copy, Debug)]
struct Read {
    tag: u32,
    pieces_left: u32,
    /// When the first die began with it.
    began_ns: u64,
}

/// So many bytes of a read arrive at the link.
#[derive(Clone, Copy, Debug)]
struct Sensed {
    read: u32,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A page has left the write buffer.
    Programmed { bytes: u32 },
    /// A command is done.
    Done { tag: u32, began_ns: u64 },
}

/// A flash drive.
#[derive(Clone, Debug)]
pub(super) struct Flash {
    spec: FlashSpec,
    sense: Lognormal,
    rng: Rng,

    dies: Vec<Die>,
    next_die: u32,
    /// Where reads and writes ended, and when the firmware is done with the sequential ones.
    read_streams: Streams,
    write_streams: Streams,
    read_firmware_free_at: u64,
    write_firmware_free_at: u64,
    /// Bytes that fit into the SLC cache, and since when the drive has been idle.
    slc_left: u64,
    idle_since: Option<u64>,
    events: Events<Event>,
    cache: Cache,

    // Reads, and the link to the host, which is first come, first served: its completions are in order, and known as soon as
    // no read that comes later can reach the link before (`look_ahead`).
    sensed: Events<Sensed>,
    reads: Vec<Read>,
    free_reads: Vec<u32>,
    link_out: VecDeque<Completion>,
    link_out_free_at: u64,

    // Write buffer, bytes: all that is held, and what does not fill a page yet.
    link_in_free_at: u64,
    buffered: u64,
    open: u64,
    /// Some of what is open was written at random.
    open_random: bool,
    /// When the last page given to a die will be programmed.
    programmed_at: u64,
    programming: u32,
    blocked: VecDeque<Command>,

    in_device: u32,
    busy: BusyClock,
}

impl Flash {
    fn submit_read(&mut self, command: Command, now: u64) {
        let (start, end) = bytes(&command);
        let sequential = self.read_streams.follows(start, end);
        let now = match sequential && self.spec.read_seq_ns > 0 {
            true => {
                self.read_firmware_free_at = now.max(self.read_firmware_free_at) + self.spec.read_seq_ns;
                self.read_firmware_free_at
            }
            false => now,
        };
        let read = match self.free_reads.pop() {
            Some(read) => read,
            None => {
                self.reads.push(Read { tag: 0, pieces_left: 0, began_ns: 0 });
                (self.reads.len() - 1) as u32
            }
        };
        if self.cache.holds(start, end) {
            self.reads[read as usize] = Read { tag: command.tag, pieces_left: 1, began_ns: now };
            let bytes = (end - start) as u32;
            self.sensed.push(now + self.spec.cache_read_ns, Sensed { read, bytes });
            return;
        }
        self.cache.keep(start, end);
        let (mut pieces, mut began_ns) = (0, u64::MAX);
        let mut at = start;
        while at < end {
            let page = at / self.spec.page_bytes;
            let piece_end = ((page + 1) * self.spec.page_bytes).min(end);
            let more_4k = (piece_end - at).div_ceil(4096) - 1;
            let size_ns = more_4k * self.spec.read_per_4k_ns;
            let (began, sensed) = self.sense_page(page, now + self.spec.read_delay_ns, size_ns);
            began_ns = began_ns.min(began);
            let arrives = sensed + self.spec.channel.ns(piece_end - at);
            // A piece is at most a page, and pages are at most a MiB.
            self.sensed.push(arrives, Sensed { read, bytes: (piece_end - at) as u32 });
            pieces += 1;
            at = piece_end;
        }
        self.reads[read as usize] = Read { tag: command.tag, pieces_left: pieces, began_ns };
    }

    /// When its die begins with the page, and when it is in its register, for a read that reaches the die at `from` and takes `size_ns` beyond the
    /// first 4 KiB.
    fn sense_page(&mut self, page: u64, from: u64, size_ns: u64) -> (u64, u64) {
        let suspend = self.spec.suspend_ns;
        let die = &mut self.dies[(page % u64::from(self.spec.dies)) as usize];
        if die.page == page + 1 {
            return (from, from.max(die.page_at));
        }
        let sense_ns = self.sense.sample(&mut self.rng) + size_ns;
        let start = match suspend {
            // A program or a collection under way is suspended, and goes on after the read.
            Some(suspend_ns) => die.free_at.min(from + suspend_ns).max(from).max(die.read_free_at),
            None => from.max(die.free_at),
        };
        let start = if start >= die.collects.0 { start.max(die.collects.1) } else { start };
        let sensed = start + sense_ns;
        let free_at = if suspend.is_some() && die.free_at > start { die.free_at + sense_ns } else { sensed };
        *die = Die { free_at, read_free_at: sensed, page: page + 1, page_at: sensed, ..*die };
        (start, sensed)
    }

    fn piece_sensed(&mut self, read: u32, bytes: u32, now: u64) {
        self.link_out_free_at = now.max(self.link_out_free_at) + self.spec.link.ns(u64::from(bytes));
        let state = &mut self.reads[read as usize];
        state.pieces_left -= 1;
        if state.pieces_left == 0 {
            let (tag, began_ns) = (state.tag, state.began_ns);
            self.link_out.push_back(Completion { tag, at_ns: self.link_out_free_at, began_ns });
            self.free_reads.push(read);
        }
    }

    /// Give the link what arrives there by `now`, and before a read that comes from now on can.
    fn look_ahead(&mut self, now: u64) {
        let soonest_ns = match self.cache.is_empty() {
            true => self.spec.read_delay_ns,
            false => self.spec.read_delay_ns.min(self.spec.cache_read_ns),
        };
        while let Some((at_ns, Sensed { read, bytes })) = self.sensed.pop_until(now + soonest_ns) {
            self.piece_sensed(read, bytes, at_ns);
        }
    }

    fn submit_write(&mut self, command: Command, now: u64) {
        if self.blocked.is_empty() && self.has_room(&command) {
            self.accept_write(command, now);
        } else {
            self.blocked.push_back(command);
            self.program_rest(now);
        }
    }

    /// A command larger than the buffer needs it empty.
    fn has_room(&self, command: &Command) -> bool {
        let (start, end) = bytes(command);
        self.buffered + (end - start).min(self.spec.buffer_bytes) <= self.spec.buffer_bytes
    }

    fn accept_write(&mut self, command: Command, now: u64) {
        let (start, end) = bytes(&command);
        let length = end - start;
        // One that found the buffer full begins when there is room.
        let began_ns = now;
        let sequential = self.write_streams.follows(start, end);
        let now = match sequential && self.spec.write_seq_ns > 0 {
            true => {
                self.write_firmware_free_at = now.max(self.write_firmware_free_at) + self.spec.write_seq_ns;
                self.write_firmware_free_at
            }
            false => now,
        };
        self.link_in_free_at = now.max(self.link_in_free_at) + self.spec.link_in.ns(length);
        let pages_4k = length.div_ceil(4096);
        let arrived =
            self.link_in_free_at + self.spec.write_delay_ns + pages_4k * self.spec.write_delay_per_4k_ns;
        self.cache.keep(start, end);
        self.buffered += length;
        self.open += length;
        self.open_random |= !sequential;
        while self.open >= self.spec.page_bytes {
            self.open -= self.spec.page_bytes;
            self.program(self.spec.page_bytes, arrived);
        }
        let done = if command.fua && !self.spec.power_loss_protection {
            self.program_rest(arrived);
            self.programmed_at.max(arrived)
        } else {
            arrived
        };
        let late_ns = self.spec.write_tail.ns(&mut self.rng);
        self.events.push(done + late_ns, Event::Done { tag: command.tag, began_ns });
    }

    /// Program what does not fill a page: the page's rest is lost.
    fn program_rest(&mut self, now: u64) {
        if self.open > 0 {
            let open = self.open;
            self.open = 0;
            self.program(open, now);
        }
    }

    /// Give the next die a page with `bytes` of the buffer.
    fn program(&mut self, bytes: u64, from: u64) {
        let program_ns = match self.slc_left >= self.spec.page_bytes {
            true => {
                self.slc_left -= self.spec.page_bytes;
                self.spec.slc_program_ns
            }
            false => self.spec.program_ns as u64,
        };
        let collects = self.open_random || !self.spec.gc.random_only;
        self.open_random &= self.open > 0;
        let late_ns = if collects { self.spec.collect_tail.ns(&mut self.rng) } else { 0 };
        let die = &mut self.dies[self.next_die as usize];
        self.next_die = (self.next_die + 1) % self.spec.dies;
        let starts = from.max(die.free_at);
        if late_ns > 0 {
            die.collects = (starts, starts + late_ns);
        }
        let done = starts + late_ns + program_ns;
        die.free_at = done;
        die.page = 0;
        die.host_pages += u64::from(collects);
        if die.host_pages >= self.spec.gc.every_pages {
            die.host_pages = 0;
            die.free_at += self.spec.gc.debt_ns;
        }
        self.programmed_at = self.programmed_at.max(done);
        self.programming += 1;
        self.events.push(done, Event::Programmed { bytes: bytes as u32 });
    }

    fn programmed(&mut self, bytes: u32, now: u64) {
        self.programming -= 1;
        self.buffered -= u64::from(bytes);
        while let Some(command) = self.blocked.front().copied() {
            if !self.has_room(&command) {
                break;
            }
            self.blocked.pop_front();
            self.accept_write(command, now);
        }
        if !self.blocked.is_empty() && self.programming == 0 {
            self.program_rest(now);
        }
    }

    fn submit_flush(&mut self, command: Command, now: u64) {
        let done = if self.spec.power_loss_protection {
            now + self.spec.flush_ns
        } else {
            self.program_rest(now);
            now.max(self.programmed_at) + self.spec.flush_ns
        };
        self.events.push(done, Event::Done { tag: command.tag, began_ns: 0 });
    }

    fn is_busy(&self) -> bool {
        self.in_device > 0 || self.programming > 0
    }

    fn complete(&mut self, completion: Completion, done: &mut Vec<Completion>) {
        self.in_device -= 1;
        self.busy.set(self.is_busy(), completion.at_ns);
        if self.in_device == 0 {
            self.idle_since = Some(completion.at_ns);
        }
        done.push(completion);
    }
}

/// First byte, and first byte behind, of a command.
fn bytes(command: &Command) -> (u64, u64) {
    (command.sector * 512, (command.sector + u64::from(command.sectors.max(1))) * 512)
}

impl Device for Flash {
    fn limits(&self) -> &Limits {
        &self.spec.limits
    }

    fn submit(&mut self, mut command: Command, now: u64) {
        command.sector = command.sector.min(self.spec.limits.sectors - 1);
        if let Some(since) = self.idle_since.take() {
            let folded = self.spec.slc_recover.map_or(0, |rate| rate.bytes(now.saturating_sub(since)));
            self.slc_left = (self.slc_left + folded).min(self.spec.slc_bytes);
        }
        self.in_device += 1;
        self.busy.set(true, now);
        match command.op {
            Op::Read => self.submit_read(command, now),
            Op::Write => self.submit_write(command, now),
            Op::Flush => self.submit_flush(command, now),
            Op::Discard => {
                self.events
                    .push(now + self.spec.read_delay_ns, Event::Done { tag: command.tag, began_ns: 0 });
            }
        }
    }

    fn next_event(&self) -> Option<u64> {
        let read_at = self.link_out.front().map(|first| first.at_ns).or_else(|| self.sensed.next_at());
        match (self.events.next_at(), read_at) {
            (Some(at), Some(read_at)) => Some(at.min(read_at)),
            (at, read_at) => at.or(read_at),
        }
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        if self.next_event().is_some_and(|at| at <= now) {
            self.work(now, done);
        }
        self.busy.set(self.is_busy(), now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}

impl Flash {
    /// Let everything happen up to `now`.
    #[inline(never)]
    fn work(&mut self, now: u64, done: &mut Vec<Completion>) {
        self.look_ahead(now);
        loop {
            let event_at = self.events.next_at().unwrap_or(u64::MAX);
            if let Some(first) =
                self.link_out.front().copied().filter(|c| c.at_ns <= now && c.at_ns <= event_at)
            {
                self.link_out.pop_front();
                self.complete(first, done);
                continue;
            }
            let Some((at_ns, event)) = self.events.pop_until(now) else { break };
            match event {
                Event::Programmed { bytes } => {
                    self.programmed(bytes, at_ns);
                    self.busy.set(self.is_busy(), at_ns);
                }
                Event::Done { tag, began_ns } => self.complete(Completion { tag, at_ns, began_ns }, done),
            }
        }
    }
}
