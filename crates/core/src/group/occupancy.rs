//! Whose the device's time was, told by completions.
//!
//! With one request in the device at a time a turn's length says what it cost. A device that queues is still busy with a
//! group's requests when its turn is over: on a disk with 31 of them for longer than the turn lasted. So a busy stretch, from
//! one completion to the next, is put on the account of the group whose request ends it, whoever's turn it is by then; and a
//! pause is on the account of the group the device waits for, if it does. Nothing is counted twice, and nothing that the device
//! did for somebody is nobody's.

use super::GroupId;

/// The account keeper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupancy {
    /// Requests in the device, of all groups.
    in_flight: u32,
    /// Up to when the time is on somebody's account, nanoseconds.
    counted_ns: u64,
    /// For whom the device waits when it has nothing to do, and since when at most, nanoseconds.
    turn: Option<(GroupId, u64)>,
}

impl Occupancy {
    pub(super) const NEW: Occupancy = Occupancy { in_flight: 0, counted_ns: 0, turn: None };

    /// So many requests are in the device already.
    pub(super) fn start(&mut self, in_flight: u32) {
        self.in_flight = in_flight;
    }

    /// A request goes to the device. Who pays for how much of the pause before, if there was one: at most
    /// `pause_max_ns`, since nobody waits for longer than a turn.
    pub(super) fn issued(&mut self, pause_max_ns: u64, now: u64) -> Option<(GroupId, u64)> {
        let pause = self.pause(pause_max_ns, now);
        self.in_flight += 1;
        pause
    }

    /// A request is done or came back: how much of the time was its.
    pub(super) fn completed(&mut self, now: u64) -> u64 {
        self.in_flight = self.in_flight.saturating_sub(1);
        now.saturating_sub(core::mem::replace(&mut self.counted_ns, now))
    }

    /// The device is `group`'s from now on, if it was nobody's.
    pub(super) fn turn_of(&mut self, group: GroupId, now: u64) {
        self.turn.get_or_insert((group, now));
    }

    /// The turn is over, as [`Occupancy::issued`].
    pub(super) fn turn_over(&mut self, pause_max_ns: u64, now: u64) -> Option<(GroupId, u64)> {
        let pause = self.pause(pause_max_ns, now);
        self.turn = None;
        pause
    }

    fn pause(&mut self, pause_max_ns: u64, now: u64) -> Option<(GroupId, u64)> {
        if self.in_flight > 0 {
            return None;
        }
        let idle_since_ns = core::mem::replace(&mut self.counted_ns, now);
        let (group, since_ns) = self.turn?;
        let waited_ns = now.saturating_sub(idle_since_ns.max(since_ns));
        Some((group, waited_ns.min(pause_max_ns)))
    }
}
