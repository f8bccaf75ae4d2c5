//! The drive's buffer: segments of what was read, extents of what is still to be written.

use super::geometry::Geometry;
use super::order::Candidate;

/// Segments of read data, the least recently used one replaced.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    /// First sector, and first sector behind, of each; equal when empty.
    ranges: Vec<(u64, u64)>,
    used: Vec<u64>,
    clock: u64,
    capacity: u64,
}

impl Segments {
    /// `count` segments of `capacity` sectors.
    pub(super) fn new(count: usize, capacity: u64) -> Segments {
        Segments { ranges: vec![(0, 0); count], used: vec![0; count], clock: 0, capacity }
    }

    /// Sectors a segment holds.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn range(&self, segment: usize) -> (u64, u64) {
        self.ranges[segment]
    }

    /// The segment that holds all of `sector..end`.
    #[inline]
    pub(super) fn find(&self, sector: u64, end: u64) -> Option<usize> {
        self.ranges.iter().position(|&(first, last)| first <= sector && end <= last)
    }

    /// Mark as used just now.
    #[inline]
    pub(super) fn touch(&mut self, segment: usize) {
        self.clock += 1;
        self.used[segment] = self.clock;
    }

    /// Take up `sector..end` read from the medium: on the segment it continues, else on the least recently used.
    #[inline]
    pub(super) fn take_up(&mut self, sector: u64, end: u64) -> usize {
        let continued =
            self.ranges.iter().position(|&(first, last)| first <= sector && sector <= last && last > 0);
        let segment = match continued {
            Some(segment) => segment,
            None => {
                let oldest = (0..self.used.len()).min_by_key(|&segment| self.used[segment]).unwrap_or(0);
                self.ranges[oldest] = (sector, sector);
                oldest
            }
        };
        self.touch(segment);
        self.grow(segment, end);
        segment
    }

    /// The segment now holds everything up to `end`, as far as it has room: the oldest sectors make place.
    #[inline]
    pub(super) fn grow(&mut self, segment: usize, end: u64) {
        let (first, last) = &mut self.ranges[segment];
        *last = end.max(*last);
        *first = (*first).max(last.saturating_sub(self.capacity));
    }

    /// Sectors that are overwritten are no longer in a segment.
    pub(super) fn forget(&mut self, sector: u64, end: u64, but: Option<usize>) {
        for (index, range) in self.ranges.iter_mut().enumerate() {
            if sector < range.1 && range.0 < end && Some(index) != but {
                *range = (0, 0);
            }
        }
    }
}

/// Written data that the medium does not have yet: extents in order of sector, neighbours joined.
#[derive(Clone, Debug)]
pub(super) struct Dirty {
    /// As candidates for the firmware's order. `number` is the oldest write in the extent.
    extents: Vec<Candidate>,
    extents_max: usize,
    sectors: u64,
    sectors_max: u64,
    /// Writing back should not wait for idle time when it holds more than so many sectors or extents.
    urgent: (u64, usize),
    /// What is being written at the moment.
    writing: Vec<Candidate>,
}

/// Longest piece written at a time, sectors: reads are not held up for longer than about a revolution.
const WRITE_SECTORS_MAX: u32 = 2048;

impl Dirty {
    /// `drain_from` is the share of its room from which writing back is urgent.
    pub(super) fn new(extents_max: usize, sectors_max: u64, drain_from: f64) -> Dirty {
        let extents = Vec::with_capacity(extents_max + 1);
        let urgent = ((sectors_max as f64 * drain_from) as u64, (extents_max as f64 * drain_from) as usize);
        Dirty { extents, extents_max, sectors: 0, sectors_max, urgent, writing: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    pub(super) fn extents(&self) -> &[Candidate] {
        &self.extents
    }

    /// Is it so full that writing back should not wait for idle time?
    pub(super) fn urgent(&self) -> bool {
        self.sectors > self.urgent.0 || self.extents.len() > self.urgent.1
    }

    /// Is there room for a write? An empty cache takes any.
    pub(super) fn has_room(&self, sectors: u32) -> bool {
        let held = self.sectors + self.writing.iter().map(|w| u64::from(w.sectors)).sum::<u64>();
        held == 0 || (held + u64::from(sectors) <= self.sectors_max && self.extents.len() < self.extents_max)
    }

    /// Does it hold all of `sector..end`?
    #[inline]
    pub(super) fn covers(&self, sector: u64, end: u64) -> bool {
        let holds = |c: &Candidate| c.sector <= sector && end <= c.sector + u64::from(c.sectors);
        if self.extents.is_empty() && self.writing.is_empty() {
            return false;
        }
        let after = self.extents.partition_point(|c| c.sector <= sector);
        self.writing.iter().any(holds) || (after > 0 && holds(&self.extents[after - 1]))
    }

    /// Accept a write, number `number`, at `now`.
    pub(super) fn insert(&mut self, sector: u64, sectors: u32, now: u64, number: u64, geometry: &Geometry) {
        let (mut first, mut end) = (sector, sector + u64::from(sectors));
        let (mut since, mut oldest) = (now, number);
        // Extents that touch or overlap the write: all between the first that ends at or behind its start …
        let from = self.extents.partition_point(|c| c.sector + u64::from(c.sectors) < first);
        // … and the last that starts at or before its end.
        let mut to = from;
        while let Some(c) = self.extents.get(to).filter(|c| c.sector <= end) {
            let c_end = c.sector + u64::from(c.sectors);
            (first, end) = (first.min(c.sector), end.max(c_end));
            (since, oldest) = (since.min(c.since), oldest.min(c.number));
            self.sectors -= u64::from(c.sectors);
            to += 1;
        }
        self.sectors += end - first;
        // The cache's size and the longest command bound it far below 2^32.
        let length = (end - first) as u32;
        let extent =
            |place| Candidate { sector: first, sectors: length, write: true, since, number: oldest, place };
        if from == to {
            self.extents.insert(from, extent(geometry.place(first)));
            return;
        }
        // The common case, a stream growing at its end, keeps its start and with it its place.
        let old = &self.extents[from];
        let place = if old.sector == first { old.place } else { geometry.place(first) };
        self.extents[from] = extent(place);
        self.extents.drain(from + 1..to);
    }

    /// Begin to write the extent at `index`, or its first part.
    pub(super) fn begin(&mut self, index: usize, geometry: &Geometry) -> Candidate {
        self.begin_part(index, WRITE_SECTORS_MAX, geometry)
    }

    /// The same, with a part of at most `max` sectors.
    pub(super) fn begin_part(&mut self, index: usize, max: u32, geometry: &Geometry) -> Candidate {
        let max = max.min(WRITE_SECTORS_MAX);
        let mut part = self.extents[index];
        if part.sectors <= max {
            self.extents.remove(index);
        } else {
            part.sectors = max;
            let rest = &mut self.extents[index];
            rest.sector += u64::from(max);
            rest.sectors -= max;
            rest.place = geometry.place(rest.sector);
        }
        self.sectors -= u64::from(part.sectors);
        self.writing.push(part);
        part
    }

    /// What is being written.
    pub(super) fn writing(&self) -> &[Candidate] {
        &self.writing
    }

    /// What was being written is on the medium.
    pub(super) fn written(&mut self) {
        self.writing.clear();
    }

    /// The oldest write not on the medium.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.extents.iter().chain(&self.writing).map(|c| c.number).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Layout;
    use super::*;

    fn ranges(dirty: &Dirty) -> Vec<(u64, u32)> {
        dirty.extents.iter().map(|c| (c.sector, c.sectors)).collect()
    }

    #[test]
    fn neighbours_and_overlaps_are_joined() {
        let geometry = Geometry::new(Layout::Cylinder, 1, 1_000_000, &[(1000, 1000)], 0.0, 0.0);
        let mut dirty = Dirty::new(8, 1000, 0.5);
        for (number, (sector, sectors)) in [(100, 10), (120, 10), (110, 10)].into_iter().enumerate() {
            dirty.insert(sector, sectors, 0, number as u64, &geometry);
        }
        assert_eq!(ranges(&dirty), [(100, 30)]);
        dirty.insert(95, 10, 0, 3, &geometry);
        dirty.insert(500, 1, 0, 4, &geometry);
        assert_eq!(ranges(&dirty), [(95, 35), (500, 1)]);
        assert_eq!(dirty.sectors, 36);
        assert!(dirty.covers(95, 130) && !dirty.covers(94, 96) && !dirty.covers(129, 131));
        assert_eq!(dirty.oldest(), Some(0));
        dirty.begin(0, &geometry);
        assert!(dirty.covers(100, 110), "data on its way is still in the buffer");
        assert_eq!(dirty.oldest(), Some(0));
        dirty.written();
        assert_eq!(dirty.oldest(), Some(4));
    }

    #[test]
    fn the_least_recently_used_segment_is_replaced() {
        let mut segments = Segments::new(2, 100);
        let a = segments.take_up(0, 10);
        let b = segments.take_up(1000, 1010);
        assert_eq!(segments.take_up(10, 20), a, "a stream goes on in its segment");
        assert_eq!(segments.take_up(5000, 5010), b);
        assert_eq!(segments.find(0, 20), Some(a));
        assert_eq!(segments.find(1000, 1010), None);
        segments.grow(a, 150);
        assert_eq!(segments.range(a), (50, 150));
        segments.forget(60, 61, None);
        assert_eq!(segments.find(140, 150), None);
    }
}
