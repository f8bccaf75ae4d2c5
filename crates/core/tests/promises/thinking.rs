//! Think time: a tenant that lets the device wait for it pays for the wait.

use fairlift_core::MS;

use crate::programs::{Dice, Every, Load, Run};
use crate::promise::{Attack, Promise, Victim, all_hold, load};
use crate::rig::{Host, Io, Program, SECTOR_NS, Setup, Task};

/// A request takes 0.1 ms on this one.
fn on_flash(setup: Setup) -> Setup {
    Setup { access_ns: MS / 10 - 8 * SECTOR_NS, ..setup }
}

const ON_FLASH: Promise = Promise { setup: on_flash, ..Promise::NEW };

#[test]
fn one_read_every_7_ms_costs_others_no_more_than_its_due() {
    Promise::NEW.holds_against(|machine, group, _| {
        machine.tenant(group, Every::new(7 * MS, Load::SERIAL));
    });
}

#[test]
fn one_read_every_7_ms_costs_others_no_more_on_flash() {
    ON_FLASH.holds_against(|machine, group, _| {
        machine.tenant(group, Every::new(7 * MS, Load::SERIAL));
    });
}

/// Of equal weight: half of the device is the thinker's, the waits for it included.
#[test]
fn a_thinker_of_equal_weight_leaves_others_their_half() {
    // Between two turns of a tenant there may be two of an equal one.
    let equals = |promise| Promise {
        weight_of_attacker: 100,
        weight_of_victim: 100,
        extra_wait_ns: 116 * MS,
        ..promise
    };
    all_hold(
        &[equals(Promise::NEW), equals(ON_FLASH)],
        &[("every 7 ms", &|machine, group, _| {
            machine.tenant(group, Every::new(7 * MS, Load::SERIAL));
        })],
    );
}

/// Around `group_idle` and `slice_idle` of cfq, which are 8 ms, too. On the serial device and beside the deep victim: the waits
/// are the same elsewhere.
#[test]
fn no_think_time_is_a_good_one() {
    let think = |think_us: u64| load(Load { think_ns: think_us * 1000, ..Load::SERIAL });
    let attacks: [Attack<'_>; 9] = [
        ("thinks 0.1 ms", &think(100)),
        ("thinks 0.5 ms", &think(500)),
        ("thinks 1 ms", &think(1_000)),
        ("thinks 2 ms", &think(2_000)),
        ("thinks 4 ms", &think(4_000)),
        ("thinks 7 ms", &think(7_000)),
        ("thinks 7.9 ms", &think(7_900)),
        ("thinks 8.1 ms", &think(8_100)),
        ("thinks 12 ms", &think(12_000)),
    ];
    let quick = |promise| Promise { depths: &[1], victims: &[Victim::Deep], ..promise };
    all_hold(&[quick(Promise::NEW), quick(ON_FLASH)], &attacks);
}

#[test]
fn thinking_writers_take_no_more_than_their_due() {
    Promise::NEW.holds_against(load(Load { think_ns: 7 * MS, ..Load::SYNC_WRITES }));
}

/// Several thinkers whose waits follow each other.
#[test]
fn many_thinkers_together_are_waited_for_no_longer() {
    Promise::NEW.holds_against(load(Load { tasks: 8, think_ns: 7 * MS, ..Load::SERIAL }));
}

/// Short thoughts are learnt first, so that the long ones are waited for.
#[test]
fn changing_ones_think_time_gains_nothing() {
    Promise::NEW.holds_against(|machine, group, _| {
        machine.tenant(group, Moody { task: None, sent: 0, dice: Dice::NEW });
    });
}

/// A think time in each of the attacker's child groups.
#[test]
fn thinkers_in_many_groups_are_waited_for_no_longer() {
    Promise::NEW.holds_against(|machine, group, _| {
        for _ in 0..8 {
            let child = machine.group(group, 100);
            machine.tenant(child, Run::new(Load { think_ns: 7 * MS, ..Load::SERIAL }));
        }
    });
}

/// Reads 50 times without a thought, then 5 times after 7.9 ms.
struct Moody {
    task: Option<Task>,
    sent: u64,
    dice: Dice,
}

impl Program for Moody {
    fn start(&mut self, host: &mut Host<'_>) {
        self.task = Some(host.task(host.my_group()));
        self.timer(host, 0);
    }

    fn done(&mut self, host: &mut Host<'_>, _io: Io) {
        match self.sent % 55 {
            0..50 => self.timer(host, 0),
            _ => host.wake_in(79 * MS / 10, 0),
        }
    }

    fn timer(&mut self, host: &mut Host<'_>, _tag: u64) {
        self.sent += 1;
        host.submit(Load::SERIAL.io(self.task.expect("started"), self.dice.place()));
    }
}
