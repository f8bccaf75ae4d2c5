//! One request that takes ten seconds: a device that fails, and a tenant that reads where it does.

use fairlift_core::{GroupId, MS, SECOND};

use crate::programs::{Load, Run, Where};
use crate::promise::{Report, part};
use crate::rig::{Host, Io, Machine, POLICIES, Place, Program, SERVICE_NS, SLOW_NS, SLOW_PLACE, Setup};

const WEIGHTS: [u32; 3] = [1000, 50, 10];
const RUN_NS: u64 = 40 * SECOND;
/// What is left of the run: each of the two others has its due part of it.
const REST_NS: u64 = RUN_NS - SLOW_NS;
/// A turn: who gets a hundredth of the device has one in a hundred of them.
const TURN_NS: u64 = 100 * MS;
/// Of what is due.
const ERROR_MAX: f64 = 0.1;

/// Reads where the device is slow, once; then it is gone.
struct Once;

impl Program for Once {
    fn start(&mut self, host: &mut Host<'_>) {
        host.wake_in(100 * MS, 0);
    }

    fn timer(&mut self, host: &mut Host<'_>, _tag: u64) {
        let task = host.task(host.my_group());
        host.submit(Load::SERIAL.io(task, Place::Own(SLOW_PLACE)));
    }

    fn done(&mut self, host: &mut Host<'_>, io: Io) {
        host.exit(io.task);
    }
}

fn nobody_starves(fairness: &str) {
    let mut report = Report::new("the two others by weight: device time after the slow one, longest wait");
    for policy in POLICIES {
        for charge in ["time", "bytes", "requests"] {
            for depth in [1, 32] {
                let setup = Setup::new(policy, charge, depth);
                for slow in 0..3 {
                    for load in [Load::DEEP, Load::SERIAL] {
                        let load = Load { place: Where::Ascending, ..load };
                        check(&mut report, &setup, fairness, slow, load);
                    }
                }
            }
        }
    }
    report.check();
}

#[test]
fn one_slow_request_is_no_reason_to_starve() {
    nobody_starves("1");
}

#[test]
fn one_slow_request_is_no_reason_to_starve_where_overruns_are_forgiven() {
    nobody_starves("0");
}

fn check(report: &mut Report, setup: &Setup, fairness: &str, slow: usize, load: Load) {
    let mut machine = Machine::new(setup);
    machine.set("fairness", fairness);
    let groups = WEIGHTS.map(|weight| machine.group(GroupId::ROOT, weight));
    let others: Vec<_> = (0..3).filter(|index| *index != slow).collect();
    let tenants: Vec<_> = others.iter().map(|index| machine.tenant(groups[*index], Run::new(load))).collect();
    machine.tenant(groups[slow], Once);
    machine.run(RUN_NS);
    let mut kept = true;
    let mut text = String::new();
    for at in 0..2 {
        let [mine, theirs] = [others[at], others[1 - at]].map(|index| u64::from(WEIGHTS[index]));
        let (got, due) = (machine.got(tenants[at]), part(mine, theirs));
        let due_ns = due * REST_NS as f64;
        // All that it has waiting, twice: the order of turns may take one round to settle.
        let own_ns = TURN_NS + 2 * u64::from(load.depth) * SERVICE_NS;
        let wait_max_ns = SLOW_NS + (own_ns as f64 / due) as u64;
        kept &= got.time_ns as f64 >= due_ns * (1.0 - ERROR_MAX) - TURN_NS as f64;
        kept &= got.wait_max_ns <= wait_max_ns;
        let [got_ms, waited_ms] = [got.time_ns, got.wait_max_ns].map(|ns| ns / MS);
        text += &format!("; {mine}: {got_ms} of {:.0} ms, waited {waited_ms} ms", due_ns / MS as f64);
    }
    report.row(!kept, || {
        let Setup { policy, charge, depth, .. } = setup;
        let cell = format!("{:<13} {:<8} {charge:<8} depth {depth:>2}", policy.elevator, policy.profile);
        format!("{cell}, {:>2} each: {} was slow{text}", load.depth, WEIGHTS[slow])
    });
}
