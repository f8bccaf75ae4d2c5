//! The page cache's accounts by group: whose pages are dirty, in flight, or written.

use std::collections::BTreeMap;
use std::ops::Range;

use super::inode_owner::InodeOwner;
use super::owners::Owners;
use crate::group::{Cgroup, Tracking};
use crate::kernel::files::{FileId, PAGE};

/// Pages handed to the flusher at a time, and those of one file before the group's next one has its turn
/// (`MAX_WRITEBACK_PAGES`).
pub(super) const STEP_PAGES: u64 = 256;
const ROUND_PAGES: u64 = 1024;

/// What the flusher is to write: up to `max` of the dirty ones among `pages`.
#[derive(Clone, Debug)]
pub(crate) struct NextPages {
    pub(crate) file: FileId,
    pub(crate) pages: Range<u64>,
    pub(crate) max: u64,
}

/// Pages of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Dirty, and in flight.
    dirty: u64,
    writing: u64,
    /// Since when there are any of these, nanoseconds.
    since_ns: u64,
    /// Since the start: became dirty, and reached the device.
    dirtied: u64,
    written: u64,
    /// The same when the count began.
    counted_from: (u64, u64),
    /// Writes in flight that begin with a page of its.
    writes: u64,
    /// The file that has the turn, and the pages left of the turn.
    turn: Option<(FileId, u64)>,
}

/// The groups whose pages were sent, in the order of the file.
pub(crate) type Dirtiers = Vec<(Range<u64>, Cgroup)>;

/// Pages of the files that a group owns (its `bdi_writeback`), by whichever group they became dirty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owned {
    pub(crate) dirty: u64,
    pub(crate) writing: u64,
    /// Reached the device since the start.
    pub(crate) written: u64,
}

impl Owned {
    /// Dirty or in flight.
    pub(crate) fn unwritten(&self) -> u64 {
        self.dirty + self.writing
    }
}

/// Accounts by group, and owners by file.
#[derive(Debug)]
pub(super) struct ByGroup {
    tracking: Tracking,
    accounts: Vec<Account>,
    owned: Vec<Owned>,
    files: Vec<FileOwners>,
    /// Dirty pages by group and file.
    dirty: BTreeMap<(Cgroup, FileId), u64>,
}

/// Whose a file and its dirty pages are.
#[derive(Debug, Default)]
struct FileOwners {
    pages: Owners,
    whole: InodeOwner,
    /// Pages dirty, and in flight.
    dirty: u64,
    writing: u64,
}

impl FileOwners {
    fn owner(&self) -> Cgroup {
        self.whole.owner().unwrap_or(Cgroup::ROOT)
    }
}

impl ByGroup {
    /// For so many groups, the root included.
    pub(super) fn new(groups: usize, tracking: Tracking) -> ByGroup {
        ByGroup {
            tracking,
            accounts: vec![Account::default(); groups],
            owned: vec![Owned::default(); groups],
            files: Vec::new(),
            dirty: BTreeMap::new(),
        }
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
        owners.dirty += 1;
        let owner = owners.owner();
        self.owned[owner.index()].dirty += 1;
        let account = &mut self.accounts[group.index()];
        if account.dirty + account.writing == 0 {
            account.since_ns = now;
        }
        account.dirty += 1;
        account.dirtied += 1;
        *self.dirty.entry((group, file)).or_default() += 1;
    }

    /// So many pages of the file are not dirty any more.
    fn clean(&mut self, group: Cgroup, file: FileId, pages: u64) {
        let owners = self.owners(file);
        owners.dirty -= pages;
        let owner = owners.owner();
        self.owned[owner.index()].dirty -= pages;
        self.accounts[group.index()].dirty -= pages;
        if let Some(dirty) = self.dirty.get_mut(&(group, file)) {
            *dirty -= pages;
            if *dirty == 0 {
                self.dirty.remove(&(group, file));
            }
        }
    }

    /// Dirty `pages` need not be written any more.
    pub(super) fn forgotten(&mut self, file: FileId, pages: Range<u64>) {
        for (part, group) in self.owners(file).pages.take(pages) {
            self.clean(group, file, part.end - part.start);
        }
    }

    /// Dirty `pages` are sent to the device.
    pub(super) fn sent(&mut self, file: FileId, pages: Range<u64>) -> Dirtiers {
        let dirtiers = self.owners(file).pages.take(pages);
        for (part, group) in &dirtiers {
            let pages = part.end - part.start;
            self.clean(*group, file, pages);
            let owners = self.owners(file);
            owners.whole.vote(*group, pages);
            owners.writing += pages;
            let owner = owners.owner();
            self.owned[owner.index()].writing += pages;
            self.accounts[group.index()].writing += pages;
        }
        if let Some((_, group)) = dirtiers.first() {
            self.accounts[group.index()].writes += 1;
        }
        dirtiers
    }

    /// Pages of `file` reached the device.
    pub(super) fn arrived(&mut self, file: FileId, dirtiers: &Dirtiers) {
        for (part, group) in dirtiers {
            let pages = part.end - part.start;
            let owners = self.owners(file);
            owners.writing -= pages;
            let owner = owners.owner();
            let owned = &mut self.owned[owner.index()];
            owned.writing -= pages;
            owned.written += pages;
            let account = &mut self.accounts[group.index()];
            account.writing -= part.end - part.start;
            account.written += part.end - part.start;
        }
        if let Some((_, group)) = dirtiers.first() {
            self.accounts[group.index()].writes -= 1;
        }
    }

    // ---- for a flusher that goes by group ----

    pub(super) fn dirty_of(&self, group: Cgroup) -> u64 {
        self.accounts[group.index()].dirty
    }

    pub(super) fn unwritten_of(&self, group: Cgroup) -> u64 {
        let account = &self.accounts[group.index()];
        account.dirty + account.writing
    }

    pub(super) fn written_of(&self, group: Cgroup) -> u64 {
        self.accounts[group.index()].written
    }

    pub(super) fn writes_of(&self, group: Cgroup) -> u64 {
        self.accounts[group.index()].writes
    }

    pub(super) fn dirty_groups(&self) -> impl Iterator<Item = Cgroup> + '_ {
        let groups = self.accounts.iter().enumerate();
        groups.filter(|(_, account)| account.dirty > 0).map(|(place, _)| Cgroup(place as u16))
    }

    /// Files with dirty pages of `group`, the one that has the turn first.
    pub(super) fn files_of(&self, group: Cgroup) -> Vec<FileId> {
        let files = self.dirty.range((group, FileId(0))..=(group, FileId(usize::MAX)));
        let mut files: Vec<FileId> = files.map(|((_, file), _)| *file).collect();
        if let Some((turn, left)) = self.accounts[group.index()].turn {
            let first = files.partition_point(|file| if left > 0 { *file < turn } else { *file <= turn });
            files.rotate_left(first);
        }
        files
    }

    /// The flusher got a step's pages of `file`.
    pub(super) fn had_step(&mut self, group: Cgroup, file: FileId) {
        let turn = &mut self.accounts[group.index()].turn;
        let left =
            turn.filter(|(turn, left)| *turn == file && *left > 0).map_or(ROUND_PAGES, |(_, left)| left);
        *turn = Some((file, left.saturating_sub(STEP_PAGES)));
    }

    /// Runs of `group`'s dirty pages of `file`, from page `from` on to the end and then from the start.
    pub(super) fn runs_of(
        &self,
        file: FileId,
        group: Cgroup,
        from: u64,
    ) -> impl Iterator<Item = Range<u64>> + '_ {
        self.files.get(file.0).into_iter().flat_map(move |owners| owners.pages.of(group, from))
    }

    /// A round of writeback of `file` is over.
    pub(super) fn round_over(&mut self, file: FileId, took_ns: u64) {
        let owners = self.owners(file);
        let before = owners.owner();
        owners.whole.round_over(took_ns);
        let (after, dirty, writing) = (owners.owner(), owners.dirty, owners.writing);
        // What it has goes with it.
        let [from, to] = [before, after].map(Cgroup::index);
        self.owned[from].dirty -= dirty;
        self.owned[from].writing -= writing;
        self.owned[to].dirty += dirty;
        self.owned[to].writing += writing;
    }

    /// The group that a file belongs to: the root, as long as no task wrote to it.
    pub(super) fn owner_of(&self, file: FileId) -> Cgroup {
        self.files.get(file.0).map_or(Cgroup::ROOT, FileOwners::owner)
    }

    pub(super) fn owned_by(&self, group: Cgroup) -> Owned {
        self.owned[group.index()]
    }

    /// The group that a bio of `file` beginning with `page` is submitted for; `None`: the submitter's own.
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
        let (dirtied, written) = account.counted_from;
        ((account.dirtied - dirtied) * PAGE, (account.written - written) * PAGE)
    }

    pub(super) fn restart(&mut self) {
        for account in &mut self.accounts {
            account.counted_from = (account.dirtied, account.written);
        }
    }
}
