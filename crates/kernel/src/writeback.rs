//! Tags for writeback, by weight ([`fairlift_core::group::Writeback`]), as the module asks for them.

use fairlift_core::GroupId;
use fairlift_core::collections::Id;

use crate::host::Host;

impl Host {
    /// Does a thread wait that writes back for a group? It has `unsent` requests that have not arrived yet, of `tags` that async
    /// requests can have. It is counted then; ask [`Host::next_write`].
    pub fn hold_write(&mut self, number: u32, unsent: u32, tags: u32, now: u64) -> bool {
        let now = self.enter(now);
        let groups = self.queue.groups();
        let group = groups.known(GroupId::from_index(number as usize));
        if self.has_given_up() || group == GroupId::ROOT {
            return false;
        }
        let waits = self.writeback.hold(groups, group, unsent, tags, !self.queue.is_empty(), now);
        self.check();
        waits
    }

    /// The group whose first waiting thread goes on now; `None`: no other.
    pub fn next_write(&mut self, tags: u32, now: u64) -> Option<u32> {
        let now = self.enter(now);
        let given_up = self.has_given_up();
        let goes = self.writeback.next(self.queue.groups(), tags, given_up, now);
        self.check();
        goes.map(|group| group.index() as u32)
    }

    /// All that [`Host::next_write`] named have come.
    pub fn writes_came(&mut self) {
        self.enter(self.now());
        self.writeback.came();
        self.check();
    }

    /// Threads that wait for tags for their groups' writeback.
    pub fn writes_waiting(&self) -> u64 {
        self.writeback.waiting()
    }

    /// A group is about to go: what is in its line waits at the end of the line of `heir`, above it, from now on. The root's do not
    /// wait: send them on.
    pub fn move_writes(&mut self, number: u32, heir: u32, now: u64) {
        let now = self.enter(now);
        let groups = self.queue.groups();
        let [group, heir] = [number, heir].map(|number| groups.known(GroupId::from_index(number as usize)));
        self.writeback.move_line(groups, group, heir, now);
        self.check();
    }
}
