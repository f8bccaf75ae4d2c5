//! Whose a file is when files, not pages, belong to groups: who wrote most of it of late.
//!
//! Source: `inode_switch_wbs` and the votes before it in Linux 5.4 `fs/fs-writeback.c`. There a vote by Boyer and Moore names
//! the majority; here the votes are counted, which names the same one whenever there is one.

use fairlift_core::SECOND;

use crate::group::Cgroup;

/// Places in the history, and how long a round has to last to fill one.
const PLACES: u64 = 16;
const PLACE_NS: u64 = 2 * SECOND / PLACES;
/// Places one round fills at most.
const PLACES_OF_ROUND: u64 = PLACES / 2;

/// A file's owner and the votes about it.
#[derive(Debug, Default)]
pub(super) struct InodeOwner {
    /// No group before the first page was made dirty.
    owner: Option<Cgroup>,
    /// Pages of this round of writeback, by who made them dirty.
    votes: Vec<(Cgroup, u64)>,
    /// One bit for each place, the latest lowest: did most of the pages belong to another?
    history: u16,
    average_ns: u64,
}

impl InodeOwner {
    /// Whose it is.
    pub(super) fn owner(&self) -> Option<Cgroup> {
        self.owner
    }

    /// `group` made a page dirty: the first who does owns the file.
    pub(super) fn dirtied(&mut self, group: Cgroup) {
        self.owner.get_or_insert(group);
    }

    /// `pages` of `group` are written.
    pub(super) fn vote(&mut self, group: Cgroup, pages: u64) {
        match self.votes.iter_mut().find(|(voter, _)| *voter == group) {
            Some((_, votes)) => *votes += pages,
            None => self.votes.push((group, pages)),
        }
    }

    /// A round of writeback of this file is over after `took_ns`.
    pub(super) fn round_over(&mut self, took_ns: u64) {
        let all: u64 = self.votes.iter().map(|(_, votes)| votes).sum();
        let majority = self.votes.iter().find(|(_, votes)| 2 * votes > all).map(|(group, _)| *group);
        self.votes.clear();
        if all == 0 {
            return;
        }
        self.average_ns = self.average_ns - self.average_ns / 8 + took_ns / 8;
        if took_ns < self.average_ns / 8 {
            return;
        }
        let places = took_ns.div_ceil(PLACE_NS).clamp(1, PLACES_OF_ROUND);
        let foreign = majority.filter(|group| Some(*group) != self.owner);
        self.history <<= places;
        if let Some(group) = foreign {
            self.history |= (1 << places) - 1;
            if u64::from(self.history.count_ones()) > PLACES / 2 {
                (self.owner, self.history) = (Some(group), 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Cgroup = Cgroup(1);
    const B: Cgroup = Cgroup(2);

    fn round(file: &mut InodeOwner, pages: &[(Cgroup, u64)], took_ns: u64) {
        pages.iter().for_each(|(group, pages)| file.vote(*group, *pages));
        file.round_over(took_ns);
    }

    #[test]
    fn a_file_changes_hands_after_more_than_half_of_two_seconds() {
        let mut file = InodeOwner::default();
        file.dirtied(A);
        for _ in 0..8 {
            round(&mut file, &[(A, 1), (B, 5)], PLACE_NS);
        }
        assert_eq!(file.owner(), Some(A), "eight of sixteen are not more than half");
        round(&mut file, &[(B, 5)], PLACE_NS);
        assert_eq!(file.owner(), Some(B));
    }

    #[test]
    fn one_long_round_is_not_enough_and_without_majority_nothing_changes() {
        let mut file = InodeOwner::default();
        file.dirtied(A);
        round(&mut file, &[(B, 9)], 60 * SECOND);
        assert_eq!(file.owner(), Some(A));
        for _ in 0..100 {
            round(&mut file, &[(A, 1), (B, 1)], PLACE_NS);
        }
        assert_eq!(file.owner(), Some(A));
    }
}
