//! fs_mark in the lab against fs_mark on a real ext4: the same requests for each fsync, from the same threads, in the same order.
//!
//! `tests/data/README.md` says how the real run was recorded.

use fairlift_sim::block::TraceKind;
use fairlift_sim::program::{self, ProgramSpec};
use fairlift_trace::{Action, Flags as Recorded, Op as RecordedOp, Options, TraceReader};

use super::harness::{Computer, Line, computer};

const REAL: &[u8] = include_bytes!("../data/fs_mark-ext4-linux-6.18.ftrace");
const COMMAND: &str = "fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096 -n 20";
const FILES: usize = 20;

#[test]
fn probe() {
    let mut reader = TraceReader::from_read("real", REAL, &Options::default()).unwrap();
    while let Some(event) = reader.next() {
        let event = event.unwrap();
        if event.action == Action::Issue || event.action == Action::Queue {
            println!("{:?}", event);
        }
    }
    let c = computer("6.12", "ext4", "size_mib=1024");
    let mut c = c; c.scheduler = "noop";
    let mut simulation = c.build();
    simulation.with_machine(|m| m.block_mut().start_trace());
    let spec = ProgramSpec::new("fs_mark", COMMAND).unwrap();
    let _p = program::spawn(&mut simulation, &[spec], 1).unwrap();
    simulation.run(3_600_000_000_000, &mut |_| {});
    for l in super::harness::lines(&simulation) { if l.kind == TraceKind::Issued { println!("{} @{}", l.short(), l.sector); } }
}
