//! A rotational disk: arm and platter, buffer with read-ahead, write-back cache, firmware that chooses the order.
//!
//! A command the buffer can serve passes the electronics only. Any other waits for the heads: when they are free the
//! firmware picks from the oldest that wait (at once, or after the command overhead from all that have come by then), then
//! the arm moves. While nothing else moves the arm, the heads read on into the buffer segment of the last read. Written data
//! is accepted by the cache and goes to the medium in the firmware's own order, when the heads have nothing else to do or the
//! cache is half full. A share of reads from the medium is repeated for some revolutions. A shingled drive writes to a log on the medium
//! first (`media.rs`).
//!
//! Not modelled: reading from the middle of a request on arrival (zero latency), defects and remapping, media
//! retries, thermal recalibration, background scans, power states, partial hits (a read that
//! is only partly in the buffer is read whole), data of written extents once they are on the medium, and the time
//! written data takes over the link before a media write (it crosses while the arm moves).

mod buffer;
mod geometry;
pub(super) mod mechanics;
mod media;
mod order;
mod seek;
mod shingled;
mod spec;

use std::collections::VecDeque;

use super::chance::Chance;
use super::events::{BusyClock, Events, Rate};
use super::rng::Rng;
use super::{Command, Completion, Device, Limits, Op};
use buffer::{Dirty, Segments};
use geometry::Heads;
use mechanics::{Mechanics, Run};
use media::{MediaCache, MediaSpec, Piece};
use order::{Candidate, Choice, Drain, Policy, Situation};

pub(super) use geometry::Rotation;
pub use geometry::{Geometry, Layout};
pub(super) use seek::SeekCurve;
pub(super) use spec::{DiskSpec, read_seek};

/// The firmware's time for a command, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Overheads {
    read_hit_ns: u64,
    write_hit_ns: u64,
    miss_ns: u64,
}

/// Settings that do not change while it runs.
#[derive(Clone, Debug)]
struct Settings {
    overheads: Overheads,
    link: Rate,
    policy: Policy,
    choice: Choice,
    /// How many of the waiting commands, oldest first, the firmware orders.
    sorts: usize,
    /// How long the arm stays with a sequential reader that may come back. 0: not at all.
    sticky_ns: u64,
    write_cache: bool,
    /// How long no command must have come before written data goes to the medium in idle time.
    idle_ns: u64,
    drain: Drain,
    /// Reads from the medium that have to be repeated.
    retries: Chance,
}

/// What the heads are doing.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Idle,
    /// The firmware works on a command; at the end it picks what the heads do next.
    Deciding {
        until: u64,
    },
    /// On the way to or over the sectors of a job.
    Working {
        until: u64,
        job: Job,
        run: Run,
    },
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Read {
        tag: u32,
        sector: u64,
        end: u64,
    },
    Write {
        tag: u32,
        end: u64,
    },
    Destage {
        end: u64,
    },
    /// An entry of a shingled drive's log: all that is being written.
    Append {
        end: u64,
    },
    /// A band of a shingled drive is rewritten.
    Clean {
        first: u64,
        end: u64,
    },
    /// A read, some of which lay in the log: the heads do not read on behind it.
    Gather {
        tag: u32,
        end: u64,
        sectors: u32,
    },
}

/// The heads reading on after a read.
#[derive(Clone, Copy, Debug)]
struct Fill {
    segment: usize,
    run: Run,
    /// Sector to stop before.
    limit: u64,
    /// The heads may not leave before: data until then is promised to commands.
    promised_until: u64,
    /// When a command last profited.
    hit_at: u64,
    /// When the run ends or the limit is reached; kept by [`Disk::set_fill`].
    event_at: u64,
}

/// A rotational disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    limits: Limits,
    settings: Settings,
    mechanics: Mechanics,

    // Commands that need the heads, oldest first, and what comes of them.
    waiting: Vec<Candidate>,
    waiting_tags: Vec<u32>,
    done: Events<u32>,
    in_device: u32,
    number: u64,
    last_command_at: u64,
    /// When a command was last done.
    last_done_at: u64,

    // Electronics: one command at a time, then the link.
    electronics_free_at: u64,
    link_free_at: u64,

    // Arm and platter.
    phase: Phase,
    heads: Heads,
    last_sector: u64,

    // Buffer.
    segments: Segments,
    fill: Option<Fill>,
    /// A segment read full; reading on resumes when half of it is used up.
    full: Option<usize>,

    // Write cache.
    dirty: Dirty,
    /// Writes that found it full.
    blocked: VecDeque<Command>,
    /// Tag, and the number of the last write accepted before it.
    flushes: Vec<(u32, u64)>,
    /// Destaging and commands take turns when both are pressing.
    commands_turn: bool,
    /// Commands and written data that a decision compares.
    both: Vec<Candidate>,
    /// Of a shingled drive.
    media: Option<MediaCache>,

    rng: Rng,
    busy: BusyClock,
}

impl Disk {
    fn new(
        limits: Limits,
        settings: Settings,
        mechanics: Mechanics,
        segments: Segments,
        dirty: Dirty,
        media: Option<MediaSpec>,
        seed: u64,
    ) -> Disk {
        let depth = limits.queue_depth as usize;
        Disk {
            limits,
            settings,
            mechanics,
            waiting: Vec::with_capacity(depth),
            waiting_tags: Vec::with_capacity(depth),
            done: Events::with_capacity(depth),
            in_device: 0,
            number: 0,
            last_command_at: 0,
            last_done_at: 0,
            electronics_free_at: 0,
            link_free_at: 0,
            phase: Phase::Idle,
            heads: Heads::default(),
            last_sector: 0,
            segments,
            fill: None,
            full: None,
            dirty,
            blocked: VecDeque::with_capacity(depth),
            flushes: Vec::with_capacity(depth),
            commands_turn: true,
            both: Vec::new(),
            media: media.map(MediaCache::new),
            rng: Rng::new(seed),
            busy: BusyClock::default(),
        }
    }

    // ---- commands come in ----

    fn submit_read(&mut self, command: Command, now: u64) {
        let end = self.end_of(&command);
        let overhead = self.settings.overheads.read_hit_ns;
        if self.dirty.covers(command.sector, end) {
            let at = self.through_electronics(now, overhead, command.sectors);
            self.done.push(at, command.tag);
            return;
        }
        if self.media.as_ref().is_some_and(|media| media.overlaps(command.sector, end)) {
            self.wait_for_heads(command, now);
            return;
        }
        self.catch_up_fill(now, command.sector);
        if let Some(segment) = self.segments.find(command.sector, end) {
            let at = self.through_electronics(now, overhead, command.sectors);
            self.done.push(at, command.tag);
            self.used_up(segment, end, now);
        } else if let Some(read_at) = self.soon_read(command.sector, end, now) {
            let ready = self.through_electronics(now, overhead, 0).max(read_at);
            self.done.push(ready + self.link_ns(command.sectors), command.tag);
        } else {
            self.wait_for_heads(command, now);
        }
    }

    fn submit_write(&mut self, command: Command, now: u64) {
        let end = self.end_of(&command);
        let filling = self.fill.map(|fill| fill.segment);
        self.segments.forget(command.sector, end, filling);
        if !self.settings.write_cache || command.fua {
            self.wait_for_heads(command, now);
        } else if self.blocked.is_empty() && self.dirty.has_room(command.sectors) {
            self.accept_write(command, now);
        } else {
            self.blocked.push_back(command);
        }
    }

    fn submit_flush(&mut self, command: Command, now: u64) {
        if self.dirty.oldest().is_some() {
            self.flushes.push((command.tag, self.number));
        } else {
            let at = self.through_electronics(now, self.settings.overheads.write_hit_ns, 0);
            self.done.push(at, command.tag);
        }
    }

    fn accept_write(&mut self, command: Command, now: u64) {
        let sectors = (self.end_of(&command) - command.sector) as u32;
        self.dirty.insert(command.sector, sectors, now, self.number, &self.mechanics.geometry);
        let at = self.through_electronics(now, self.settings.overheads.write_hit_ns, command.sectors);
        self.done.push(at, command.tag);
    }

    fn wait_for_heads(&mut self, command: Command, now: u64) {
        let end = self.end_of(&command);
        let lies_at = match &self.media {
            Some(media) => media.pieces(command.sector, end).first().map_or(command.sector, |p| p.sector),
            None => command.sector,
        };
        self.waiting.push(Candidate {
            sector: command.sector,
            sectors: (self.end_of(&command) - command.sector) as u32,
            write: command.op == Op::Write,
            since: now,
            number: self.number,
            place: self.mechanics.geometry.place(lies_at),
        });
        self.waiting_tags.push(command.tag);
    }

    /// First sector behind a command, kept on the disk whatever the command says.
    fn end_of(&self, command: &Command) -> u64 {
        let end = command.sector.saturating_add(u64::from(command.sectors)).min(self.limits.sectors);
        end.max(command.sector.saturating_add(1))
    }

    /// The electronics work on a command, then its data crosses the link; gives when both are done.
    fn through_electronics(&mut self, now: u64, overhead_ns: u64, sectors: u32) -> u64 {
        let worked = now.max(self.electronics_free_at) + overhead_ns;
        self.electronics_free_at = worked;
        if sectors == 0 {
            return worked;
        }
        self.link_free_at = worked.max(self.link_free_at) + self.link_ns(sectors);
        self.link_free_at
    }

    fn link_ns(&self, sectors: u32) -> u64 {
        self.settings.link.ns(u64::from(sectors) * 512)
    }

    // ---- reading ahead ----

    /// Note in the segment how far the heads have read, if that may matter to a read at `sector`.
    fn catch_up_fill(&mut self, now: u64, sector: u64) {
        let Some(fill) = self.fill else { return };
        let (first, _) = self.segments.range(fill.segment);
        if sector >= first && sector <= fill.run.end {
            let position = self.mechanics.position(&fill.run, now);
            self.segments.grow(fill.segment, position.min(fill.limit));
        }
    }

    /// When the heads, reading on, will have read up to `end`, if that is worth waiting for. The heads are then
    /// bound to stay until that time.
    fn soon_read(&mut self, sector: u64, end: u64, now: u64) -> Option<u64> {
        let mut fill = self.fill?;
        let (first, last) = self.segments.range(fill.segment);
        let near = last + u64::from(self.near_sectors());
        if sector < first || sector > near || end > self.mechanics.geometry.sectors() {
            return None;
        }
        match self.phase {
            Phase::Idle => {
                while fill.run.end < end {
                    fill.run = self.mechanics.next_run(&fill.run)?;
                }
            }
            // Others wait already: the stream must not hold them up.
            Phase::Deciding { until }
                if end <= fill.run.end && self.mechanics.passed_at(&fill.run, end) <= until => {}
            _ => return None,
        }
        let read_at = self.mechanics.passed_at(&fill.run, end);
        fill.promised_until = fill.promised_until.max(read_at);
        fill.limit = fill.limit.max(self.fill_limit(end));
        fill.hit_at = now;
        self.set_fill(fill);
        self.segments.touch(fill.segment);
        Some(read_at)
    }

    /// How far past the heads a read may start and still count as the stream's next.
    fn near_sectors(&self) -> u32 {
        (self.segments.capacity() / 4).min(256) as u32
    }

    fn fill_limit(&self, used_up_to: u64) -> u64 {
        (used_up_to + self.segments.capacity()).min(self.mechanics.geometry.sectors())
    }

    /// A read has taken data up to `end` from a segment: there is room to read on.
    fn used_up(&mut self, segment: usize, end: u64, now: u64) {
        self.segments.touch(segment);
        let limit = self.fill_limit(end);
        if let Some(fill) = self.fill.filter(|fill| fill.segment == segment) {
            self.set_fill(Fill { limit: fill.limit.max(limit), hit_at: now, ..fill });
            return;
        }
        let (_, last) = self.segments.range(segment);
        let half_used = last.saturating_sub(end) * 2 < self.segments.capacity();
        let free = matches!(self.phase, Phase::Idle) && self.fill.is_none();
        if self.full == Some(segment) && half_used && free && last < limit {
            let place = self.mechanics.geometry.place(last);
            let run = self.mechanics.run(self.mechanics.reach(now, self.heads, &place, false), &place);
            self.set_fill(Fill { segment, run, limit, promised_until: now, hit_at: now, event_at: 0 });
            self.full = None;
        }
    }

    /// Read ahead as `fill` says.
    fn set_fill(&mut self, fill: Fill) {
        let event_at = self.mechanics.passed_at(&fill.run, fill.limit.min(fill.run.end));
        self.fill = Some(Fill { event_at, ..fill });
    }

    /// The end of a track, or of what is to be read, whichever comes first.
    fn fill_event(&self) -> Option<u64> {
        self.fill.as_ref().map(|fill| fill.event_at)
    }

    /// Go on to the next track, or stop.
    fn fill_next(&mut self, now: u64) {
        let Some(fill) = self.fill else { return };
        if fill.limit > fill.run.end {
            self.segments.grow(fill.segment, fill.run.end);
            if let Some(run) = self.mechanics.next_run(&fill.run) {
                self.set_fill(Fill { run, ..fill });
                return;
            }
        }
        self.stop_fill(now);
        self.full = Some(fill.segment);
    }

    /// The heads leave off reading ahead.
    fn stop_fill(&mut self, now: u64) {
        if let Some(fill) = self.fill.take() {
            let position = self.mechanics.position(&fill.run, now).min(fill.limit);
            self.segments.grow(fill.segment, position);
            self.heads = fill.run.heads;
        }
    }

    /// The sectors where a read needs no positioning, while reading ahead (and caught up).
    fn stream(&self) -> Option<(u64, u64)> {
        let (first, last) = self.segments.range(self.fill.as_ref()?.segment);
        Some((first, last + u64::from(self.near_sectors())))
    }

    // ---- the heads ----

    /// Written data is pressing: a flush or a write waits, or the cache is half full.
    fn destage_pressing(&self) -> bool {
        !self.flushes.is_empty() || !self.blocked.is_empty() || self.dirty.urgent()
    }

    /// When written data goes to the medium for want of anything else to do.
    fn idle_destage_at(&self) -> Option<u64> {
        let idle = matches!(self.phase, Phase::Idle) && self.fill.is_none() && !self.dirty.is_empty();
        idle.then(|| self.last_command_at + self.settings.idle_ns)
    }

    /// When a shingled drive cleans a band for want of anything else to do.
    fn idle_clean_at(&self) -> Option<u64> {
        let media = self.media.as_ref().filter(|media| !media.is_empty())?;
        let idle = matches!(self.phase, Phase::Idle) && self.fill.is_none() && self.dirty.is_empty();
        (idle && self.waiting.is_empty()).then(|| self.last_command_at + media.spec.idle_ns)
    }

    /// Give free heads something to do.
    fn kick(&mut self, now: u64) {
        if !matches!(self.phase, Phase::Idle) {
            return;
        }
        let promised = self.fill.map_or(now, |fill| fill.promised_until.max(now));
        if self.drains_first() {
            if promised > now {
                self.phase = Phase::Deciding { until: promised };
            } else {
                self.start_destage(now);
            }
        } else if !self.waiting.is_empty() {
            let until = match self.settings.choice {
                Choice::AtOnce => promised,
                Choice::Late => promised.max(now + self.settings.overheads.miss_ns),
            };
            if until > now {
                self.phase = Phase::Deciding { until };
            } else {
                self.decide(now);
            }
        } else if self.idle_destage_at().is_some_and(|at| at <= now) {
            self.start_destage(now);
        } else if self.idle_clean_at().is_some_and(|at| at <= now) {
            self.start_cleaning(now);
        }
    }

    /// Does written data go to the medium before any command?
    fn drains_first(&self) -> bool {
        if self.dirty.is_empty() || !self.destage_pressing() {
            return false;
        }
        let must = !self.flushes.is_empty() || !self.blocked.is_empty();
        let takes_turns = must || self.settings.drain == Drain::Turns;
        self.waiting.is_empty() || (takes_turns && !self.commands_turn)
    }

    fn decide(&mut self, now: u64) {
        self.phase = Phase::Idle;
        if self.drains_first() {
            self.start_destage(now);
            return;
        }
        if let Some(fill) = self.fill {
            self.catch_up_fill(now, fill.run.end);
        }
        let stream = self.stream();
        if self.settings.drain != Drain::Together && self.stays_anyway(stream, now) {
            return;
        }
        // When the arm leaves: an overhead that has not been spent before the choice comes after it.
        let leaves_at = match self.settings.choice {
            Choice::AtOnce => now + self.settings.overheads.miss_ns,
            Choice::Late => now,
        };
        let Some(index) = self.pick(stream, leaves_at) else {
            self.kick(now);
            return;
        };
        let Some(picked) = self.waiting.get(index).copied() else {
            self.start_destage(now);
            return;
        };
        let streaming = picked.streams(stream);
        if !streaming && self.stay_with_stream(&picked, now) {
            return;
        }
        self.waiting.remove(index);
        let tag = self.waiting_tags.remove(index);
        if !(streaming && self.serve_from_stream(&picked, tag, now)) {
            self.start_job(&picked, tag, leaves_at);
        }
        self.commands_turn = false;
    }

    /// The firmware's choice from what waits, for an arm that leaves at `leaves_at`: the command's place, or one behind the last for
    /// written data.
    fn pick(&mut self, stream: Option<(u64, u64)>, leaves_at: u64) -> Option<usize> {
        let commands = &self.waiting[..self.waiting.len().min(self.settings.sorts)];
        let situation = Situation {
            mechanics: &self.mechanics,
            now: leaves_at,
            heads: self.fill.map_or(self.heads, |fill| fill.run.heads),
            last_sector: self.last_sector,
            stream,
        };
        let together =
            self.settings.drain == Drain::Together && self.dirty.urgent() && !self.waiting.is_empty();
        if !together {
            return self.settings.policy.pick(commands, &situation);
        }
        self.both.clear();
        self.both.extend_from_slice(commands);
        // Nobody waits for a single extent: it has neither age nor deadline.
        let fresh = |extent: &Candidate| Candidate { since: leaves_at, number: u64::MAX, ..*extent };
        self.both.extend(self.dirty.extents().iter().map(fresh));
        let count = commands.len();
        let index = self.settings.policy.pick(&self.both, &situation)?;
        Some(if index < count { index } else { self.waiting.len() })
    }

    /// Sequential stickiness: let the picked command wait while the stream's next read may come.
    fn stay_with_stream(&mut self, picked: &Candidate, now: u64) -> bool {
        let Some(until) = self.sticky_until(now) else { return false };
        if self.settings.policy.is_overdue(picked.since, now) {
            return false;
        }
        self.phase = Phase::Deciding { until };
        true
    }

    /// The same whichever command were picked, so that none needs to be: none is the stream's next, none is overdue.
    fn stays_anyway(&mut self, stream: Option<(u64, u64)>, now: u64) -> bool {
        let Some(until) = self.sticky_until(now) else { return false };
        let policy = &self.settings.policy;
        let matters = |c: &Candidate| c.streams(stream) || policy.is_overdue(c.since, now);
        if self.waiting.is_empty() || self.waiting.iter().any(matters) {
            return false;
        }
        self.phase = Phase::Deciding { until };
        true
    }

    /// Until when the arm stays where it reads ahead, if it does.
    fn sticky_until(&self, now: u64) -> Option<u64> {
        let fill = self.fill?;
        let until = (fill.hit_at + self.settings.sticky_ns).max(fill.promised_until);
        (self.settings.sticky_ns > 0 && until > now).then_some(until)
    }

    /// The heads pass the sectors anyway: the read is done when they have.
    fn serve_from_stream(&mut self, picked: &Candidate, tag: u32, now: u64) -> bool {
        let end = picked.sector + u64::from(picked.sectors);
        if self.media.as_ref().is_some_and(|media| media.overlaps(picked.sector, end)) {
            return false;
        }
        let Some(read_at) = self.soon_read(picked.sector, end, now) else { return false };
        self.done.push(read_at.max(now) + self.tail_ns(picked.sectors), tag);
        self.last_sector = end;
        self.kick(now);
        true
    }

    fn start_job(&mut self, picked: &Candidate, tag: u32, now: u64) {
        let end = picked.sector + u64::from(picked.sectors);
        if self.media.is_some() && self.start_shingled(picked, tag, now) {
            return;
        }
        let job = match picked.write {
            true => Job::Write { tag, end },
            false => Job::Read { tag, sector: picked.sector, end },
        };
        self.go(picked, job, now);
    }

    fn start_destage(&mut self, now: u64) {
        self.stop_fill(now);
        let situation = Situation {
            mechanics: &self.mechanics,
            now,
            heads: self.heads,
            last_sector: self.last_sector,
            stream: None,
        };
        // Nobody waits for a single extent: neither age nor deadline.
        let policy = Policy { ageing_ns: 0, deadline_ns: 0, ..self.settings.policy };
        let Some(index) = policy.pick(self.dirty.extents(), &situation) else { return };
        self.commands_turn = true;
        if self.media.is_some() {
            self.destage_shingled(index, now);
            return;
        }
        let part = self.dirty.begin(index, &self.mechanics.geometry);
        self.go(&part, Job::Destage { end: part.sector + u64::from(part.sectors) }, now);
    }

    fn go(&mut self, target: &Candidate, job: Job, now: u64) {
        self.stop_fill(now);
        self.full = None;
        let mut at = self.mechanics.reach(now, self.heads, &target.place, target.write);
        if matches!(job, Job::Read { .. }) {
            at += self.repeats_ns();
        }
        let end = target.sector + u64::from(target.sectors);
        let (until, run) = self.mechanics.transfer(at, &target.place, end);
        self.phase = Phase::Working { until, job, run };
    }

    /// Revolutions that pass until a read succeeds; mostly none.
    fn repeats_ns(&mut self) -> u64 {
        let revolution_ns = self.mechanics.rotation.revolution_ns();
        self.settings.retries.ns(&mut self.rng).div_ceil(revolution_ns) * revolution_ns
    }

    fn finish_job(&mut self, job: Job, run: Run, now: u64) {
        self.phase = Phase::Idle;
        self.heads = run.heads;
        match job {
            Job::Read { tag, sector, end } => {
                self.done.push(now + self.tail_ns((end - sector) as u32), tag);
                self.last_sector = end;
                self.read_on(sector, end, run, now);
            }
            Job::Write { tag, end } => {
                self.done.push(now, tag);
                self.last_sector = end;
            }
            Job::Destage { end } | Job::Append { end } => {
                self.written_shingled(matches!(job, Job::Append { .. }));
                self.dirty.written();
                self.last_sector = end;
                self.admit_blocked(now);
                self.finish_flushes(now);
            }
            Job::Clean { first, end } => {
                if let Some(media) = &mut self.media {
                    media.cleaned(first, end);
                }
                self.last_sector = end;
            }
            Job::Gather { tag, end, sectors } => {
                self.done.push(now + self.tail_ns(sectors), tag);
                self.last_sector = end;
            }
        }
        self.kick(now);
    }

    /// The link keeps up with the medium; what is left after the last sector is at most a page's worth.
    fn tail_ns(&self, sectors: u32) -> u64 {
        self.link_ns(sectors.min(8))
    }

    fn read_on(&mut self, sector: u64, end: u64, run: Run, now: u64) {
        if self.segments.capacity() == 0 {
            return;
        }
        let segment = self.segments.take_up(sector, end);
        let limit = self.fill_limit(end);
        if limit > end {
            // A read that continues no other is not a stream yet, and nothing keeps the arm with it.
            let hit_at = if self.segments.range(segment).0 < sector { now } else { 0 };
            self.set_fill(Fill { segment, run, limit, promised_until: now, hit_at, event_at: 0 });
            if run.end <= end {
                self.fill_next(now);
            }
        }
    }

    fn admit_blocked(&mut self, now: u64) {
        while let Some(command) = self.blocked.front().copied() {
            if !self.dirty.has_room(command.sectors) {
                break;
            }
            self.blocked.pop_front();
            // Counted anew: a flush that came while it waited does not cover it.
            self.number += 1;
            self.accept_write(command, now);
        }
    }

    fn finish_flushes(&mut self, now: u64) {
        if self.flushes.is_empty() {
            return;
        }
        let oldest = self.dirty.oldest().unwrap_or(u64::MAX);
        let mut index = 0;
        while index < self.flushes.len() {
            let (tag, last_write) = self.flushes[index];
            if oldest > last_write {
                self.flushes.remove(index);
                self.done.push(now, tag);
            } else {
                index += 1;
            }
        }
    }

    // ---- time ----

    /// The next thing that arm, platter or firmware do by themselves.
    fn mechanical_event(&self) -> Option<u64> {
        match self.phase {
            Phase::Working { until, .. } => Some(until),
            Phase::Deciding { until } => Some(self.fill_event().map_or(until, |at| at.min(until))),
            Phase::Idle => {
                self.fill_event().or_else(|| self.idle_destage_at()).or_else(|| self.idle_clean_at())
            }
        }
    }

    fn mechanical_step(&mut self, now: u64) {
        match self.phase {
            Phase::Working { job, run, .. } => self.finish_job(job, run, now),
            // The pick first: it may need the very data whose last sector passes now.
            Phase::Deciding { until } if until <= now => self.decide(now),
            Phase::Deciding { .. } => self.fill_next(now),
            Phase::Idle => {
                self.fill_next(now);
                self.kick(now);
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.in_device > 0 || self.fill.is_some() || !matches!(self.phase, Phase::Idle)
    }
}

impl Device for Disk {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&mut self, mut command: Command, now: u64) {
        command.sector = command.sector.min(self.limits.sectors - 1);
        self.in_device += 1;
        self.number += 1;
        self.last_command_at = now;
        self.busy.set(true, now);
        match command.op {
            Op::Read => self.submit_read(command, now),
            Op::Write => self.submit_write(command, now),
            Op::Flush => self.submit_flush(command, now),
            Op::Discard => {
                let at = self.through_electronics(now, self.settings.overheads.write_hit_ns, 0);
                self.done.push(at, command.tag);
            }
        }
        self.kick(now);
    }

    fn next_event(&self) -> Option<u64> {
        match (self.done.next_at(), self.mechanical_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        loop {
            // Completions first: they never depend on a later mechanical step.
            let step = self.mechanical_event().filter(|&at| at <= now);
            let until = step.unwrap_or(now);
            while let Some((at_ns, tag)) = self.done.pop_until(until) {
                self.in_device -= 1;
                self.busy.set(self.is_busy(), at_ns);
                // One arm serves one at a time: this one since it was done with the one before.
                done.push(Completion { tag, at_ns, began_ns: self.last_done_at });
                self.last_done_at = at_ns;
            }
            let Some(at) = step else { break };
            self.mechanical_step(at);
            self.busy.set(self.is_busy(), at);
        }
        self.busy.set(self.is_busy(), now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}
