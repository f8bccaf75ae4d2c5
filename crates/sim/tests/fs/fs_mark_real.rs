//! fs_mark in the lab against fs_mark on a real ext4: the same requests for each fsync, from the same threads, in the same order.
//!
//! `tests/data/README.md` says how the real run was recorded; `docs/filesystems.md` shows both side by side.

use fairlift_sim::block::TraceKind;
use fairlift_sim::program::{self, ProgramSpec};
use fairlift_trace::{Action, Flags as Recorded, Op as RecordedOp, Options, TraceReader};

use super::harness::{self, SECOND, computer};

const REAL: &[u8] = include_bytes!("../data/fs_mark-ext4-linux-6.18.ftrace");
const COMMAND: &str = "fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096 -n 20";
const FILES: usize = 20;
/// Descriptor, and copies of bitmaps, group descriptor, inode, directory: the sixth copy is the directory's inode, if it lies in
/// another block than the file's.
const BODY_KIB: [u32; 2] = [24, 28];

/// A request as both runs have it. A flush and the commit block come from a kernel worker in the real run: nobody's.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Request {
    by: &'static str,
    what: &'static str,
    kib: u32,
}

fn thread(name: &str) -> &'static str {
    ["fs_mark", "jbd2"].into_iter().find(|known| name.starts_with(known)).unwrap_or("")
}

fn real() -> Vec<Request> {
    let mut reader = TraceReader::from_read("real", REAL, &Options::default()).unwrap();
    let mut requests = Vec::new();
    while let Some(event) = reader.next() {
        let event = event.unwrap();
        if event.action != Action::Issue || event.op == RecordedOp::Read {
            continue;
        }
        let meta = event.flags.has(Recorded::META);
        let what = match event.op {
            RecordedOp::Flush => "flush",
            RecordedOp::Write if !event.flags.has(Recorded::SYNC) => "W",
            RecordedOp::Write if meta => "WSM",
            _ => "WS",
        };
        let name = event.comm.map_or("", |comm| reader.names().get(comm));
        let by = if what == "flush" || thread(name).is_empty() { "" } else { thread(name) };
        requests.push(Request { by, what, kib: (event.bytes / 1024) as u32 });
    }
    requests
}

fn lab() -> Vec<Request> {
    let mut like_the_real_one = computer("6.12", "ext4", "size_mib=1024");
    like_the_real_one.scheduler = "noop";
    let mut simulation = like_the_real_one.build();
    simulation.with_machine(|m| m.block_mut().start_trace());
    let spec = ProgramSpec::new("fs_mark", COMMAND).unwrap();
    program::spawn(&mut simulation, &[spec], &Default::default(), 1).unwrap();
    simulation.run(60 * SECOND, &mut |_| {});
    let issued = harness::lines(&simulation).into_iter().filter(|l| l.kind == TraceKind::Issued);
    let request = |line: harness::Line| {
        let what = match line.what.as_str() {
            "FLUSH" => "flush",
            what if what.contains("+sync+meta") => "WSM",
            what if what.contains("+sync") => "WS",
            _ => "W",
        };
        Request { by: if what == "flush" { "" } else { thread(&line.task) }, what, kib: line.kib() }
    };
    issued.map(request).collect()
}

/// The requests of each fsync: from one data write of the program to the next.
fn by_fsync(requests: &[Request]) -> Vec<Vec<Request>> {
    let mut fsyncs: Vec<Vec<Request>> = Vec::new();
    for request in requests {
        if request.by == "fs_mark" {
            fsyncs.push(Vec::new());
        }
        if let Some(fsync) = fsyncs.last_mut() {
            // The real commit block is sent on by the worker that ran the flush before it.
            let after_flush = fsync.last().is_some_and(|before| before.what == "flush");
            let by = if after_flush && request.what == "WSM" { "jbd2" } else { request.by };
            fsync.push(Request { by, ..request.clone() });
        }
    }
    fsyncs
}

/// Data from the caller; the journal's body, in one request, from its thread; the commit block between two flushes.
#[test]
fn an_fsync_makes_the_requests_of_the_real_one() {
    let (real, lab) = (by_fsync(&real()), by_fsync(&lab()));
    assert_eq!((real.len(), lab.len()), (FILES, FILES));
    // The first commits the directory too, and says in the journal's superblock where the log starts: in both runs.
    for fsyncs in [&real, &lab] {
        assert_eq!(fsyncs[0][1], Request { by: "jbd2", what: "WSM", kib: 4 });
        assert!(fsyncs[0][2].kib > BODY_KIB[1], "{:?}", fsyncs[0]);
    }
    for (number, (real, lab)) in real.iter().zip(&lab).enumerate().skip(1) {
        let without_body_size = |fsync: &[Request]| {
            let mut fsync = fsync.to_vec();
            assert!(BODY_KIB.contains(&fsync[1].kib), "fsync {number}: {fsync:?}");
            fsync[1].kib = 0;
            fsync
        };
        assert_eq!(without_body_size(real), without_body_size(lab), "fsync {number}");
        assert_eq!(real.len(), 5, "data, body, flush, commit block, flush");
    }
    // Once the inodes have left the directory's block, for the size of the body too.
    assert_eq!(real[FILES - 1], lab[FILES - 1]);
}
