//! What the heads of a shingled drive do: direct writes, entries of the log, cleaning, and reads that gather their pieces.

use super::geometry::Heads;
use super::mechanics::Run;
use super::order::Candidate;
use super::{Disk, Job, Phase, Piece};

impl Disk {
    /// A command of a shingled drive that does not take the ordinary way: a read of the log, or a write past the buffer.
    pub(super) fn start_shingled(&mut self, picked: &Candidate, tag: u32, now: u64) -> bool {
        let end = picked.sector + u64::from(picked.sectors);
        let Some(media) = &mut self.media else { return false };
        if !picked.write {
            if !media.overlaps(picked.sector, end) {
                return false;
            }
            let pieces = media.pieces(picked.sector, end);
            self.pass_over(&pieces, false, Job::Gather { tag, end, sectors: picked.sectors }, now);
            return true;
        }
        if media.direct(picked.sector).is_some_and(|room| room >= u64::from(picked.sectors)) {
            media.written_directly(picked.sector, end);
            return false;
        }
        let sectors = end - picked.sector;
        if !media.has_room(sectors) {
            // The write comes again when there is room.
            self.waiting.push(*picked);
            self.waiting_tags.push(tag);
            self.start_cleaning(now);
            return true;
        }
        let place = media.next_entry(sectors);
        media.append(picked.sector, end);
        self.pass_over(&[Piece { sector: place, sectors }], true, Job::Write { tag, end }, now);
        true
    }

    /// Written data goes to its band, or to the log together with other data; or room is made for it.
    pub(super) fn destage_shingled(&mut self, index: usize, now: u64) {
        let Some(media) = &mut self.media else { return };
        let extent = self.dirty.extents()[index];
        if let Some(room) = media.direct(extent.sector) {
            // A part is at most a MiB.
            let part =
                self.dirty.begin_part(index, room.min(u64::from(u32::MAX)) as u32, &self.mechanics.geometry);
            self.go(&part, Job::Destage { end: part.sector + u64::from(part.sectors) }, now);
            return;
        }
        if !media.has_room(u64::from(extent.sectors).min(media.spec.entry)) {
            self.start_cleaning(now);
            return;
        }
        let (mut sectors, mut end) = (0, extent.sector);
        let mut index = index;
        // The extents behind it, then those before: an entry has room for all of them.
        while let Some(next) = self.dirty.extents().get(index).copied() {
            // Cut at a band's start, where a stream may leave the log.
            let in_band = media.spec.band - next.sector % media.spec.band;
            let room = media.spec.entry.saturating_sub(sectors).min(in_band);
            if room == 0
                || media.direct(next.sector).is_some()
                || !media.has_room(sectors + room.min(u64::from(next.sectors)))
            {
                break;
            }
            let part = self.dirty.begin_part(index, room as u32, &self.mechanics.geometry);
            sectors += u64::from(part.sectors);
            end = part.sector + u64::from(part.sectors);
            if index >= self.dirty.extents().len() {
                index = 0;
            }
        }
        let place = media.next_entry(sectors);
        // The electronics have to put the entry together: the platter turns meanwhile.
        let ready = now + self.settings.overheads.miss_ns;
        self.pass_over(&[Piece { sector: place, sectors }], true, Job::Append { end }, ready);
    }

    /// What was being written has its place.
    pub(super) fn written_shingled(&mut self, appended: bool) {
        let Some(media) = &mut self.media else { return };
        for part in self.dirty.writing() {
            let end = part.sector + u64::from(part.sectors);
            if appended {
                media.append(part.sector, end);
            } else {
                media.written_directly(part.sector, end);
            }
        }
    }

    /// Clean the band of the oldest write in the log: read its writes and the band, write the band.
    pub(super) fn start_cleaning(&mut self, now: u64) {
        let Some(media) = &mut self.media else { return };
        let Some((first, end)) = media.oldest_band() else { return };
        let end = end.min(self.limits.sectors);
        let log = media.spec.first;
        let mut pieces: Vec<Piece> =
            media.pieces(first, end).into_iter().filter(|piece| piece.sector >= log).collect();
        let band = Piece { sector: first, sectors: end - first };
        pieces.push(band);
        let (until, heads) = self.passed_over(&pieces, false, now);
        self.heads = heads;
        self.pass_over(&[band], true, Job::Clean { first, end }, until);
    }

    /// The heads go over these pieces in turn.
    fn pass_over(&mut self, pieces: &[Piece], write: bool, job: Job, now: u64) {
        self.stop_fill(now);
        self.full = None;
        let from = self.heads;
        let mut last: Option<Run> = None;
        let mut at = now;
        for piece in pieces {
            let heads = last.map_or(from, |run| run.heads);
            let place = self.mechanics.geometry.place(piece.sector);
            let begins = self.mechanics.reach(at, heads, &place, write);
            let (until, run) = self.mechanics.transfer(begins, &place, piece.sector + piece.sectors);
            (at, last) = (until, Some(run));
        }
        if let Some(run) = last {
            self.phase = Phase::Working { until: at, job, run };
        }
    }

    /// When the heads have gone over these pieces, and where they are then.
    fn passed_over(&self, pieces: &[Piece], write: bool, now: u64) -> (u64, Heads) {
        let start = (now, self.heads);
        pieces.iter().fold(start, |(at, heads), piece| {
            let place = self.mechanics.geometry.place(piece.sector);
            let begins = self.mechanics.reach(at, heads, &place, write);
            let (until, run) = self.mechanics.transfer(begins, &place, piece.sector + piece.sectors);
            (until, run.heads)
        })
    }
}
