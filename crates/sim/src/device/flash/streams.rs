//! Which commands go on where another one ended.

/// Streams a drive keeps apart.
const STREAMS: usize = 8;

/// Where the latest commands of each stream ended, the latest stream first.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    ends: [u64; STREAMS],
}

impl Streams {
    /// Does `start..end` go on where one of them ended? It is the latest one then.
    pub(super) fn follows(&mut self, start: u64, end: u64) -> bool {
        let known = self.ends.iter().position(|&at| at == start && at > 0);
        let place = known.unwrap_or(STREAMS - 1);
        self.ends[..=place].rotate_right(1);
        self.ends[0] = end;
        known.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_followed_apart_and_forgotten_after_eight_others() {
        let mut streams = Streams::default();
        assert!(!streams.follows(0, 8), "the first of all follows nothing");
        assert!(!streams.follows(100, 108));
        assert!(streams.follows(8, 16) && streams.follows(108, 116));
        (0..8).for_each(|n| assert!(!streams.follows(1000 + 100 * n, 1001 + 100 * n)));
        assert!(!streams.follows(16, 24), "eight others came between");
    }
}
