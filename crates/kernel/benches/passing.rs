//! What a request costs in the core as the module calls it, for `scripts/instructions passing` to count: `passing ELEVATOR LEVELS N`.
//! A fast device with one job: a request arrives at an empty queue, goes at once, and is done while 31 others are in the
//! device. Its task is in a cgroup, LEVELS below the root (0: in the root, and there are no cgroups).

use std::collections::VecDeque;
use std::hint::black_box;

use fairlift_core::context::IoClass;
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, Host, Setup};

/// Before it counts: means are known.
const WARM_UP: usize = 20_000;
/// Requests in the device.
const DEPTH: usize = 32;
/// From one arrival to the next, nanoseconds.
const STEP_NS: u64 = 10_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let [elevator, levels, requests] = &args[..] else {
        return; // `cargo bench` without arguments runs every bench; this one is a tool
    };
    let levels: usize = levels.parse().expect("LEVELS is a number");
    let requests = WARM_UP + requests.parse::<usize>().expect("N is a number");
    let elevator = fairlift_kernel::host::ELEVATORS.iter().find(|name| *name == elevator);
    let elevator = elevator.expect("one of the module's elevators");
    // As the module has it (fl_wants_contexts): the others treat all tasks of a group alike.
    let wants_contexts = !["noop", "deadline"].contains(elevator);
    let setup = Setup {
        elevator,
        profile: "",
        requests_max: 1024,
        contexts_max: if wants_contexts { 64 } else { 0 },
        groups_max: 64,
        records_max: 0,
        rotational: false,
    };
    let mut host = Host::new(setup).expect("there is such an elevator");
    let mut group = 0;
    for _ in 0..levels {
        group = host.group_new(group, 100, IoClass::BestEffort).expect("there is room");
    }
    let context = if wants_contexts { host.context_new(group, IoPrio::DEFAULT) } else { 0 };
    let (mut random, mut now) = (1_u64, 0);
    let mut in_device = VecDeque::with_capacity(DEPTH);
    for _ in 0..requests {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        now += STEP_NS;
        // One that idles may hold some back.
        if host.taken() == DEPTH {
            host.complete(in_device.pop_front().expect("it does not hold all back"), now - STEP_NS / 2);
        }
        let arrival = Arrival {
            op: Op::Read,
            flags: Flags::NONE,
            sector: (random >> 40) << 3,
            sectors: 8,
            context,
            group,
            own: wants_contexts,
            ioprio: IoPrio::DEFAULT,
        };
        host.insert(&arrival, now).expect("there are slots");
        while let Dispatch::Issue(rq) = host.dispatch(now) {
            in_device.push_back(fairlift_core::collections::Id::index(rq) as u32);
        }
    }
    black_box(&mut host);
}
