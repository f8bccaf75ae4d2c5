//! A bare elevator on a bench: a clock set by hand, and requests named by their start sector.
#![allow(dead_code)] // two test programs use it, each its part

use fairlift_core::Groups;
use fairlift_core::context::Contexts;
use fairlift_core::elevator::{self, AnyElevator, Config, DeviceState, Dispatch, Env, Growth};
use fairlift_core::group::Rounds;
use fairlift_core::queue::DispatchList;
use fairlift_core::request::request;
use fairlift_core::{Bio, ContextId, Flags, GroupId, IoPrio, MS, Op, Request, RequestId, Requests};

/// Sectors per request, unless said otherwise.
pub(crate) const LENGTH: u32 = 8;

pub(crate) const RT: IoPrio = IoPrio::RealTime(4);
pub(crate) const BE: IoPrio = IoPrio::BestEffort(4);
pub(crate) const IDLE: IoPrio = IoPrio::Idle;

/// What a request or bio is, apart from where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) ioprio: IoPrio,
}

pub(crate) const READ: Kind = Kind { op: Op::Read, flags: Flags::NONE, ioprio: BE };
pub(crate) const WRITE: Kind = Kind { op: Op::Write, flags: Flags::NONE, ioprio: BE };
pub(crate) const SYNC_WRITE: Kind = Kind { op: Op::Write, flags: Flags::SYNC, ioprio: BE };
pub(crate) const DISCARD: Kind = Kind { op: Op::Discard, flags: Flags::NONE, ioprio: BE };

impl Kind {
    pub(crate) fn with(self, ioprio: IoPrio) -> Kind {
        Kind { ioprio, ..self }
    }

    pub(crate) fn at(self, sector: u64, now: u64) -> Request {
        let mut request = request(self.op, self.flags, sector, LENGTH, ContextId::OVERFLOW, now);
        request.ioprio = self.ioprio;
        request
    }

    /// A bio of `LENGTH` sectors.
    pub(crate) fn bio(self, sector: u64) -> Bio {
        Bio {
            cookie: 0,
            op: self.op,
            flags: self.flags,
            sector,
            sectors: LENGTH,
            segments: 1,
            context: ContextId::OVERFLOW,
            ioprio: Some(self.ioprio),
            group: None,
        }
    }
}

pub(crate) struct Bench {
    pub(crate) elevator: AnyElevator,
    pub(crate) requests: Requests,
    /// What the last hook moved to the dispatch list by itself.
    pub(crate) evicted: Vec<RequestId>,
    pub(crate) now: u64,
    contexts: Contexts,
    rotational: bool,
}

/// Run `$call` with an `Env` and note what it put on the dispatch list.
macro_rules! hook {
    ($bench:ident, |$elevator:ident, $env:ident| $call:expr) => {{
        let mut list = DispatchList::new($bench.requests.capacity());
        let mut groups = Groups::new(0);
        let mut env_owned = Env {
            now: $bench.now,
            requests: &$bench.requests,
            contexts: &$bench.contexts,
            rounds: Rounds::new(&mut groups),
            device: &DeviceState { rotational: $bench.rotational, in_flight: [0; 2], depth: 0, flushes: 0 },
            dispatch: &mut list,
        };
        let $elevator = &mut $bench.elevator;
        let $env = &mut env_owned;
        let answer = $call;
        $bench.evicted = list.iter().collect();
        answer
    }};
}

impl Bench {
    pub(crate) fn build(name: &str, capacity: usize, rotational: bool, tick_ns: u64) -> Bench {
        let descriptor = elevator::find(name).expect("an elevator of that name");
        let config = Config::for_queue(capacity, 0, 0, tick_ns);
        Bench {
            elevator: (descriptor.build)(&config, ""),
            requests: Requests::new(capacity),
            evicted: Vec::new(),
            now: 0,
            contexts: Contexts::new(0),
            rotational,
        }
    }

    /// A disk and an exact clock.
    pub(crate) fn disk(name: &str) -> Bench {
        Bench::build(name, 128, true, 0)
    }

    pub(crate) fn set(&mut self, name: &str, text: &str) {
        elevator::set(&mut *self.elevator, name, text).expect("a tunable and a value in range");
    }

    /// Put the clock to `ms`.
    pub(crate) fn at_ms(&mut self, ms: u64) {
        self.now = ms * MS;
    }

    // ---- hooks by request id ----

    pub(crate) fn add(&mut self, kind: Kind, sector: u64) -> RequestId {
        let rq = self.requests.take(kind.at(sector, self.now)).expect("a free slot");
        hook!(self, |elevator, env| elevator.insert(env, rq));
        rq
    }

    pub(crate) fn dispatch(&mut self) -> Option<RequestId> {
        match hook!(self, |elevator, env| elevator.dispatch(env, GroupId::ROOT)) {
            Dispatch::Issue(rq) => Some(rq),
            Dispatch::Empty | Dispatch::Busy => None,
            Dispatch::Idle { .. } => panic!("noop and deadline never idle"),
        }
    }

    pub(crate) fn drain(&mut self) -> Option<RequestId> {
        hook!(self, |elevator, env| elevator.drain(env))
    }

    pub(crate) fn requeued(&mut self, rq: RequestId) {
        hook!(self, |elevator, env| elevator.requeued(env, rq));
    }

    pub(crate) fn completed(&mut self, rq: RequestId) {
        hook!(self, |elevator, env| elevator.completed(env, rq));
        self.requests.release(rq);
    }

    pub(crate) fn absorb(&mut self, rq: RequestId, gone: RequestId) {
        let end = self.requests[gone].end();
        let grown = &mut self.requests[rq];
        grown.sectors = end.saturating_sub(grown.sector).max(u64::from(grown.sectors)) as u32;
        hook!(self, |elevator, env| elevator.absorbed(env, rq, gone));
        self.requests.release(gone);
    }

    pub(crate) fn grow_front(&mut self, rq: RequestId, sectors: u32) {
        self.requests[rq].sector -= u64::from(sectors);
        self.requests[rq].sectors += sectors;
        hook!(self, |elevator, env| elevator.grew(env, rq, Growth::Front));
    }

    pub(crate) fn grow_back(&mut self, rq: RequestId, sectors: u32) {
        self.requests[rq].sectors += sectors;
        hook!(self, |elevator, env| elevator.grew(env, rq, Growth::Back));
    }

    pub(crate) fn find_front(&mut self, bio: &Bio) -> Option<RequestId> {
        hook!(self, |elevator, env| elevator.find_front(env, bio))
    }

    pub(crate) fn allow_merge(&mut self, rq: RequestId, bio: &Bio) -> bool {
        hook!(self, |elevator, env| elevator.allow_merge(env, rq, bio))
    }

    pub(crate) fn former(&mut self, rq: RequestId) -> Option<RequestId> {
        hook!(self, |elevator, env| elevator.former(env, rq))
    }

    pub(crate) fn latter(&mut self, rq: RequestId) -> Option<RequestId> {
        hook!(self, |elevator, env| elevator.latter(env, rq))
    }

    // ---- for schedules ----

    pub(crate) fn add_all(&mut self, kind: Kind, sectors: impl IntoIterator<Item = u64>) {
        for sector in sectors {
            self.add(kind, sector);
        }
    }

    /// Start sectors of the next `count` requests, dispatched now.
    pub(crate) fn next(&mut self, count: usize) -> Vec<u64> {
        (0..count).map_while(|_| self.dispatch().map(|rq| self.requests[rq].sector)).collect()
    }

    /// Start sectors of all that is left, dispatched now.
    pub(crate) fn rest(&mut self) -> Vec<u64> {
        let all = self.next(self.requests.capacity());
        assert!(self.elevator.is_empty());
        all
    }
}
