//! The drive's buffer: segments of neighbouring sectors, the least recently used one taken for new data.

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// First sector, and first behind; equal when empty.
    pub(super) first: u64,
    pub(super) end: u64,
    used: u64,
}

/// What the buffer has of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hit {
    /// All of it, in this segment.
    Whole(usize),
    /// Its first sectors.
    Partial(usize),
    Miss,
}

/// All segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    segments: Vec<Segment>,
    /// Sectors a segment holds.
    sectors: u64,
    /// The last segment is for writes only.
    write_own: bool,
    clock: u64,
}

impl Segments {
    pub(super) fn new(count: usize, sectors: u64, write_own: bool) -> Segments {
        let segments = vec![Segment::default(); count];
        Segments { segments, sectors, write_own: write_own && count > 1, clock: 0 }
    }

    /// Sectors a segment holds.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn get(&self, segment: usize) -> Segment {
        self.segments[segment]
    }

    /// The segment that has the most of `first..end` from its front on. `reading` is one that is being filled just
    /// now: if the request starts with the very sector that comes next, it counts, too.
    pub(super) fn find(&self, first: u64, end: u64, reading: Option<usize>) -> Hit {
        let mut hit = Hit::Miss;
        for (index, segment) in self.segments.iter().enumerate() {
            let inside = segment.first <= first && first < segment.end;
            if inside && end <= segment.end {
                return Hit::Whole(index);
            }
            if inside || (reading == Some(index) && first == segment.end) {
                hit = Hit::Partial(index);
            }
        }
        hit
    }

    /// Mark as used just now.
    pub(super) fn touch(&mut self, segment: usize) {
        self.clock += 1;
        self.segments[segment].used = self.clock;
    }

    /// An empty segment at `first` for new data: one that is empty already, else the least recently used.
    pub(super) fn take(&mut self, first: u64, write: bool) -> usize {
        let own = self.segments.len() - 1;
        let segment = if self.write_own && write {
            own
        } else {
            let usable = if self.write_own { own } else { own + 1 };
            let order = |&index: &usize| {
                let segment = &self.segments[index];
                (segment.first != segment.end, segment.used)
            };
            (0..usable).min_by_key(order).unwrap_or(0)
        };
        self.segments[segment] = Segment { first, end: first, used: 0 };
        self.touch(segment);
        segment
    }

    /// The segment now has everything up to `end`, as far as it has room: the first sectors make place.
    pub(super) fn grow(&mut self, segment: usize, end: u64) {
        let room = self.sectors;
        let segment = &mut self.segments[segment];
        segment.end = segment.end.max(end);
        segment.first = segment.first.max(segment.end.saturating_sub(room));
    }

    /// Sectors before the segment's first came by, too.
    pub(super) fn grow_front(&mut self, segment: usize, first: u64) {
        let room = self.sectors;
        let segment = &mut self.segments[segment];
        segment.first = first.max(segment.end.saturating_sub(room)).min(segment.first);
    }

    /// The segment that begins with data of `first..end` keeps only what lies behind.
    pub(super) fn drop_front(&mut self, first: u64, end: u64) {
        for segment in &mut self.segments {
            if (segment.first..segment.end).contains(&first) {
                segment.first = end.min(segment.end);
            }
        }
    }

    /// Data that is overwritten elsewhere is worthless; the segment with it is emptied.
    pub(super) fn forget(&mut self, first: u64, end: u64, but: Option<usize>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if first < segment.end && segment.first < end && Some(index) != but {
                segment.end = segment.first;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_whole_partial_or_at_the_point_being_read() {
        let mut segments = Segments::new(2, 100, false);
        let a = segments.take(1000, false);
        segments.grow(a, 1050);
        assert_eq!(segments.find(1000, 1050, None), Hit::Whole(a));
        assert_eq!(segments.find(1040, 1060, None), Hit::Partial(a));
        assert_eq!(segments.find(1050, 1060, None), Hit::Miss);
        assert_eq!(segments.find(1050, 1060, Some(a)), Hit::Partial(a));
        segments.grow(a, 1150);
        assert_eq!(segments.find(1049, 1051, None), Hit::Miss, "the first sectors made place");
        segments.grow_front(a, 900);
        assert_eq!(segments.get(a).first, 1050, "a full segment has no room at its front");
    }

    #[test]
    fn empty_segments_go_before_old_ones_and_writes_have_their_own() {
        let mut segments = Segments::new(3, 100, true);
        let a = segments.take(0, false);
        segments.grow(a, 10);
        let b = segments.take(500, false);
        segments.grow(b, 510);
        assert_ne!(a, b);
        assert_eq!(segments.take(900, true), 2);
        segments.touch(a);
        assert_eq!(segments.take(700, false), b);
        segments.forget(5, 6, None);
        assert_eq!(segments.take(800, false), a, "emptied by an overwrite");
    }
}
