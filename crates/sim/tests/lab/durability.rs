//! fsync, O_SYNC, and what reaches the device's cache. As in fio no fsync follows a job's last write.

use fairlift_sim::device::Op;

use crate::harness::{MS, SECOND, lab};

#[test]
fn fsync_every_n_writes_is_a_flush_every_n_writes() {
    for direct in [0, 1] {
        for kernel in ["2.6.31", "6.12"] {
            let text = format!("[a]\nrw=write\nsize=1m\nbs=4k\nfsync=16\ndirect={direct}\n");
            let logged = lab(&text).on("sata7200-2009").kernel(kernel).run_logged();
            assert_eq!(logged.processes[0].sync.count(), 15);
            assert_eq!(logged.log.count(Op::Flush), 15, "direct={direct} {kernel}");
            assert_eq!(logged.log.kib(Op::Write).iter().sum::<u32>(), if direct == 1 { 1024 } else { 960 });
        }
    }
}

#[test]
fn fdatasync_counts_as_well() {
    let logged = lab("[a]\nrw=randwrite\nsize=256k\nbs=4k\nfdatasync=8\n").on("sata7200-2009").run_logged();
    assert_eq!((logged.processes[0].sync.count(), logged.log.count(Op::Flush)), (7, 7));
}

#[test]
fn a_device_without_a_volatile_cache_is_not_flushed() {
    let logged = lab("[a]\nrw=write\nsize=256k\nbs=4k\nfsync=1\n").on("null").kernel("6.12").run_logged();
    assert_eq!((logged.processes[0].sync.count(), logged.log.count(Op::Flush)), (63, 0));
}

/// What fsync returns for is on the device: each batch of writes comes before its flush.
#[test]
fn fsync_writes_what_is_dirty_before_it_flushes() {
    let logged = lab("[a]\nrw=write\nsize=256k\nbs=4k\nfsync=16\n").on("sata7200-2009").run_logged();
    let mut written = 0;
    let mut at_flush = Vec::new();
    for (_, command) in &logged.log.commands {
        match command.op {
            Op::Flush => at_flush.push(written),
            _ => written += command.sectors / 2,
        }
    }
    assert_eq!(at_flush, [64, 128, 192]);
}

#[test]
fn end_fsync_writes_the_rest() {
    let kib = |options: &str| {
        let logged = lab(&format!("[a]\nrw=write\nsize=1m\n{options}\n")).on("sata7200-2009").run_logged();
        (logged.log.kib(Op::Write).iter().sum::<u32>(), logged.log.count(Op::Flush))
    };
    assert_eq!(kib(""), (0, 0), "it all fits in memory");
    assert_eq!(kib("end_fsync=1"), (1024, 1));
    assert_eq!(kib("fsync_on_close=1"), (1024, 1));
}

#[test]
fn every_o_sync_write_is_on_the_medium_before_the_next() {
    for direct in [0, 1] {
        let text = format!("[a]\nrw=write\nsize=64k\nbs=4k\nsync=1\ndirect={direct}\n");
        let log = lab(&text).on("sata7200-2009").run_logged().log;
        let ops: Vec<Op> = log.commands.iter().map(|(_, c)| c.op).collect();
        assert_eq!(ops, [Op::Write, Op::Flush].repeat(16));
    }
}

/// To a block device a current kernel writes with FUA, and flushes once more when the write is done.
#[test]
fn a_synchronous_o_dsync_write_to_a_device_is_three_trips_without_fua() {
    let text = "[a]\nrw=write\nsize=64k\nbs=4k\nsync=dsync\ndirect=1\nioengine=psync\n";
    let log = lab(text).on("sata7200-2009").kernel("6.12").run_logged().log;
    let ops: Vec<Op> = log.commands.iter().map(|(_, c)| c.op).collect();
    assert_eq!(ops, [Op::Write, Op::Flush, Op::Flush].repeat(16));
}

/// With asynchronous depth a current kernel marks such writes FUA; a device that cannot do that is flushed after each.
#[test]
fn asynchronous_o_sync_writes_are_forced_out_too() {
    let text = "[a]\nrw=randwrite\nsize=64k\nbs=4k\nsync=dsync\ndirect=1\nioengine=libaio\niodepth=1\n";
    let log = lab(text).on("sata7200-2009").kernel("6.12").run_logged().log;
    assert_eq!((log.count(Op::Write), log.count(Op::Flush)), (16, 16));
    let deep = text.replace("iodepth=1", "iodepth=4");
    let log = lab(&deep).on("sata7200-2009").kernel("6.12").run_logged().log;
    assert_eq!(log.count(Op::Write), 16);
    assert!((4..=16).contains(&log.count(Op::Flush)), "flushes are shared: {}", log.count(Op::Flush));
}

/// Somebody else's writing to the same file does not keep an fsync waiting for ever.
#[test]
fn fsync_ends_beside_a_busy_writer_of_the_same_file() {
    let text = "[global]\nfilename=x\nsize=64m\nbs=64k\n[writer]\nrw=randwrite\nnorandommap\ntime_based\nruntime=20\nrate=20m\n\
                [syncer]\nrw=write\nbs=4k\nfsync=1\nnumber_ios=5\n";
    let run = lab(text).on("sata7200-2009").kernel("6.12").cache_mib(64).run();
    let syncer = run.processes.iter().find(|p| p.name == "syncer").unwrap();
    assert!(syncer.sync.max_ns() < 5 * SECOND, "{} ms", syncer.sync.max_ns() / MS);
}

/// An asynchronous job's fsync waits for the page cache and the device, not for its own I/O in flight.
#[test]
fn a_deep_job_syncs_in_between() {
    let text = "[a]\nrw=randwrite\nsize=1m\nbs=4k\ndirect=1\nioengine=libaio\niodepth=16\nfsync=32\n";
    for kernel in ["2.6.31", "6.12"] {
        let logged = lab(text).on("sata7200-2009").kernel(kernel).run_logged();
        assert_eq!((logged.processes[0].sync.count(), logged.log.count(Op::Write)), (7, 256));
        assert_eq!(logged.unfinished, [0, 0, 0]);
    }
}
