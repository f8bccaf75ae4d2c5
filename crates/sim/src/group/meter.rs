//! Counts what the requests of each group cost and got, also under a scheduler that is not told of groups.

use fairlift_core::collections::Id;
use fairlift_core::{ContextId, Op, Request, RequestId};

use super::{Cgroup, GroupFigures, GroupOverTime};
use crate::anatomy::OverTime;

/// Counters by group, over the time since [`Meter::restart`].
#[derive(Debug)]
pub(crate) struct Meter {
    figures: Vec<GroupFigures>,
    lines: Vec<Line>,
    /// By request slot: whose bio made the request.
    of_request: Vec<Cgroup>,
    since_ns: u64,
    /// The same over time, if the report asks for it.
    over_time: Option<OverTime<(Cgroup, Kind)>>,
}

/// The figures of a group over time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// The device worked for it.
    Device,
    /// It had bios that were not done.
    Asking,
}

/// A group's bios that are not done.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    bios: u32,
    /// Since when there is none.
    empty_since_ns: u64,
    /// Since when there are some, if there are.
    asking_since_ns: u64,
    /// Device time since the run's start, of all its requests and of its writes.
    device_ns: u64,
    write_ns: u64,
}

impl Meter {
    /// For so many groups, the root included, and slots for requests.
    pub(crate) fn new(groups: usize, requests: usize) -> Meter {
        Meter {
            figures: vec![GroupFigures::default(); groups],
            lines: vec![Line::default(); groups],
            of_request: vec![Cgroup::ROOT; requests],
            since_ns: 0,
            over_time: None,
        }
    }

    /// Number of groups, the root included.
    pub(crate) fn groups(&self) -> usize {
        self.figures.len()
    }

    /// Keep figures over time from now on.
    pub(crate) fn record_over_time(&mut self) {
        self.over_time = Some(OverTime::new());
    }

    /// What each group got as the run went on up to `now`, by [`Cgroup`]; nothing if it was not kept.
    pub(crate) fn over_time(&self, now: u64) -> Vec<GroupOverTime> {
        let Some(mut over) = self.over_time.clone() else { return Vec::new() };
        let groups = || (0..self.lines.len()).map(|number| Cgroup(number as u16));
        for (group, line) in groups().zip(&self.lines).filter(|(_, line)| line.bios > 0) {
            over.add((group, Kind::Asking), line.asking_since_ns, now);
        }
        let interval_ns = over.interval_ns;
        let mut of = |group, kind| over.parts.remove(&(group, kind)).unwrap_or_default();
        let told = |group| GroupOverTime {
            interval_ns,
            device_ns: of(group, Kind::Device),
            asking_ns: of(group, Kind::Asking),
        };
        groups().map(told).collect()
    }

    /// The group that a request belongs to. The queue's own flushes are the root's.
    pub(crate) fn group_of(&self, rq: RequestId, request: &Request) -> Cgroup {
        let own = request.context == ContextId::OVERFLOW;
        if own { Cgroup::ROOT } else { self.of_request[rq.index()] }
    }

    /// What happened so far does not count.
    pub(crate) fn restart(&mut self, now: u64) {
        self.figures.fill(GroupFigures::default());
        self.since_ns = now;
    }

    /// When counting began, nanoseconds.
    pub(crate) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Has `group` requests that are not done?
    pub(crate) fn has_requests(&self, group: Cgroup) -> bool {
        self.lines[group.index()].bios > 0
    }

    /// Device time of `group` since the run's start, of all its requests and of its writes, nanoseconds.
    pub(crate) fn device_times(&self, group: Cgroup) -> (u64, u64) {
        let line = &self.lines[group.index()];
        (line.device_ns, line.write_ns)
    }

    /// A group's figures so far. Its pages wait to be written since `backlog_since_ns`, if they do: the gap that goes on counts.
    pub(crate) fn figures(&self, group: Cgroup, backlog_since_ns: Option<u64>, now: u64) -> GroupFigures {
        let mut figures = self.figures[group.index()].clone();
        if self.lines[group.index()].bios == 0 {
            figures.add_gap(self.gap_ns(group, backlog_since_ns, now));
        }
        figures
    }

    /// How long the group's line has been empty at `now` while pages waited.
    fn gap_ns(&self, group: Cgroup, backlog_since_ns: Option<u64>, now: u64) -> u64 {
        let empty_since_ns = self.lines[group.index()].empty_since_ns.max(self.since_ns);
        backlog_since_ns.map_or(0, |backlog| now.saturating_sub(backlog.max(empty_since_ns)))
    }

    /// A bio of `group` came in, and is a request of its own (`Some`) or has joined one.
    pub(crate) fn came(
        &mut self,
        group: Cgroup,
        request: Option<RequestId>,
        backlog_since_ns: Option<u64>,
        now: u64,
    ) {
        if self.lines[group.index()].bios == 0 {
            let gap_ns = self.gap_ns(group, backlog_since_ns, now);
            self.figures[group.index()].add_gap(gap_ns);
            self.lines[group.index()].asking_since_ns = now;
        }
        self.lines[group.index()].bios += 1;
        match request {
            Some(rq) => self.of_request[rq.index()] = group,
            None => self.figures[group.index()].merged += 1,
        }
    }

    /// A bio of `group` is done.
    pub(crate) fn went(&mut self, group: Cgroup, now: u64) {
        let line = &mut self.lines[group.index()];
        line.bios -= 1;
        if line.bios == 0 {
            line.empty_since_ns = now;
            if let Some(over) = &mut self.over_time {
                over.add((group, Kind::Asking), line.asking_since_ns, now);
            }
        }
    }

    /// A request is done, at the end of `busy_ns` of the device's time.
    pub(crate) fn completed(&mut self, rq: RequestId, request: &Request, busy_ns: u64, now: u64) {
        let group = self.group_of(rq, request);
        if let Some(over) = &mut self.over_time {
            over.add((group, Kind::Device), now - busy_ns.min(now), now);
        }
        let (figures, line) = (&mut self.figures[group.index()], &mut self.lines[group.index()]);
        line.device_ns += busy_ns;
        line.write_ns += if request.is_write() { busy_ns } else { 0 };
        figures.device_time_ns += busy_ns.min(now - self.since_ns.min(now));
        if request.op == Op::Flush {
            return;
        }
        let direction = usize::from(request.op != Op::Read);
        figures.requests[direction] += 1;
        if request.op != Op::Discard {
            figures.sectors[direction] += u64::from(request.sectors);
        }
        figures.latency.record(now - request.start_ns.min(now));
    }
}
