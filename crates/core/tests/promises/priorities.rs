//! Priorities, flags and hints of a task count inside its group.

use fairlift_core::{Flags, IoPrio, MS, Op};

use crate::programs::{Dice, Load};
use crate::promise::{Attack, Promise, Victim, load};
use crate::rig::{Host, Io, Program, Task};

#[test]
fn a_priority_of_ones_own_gains_nothing() {
    let with = |ioprio| load(Load { ioprio, ..Load::DEEP });
    let attacks: [Attack<'_>; 4] = [
        ("real time 0", &with(IoPrio::RealTime(0))),
        ("real time 0, one at a time", &load(Load { ioprio: IoPrio::RealTime(0), ..Load::SERIAL })),
        ("best effort 0", &with(IoPrio::BestEffort(0))),
        ("idle", &with(IoPrio::Idle)),
    ];
    // A slice of cfq's for the best level takes 180 ms instead of 100.
    Promise { extra_wait_ns: 80 * MS, ..Promise::NEW }.holds_against_each(&attacks);
}

const PRIORITIES: [IoPrio; 4] =
    [IoPrio::RealTime(0), IoPrio::Idle, IoPrio::BestEffort(7), IoPrio::RealTime(7)];

/// Its tasks get another priority after each answer, and its bios bring their own.
struct Restless {
    tasks: Vec<Task>,
    changes: usize,
    dice: Dice,
}

impl Program for Restless {
    fn start(&mut self, host: &mut Host<'_>) {
        for _ in 0..4 {
            let task = host.task(host.my_group());
            self.tasks.push(task);
            (0..8).for_each(|_| host.submit(Load::SERIAL.io(task, self.dice.place())));
        }
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        self.changes += 1;
        host.set_ioprio(io.task, PRIORITIES[self.changes % 4]);
        let ioprio = Some(PRIORITIES[self.changes / 3 % 4]);
        host.submit(Io { ioprio, place: self.dice.place(), ..io });
    }
}

#[test]
fn changing_ones_priority_all_the_time_gains_nothing() {
    Promise::NEW.holds_against(|machine, group, _| {
        machine.tenant(group, Restless { tasks: Vec::new(), changes: 0, dice: Dice::NEW });
    });
}

#[test]
fn flags_gain_nothing() {
    let reads = |flags| load(Load { flags, ..Load::DEEP });
    let writes = |flags| load(Load { flags, ..Load::WRITES });
    let attacks: [Attack<'_>; 6] = [
        ("META reads", &reads(Flags::META)),
        ("NOIDLE reads", &reads(Flags::NOIDLE)),
        ("READAHEAD NOMERGE reads", &reads(Flags::READAHEAD | Flags::NOMERGE)),
        ("SYNC writes", &writes(Flags::SYNC)),
        ("SYNC META writes", &writes(Flags::SYNC | Flags::META)),
        ("SYNC NOIDLE writes", &writes(Flags::SYNC | Flags::NOIDLE)),
    ];
    Promise { victims: &[Victim::Deep, Victim::Serial, Victim::Writer], ..Promise::NEW }
        .holds_against_each(&attacks);
}

#[test]
fn a_flood_of_writes_nobody_waits_for_gains_nothing() {
    let attacks: [Attack<'_>; 2] = [
        ("32 writes", &load(Load::WRITES)),
        ("128 writes by 4 tasks", &load(Load { tasks: 4, ..Load::WRITES })),
    ];
    Promise { victims: &[Victim::Deep, Victim::Serial, Victim::Writer], ..Promise::NEW }
        .holds_against_each(&attacks);
}

/// Reads are sync, the victim's writes are not.
#[test]
fn reads_take_nothing_from_another_groups_writes() {
    let attacks: [Attack<'_>; 2] = [("32 reads", &load(Load::DEEP)), ("one at a time", &load(Load::SERIAL))];
    Promise { victims: &[Victim::Writer], ..Promise::NEW }.holds_against_each(&attacks);
}

/// Says after each answer and every millisecond that one of its tasks waits for another, or for nobody known.
struct Yielder {
    tasks: Vec<Task>,
    calls: usize,
    dice: Dice,
}

impl Yielder {
    fn hint(&mut self, host: &mut Host<'_>) {
        self.calls += 1;
        let [from, to] = [self.calls, self.calls + 1].map(|index| self.tasks[index % self.tasks.len()]);
        host.yield_to(from, (!self.calls.is_multiple_of(3)).then_some(to));
    }
}

impl Program for Yielder {
    fn start(&mut self, host: &mut Host<'_>) {
        host.machine().set_elevator("yield", "1");
        for number in 0..4 {
            let task = host.task(host.my_group());
            self.tasks.push(task);
            let op = if number % 2 == 0 { Op::Read } else { Op::Write };
            host.submit(Io { op, ..Load::SYNC_WRITES.io(task, self.dice.place()) });
        }
        host.wake_in(MS, 0);
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        self.hint(host);
        host.submit(Io { place: self.dice.place(), ..io });
    }

    fn timer(&mut self, host: &mut Host<'_>, _tag: u64) {
        self.hint(host);
        host.wake_in(MS, 0);
    }
}

#[test]
fn yielding_gains_nothing() {
    Promise::NEW.holds_against(|machine, group, _| {
        machine.tenant(group, Yielder { tasks: Vec::new(), calls: 0, dice: Dice::NEW });
    });
}
