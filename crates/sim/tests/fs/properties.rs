//! What holds whatever programs do: streams of random system calls end, nothing hangs, after a sync nothing is dirty, the journal keeps
//! within its log (it panics otherwise), and equal seeds give equal traces.

use std::cell::Cell;
use std::rc::Rc;

use fairlift_core::IoPrio;
use fairlift_sim::engine::Sys;
use fairlift_sim::kernel::{Errno, Fallocate, Leftovers, OpenFlags};
use proptest::prelude::*;

use super::harness::{Computer, Line, SECOND, computer};

const KIB: u64 = 1024;
const SETUPS: &[(&str, &str, &str)] = &[
    ("2.6.28", "ext3", "barrier=1"),
    ("2.6.30", "ext3", "data=writeback"),
    ("2.6.30", "ext4", ""),
    ("2.6.31", "ext3", ""),
    ("2.6.32", "ext4", "data=writeback"),
    ("2.6.34", "ext4", "barrier=0"),
    ("2.6.34", "ext3", "barrier=1"),
    ("2.6.37", "ext4", ""),
    ("2.6.39", "ext3", ""),
    ("6.12", "ext4", ""),
    ("6.12", "ext3", ""),
    ("2.6.34", "raw", ""),
    ("6.12", "raw", ""),
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// One random call; errors other than those that can be expected fail.
async fn random_call(sys: &Sys, random: &mut Random, task: u64) -> Result<(), Errno> {
    let path = format!("/f{}", random.below(6));
    let mine = format!("/t{task}f{}", random.below(3));
    let size = 4 * KIB * (1 + random.below(64));
    let offset = 4 * KIB * random.below(128);
    let any = OpenFlags::RDWR.create();
    match random.below(16) {
        0 => sys.unlink(&path).await?,
        1 => sys.rename(&mine, &path).await?,
        2 => sys.mkdir(&format!("/d{}", random.below(3))).await?,
        3 => sys.sync().await,
        4 => sys.sleep(random.below(6_000_000_000)).await,
        n => {
            let flags = match n {
                5 => any.direct(),
                6 => any.o_sync(),
                7 => any.truncate(),
                _ => any,
            };
            let fd = sys.open(if random.below(2) == 0 { &path } else { &mine }, flags).await?;
            let done = calls_on_file(sys, random, fd, n, offset, size).await;
            sys.close(fd).await?;
            done?;
        }
    }
    Ok(())
}

async fn calls_on_file(
    sys: &Sys,
    random: &mut Random,
    fd: fairlift_sim::kernel::Fd,
    what: u64,
    offset: u64,
    size: u64,
) -> Result<(), Errno> {
    match what {
        8 => sys.ftruncate(fd, offset).await?,
        9 => {
            sys.pread(fd, offset, size).await?;
        }
        10 => {
            let modes = [Fallocate::Extend, Fallocate::KeepSize, Fallocate::Punch];
            sys.fallocate(fd, modes[random.below(3) as usize], offset, size).await?;
        }
        _ => {
            sys.pwrite(fd, offset, size).await?;
        }
    }
    match random.below(4) {
        0 => sys.fsync(fd).await?,
        1 => sys.fdatasync(fd).await?,
        _ => {}
    }
    Ok(())
}

/// Several tasks at random; then a sync, and everything is on the device.
fn run(computer: &Computer, seed: u64, tasks: u64, calls: u64) -> (Vec<Line>, Leftovers) {
    let ended = Rc::new(Cell::new(0));
    let count = Rc::clone(&ended);
    let ran = computer.run(move |sys, _| async move {
        let children: Vec<_> = (0..tasks)
            .map(|t| {
                let count = Rc::clone(&count);
                sys.spawn(IoPrio::DEFAULT, move |sys| async move {
                    let mut random = Random(seed.wrapping_mul(31).wrapping_add(t));
                    for _ in 0..calls {
                        match random_call(&sys, &mut random, t).await {
                            Ok(())
                            | Err(Errno::NoEntry | Errno::Exists | Errno::NotSupported | Errno::NoSpace) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    count.set(count.get() + 1);
                })
            })
            .collect();
        for child in children {
            sys.join(child).await;
        }
        sys.sync().await;
        // What was read ahead comes in.
        sys.sleep(5 * SECOND).await;
    });
    assert_eq!(ended.get(), tasks);
    let left = ran.simulation.with_machine(|m| {
        assert_eq!(m.block().unfinished(), [0, 0, 0]);
        m.kernel().leftovers()
    });
    (ran.lines, left)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_calls_end_and_sync_leaves_nothing(
        seed: u64,
        setup in 0..SETUPS.len(),
        tasks in 1..5_u64,
        small_journal: bool,
        small_memory: bool,
        scheduler in prop_oneof![Just("deadline"), Just("cfq"), Just("noop")],
    ) {
        let (version, fs, mount) = SETUPS[setup];
        let mut with = computer(version, fs, mount);
        with.device = if seed % 2 == 0 { "sata7200-2009" } else { "san-nvram" };
        with.scheduler = scheduler;
        if small_journal {
            with.journal_blocks = Some(512);
        }
        if small_memory {
            with.memory_mib = 2;
        }
        let (lines, left) = run(&with, seed, tasks, 40);
        prop_assert_eq!(left, Leftovers::default());
        let (again, _) = run(&with, seed, tasks, 40);
        prop_assert_eq!(lines, again);
    }
}
