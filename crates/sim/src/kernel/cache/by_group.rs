//! The page cache's accounts by group: whose pages are dirty, on their way, or written.

use std::ops::Range;

use super::inode_owner::InodeOwner;
use super::owners::Owners;
use crate::group::{Cgroup, Tracking};
use crate::kernel::files::{FileId, PAGE};

/// Pages of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Dirty, and on their way to the device.
    dirty: u64,
    writing: u64,
    /// Since when there are any of these, nanoseconds.
    since_ns: u64,
    /// Since the run's or the count's start: became dirty, and reached the device.
    dirtied: u64,
    written: u64,
}

/// Whose pages were sent on their way, in the order of the file.
pub(crate) type Dirtiers = Vec<(Range<u64>, Cgroup)>;

/// Accounts by group, and owners by file.
#[derive(Debug)]
pub(super) struct ByGroup {
    tracking: Tracking,
    accounts: Vec<Account>,
    files: Vec<FileOwners>,
}

/// Whose a file and its dirty pages are.
#[derive(Debug, Default)]
struct FileOwners {
    pages: Owners,
    whole: InodeOwner,
}

impl ByGroup {
    /// For so many groups, the root included.
    pub(super) fn new(groups: usize, tracking: Tracking) -> ByGroup {
        ByGroup { tracking, accounts: vec![Account::default(); groups], files: Vec::new() }
    }

    fn owners(&mut self, file: FileId) -> &mut FileOwners {
        if self.files.len() <= file.0 {
            self.files.resize_with(file.0 + 1, FileOwners::default);
        }
        &mut self.files[file.0]
    }

    /// `page` became dirty by `group`.
    pub(super) fn dirtied(&mut self, file: FileId, page: u64, group: Cgroup, now: u64) {
        let owners = self.owners(file);
        owners.pages.insert(page, group);
        owners.whole.dirtied(group);
        let account = &mut self.accounts[group.index()];
        if account.dirty + account.writing == 0 {
            account.since_ns = now;
        }
        account.dirty += 1;
        account.dirtied += 1;
    }

    /// Dirty `pages` need not be written any more.
    pub(super) fn forgotten(&mut self, file: FileId, pages: Range<u64>) {
        for (part, group) in self.owners(file).pages.take(pages) {
            self.accounts[group.index()].dirty -= part.end - part.start;
        }
    }

    /// Dirty `pages` are sent to the device.
    pub(super) fn sent(&mut self, file: FileId, pages: Range<u64>) -> Dirtiers {
        let dirtiers = self.owners(file).pages.take(pages);
        for (part, group) in &dirtiers {
            self.owners(file).whole.vote(*group, part.end - part.start);
            let account = &mut self.accounts[group.index()];
            account.dirty -= part.end - part.start;
            account.writing += part.end - part.start;
        }
        dirtiers
    }

    /// Pages reached the device.
    pub(super) fn arrived(&mut self, dirtiers: &Dirtiers) {
        for (part, group) in dirtiers {
            let account = &mut self.accounts[group.index()];
            account.writing -= part.end - part.start;
            account.written += part.end - part.start;
        }
    }

    /// A round of writeback of `file` is over.
    pub(super) fn round_over(&mut self, file: FileId, took_ns: u64) {
        self.owners(file).whole.round_over(took_ns);
    }

    /// For whom a bio of `file` that begins with `page` is submitted; `None`: for who submits it.
    pub(super) fn payer(&self, file: FileId, dirtiers: &Dirtiers, page: u64) -> Option<Cgroup> {
        match self.tracking {
            Tracking::Off => None,
            Tracking::Page => dirtiers.iter().find(|(part, _)| part.contains(&page)).map(|(_, group)| *group),
            Tracking::Inode => self.files.get(file.0)?.whole.owner(),
        }
    }

    pub(super) fn unwritten_since(&self, group: Cgroup) -> Option<u64> {
        let account = &self.accounts[group.index()];
        (account.dirty + account.writing > 0).then_some(account.since_ns)
    }

    pub(super) fn bytes_of(&self, group: Cgroup) -> (u64, u64) {
        let account = &self.accounts[group.index()];
        (account.dirtied * PAGE, account.written * PAGE)
    }

    pub(super) fn restart(&mut self) {
        for account in &mut self.accounts {
            (account.dirtied, account.written) = (0, 0);
        }
    }
}
