//! Donation: a group that waits for another's I/O pays for it.
//!
//! While a context waits for another one's I/O (an fsync for the journal's thread, a reader for the thread that reads its
//! page), what that one sends is *donated* service: it waits in the queue of, and is billed to, the group of the most entitled
//! of its waiters, if that is more entitled than its own group. Waiting is transitive: a group that waits for one that waits for
//! the journal's thread waits for it too.
//!
//! It holds for requests sent during the wait; those that are queued already stay where they are. Bounds: at most
//! [`LOOKED_AT`] waiters are looked at for a request, which also makes an end of circles. A wait ends with
//! [`Waits::end`], or with either context.

use super::{GroupId, Groups};
use crate::collections::{Id, List, ListLinks, Table};
use crate::context::{ContextId, Contexts};

/// Waiters looked at for one request, the indirect ones included.
const LOOKED_AT: usize = 16;

/// A wait that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitToken {
    from: ContextId,
    serial: u32,
}

/// What is kept of a context.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// The context it waits for, and which tenant of that slot.
    whom: Option<(ContextId, u32)>,
    /// Counts its waits.
    serial: u32,
    /// Who waits for it, as long as its slot has this tenant.
    waiters: List<ContextId>,
    epoch: u32,
}

/// All waits of a queue.
#[derive(Debug)]
pub(crate) struct Waits {
    seats: Table<Seat>,
    links: ListLinks<ContextId>,
    count: usize,
}

impl Waits {
    /// For so many context slots.
    pub(crate) fn new(contexts: usize) -> Waits {
        let seat = Seat { whom: None, serial: 0, waiters: List::new(), epoch: 0 };
        Waits { seats: Table::new(seat, contexts), links: ListLinks::new(contexts), count: 0 }
    }

    /// Does a context wait?
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count > 0
    }

    /// `from` waits for the I/O of `whom` from now on, and for no other. `None` if they are one and the same, or `from` is a
    /// context that several tasks share, of which the others do not wait.
    pub(crate) fn begin(
        &mut self,
        contexts: &Contexts,
        from: ContextId,
        whom: ContextId,
    ) -> Option<WaitToken> {
        if from == whom || contexts.is_shared(from) {
            return None;
        }
        self.leave(contexts, from);
        let epoch = contexts[whom].epoch;
        let target = &mut self.seats[whom.index()];
        if target.epoch != epoch {
            (target.waiters, target.epoch) = (List::new(), epoch);
        }
        target.waiters.push_back(&mut self.links, from);
        let seat = &mut self.seats[from.index()];
        seat.whom = Some((whom, epoch));
        seat.serial = seat.serial.wrapping_add(1);
        self.count += 1;
        Some(WaitToken { from, serial: seat.serial })
    }

    /// The wait is over. A token of one that was over already changes nothing.
    pub(crate) fn end(&mut self, contexts: &Contexts, token: WaitToken) {
        if self.seats[token.from.index()].serial == token.serial {
            self.leave(contexts, token.from);
        }
    }

    /// `from` waits for no other.
    pub(crate) fn leave(&mut self, contexts: &Contexts, from: ContextId) {
        let Some((whom, epoch)) = self.seats[from.index()].whom.take() else { return };
        self.count -= 1;
        let target = &mut self.seats[whom.index()];
        // Else the list it was on went with the tenant.
        if contexts[whom].epoch == epoch && target.epoch == epoch {
            target.waiters.remove(&mut self.links, from);
        }
    }

    /// Who pays for what `context` sends for `own`: the most entitled of the groups that wait for it, directly or not, or
    /// `own` if none of them is more entitled.
    pub(crate) fn payer(
        &self,
        contexts: &Contexts,
        groups: &Groups,
        context: ContextId,
        own: GroupId,
    ) -> GroupId {
        let mut best = own;
        let mut line = [context; LOOKED_AT + 1];
        let (mut asked, mut known) = (0, 1);
        while let Some(at) = line.get(asked).copied().filter(|_| asked < known) {
            let seat = &self.seats[at.index()];
            let whom = &contexts[at];
            let current = seat.epoch == whom.epoch && whom.alive;
            asked += 1;
            let mut waiter = seat.waiters.front().filter(|_| current);
            while let (Some(from), Some(place)) = (waiter, line.get_mut(known)) {
                *place = from;
                known += 1;
                let group = groups.known(contexts[from].group);
                if groups.is_more_entitled(group, best) {
                    best = group;
                }
                waiter = seat.waiters.next(&self.links, from);
            }
        }
        best
    }
}
