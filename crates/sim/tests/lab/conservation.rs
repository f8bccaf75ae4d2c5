//! Nothing is lost, nothing is counted twice.

use fairlift_sim::device::Op;

use crate::harness::{Lab, lab};

/// Direct I/O: what the jobs moved is what the device moved, and nothing is left over.
fn assert_conserved(lab: &Lab) {
    let run = lab.run();
    let moved = |d: usize| run.processes.iter().map(|p| p.transfers[d].bytes).sum::<u64>();
    assert_eq!(run.block.sectors[0] * 512, moved(0), "read");
    assert_eq!(run.block.sectors[1] * 512, moved(1) + moved(2), "written and discarded");
    let ios: u64 = run.processes.iter().map(|p| p.ios()).sum();
    assert!(run.block.bios >= ios);
    // Requests may also join each other.
    assert!(run.block.requests.iter().take(3).sum::<u64>() + run.block.merged <= run.block.bios);
    assert!(run.block.busy_ns <= run.duration_ns);
    assert_eq!(run.block.device_time_ns.iter().sum::<u64>(), run.block.busy_ns);
    assert_eq!(lab.run_logged().unfinished, [0, 0, 0], "waiting tasks, requests, operations");
}

#[test]
fn direct_reads_and_writes_reach_the_device_whole() {
    for kernel in ["2.6.31", "2.6.34", "6.12"] {
        for scheduler in ["noop", "deadline", "cfq"] {
            let text = "[r]\nrw=randread\nsize=2m\nbs=16k\ndirect=1\nioengine=libaio\niodepth=7\nnumjobs=2\n\
                        [w]\nrw=write\nsize=2m\nbs=4k\ndirect=1\n[m]\nrw=randrw\nsize=1m\nbsrange=1k-32k\ndirect=1\n";
            for device in ["null", "sata7200-2009", "flash-kd"] {
                assert_conserved(&lab(text).on(device).under(scheduler).kernel(kernel));
            }
        }
    }
}

#[test]
fn large_io_is_split_and_comes_back_as_one() {
    let run = lab("[a]\nrw=read\nsize=64m\nbs=8m\ndirect=1\n").run();
    assert_eq!(run.processes[0].transfers[0].ios, 8);
    assert_eq!(run.block.requests[0], 128, "512 KiB a request");
}

#[test]
fn trims_are_discards() {
    let logged = lab("[a]\nrw=trim\nsize=1m\nbs=64k\ndirect=1\n").run_logged();
    assert_eq!(logged.log.kib(Op::Discard), [64; 16]);
    assert_eq!(logged.processes[0].transfers[2].ios, 16);
    let both = lab("[a]\nrw=trimwrite\nsize=1m\nbs=64k\ndirect=1\n").run_logged();
    assert_eq!((both.log.count(Op::Discard), both.log.count(Op::Write)), (16, 16));
}

/// A hole has no blocks: trimming one needs no I/O, and does not stop the clock.
#[test]
fn holes_cost_no_io_but_time() {
    let mut lab = lab("[a]\nrw=trim\nsize=1m\nbs=4k\ndirect=1\ntime_based\nruntime=10ms\n");
    lab.fresh_files = true;
    let run = lab.run();
    assert_eq!(run.block.requests, [0; 4]);
    assert_eq!(run.processes[0].transfers[2].ios, 2000, "5 us of processor time each");
}

#[test]
fn fresh_files_are_written_in_a_row() {
    let mut lab = lab("[a]\nrw=randwrite\nsize=1m\nbs=4k\ndirect=1\n");
    lab.fresh_files = true;
    let sectors: Vec<u64> = lab.run_logged().log.commands.iter().map(|(_, c)| c.sector).collect();
    assert_eq!(sectors, (0..256).map(|i| i * 8).collect::<Vec<_>>());
}

#[test]
fn many_small_files_start_at_once() {
    let run = lab("[a]\nrw=randwrite\nnrfiles=20000\nsize=81920000\nbs=4k\ndirect=1\n").run();
    assert_eq!(run.processes[0].ios(), 20_000);
}
