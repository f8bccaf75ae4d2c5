//! Bios that found no request slot: a line for each group and class, as the core counts them.

use std::collections::VecDeque;

use fairlift_core::{Bio, GroupId};
use rustc_hash::FxHashMap;

/// The lines.
#[derive(Debug, Default)]
pub(super) struct Waiters(FxHashMap<(GroupId, bool), VecDeque<Bio>>);

impl Waiters {
    /// `bio` of `group` waits, behind those who do.
    pub(super) fn push(&mut self, group: GroupId, bio: Bio) {
        self.0.entry((group, bio.is_sync())).or_default().push_back(bio);
    }

    /// It found its slot gone, and is first again.
    pub(super) fn push_front(&mut self, key: (GroupId, bool), bio: Bio) {
        self.0.entry(key).or_default().push_front(bio);
    }

    /// Who waits longest there.
    pub(super) fn pop(&mut self, key: (GroupId, bool)) -> Option<Bio> {
        let line = self.0.get_mut(&key)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.0.remove(&key);
        }
        first
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(VecDeque::len).sum()
    }
}
