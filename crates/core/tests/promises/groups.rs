//! Groups that come, go and change: a tenant does with its own part what it likes.

use fairlift_core::{GroupId, MS};

use crate::programs::{Dice, Load, Run, Ticker};
use crate::promise::{Attack, Promise};
use crate::rig::{Host, Io, Program, Task};

/// Makes a group below its own every so often, moves its readers there and removes the last one.
struct Churner {
    period_ns: u64,
    moves_tasks: bool,
    tasks: Vec<Task>,
    child: Option<GroupId>,
    dice: Dice,
}

impl Churner {
    fn new(period_ns: u64, moves_tasks: bool) -> Churner {
        Churner { period_ns, moves_tasks, tasks: Vec::new(), child: None, dice: Dice::NEW }
    }
}

impl Program for Churner {
    fn start(&mut self, host: &mut Host<'_>) {
        self.timer(host, 0);
        for _ in 0..8 {
            self.tasks.push(host.task(self.child.unwrap_or(host.my_group())));
        }
        for task in &self.tasks {
            (0..4).for_each(|_| host.submit(Load::SERIAL.io(*task, self.dice.place())));
        }
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        host.submit(Io { place: self.dice.place(), ..io });
    }

    fn timer(&mut self, host: &mut Host<'_>, _tag: u64) {
        let last = self.child.take();
        self.child = host.try_group(host.my_group(), 10_000).ok();
        if let Some(child) = self.child
            && self.moves_tasks
        {
            self.tasks.iter().for_each(|task| host.move_task(*task, child));
        }
        if let Some(last) = last {
            host.remove_group(last);
        }
        host.wake_in(self.period_ns, 0);
    }
}

#[test]
fn making_and_removing_groups_gains_nothing() {
    let attacks: [Attack<'_>; 3] = [
        ("every 5 ms, with its tasks", &|machine, group, _| {
            machine.tenant(group, Churner::new(5 * MS, true));
        }),
        ("every 5 ms, an empty one", &|machine, group, _| {
            machine.tenant(group, Churner::new(5 * MS, false));
        }),
        ("every 0.1 ms, with its tasks", &|machine, group, _| {
            machine.tenant(group, Churner::new(MS / 10, true));
        }),
    ];
    Promise::NEW.holds_against_each(&attacks);
}

/// Its readers move to and fro between two child groups and its own.
struct Mover {
    /// After each answer, or every 5 ms.
    each_time: bool,
    homes: Vec<GroupId>,
    tasks: Vec<Task>,
    moves: usize,
    dice: Dice,
}

impl Mover {
    fn new(each_time: bool) -> Mover {
        Mover { each_time, homes: Vec::new(), tasks: Vec::new(), moves: 0, dice: Dice::NEW }
    }

    fn move_on(&mut self, host: &mut Host<'_>, task: Task) {
        self.moves += 1;
        host.move_task(task, self.homes[self.moves % self.homes.len()]);
    }
}

impl Program for Mover {
    fn start(&mut self, host: &mut Host<'_>) {
        let mine = host.my_group();
        self.homes = vec![mine];
        self.homes.extend((0..2).filter_map(|_| host.try_group(mine, 10_000).ok()));
        self.tasks.extend((0..8).map(|_| host.task(mine)));
        for task in &self.tasks {
            (0..4).for_each(|_| host.submit(Load::SERIAL.io(*task, self.dice.place())));
        }
        host.wake_in(5 * MS, 0);
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        if self.each_time {
            self.move_on(host, io.task);
        }
        host.submit(Io { place: self.dice.place(), ..io });
    }

    fn timer(&mut self, host: &mut Host<'_>, _tag: u64) {
        for task in self.tasks.clone() {
            self.move_on(host, task);
        }
        host.wake_in(5 * MS, 0);
    }
}

#[test]
fn moving_tasks_between_ones_groups_gains_nothing() {
    let attacks: [Attack<'_>; 2] = [
        ("every 5 ms", &|machine, group, _| {
            machine.tenant(group, Mover::new(false));
        }),
        ("after each answer", &|machine, group, _| {
            machine.tenant(group, Mover::new(true));
        }),
    ];
    Promise::NEW.holds_against_each(&attacks);
}

/// The attacker's own children, from 1 to 10,000 and back.
#[test]
fn reweighing_ones_children_gains_nothing() {
    Promise::NEW.holds_against(|machine, group, _| {
        let children: Vec<_> = (0..2).map(|_| machine.group(group, 1)).collect();
        for child in &children {
            machine.tenant(*child, Run::new(Load::DEEP));
        }
        machine.tenant(
            group,
            Ticker::new(5 * MS, move |host, count| {
                let weights = if count % 2 == 0 { [1, 10_000] } else { [10_000, 1] };
                children
                    .iter()
                    .zip(weights)
                    .for_each(|(child, weight)| host.machine().set_weight(*child, weight));
            }),
        );
    });
}
