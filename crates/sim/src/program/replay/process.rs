//! One traced process, replayed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use fairlift_core::collections::Id;
use fairlift_core::{Flags, IoPrio, Op};
use fairlift_trace::Flags as TraceFlags;

use super::packed::{Io, Position};
use super::{Replay, Timing};
use crate::engine::{Machine, OpDone, OpId, Simulation, Sys, TaskId};
use crate::group::GroupTree;
use crate::kernel::{RawIo, Rules};
use crate::result::JobResult;

/// Latest time at which an I/O is submitted, nanoseconds: 292 years. What a trace has later (a fault in a stamp, or a large factor)
/// comes then, so that there is time left for it to be done.
const LATEST_NS: u64 = 1 << 63;
/// Rows of a result that are listed by name.
const ROWS_MAX: usize = 12;

/// Results of all processes, filled in as they end.
#[derive(Clone, Debug, Default)]
pub struct Results(Rc<RefCell<Vec<(TaskId, JobResult)>>>);

impl Results {
    /// What the processes did, in order of their first I/O.
    pub fn collect(&self) -> Vec<JobResult> {
        self.0.borrow().iter().map(|(_, result)| result.clone()).collect()
    }
}

pub(super) fn spawn(
    simulation: &mut Simulation,
    replay: &Arc<Replay>,
    groups: &GroupTree,
    timing: Timing,
) -> Results {
    let results = Results::default();
    let starts: Arc<[u64]> = replay.starts().into();
    let place = simulation.with_machine(|m| Place {
        starts,
        capacity_sectors: m.block().device().limits().sectors,
        rules: m.kernel().rules().clone(),
    });
    for (number, name) in replay.row_names(ROWS_MAX).into_iter().enumerate() {
        let result = JobResult { name, processes: 1, ..JobResult::default() };
        let (reports, trace, place) = (results.clone(), Arc::clone(replay), place.clone());
        let initial = result.clone();
        let group = groups.cgroup_of(replay.processes[number].group.as_deref());
        let id = simulation.spawn_in(group, IoPrio::DEFAULT, move |sys| async move {
            let origin_ns = place.rules.cpu_per_io_ns;
            let mut process = Process {
                timing,
                has_completions: trace.has_completions,
                origin_ns,
                last_issue_ns: origin_ns,
                place,
                flight: Vec::new(),
                in_flight: 0,
                result,
                started: false,
            };
            process.run(&sys, &trace, number).await;
            process.result.device_time_ns = device_time_ns(&sys.machine.borrow(), sys.task);
            reports.0.borrow_mut()[number].1 = process.result;
        });
        simulation.with_machine(|m| m.set_name(id, &replay.processes[number].name));
        results.0.borrow_mut().push((id, initial));
    }
    results
}

/// Device time charged to the task's io context so far.
fn device_time_ns(machine: &Machine, task: TaskId) -> u64 {
    machine.block.device_time_of(machine.context_of(task).index())
}

/// Where the trace's I/Os lie here, and what their flags mean here.
#[derive(Clone, Debug)]
struct Place {
    /// First sector of each of the trace's devices.
    starts: Arc<[u64]>,
    capacity_sectors: u64,
    rules: Rules,
}

impl Place {
    fn raw(&self, io: &Io) -> RawIo {
        let sectors = u64::from(io.sectors).min(self.capacity_sectors);
        let start = self.starts.get(io.device as usize).copied().unwrap_or(0);
        let wanted = start.saturating_add(io.sector);
        // What lies behind the device's end begins again at its start.
        let sector = match wanted.saturating_add(sectors) <= self.capacity_sectors {
            true => wanted,
            false => wanted % (self.capacity_sectors - sectors + 1),
        };
        RawIo { op: io.op, flags: self.flags(io.flags), sector, sectors, ioprio: io.ioprio }
    }

    /// The flags as this kernel knows them. Before FLUSH and FUA a write that had to be durable was a barrier.
    fn flags(&self, of: TraceFlags) -> Flags {
        let mut flags = Flags::NONE;
        let mut keep = |had, has| {
            if of.has(had) {
                flags.insert(has);
            }
        };
        keep(TraceFlags::SYNC, Flags::SYNC);
        keep(TraceFlags::META, Flags::META);
        keep(TraceFlags::READAHEAD, Flags::READAHEAD);
        let sequences = self.rules.flush_sequences;
        keep(TraceFlags::PREFLUSH, if sequences { Flags::PREFLUSH } else { Flags::BARRIER });
        keep(TraceFlags::FUA, if sequences { Flags::FUA } else { Flags::BARRIER });
        flags
    }
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    op: Op,
    bytes: u64,
    due_ns: u64,
}

struct Process {
    timing: Timing,
    has_completions: bool,
    /// Time of the trace's first I/O here, nanoseconds: not 0, which blkparse takes for no time at all.
    origin_ns: u64,
    last_issue_ns: u64,
    place: Place,
    /// By operation number.
    flight: Vec<Option<InFlight>>,
    in_flight: u32,
    result: JobResult,
    started: bool,
}

impl Process {
    async fn run(&mut self, sys: &Sys, trace: &Replay, number: usize) {
        let packed = &trace.processes[number].packed;
        let mut position = Position::default();
        while let Some(io) = position.next(packed) {
            let due_ns = self.wait_for_turn(sys, &io).await;
            self.submit(sys, &io, due_ns).await;
        }
        self.hand_over(sys);
        while self.in_flight > 0 {
            let done = sys.next_completion().await;
            self.finish(done);
        }
    }

    /// Wait until it is the I/O's turn; when that was.
    async fn wait_for_turn(&mut self, sys: &Sys, io: &Io) -> u64 {
        let due_ns = match self.timing {
            Timing::Open | Timing::Scaled(_) => self.origin_ns.saturating_add(self.timing.scale(io.at_ns)),
            Timing::Closed => {
                let freed_ns = self.wait_for_room(sys, io).await;
                match (self.has_completions, self.started) {
                    (_, false) => self.origin_ns.saturating_add(io.at_ns),
                    (true, true) => freed_ns.max(self.last_issue_ns).saturating_add(io.gap_ns),
                    // The distance from issue to issue; what the one before took is part of it.
                    (false, true) => freed_ns.max(self.last_issue_ns.saturating_add(io.gap_ns)),
                }
            }
            Timing::Asap => {
                let freed_ns = self.wait_for_room(sys, io).await;
                freed_ns.max(self.last_issue_ns).saturating_add(self.place.rules.cpu_per_io_ns)
            }
        };
        let due_ns = due_ns.min(LATEST_NS);
        if due_ns > sys.now() {
            if !io.joins {
                self.hand_over(sys);
            }
            sys.sleep_until(due_ns).await;
        }
        while let Some(done) = sys.try_completion() {
            self.finish(done);
        }
        due_ns
    }

    /// Wait until no more I/Os are in flight than were in the trace when this one arrived; when the last of those waited for
    /// was done (0: there was nothing to wait for).
    async fn wait_for_room(&mut self, sys: &Sys, io: &Io) -> u64 {
        let room = if self.has_completions { io.outstanding } else { 0 };
        let mut freed_ns = 0;
        if self.in_flight > room {
            self.hand_over(sys);
        }
        while self.in_flight > room {
            let done = sys.next_completion().await;
            freed_ns = done.at_ns;
            self.finish(done);
        }
        freed_ns
    }

    /// What was submitted is not held back any longer.
    fn hand_over(&self, sys: &Sys) {
        if self.in_flight > 0 {
            sys.close_plug();
            sys.unplug();
        }
    }

    async fn submit(&mut self, sys: &Sys, io: &Io, due_ns: u64) {
        if !self.started {
            self.started = true;
            (self.result.started_ns, self.result.ended_ns) = (due_ns, due_ns);
        }
        let raw = self.place.raw(io);
        sys.open_plug();
        let op = sys.submit_raw(&raw).await;
        self.last_issue_ns = sys.now();
        self.note(op, InFlight { op: raw.op, bytes: raw.sectors * 512, due_ns });
        self.in_flight += 1;
        self.result.depth = self.result.depth.max(self.in_flight);
        self.result.count_depth(self.in_flight);
    }

    fn note(&mut self, op: OpId, io: InFlight) {
        let number = op.number();
        if number >= self.flight.len() {
            self.flight.resize(number + 1, None);
        }
        self.flight[number] = Some(io);
    }

    /// An I/O is done. Its time runs from when it was due: waiting for a request slot counts.
    fn finish(&mut self, done: OpDone) {
        let Some(io) = self.flight.get_mut(done.op.number()).and_then(Option::take) else { return };
        self.in_flight -= 1;
        let result = &mut self.result;
        result.ended_ns = result.ended_ns.max(done.at_ns);
        let took_ns = done.at_ns.saturating_sub(io.due_ns);
        let direction = match io.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            Op::Flush => return result.sync.record(took_ns),
        };
        let transfer = &mut result.transfers[direction];
        transfer.clat.record(took_ns);
        transfer.lat.record(took_ns);
        transfer.add(io.bytes, done.at_ns.saturating_sub(result.started_ns));
    }
}
