//! Limits of groups below a host that has no say in who may send: a request over its group's limit waits here, outside the
//! elevator, with its slot taken.
//!
//! What [`fairlift_core::queue::RequestQueue`] does with bios is done with requests: metadata goes in at once and is charged, a
//! discard counts as one sector, flushes with data for their data. A bio that merges into a request joins it whether that
//! waits or not, and is charged like any other.

use alloc::vec::Vec;

use fairlift_core::collections::Id;
use fairlift_core::group::Groups;
use fairlift_core::group::limit::{Answer, Direction, Limits, Next, Rates};
use fairlift_core::{Flags, GroupId, Op, Request, RequestId};

/// The limits and the requests they hold.
pub(crate) struct Limiter {
    limits: Limits,
    /// Was there ever a limit?
    used: bool,
    /// The held requests, by the limits' name for them.
    held: Vec<RequestId>,
    count: usize,
    /// The direction that goes first next time.
    turn: usize,
}

fn direction(op: Op) -> Direction {
    if op == Op::Read { Direction::Read } else { Direction::Write }
}

fn bytes(op: Op, sectors: u32) -> u64 {
    if op == Op::Discard { 512 } else { u64::from(sectors) * 512 }
}

impl Limiter {
    pub(crate) fn new(slots: usize, requests_max: usize) -> Limiter {
        let limits = Limits::sharing(slots, requests_max);
        Limiter {
            held: alloc::vec![RequestId::from_index(0); limits.names()],
            limits,
            used: false,
            count: 0,
            turn: 0,
        }
    }

    /// Requests that limits hold back.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Of these, those of `group` itself.
    pub(crate) fn waiting(&self, group: GroupId) -> usize {
        self.limits.waiting_here(group)
    }

    pub(crate) fn set(
        &mut self,
        group: GroupId,
        direction: Direction,
        rates: Rates,
        groups: &Groups,
        now: u64,
    ) {
        self.used = true;
        self.limits.follow(groups, now);
        self.limits.set(group, direction, rates, now);
    }

    /// Has the request to wait? Then it is kept.
    #[inline]
    pub(crate) fn holds_back(&mut self, rq: RequestId, request: &Request, groups: &Groups, now: u64) -> bool {
        self.used && self.ask(rq, request, groups, now)
    }

    fn ask(&mut self, rq: RequestId, request: &Request, groups: &Groups, now: u64) -> bool {
        if request.sectors == 0 {
            return false;
        }
        self.limits.follow(groups, now);
        let (direction, bytes) = (direction(request.op), bytes(request.op, request.sectors));
        if request.flags.contains(Flags::META) {
            self.limits.charge(request.group, direction, bytes, now);
            return false;
        }
        // There is a name for every request.
        let Answer::Wait(name) = self.limits.ask(request.group, direction, bytes, now) else { return false };
        self.held[name.index()] = rq;
        self.count += 1;
        true
    }

    /// A request grew by so many sectors.
    pub(crate) fn grew(&mut self, request: &Request, sectors: u32, now: u64) {
        if self.used && sectors > 0 {
            self.limits.charge(request.group, direction(request.op), bytes(request.op, sectors), now);
        }
    }

    /// The groups changed: whoever waits at one that is gone waits at its heir. To be called before its number is given to
    /// another.
    pub(crate) fn follow(&mut self, groups: &Groups, now: u64) {
        if self.used {
            self.limits.follow(groups, now);
        }
    }

    /// Everybody whom the limits allow by now, through `go`; when to ask again, if somebody waits.
    pub(crate) fn let_go(&mut self, now: u64, mut go: impl FnMut(RequestId)) -> Option<u64> {
        let mut until: Option<u64> = None;
        let first = self.turn;
        self.turn = 1 - first;
        for at in [first, 1 - first] {
            loop {
                match self.limits.next(Direction::ALL[at], now) {
                    Next::Go(name) => {
                        self.count -= 1;
                        go(self.held[name.index()]);
                    }
                    Next::Wait { until: at } => {
                        until = Some(until.map_or(at, |until| until.min(at)));
                        break;
                    }
                    Next::Empty => break,
                }
            }
        }
        until
    }

    /// Everybody, allowed or not, through `go`: the queue has to run dry.
    pub(crate) fn open(&mut self, now: u64, mut go: impl FnMut(RequestId)) {
        let held = &self.held;
        self.limits.open(now, |name| go(held[name.index()]));
        self.count = 0;
    }
}
