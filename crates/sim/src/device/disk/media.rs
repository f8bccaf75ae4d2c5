//! A shingled drive's media cache: a log on the medium for writes that do not go on from band to band, and the cleaning of bands.
//!
//! Tracks of a shingled drive overlap, so a *band* of them is only written from its start on. A write that begins at a band's start,
//! or goes on where the last such write ended, goes to its band. Any other is appended to the log, several at a time as one
//! *entry*. When the log or its map is full, the band of the oldest write in it is *cleaned*: its writes are read from the log, the
//! band is read and written. A drive that has been idle for a while cleans by itself.
//!
//! Sources: Aghayev and Desnoyers, "Skylight", FAST '15 (a persistent cache of one region, static mapping of bands, cleaning by
//! read-modify-write of the band of the oldest write; remembered, not read again).
//!
//! Not modelled: a band that a stream leaves half written (real drives rewrite its rest), the map's own writes, and a place for
//! the log at the outermost tracks: it lies behind the last sector.

use std::collections::{BTreeMap, VecDeque};

/// Where a piece of a read lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) sector: u64,
    pub(super) sectors: u64,
}

/// Its sizes, sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaSpec {
    /// First sector of the log, behind all that the host sees, and its length.
    pub(super) first: u64,
    pub(super) sectors: u64,
    /// Writes that its map holds.
    pub(super) writes_max: usize,
    pub(super) band: u64,
    /// Longest entry.
    pub(super) entry: u64,
    /// Idle time after which the drive cleans by itself, nanoseconds.
    pub(super) idle_ns: u64,
}

/// The log, and what of the drive's sectors lies in it.
#[derive(Clone, Debug)]
pub(super) struct MediaCache {
    pub(super) spec: MediaSpec,
    /// First sector -> (first sector behind, its place in the log); they do not overlap.
    map: BTreeMap<u64, (u64, u64)>,
    /// Bands in the order in which they were first written to.
    order: VecDeque<u64>,
    used: u64,
    head: u64,
    /// Where a write goes to its band, going on from the last one that did.
    direct_next: u64,
}

impl MediaCache {
    pub(super) fn new(spec: MediaSpec) -> MediaCache {
        MediaCache {
            spec,
            map: BTreeMap::new(),
            order: VecDeque::new(),
            used: 0,
            head: 0,
            direct_next: u64::MAX,
        }
    }

    /// May `sector` be written in its band? Then how many sectors at most: up to the band's end.
    pub(super) fn direct(&self, sector: u64) -> Option<u64> {
        let band = self.spec.band;
        (sector == self.direct_next || sector.is_multiple_of(band)).then(|| band - sector % band)
    }

    /// `sector..end` was written in its band.
    pub(super) fn written_directly(&mut self, sector: u64, end: u64) {
        self.forget(sector, end);
        self.direct_next = end;
    }

    /// Is there room for a write of so many sectors? An empty log takes any.
    pub(super) fn has_room(&self, sectors: u64) -> bool {
        self.map.is_empty()
            || (self.used + sectors <= self.spec.sectors && self.map.len() < self.spec.writes_max)
    }

    /// Is nothing in it?
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Where the next entry of so many sectors goes: it does not wrap.
    pub(super) fn next_entry(&mut self, sectors: u64) -> u64 {
        if self.head + sectors > self.spec.sectors {
            self.head = 0;
        }
        self.spec.first + self.head
    }

    /// `sector..end` was appended.
    pub(super) fn append(&mut self, sector: u64, end: u64) {
        self.forget(sector, end);
        let mut at = sector;
        // A write over several bands is in the map once for each: they are cleaned apart.
        while at < end {
            let band = at / self.spec.band;
            let until = end.min((band + 1) * self.spec.band);
            if self.in_band(band).next().is_none() {
                self.order.push_back(band);
            }
            self.map.insert(at, (until, self.spec.first + self.head));
            self.head = (self.head + until - at) % self.spec.sectors;
            self.used += until - at;
            at = until;
        }
    }

    /// The band to clean next, as first sector and first sector behind it.
    pub(super) fn oldest_band(&mut self) -> Option<(u64, u64)> {
        while let Some(&band) = self.order.front() {
            if self.in_band(band).next().is_some() {
                return Some((band * self.spec.band, (band + 1) * self.spec.band));
            }
            self.order.pop_front();
        }
        None
    }

    /// A band was rewritten: nothing of it is in the log any more.
    pub(super) fn cleaned(&mut self, first: u64, end: u64) {
        self.forget(first, end);
        self.order.retain(|&band| band * self.spec.band != first);
    }

    /// Does it hold any of `sector..end`?
    pub(super) fn overlaps(&self, sector: u64, end: u64) -> bool {
        self.map.range(..end).next_back().is_some_and(|(_, &(behind, _))| behind > sector)
    }

    /// The pieces of `sector..end` in order: in the log, or in their bands.
    pub(super) fn pieces(&self, sector: u64, end: u64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = sector;
        for (&first, &(behind, place)) in self.overlapping(sector, end) {
            let (from, until) = (first.max(sector), behind.min(end));
            if at < from {
                pieces.push(Piece { sector: at, sectors: from - at });
            }
            pieces.push(Piece { sector: place + (from - first), sectors: until - from });
            at = until;
        }
        if at < end {
            pieces.push(Piece { sector: at, sectors: end - at });
        }
        pieces
    }

    fn in_band(&self, band: u64) -> impl Iterator<Item = (&u64, &(u64, u64))> {
        self.map.range(band * self.spec.band..(band + 1) * self.spec.band)
    }

    fn overlapping(&self, sector: u64, end: u64) -> impl Iterator<Item = (&u64, &(u64, u64))> {
        let before = self.map.range(..sector).next_back().filter(|(_, at)| at.0 > sector);
        before.into_iter().chain(self.map.range(sector..end))
    }

    /// What it holds of `sector..end` is old.
    fn forget(&mut self, sector: u64, end: u64) {
        let old: Vec<(u64, (u64, u64))> =
            self.overlapping(sector, end).map(|(first, at)| (*first, *at)).collect();
        for (first, (behind, place)) in old {
            self.map.remove(&first);
            self.used -= behind - first;
            if first < sector {
                self.map.insert(first, (sector, place));
                self.used += sector - first;
            }
            if behind > end {
                self.map.insert(end, (behind, place + (end - first)));
                self.used += behind - end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> MediaCache {
        let spec =
            MediaSpec { first: 10_000, sectors: 100, writes_max: 4, band: 1000, entry: 64, idle_ns: 0 };
        MediaCache::new(spec)
    }

    fn pieces(cache: &MediaCache, sector: u64, end: u64) -> Vec<(u64, u64)> {
        cache.pieces(sector, end).iter().map(|piece| (piece.sector, piece.sectors)).collect()
    }

    #[test]
    fn what_was_appended_is_read_from_the_log() {
        let mut cache = cache();
        cache.append(500, 520);
        cache.append(700, 708);
        assert_eq!(pieces(&cache, 490, 530), [(490, 10), (10_000, 20), (520, 10)]);
        cache.append(505, 510);
        assert_eq!(pieces(&cache, 500, 520), [(10_000, 5), (10_028, 5), (10_010, 10)]);
        assert!(cache.overlaps(519, 600) && !cache.overlaps(520, 700));
        assert_eq!(cache.used, 28);
    }

    #[test]
    fn bands_are_cleaned_in_the_order_in_which_they_were_written_to() {
        let mut cache = cache();
        cache.append(5500, 5510);
        cache.append(1990, 2010);
        assert_eq!(cache.oldest_band(), Some((5000, 6000)));
        cache.cleaned(5000, 6000);
        assert_eq!(cache.oldest_band(), Some((1000, 2000)));
        cache.written_directly(1000, 2000);
        assert_eq!(cache.oldest_band(), Some((2000, 3000)), "overwritten bands need no cleaning");
        assert!(!cache.is_empty() && cache.has_room(90) && !cache.has_room(91));
    }

    #[test]
    fn a_stream_goes_to_its_bands_from_a_band_s_start_on() {
        let mut cache = cache();
        assert_eq!((cache.direct(2000), cache.direct(2001)), (Some(1000), None));
        cache.written_directly(2000, 2600);
        assert_eq!(cache.direct(2600), Some(400));
    }
}
