//! A drive as it was measured: the layout with its defects, the seek curve, the buffer and the controller's times, in the
//! detail in which DiskSim's extraction tools describe a SCSI disk.
//!
//! One command at a time, first come, first served. A read that the buffer holds costs overhead and bus. Any other read
//! costs the command overhead, then seek, head switch and rotation; its blocks go out over the bus as they come off the
//! medium, as soon as enough of them are there (the high water mark). After a read the heads read on into the buffer until
//! a limit or until something else needs them. A write's data crosses the bus while the arm moves; the write
//! completes when it is on the medium, or, with a write cache, when it is in the buffer.
//!
//! What each time and switch means is DiskSim's (manual of version 4.0); the model is our own.
//!
//! Not modelled: a queue in the drive that is not first come, first served; a medium that stalls because a segment
//! is full (low water mark, requests longer than a segment); a minimum read-ahead; seeks begun before the last completion
//! (preseeking); hits served beside a command that has the heads ("sneaky" hits); a bus shared with other devices;
//! disconnecting again in the middle of a transfer; variation of the spindle speed; media retries, thermal recalibration,
//! mode pages, power states.

mod layout;
mod link;
mod media;
mod segments;
mod spec;

use std::collections::VecDeque;

use super::events::BusyClock;
use super::{Command, Completion, Device, Limits, Op};
use layout::Heads;
use media::{Arrival, Media, Pass};
use segments::{Hit, Segments};

pub(super) use spec::DriveSpec;

/// A time after a read and after a write.
#[derive(Clone, Copy, Debug, Default)]
struct After {
    read_ns: u64,
    write_ns: u64,
}

impl After {
    fn ns(self, last_was_read: bool) -> u64 {
        if last_was_read { self.read_ns } else { self.write_ns }
    }
}

/// The controller's times.
#[derive(Clone, Debug)]
struct Overheads {
    read_hit: After,
    read_miss: After,
    write_hit: After,
    write_miss: After,
    read_complete_ns: u64,
    write_complete_ns: u64,
    /// Before data crosses the bus.
    prepare_ns: u64,
    /// To take up the bus again after it was given up while the medium worked; 0 for a drive that keeps it.
    reselect_ns: u64,
    reselect_again_ns: u64,
    /// To give up the bus after a write's data.
    write_disconnect_ns: u64,
    /// A drive that gives up the bus once more before a write's data.
    extra: Option<ExtraDisconnect>,
    /// No write that does not continue the last one reaches the medium sooner after its overhead.
    write_seek_min_ns: u64,
}

/// Times of a write that gives up the bus before its data comes.
#[derive(Clone, Copy, Debug)]
struct ExtraDisconnect {
    command_ns: u64,
    disconnect_ns: u64,
    pause_ns: u64,
    /// From the command's overhead to the start of the arm.
    seek_delay_ns: u64,
}

/// How far the heads read on after a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadAhead {
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full, or the limit.
    Segment,
    /// To the end of the track; of the following one too when the segment's stream came from the previous track.
    NextTrack,
}

/// When a write is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteCache {
    /// When it is on the medium.
    Off,
    /// When it is in the buffer; one that does not continue the write in progress waits for that first.
    On,
}

/// Buffer and firmware settings.
#[derive(Clone, Debug)]
struct Settings {
    overheads: Overheads,
    /// A block over the bus to the host.
    read_block_ns: u64,
    /// A block over the bus from the host.
    write_block_ns: u64,
    read_ahead: ReadAhead,
    /// Sectors read on at most; 0: what the segment holds.
    read_ahead_max: u64,
    /// May read-ahead replace the request's own data? Asked when the segment alone is the limit.
    read_ahead_over_request: bool,
    /// A request's data leaves the buffer with it; only what was read ahead stays.
    drop_requested: bool,
    /// Start to read on after a hit, too.
    read_ahead_after_hit: bool,
    /// A hit on the very sector that is being read next counts.
    almost_hits: bool,
    /// Sectors that pass before the first one wanted are kept.
    free_reads: bool,
    read_arrival: Arrival,
    write_arrival: Arrival,
    /// Read-ahead may be given up in the middle of a sector.
    stop_in_sector: bool,
    write_cache: WriteCache,
    /// A write that continues the one in progress shares its segment.
    combine_writes: bool,
    /// Written data can be read from the buffer.
    reads_written_data: bool,
    /// Nothing is kept for later requests.
    caching: bool,
    /// Part of a request (or of a segment) that must be there before the bus is taken.
    high_water: f64,
    high_water_of_request: bool,
    /// What a request's first blocks in the buffer may cross at once, however few they are.
    partial_at_once: bool,
}

/// The heads reading on.
#[derive(Clone, Copy, Debug)]
struct Reading {
    segment: usize,
    next: u64,
    limit: u64,
    /// Since when `next` is what they wait for.
    from_ns: u64,
}

/// A write on its way to the medium.
#[derive(Clone, Copy, Debug)]
struct Writing {
    segment: usize,
    end: u64,
    done_ns: u64,
}

/// The drive, running.
#[derive(Clone, Debug)]
pub(super) struct Drive {
    limits: Limits,
    settings: Settings,
    media: Media,
    segments: Segments,
    heads: Heads,
    reading: Option<Reading>,
    writing: Option<Writing>,
    last_was_read: bool,
    /// First sector behind the last write, if the last command was one.
    last_write_end: Option<u64>,
    queue: VecDeque<Command>,
    current: Option<Completion>,
    passes: Vec<Pass>,
    busy: BusyClock,
}

impl Drive {
    fn new(limits: Limits, settings: Settings, media: Media, segments: Segments) -> Drive {
        Drive {
            limits,
            settings,
            media,
            segments,
            heads: Heads::default(),
            reading: None,
            writing: None,
            last_was_read: true,
            last_write_end: None,
            queue: VecDeque::with_capacity(limits.queue_depth as usize),
            current: None,
            passes: Vec::new(),
            busy: BusyClock::default(),
        }
    }

    /// When the command, begun at `now`, is done.
    fn serve(&mut self, command: &Command, now: u64) -> u64 {
        let first = command.sector.min(self.limits.sectors - 1);
        let end = (first + u64::from(command.sectors.max(1))).min(self.limits.sectors);
        self.read_on(now);
        if self.writing.is_some_and(|writing| writing.done_ns <= now) {
            self.writing = None;
        }
        match command.op {
            Op::Read => self.read(first, end, now),
            Op::Write => self.write(first, end, command.fua, now),
            Op::Flush => now.max(self.writing.map_or(0, |writing| writing.done_ns)),
            Op::Discard => now + self.settings.overheads.write_hit.ns(self.last_was_read),
        }
    }

    /// Let the heads read on up to `now`.
    fn read_on(&mut self, now: u64) {
        let Some(mut reading) = self.reading else { return };
        while reading.next < reading.limit {
            let pass = self.media.pass(reading.from_ns, self.heads, reading.next, reading.limit, false);
            let count = pass.passed(now);
            self.segments.grow(reading.segment, pass.first + count);
            if count < pass.sectors {
                break;
            }
            self.heads = pass.heads;
            reading = Reading { next: pass.end(), from_ns: pass.passed_ns(count), ..reading };
        }
        self.reading = if reading.next < reading.limit { Some(reading) } else { None };
    }

    /// Stop reading on, at `now`; gives when the heads are free.
    fn stop_reading(&mut self, now: u64) -> u64 {
        let Some(reading) = self.reading.take() else { return now };
        let pass = self.media.pass(reading.from_ns, self.heads, reading.next, reading.limit, false);
        if now >= pass.on_track_ns {
            self.heads = pass.heads;
        }
        if self.settings.stop_in_sector || now <= pass.start_ns {
            return now;
        }
        pass.passed_ns(pass.passed(now) + 1)
    }

    /// Where reading on after `..end` in `segment` ends.
    fn read_ahead_limit(&self, segment: usize, first: u64, end: u64) -> u64 {
        let settings = &self.settings;
        let layout = &self.media.layout;
        let size = self.segments.sectors();
        // A limit of the drive's own counts from the request's end and may replace the request's data.
        let at_most = match settings.read_ahead_max {
            0 if settings.read_ahead_over_request => end + size,
            0 => (first + size).max(end),
            sectors => end + sectors,
        };
        let sectors = layout.sectors();
        let limit = match settings.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Segment => at_most,
            ReadAhead::Track => at_most.min(layout.track_end(end - 1)),
            ReadAhead::Cylinder => at_most.min(layout.cylinder_end(end - 1)),
            ReadAhead::NextTrack if end >= sectors => end,
            ReadAhead::NextTrack => {
                let track_end = layout.track_end(end);
                let from_before = self.segments.get(segment).first < layout.track_first(end);
                let follows = from_before && track_end < sectors;
                // Ends with a track, whatever the segment holds.
                if follows { layout.track_end(track_end) } else { track_end }
            }
        };
        limit.min(sectors)
    }

    fn read(&mut self, first: u64, end: u64, now: u64) -> u64 {
        let reading = self.reading.filter(|_| self.settings.almost_hits).map(|reading| reading.segment);
        let hit = match self.settings.caching {
            true => self.segments.find(first, end, reading),
            false => Hit::Miss,
        };
        // A command that comes while written data still has the heads waits for them.
        let free_ns = self.writing.map_or(0, |writing| writing.done_ns);
        let sent_ns = match hit {
            Hit::Whole(segment) => self.read_hit(segment, first, end, now.max(free_ns)),
            Hit::Partial(segment) => self.read_rest(segment, first, end, now, free_ns),
            Hit::Miss => self.read_miss(first, end, now, free_ns),
        };
        if self.settings.drop_requested {
            self.segments.drop_front(first, end);
        }
        self.last_was_read = true;
        self.last_write_end = None;
        sent_ns + self.settings.overheads.read_complete_ns
    }

    /// Everything is in the buffer.
    fn read_hit(&mut self, segment: usize, first: u64, end: u64, now: u64) -> u64 {
        self.segments.touch(segment);
        let limit = self.read_ahead_limit(segment, first, end);
        match self.reading {
            Some(reading) if reading.segment == segment => {
                self.reading = Some(Reading { limit: limit.max(reading.limit), ..reading });
            }
            _ => {
                let from_ns = self.stop_reading(now);
                let next = self.segments.get(segment).end;
                if self.settings.read_ahead_after_hit && next < limit && self.writing.is_none() {
                    self.reading = Some(Reading { segment, next, limit, from_ns });
                }
            }
        }
        let overheads = &self.settings.overheads;
        let start_ns = now + overheads.read_hit.ns(self.last_was_read) + overheads.prepare_ns;
        start_ns + (end - first) * self.settings.read_block_ns
    }

    /// The first blocks are in the buffer, or come next.
    fn read_rest(&mut self, segment: usize, first: u64, end: u64, now: u64, free_ns: u64) -> u64 {
        self.segments.touch(segment);
        let next = self.segments.get(segment).end;
        let from_ns = match self.reading {
            // The heads are at it already and just go on.
            Some(reading) if reading.segment == segment => reading.from_ns,
            _ => {
                let overhead_ns = self.settings.overheads.read_miss.ns(self.last_was_read);
                self.stop_reading(now).max(now + overhead_ns).max(free_ns)
            }
        };
        self.read_media(segment, (next, end), from_ns, Arrival::InOrder);
        self.start_read_ahead(segment, first, end, self.last_passed_ns());
        let buffered = next - first;
        let count = end - first;
        let overheads = &self.settings.overheads;
        let hit_ns = now.max(free_ns) + overheads.read_hit.ns(self.last_was_read) + overheads.prepare_ns;
        let start_ns = if self.settings.partial_at_once {
            hit_ns
        } else {
            hit_ns.max(link::available_ns(&self.passes, buffered, self.high_water(count)))
        };
        link::sent_ns(&self.passes, count, start_ns, self.settings.read_block_ns)
    }

    fn read_miss(&mut self, first: u64, end: u64, now: u64, free_ns: u64) -> u64 {
        let overhead_ns = self.settings.overheads.read_miss.ns(self.last_was_read);
        let begun_ns = now + overhead_ns;
        let from_ns = self.stop_reading(now).max(begun_ns).max(free_ns);
        let segment = self.segments.take(first, false);
        self.read_media(segment, (first, end), from_ns, self.settings.read_arrival);
        if self.settings.free_reads {
            self.keep_passed_before(segment, first);
        }
        self.start_read_ahead(segment, first, end, self.last_passed_ns());
        let count = end - first;
        let ready_ns = link::available_ns(&self.passes, 0, self.high_water(count)).max(begun_ns);
        let overheads = &self.settings.overheads;
        let start_ns = ready_ns + overheads.reselect_ns + overheads.prepare_ns;
        link::sent_ns(&self.passes, count, start_ns, self.settings.read_block_ns)
    }

    /// Read sectors off the medium into a segment, leaving their passes in `self.passes`.
    fn read_media(&mut self, segment: usize, range: (u64, u64), from_ns: u64, arrival: Arrival) {
        self.passes.clear();
        let (_, heads) = self.media.passes(from_ns, self.heads, range, false, arrival, &mut self.passes);
        self.heads = heads;
        self.segments.grow(segment, range.1);
    }

    /// When the last of `self.passes` ends, in time.
    fn last_passed_ns(&self) -> u64 {
        self.passes.iter().map(|pass| pass.passed_ns(pass.sectors)).max().unwrap_or(0)
    }

    /// Sectors of the first track that passed between the arm's arrival and the first one wanted.
    fn keep_passed_before(&mut self, segment: usize, first: u64) {
        let Some(pass) = self.passes.first() else { return };
        let wait_ns = pass.start_ns - pass.on_track_ns;
        let came_by = wait_ns * u64::from(pass.sectors_per_track) / self.media.rotation.revolution_ns();
        let track_first = self.media.layout.track_first(first);
        self.segments.grow_front(segment, track_first.max(first.saturating_sub(came_by)));
    }

    fn start_read_ahead(&mut self, segment: usize, first: u64, end: u64, from_ns: u64) {
        let limit = self.read_ahead_limit(segment, first, end);
        let goes_on = end < limit && self.settings.caching;
        self.reading = goes_on.then_some(Reading { segment, next: end, limit, from_ns });
    }

    /// Blocks that must be there before the bus is taken.
    fn high_water(&self, count: u64) -> u64 {
        let of = match self.settings.high_water_of_request {
            true => count.min(self.segments.sectors()),
            false => self.segments.sectors(),
        };
        ((of as f64 * self.settings.high_water) as u64).clamp(1, count)
    }

    fn write(&mut self, first: u64, end: u64, through: bool, now: u64) -> u64 {
        let from_ns = self.stop_reading(now);
        let cache = if through { WriteCache::Off } else { self.settings.write_cache };
        let under_way = self.writing.filter(|writing| {
            self.settings.combine_writes && cache != WriteCache::Off && writing.end == first
        });
        let done_ns = match (under_way, cache) {
            (Some(writing), _) => self.write_on(writing, first, end, now),
            (None, WriteCache::On) => self.write_buffered(first, end, now, from_ns),
            (None, WriteCache::Off) => self.write_through(first, end, now, from_ns),
        };
        self.last_was_read = false;
        self.last_write_end = Some(end);
        done_ns + self.settings.overheads.write_complete_ns
    }

    /// Continue the write in progress: accepted at once.
    fn write_on(&mut self, writing: Writing, first: u64, end: u64, now: u64) -> u64 {
        let overheads = &self.settings.overheads;
        let start_ns = now + overheads.write_hit.ns(self.last_was_read) + overheads.prepare_ns;
        let done_ns = self.write_media(first, end, writing.done_ns, start_ns, 0);
        self.segments.grow(writing.segment, end);
        self.segments.forget(first, end, Some(writing.segment));
        self.writing = Some(Writing { end, done_ns, ..writing });
        start_ns + (end - first) * self.settings.write_block_ns
    }

    fn write_buffered(&mut self, first: u64, end: u64, now: u64, from_ns: u64) -> u64 {
        let free_ns = self.writing.map_or(0, |writing| writing.done_ns);
        let times = self.write_times(first, now, free_ns);
        let arm_ns = times.arm_ns.max(from_ns).max(free_ns);
        let done_ns = self.write_media(first, end, arm_ns, times.start_ns, times.seek_min_ns);
        let segment = self.keep_written(first, end);
        self.writing = Some(Writing { segment, end, done_ns });
        times.start_ns + (end - first) * self.settings.write_block_ns
    }

    fn write_through(&mut self, first: u64, end: u64, now: u64, from_ns: u64) -> u64 {
        let free_ns = self.writing.take().map_or(0, |writing| writing.done_ns);
        let times = self.write_times(first, now, free_ns);
        let arm_ns = times.arm_ns.max(from_ns).max(free_ns);
        let media_ns = self.write_media(first, end, arm_ns, times.start_ns, times.seek_min_ns);
        self.keep_written(first, end);
        let sent_ns = times.start_ns + (end - first) * self.settings.write_block_ns;
        let overheads = &self.settings.overheads;
        media_ns.max(sent_ns + overheads.write_disconnect_ns) + times.reselect_ns
    }

    /// The written data stays in a segment, and other copies are gone.
    fn keep_written(&mut self, first: u64, end: u64) -> usize {
        let segment = self.segments.take(first, true);
        self.segments.grow(segment, end);
        self.segments.forget(first, end, Some(segment));
        if !(self.settings.reads_written_data && self.settings.caching) {
            self.segments.forget(first, end, None);
        }
        segment
    }

    /// When bus and arm start for a write that came at `now`, the heads being busy until `free_ns`.
    fn write_times(&self, first: u64, now: u64, free_ns: u64) -> WriteTimes {
        let overheads = &self.settings.overheads;
        let continues = self.last_write_end == Some(first);
        let seek_min_ns = if continues { 0 } else { overheads.write_seek_min_ns };
        if let Some(extra) = overheads.extra.filter(|_| !self.last_was_read) {
            let given_up_ns = now + extra.command_ns + extra.disconnect_ns;
            return WriteTimes {
                start_ns: given_up_ns + extra.pause_ns + overheads.reselect_ns + overheads.prepare_ns,
                arm_ns: now + extra.command_ns + extra.seek_delay_ns,
                seek_min_ns,
                reselect_ns: overheads.reselect_again_ns,
            };
        }
        let overhead = match self.settings.write_cache {
            WriteCache::Off => overheads.write_miss,
            WriteCache::On => overheads.write_hit,
        };
        let arm_ns = now + overhead.ns(self.last_was_read);
        WriteTimes {
            start_ns: arm_ns.max(free_ns) + overheads.prepare_ns,
            arm_ns,
            seek_min_ns,
            reselect_ns: overheads.reselect_ns,
        }
    }

    /// Write from `arm_ns` on, blocks coming over the bus from `start_ns` on; gives the time it is on the medium.
    fn write_media(&mut self, first: u64, end: u64, arm_ns: u64, start_ns: u64, seek_min_ns: u64) -> u64 {
        let block_ns = self.settings.write_block_ns;
        let (mut at, mut next) = (arm_ns, first);
        while next < end {
            let mut pass = self.media.pass(at, self.heads, next, end, true);
            if next == first && pass.on_track_ns < arm_ns + seek_min_ns {
                pass = self.media.pass(
                    at + (arm_ns + seek_min_ns - pass.on_track_ns),
                    self.heads,
                    next,
                    end,
                    true,
                );
            }
            self.heads = pass.heads;
            let arrived_ns = start_ns + (pass.end() - first) * block_ns;
            at = if self.settings.write_arrival == Arrival::Any && arrived_ns <= pass.on_track_ns {
                self.passes.clear();
                self.media.pass_any(pass, &mut self.passes)
            } else {
                link::written_ns(&self.media, &pass, next - first, start_ns, block_ns)
            };
            next = pass.end();
        }
        at
    }

    fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    fn start_next(&mut self, now: u64) {
        if let Some(command) = self.queue.pop_front() {
            let at_ns = self.serve(&command, now);
            self.current = Some(Completion { tag: command.tag, at_ns, began_ns: now });
        }
    }
}

/// When the parts of a write start.
struct WriteTimes {
    /// Data over the bus.
    start_ns: u64,
    /// The arm.
    arm_ns: u64,
    seek_min_ns: u64,
    /// To take up the bus for the completion.
    reselect_ns: u64,
}

impl Device for Drive {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&mut self, command: Command, now: u64) {
        self.queue.push_back(command);
        if self.current.is_none() {
            self.start_next(now);
        }
        self.busy.set(self.is_busy(), now);
    }

    fn next_event(&self) -> Option<u64> {
        self.current.map(|completion| completion.at_ns)
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some(completion) = self.current.filter(|completion| completion.at_ns <= now) {
            done.push(completion);
            self.current = None;
            self.start_next(completion.at_ns);
            self.busy.set(self.is_busy(), completion.at_ns);
        }
        self.busy.set(self.is_busy(), now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}
