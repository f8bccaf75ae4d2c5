//! Disk array behind one Fibre Channel link: NVRAM for writes, a cache and prefetch for reads, spindles for the rest.
//!
//! A write crosses the link inwards, is logged to NVRAM by one of the controller's servers and acknowledged. NVRAM is two
//! halves: when the active one is full, or has held data for long enough, the array writes it out (a *consistency
//! point*) while the other accepts. With both full, writes are let in as the first drains. A read is served from the
//! cache, from the prefetch of a sequential stream, or by one of the spindles, and crosses the link outwards.
//!
//! The host's own share of a command (stack, adapter, interrupt) is part of the model, taken at the end.
//!
//! Servers are handed out in the order commands are submitted. Spindles serve first come, first served.
//!
//! Not modelled: RAID parity, the order of the write-out (a consistency point is a rate, and a share of busy spindle
//! time seen by read misses), several hosts or LUNs, controller fail-over, write data found in the cache
//! before its consistency point other than as cached lines, LRU across sets (the cache is set-associative).

use std::collections::VecDeque;

use super::disk::mechanics::{Arm, Mechanics};
use super::events::{BusyClock, Events, Rate};
use super::rng::{Lognormal, Rng};
use super::spec::{Facts, Fields, SpecError, limits, load_disk};
use super::{Command, Completion, Device, Limits, Op};

/// Parameters of an array.
#[derive(Clone, Debug)]
pub(super) struct ArraySpec {
    limits: Limits,
    /// What the host adds to every command.
    host_ns: u64,
    link: Rate,
    servers: usize,
    write: (f64, f64),
    cached_read: (f64, f64),
    miss_ns: u64,
    flush_ns: u64,
    nvram_half_bytes: u64,
    drain: Rate,
    timer_ns: u64,
    draining_write_factor: f64,
    draining_busy_share: f64,
    cache_lines: usize,
    line_sectors: u64,
    prefetch_sectors: u64,
    prefetch_streams: usize,
    spindles: usize,
    stripe_sectors: u64,
    mechanics: Mechanics,
}

const MS: f64 = 1e6;
/// Most lines of the cache: 128 MiB of our memory.
const CACHE_LINES_MAX: u64 = 1 << 24;

impl ArraySpec {
    pub(super) fn read(fields: &mut Fields) -> Result<ArraySpec, SpecError> {
        let sectors = fields.integer("sectors", 8, 1 << 50)?;
        let limits = limits(fields, sectors, Facts { budget: true, ..Facts::default() })?;
        let spindle = fields.text("spindles.disk")?;
        let mechanics = load_disk(&spindle, fields, "spindles.disk")?.mechanics().clone();
        let spindles = fields.integer("spindles.count", 1, 4096)? as usize;
        let stripe_sectors = fields.integer("spindles.stripe_kib", 1, 1 << 20)? * 2;
        if sectors.div_ceil(spindles as u64) > mechanics.sectors() {
            let message = format!("sectors is {sectors}: more than {spindles} spindles hold");
            return Err(fields.error("sectors", message));
        }
        let service = |fields: &mut Fields, section: &str| -> Result<(f64, f64), SpecError> {
            let median = fields.number(&format!("{section}.median_ms"), 0.0, 1000.0)? * MS;
            Ok((median, fields.number(&format!("{section}.sigma"), 0.0, 0.8)?))
        };
        let line_sectors = fields.integer("cache.line_kib", 1, 1024)? * 2;
        let cache_lines = fields.integer("cache.size_mib", 1, 1 << 20)? * 2048 / line_sectors;
        if cache_lines > CACHE_LINES_MAX {
            let message = format!(
                "cache.size_mib makes {cache_lines} lines; at most {CACHE_LINES_MAX}: use longer lines"
            );
            return Err(fields.error("cache.size_mib", message));
        }
        let cache_lines = (cache_lines as usize).max(WAYS);
        Ok(ArraySpec {
            limits,
            host_ns: (fields.number("host.command_ms", 0.0, 1000.0)? * MS) as u64,
            link: Rate::mb_per_s(fields.number("link.rate_mb_per_s", 0.1, 1e6)?),
            servers: fields.integer("controller.servers", 1, 256)? as usize,
            write: service(fields, "write")?,
            cached_read: service(fields, "cached_read")?,
            miss_ns: (fields.number("controller.miss_ms", 0.0, 1000.0)? * MS) as u64,
            flush_ns: (fields.number("controller.flush_ms", 0.0, 1000.0)? * MS) as u64,
            nvram_half_bytes: fields.integer("nvram.half_mib", 1, 1 << 20)? << 20,
            drain: Rate::mb_per_s(fields.number("nvram.drain_mb_per_s", 0.1, 1e6)?),
            timer_ns: (fields.number("nvram.timer_s", 0.001, 1e5)? * 1e9) as u64,
            draining_write_factor: fields.number("nvram.draining_write_factor", 1.0, 100.0)?,
            draining_busy_share: fields.number("nvram.draining_busy_share", 0.0, 0.95)?,
            cache_lines,
            line_sectors,
            prefetch_sectors: fields.integer("prefetch.size_kib", 0, 65_536)? * 2,
            prefetch_streams: fields.integer("prefetch.streams", 0, 1024)? as usize,
            spindles,
            stripe_sectors,
            mechanics,
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn build(&self, seed: u64) -> Array {
        let depth = self.limits.queue_depth as usize;
        Array {
            write_service: Lognormal::from_median(self.write.0, self.write.1),
            cached_service: Lognormal::from_median(self.cached_read.0, self.cached_read.1),
            rng: Rng::new(seed),
            servers: vec![0; self.servers],
            link_in_free_at: 0,
            link_out_free_at: 0,
            nvram: Nvram::default(),
            blocked: VecDeque::with_capacity(depth),
            room_expected: false,
            cache: LineCache::new(self.cache_lines),
            streams: vec![Stream::default(); self.prefetch_streams],
            clock: 0,
            spindles: vec![Spindle::default(); self.spindles],
            events: Events::with_capacity(depth * 2),
            in_device: 0,
            busy: BusyClock::default(),
            spec: self.clone(),
        }
    }
}

/// NVRAM: what the active half holds, and what of the other is still to be written out.
#[derive(Clone, Copy, Debug, Default)]
struct Nvram {
    active: u64,
    /// When the active half took its first byte.
    active_since: u64,
    draining: u64,
    drain_from: u64,
    drained_at: u64,
}

impl Nvram {
    fn is_draining(&self, now: u64) -> bool {
        now < self.drained_at
    }

    /// Bytes of the other half still held at `now`.
    fn left(&self, now: u64) -> u64 {
        if now >= self.drained_at {
            return 0;
        }
        let whole = u128::from(self.drained_at - self.drain_from);
        (u128::from(self.draining) * u128::from(self.drained_at - now) / whole.max(1)) as u64
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Spindle {
    arm: Arm,
    free_at: u64,
}

/// A sequential reader and what is prefetched for it.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Where its next read starts.
    next: u64,
    /// First sector behind the prefetched ones.
    end: u64,
    /// When all up to `end` are in the cache, and when all up to half of it were.
    ready_at: u64,
    previous_end: u64,
    previous_ready_at: u64,
    used: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A read's data is ready for the link.
    Ready {
        tag: u32,
        sectors: u32,
    },
    Done {
        tag: u32,
    },
    /// The active half has held data for as long as it may.
    Timer {
        since: u64,
    },
    /// The other half is written out.
    Drained,
    /// Room for the first blocked write.
    Room,
}

/// A disk array's LUN.
#[derive(Clone, Debug)]
pub(super) struct Array {
    spec: ArraySpec,
    write_service: Lognormal,
    cached_service: Lognormal,
    rng: Rng,
    /// When each of the controller's servers is free.
    servers: Vec<u64>,
    link_in_free_at: u64,
    link_out_free_at: u64,
    nvram: Nvram,
    blocked: VecDeque<Command>,
    /// An [`Event::Room`] is on its way.
    room_expected: bool,
    cache: LineCache,
    streams: Vec<Stream>,
    clock: u64,
    spindles: Vec<Spindle>,
    events: Events<Event>,
    in_device: u32,
    busy: BusyClock,
}

impl Array {
    /// The array is done with a command at `at`; the host hears of it after its own share.
    fn finish(&mut self, tag: u32, at: u64) {
        self.events.push(at + self.spec.host_ns, Event::Done { tag });
    }

    /// Occupy the server that is free first; gives when it is done.
    fn serve(&mut self, from: u64, service_ns: u64) -> u64 {
        let mut first = 0;
        for (index, &free_at) in self.servers.iter().enumerate() {
            if free_at < self.servers[first] {
                first = index;
            }
        }
        let done = from.max(self.servers[first]) + service_ns;
        self.servers[first] = done;
        done
    }

    // ---- writes ----

    fn submit_write(&mut self, command: Command, now: u64) {
        if self.blocked.is_empty() && self.has_room(&command, now) {
            self.accept_write(command, now);
        } else {
            self.blocked.push_back(command);
            self.start_drain(now);
            self.wait_for_room(now);
        }
    }

    fn has_room(&self, command: &Command, now: u64) -> bool {
        let held = self.nvram.active + self.nvram.left(now);
        held == 0 || held + u64::from(command.sectors) * 512 <= 2 * self.spec.nvram_half_bytes
    }

    /// Look again when enough of the draining half has gone; a little later if rounding made it too early.
    fn wait_for_room(&mut self, now: u64) {
        let Some(first) = self.blocked.front().filter(|_| !self.room_expected) else { return };
        let held = self.nvram.active + self.nvram.left(now);
        let excess = (held + u64::from(first.sectors) * 512).saturating_sub(2 * self.spec.nvram_half_bytes);
        self.room_expected = true;
        self.events.push(now + self.spec.drain.ns(excess).max(1000), Event::Room);
    }

    fn admit_blocked(&mut self, now: u64) {
        while let Some(command) = self.blocked.front().copied().filter(|command| self.has_room(command, now))
        {
            self.blocked.pop_front();
            self.accept_write(command, now);
        }
        self.wait_for_room(now);
    }

    fn accept_write(&mut self, command: Command, now: u64) {
        let bytes = u64::from(command.sectors) * 512;
        self.link_in_free_at = now.max(self.link_in_free_at) + self.spec.link.ns(bytes);
        let mut service = self.write_service.sample(&mut self.rng);
        if self.nvram.is_draining(now) {
            service = (service as f64 * self.spec.draining_write_factor) as u64;
        }
        let done = self.serve(self.link_in_free_at, service);
        self.finish(command.tag, done);
        self.cache.insert_range(command.sector, u64::from(command.sectors), self.spec.line_sectors);

        if self.nvram.active == 0 {
            self.nvram.active_since = now;
            self.events.push(now + self.spec.timer_ns, Event::Timer { since: now });
        }
        self.nvram.active += bytes;
        if self.nvram.active >= self.spec.nvram_half_bytes {
            self.start_drain(now);
        }
    }

    /// A consistency point, unless one is in progress.
    fn start_drain(&mut self, now: u64) {
        if self.nvram.is_draining(now) || self.nvram.active == 0 {
            return;
        }
        let bytes = self.nvram.active;
        let drained_at = now + self.spec.drain.ns(bytes).max(1);
        self.nvram = Nvram { active: 0, active_since: now, draining: bytes, drain_from: now, drained_at };
        self.events.push(drained_at, Event::Drained);
    }

    fn drained(&mut self, now: u64) {
        let full = self.nvram.active >= self.spec.nvram_half_bytes;
        let old = self.nvram.active > 0 && now >= self.nvram.active_since + self.spec.timer_ns;
        if full || old || !self.blocked.is_empty() {
            self.start_drain(now);
        }
    }

    // ---- reads ----

    fn submit_read(&mut self, command: Command, now: u64) {
        let sectors = u64::from(command.sectors);
        let end = command.sector + sectors;
        let prefetched_at = self.prefetched(command.sector, end, now);
        let ready = if let Some(at) = prefetched_at {
            let service = self.cached_service.sample(&mut self.rng);
            self.serve(now, service).max(at)
        } else if self.cache.holds_range(command.sector, sectors, self.spec.line_sectors) {
            let service = self.cached_service.sample(&mut self.rng);
            self.serve(now, service)
        } else {
            let from = self.serve(now, self.spec.miss_ns);
            let read_at = self.read_spindles(command.sector, sectors, from);
            self.cache.insert_range(command.sector, sectors, self.spec.line_sectors);
            read_at
        };
        self.follow_stream(command.sector, end, now);
        self.events.push(ready, Event::Ready { tag: command.tag, sectors: command.sectors });
    }

    /// When all of `sector..end` is in the cache, if it lies in a stream's prefetch.
    fn prefetched(&self, sector: u64, end: u64, now: u64) -> Option<u64> {
        let stream = self.streams.iter().find(|stream| stream.next == sector && end <= stream.end)?;
        let at = if end <= stream.previous_end { stream.previous_ready_at } else { stream.ready_at };
        Some(at.max(now))
    }

    /// Read from the spindles, each stripe from its own; gives when the last is there.
    fn read_spindles(&mut self, sector: u64, sectors: u64, from: u64) -> u64 {
        let mut done = from;
        let (mut at, end) = (sector, (sector + sectors).min(self.spec.limits.sectors));
        while at < end {
            let stripe = at / self.spec.stripe_sectors;
            let piece_end = ((stripe + 1) * self.spec.stripe_sectors).min(end);
            let count = self.spindles.len() as u64;
            let row = stripe / count;
            // A fixed mixing of the row turns the order of the spindles, so that strides do not meet one only.
            let which = ((stripe % count + (row.wrapping_mul(0x9E37_79B9) >> 7)) % count) as usize;
            let place = row * self.spec.stripe_sectors + at % self.spec.stripe_sectors;
            let mut start = from.max(self.spindles[which].free_at);
            if self.nvram.is_draining(start) && self.rng.unit() < self.spec.draining_busy_share {
                // The spindle is in the middle of a write: wait for what is left of about two revolutions' work.
                start += self.rng.below(8_000_000);
            }
            let spindle = &mut self.spindles[which];
            spindle.free_at = self.spec.mechanics.access(start, &mut spindle.arm, place, piece_end - at);
            done = done.max(spindle.free_at);
            at = piece_end;
        }
        done
    }

    /// Know the stream a read belongs to and prefetch for it.
    fn follow_stream(&mut self, sector: u64, end: u64, now: u64) {
        if self.streams.is_empty() || self.spec.prefetch_sectors == 0 {
            return;
        }
        self.clock += 1;
        let Some(index) = self.streams.iter().position(|stream| stream.next == sector && stream.used > 0)
        else {
            let oldest = (0..self.streams.len()).min_by_key(|&index| self.streams[index].used).unwrap_or(0);
            let fresh = Stream { next: end, end, previous_end: end, used: self.clock, ..Stream::default() };
            self.streams[oldest] = fresh;
            return;
        };
        let mut stream = self.streams[index];
        stream.next = end;
        stream.used = self.clock;
        // Half used up: fetch the next portion.
        if stream.end < end + self.spec.prefetch_sectors / 2 {
            let from = stream.end.max(end);
            let to = (from + self.spec.prefetch_sectors).min(self.spec.limits.sectors);
            if to > from {
                stream.previous_end = stream.end;
                stream.previous_ready_at = stream.ready_at;
                stream.ready_at = self.read_spindles(from, to - from, now).max(stream.ready_at);
                stream.end = to;
                self.cache.insert_range(from, to - from, self.spec.line_sectors);
            }
        }
        self.streams[index] = stream;
    }

    fn step(&mut self, at: u64, event: Event, done: &mut Vec<Completion>) {
        match event {
            Event::Ready { tag, sectors } => {
                let start = at.max(self.link_out_free_at);
                self.link_out_free_at = start + self.spec.link.ns(u64::from(sectors) * 512);
                self.finish(tag, self.link_out_free_at);
            }
            Event::Done { tag } => {
                self.in_device -= 1;
                done.push(Completion { tag, at_ns: at, began_ns: 0 });
            }
            Event::Timer { since } => {
                if self.nvram.active > 0 && self.nvram.active_since == since {
                    self.start_drain(at);
                }
            }
            Event::Drained => {
                self.drained(at);
                self.admit_blocked(at);
            }
            Event::Room => {
                self.room_expected = false;
                self.admit_blocked(at);
            }
        }
        self.busy.set(self.is_busy(at), at);
    }

    fn is_busy(&self, now: u64) -> bool {
        self.in_device > 0 || self.nvram.is_draining(now)
    }
}

impl Device for Array {
    fn limits(&self) -> &Limits {
        &self.spec.limits
    }

    fn submit(&mut self, mut command: Command, now: u64) {
        command.sector = command.sector.min(self.spec.limits.sectors - 1);
        self.in_device += 1;
        self.busy.set(true, now);
        match command.op {
            Op::Read => self.submit_read(command, now),
            Op::Write => self.submit_write(command, now),
            Op::Flush | Op::Discard => {
                self.finish(command.tag, now + self.spec.flush_ns);
            }
        }
    }

    fn next_event(&self) -> Option<u64> {
        self.events.next_at()
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some((at, event)) = self.events.pop_until(now) {
            self.step(at, event, done);
        }
        self.busy.set(self.is_busy(now), now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}

/// Lines a set of the cache holds.
const WAYS: usize = 16;

/// The read cache: lines in sets of sixteen, the least recently used line of a set replaced.
#[derive(Clone, Debug)]
struct LineCache {
    /// Line number plus 1, most recently used first within a set; 0 is empty.
    lines: Vec<u64>,
    sets: u64,
}

impl LineCache {
    fn new(lines: usize) -> LineCache {
        let sets = (lines / WAYS).max(1);
        LineCache { lines: vec![0; sets * WAYS], sets: sets as u64 }
    }

    fn set(&mut self, line: u64) -> &mut [u64] {
        // Neighbours go to neighbouring sets, as in a processor's cache.
        let set = (line % self.sets) as usize;
        &mut self.lines[set * WAYS..(set + 1) * WAYS]
    }

    /// Is the line there? It then counts as used.
    fn holds(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let found = set.iter().position(|&entry| entry == line + 1);
        if let Some(index) = found {
            set[..=index].rotate_right(1);
        }
        found.is_some()
    }

    fn insert(&mut self, line: u64) {
        if !self.holds(line) {
            let set = self.set(line);
            set.rotate_right(1);
            set[0] = line + 1;
        }
    }

    fn holds_range(&mut self, sector: u64, sectors: u64, line_sectors: u64) -> bool {
        (sector / line_sectors..=(sector + sectors.max(1) - 1) / line_sectors).all(|line| self.holds(line))
    }

    fn insert_range(&mut self, sector: u64, sectors: u64, line_sectors: u64) {
        for line in sector / line_sectors..=(sector + sectors.max(1) - 1) / line_sectors {
            self.insert(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_forgets_its_least_recently_used_line() {
        let mut cache = LineCache::new(WAYS);
        for line in 0..WAYS as u64 {
            cache.insert(line);
        }
        assert!(cache.holds(0));
        cache.insert(99);
        assert!(cache.holds(0) && !cache.holds(1) && cache.holds(2) && cache.holds(99));
    }

    #[test]
    fn the_draining_half_empties_in_a_straight_line() {
        let nvram = Nvram { active: 0, active_since: 0, draining: 1000, drain_from: 100, drained_at: 300 };
        assert_eq!([100, 150, 200, 300, 400].map(|now| nvram.left(now)), [1000, 750, 500, 0, 0]);
    }
}
