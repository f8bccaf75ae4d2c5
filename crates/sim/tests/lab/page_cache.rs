//! Buffered reads and writes: readahead, the cache, writeback.

use fairlift_sim::device::Op;

use crate::harness::{MS, SECOND, lab};

/// Windows of 16, 32, 64, 128, 128... KiB, as without any advice.
#[test]
fn sequential_reads_ramp_up_to_128_kib() {
    let log = lab("[a]\nrw=read\nsize=1m\nfadvise_hint=0\n").run_logged().log;
    assert_eq!(log.kib(Op::Read), [16, 32, 64, 128, 128, 128, 128, 128, 128, 128, 16]);
}

/// fio says `POSIX_FADV_SEQUENTIAL` unless told not to: windows twice as large.
#[test]
fn told_that_it_is_sequential_the_kernel_reads_256_kib() {
    let log = lab("[a]\nrw=read\nsize=2m\n").run_logged().log;
    assert_eq!(log.kib(Op::Read)[..6], [16, 32, 64, 128, 256, 256]);
    assert_eq!(log.kib(Op::Read).iter().sum::<u32>(), 2048);
}

#[test]
fn random_reads_read_what_they_asked_for() {
    for hint in [0, 1] {
        let text = format!("[a]\nrw=randread\nsize=256m\nbs=8k\nnumber_ios=300\nfadvise_hint={hint}\n");
        let log = lab(&text).run_logged().log;
        let other = log.kib(Op::Read).iter().filter(|kib| **kib != 8).count();
        // Without a hint two blocks in a row, or the file's first, look sequential.
        assert!(other <= if hint == 1 { 0 } else { 3 }, "{other} of {}", log.commands.len());
    }
}

#[test]
fn the_second_read_of_a_page_is_free() {
    let text =
        "[a]\nfilename=x\nrw=read\nsize=1m\n[b]\nfilename=x\nstonewall\ninvalidate=0\nrw=randread\nsize=1m\n";
    let logged = lab(text).run_logged();
    assert_eq!(logged.log.kib(Op::Read).iter().sum::<u32>(), 1024);
    assert_eq!(logged.processes[1].ios(), 256);
    let again = lab(&text.replace("invalidate=0\n", "")).run_logged();
    assert_eq!(again.log.kib(Op::Read).iter().sum::<u32>(), 2048, "fio drops the cache first");
}

#[test]
fn a_small_cache_forgets_the_oldest() {
    let text = "[a]\nrw=read\nsize=4m\nloops=2\nioengine=libaio\n";
    let kib = |mib| lab(text).cache_mib(mib).run_logged().log.kib(Op::Read).iter().sum::<u32>();
    assert_eq!(kib(64), 4096);
    assert!(kib(1) > 8000, "{}", kib(1));
}

/// 64 MiB of cache: 6.4 MiB may be dirty before the flusher starts.
#[test]
fn background_writeback_starts_above_ten_percent() {
    let written = |size: &str| {
        let text = format!("[a]\nrw=write\nsize={size}\n[sleep]\nrw=read\nsize=4k\nstartdelay=3\n");
        lab(&text).cache_mib(64).run_logged().log.kib(Op::Write).iter().sum::<u32>()
    };
    assert_eq!(written("6m"), 0);
    assert!(written("8m") > 1024);
}

#[test]
fn what_is_dirty_for_thirty_seconds_is_written() {
    let text = "[a]\nrw=write\nsize=1m\n[sleep]\nrw=read\nsize=4k\nstartdelay=60\n";
    for kernel in ["2.6.31", "6.12"] {
        let log = lab(text).kernel(kernel).run_logged().log;
        let first = log.first(Op::Write).unwrap();
        assert!((30 * SECOND..=36 * SECOND).contains(&first), "{} s", first / SECOND);
        assert_eq!(log.kib(Op::Write).iter().sum::<u32>(), 1024);
    }
}

/// 64 MiB of cache, a disk of some 100 MB/s: 12.8 MiB go at memory speed, the rest at the disk's.
#[test]
fn writers_wait_above_twenty_percent() {
    for kernel in ["2.6.31", "6.12"] {
        let run =
            lab("[a]\nrw=write\nbs=64k\nsize=256m\n").on("sata7200-2009").kernel(kernel).cache_mib(64).run();
        let a = &run.processes[0];
        assert!(a.clat().percentile_ns(1.0) < MS / 2, "the first go at memory speed");
        assert!(a.clat().max_ns() > 5 * MS, "some wait");
        let megabytes = a.bandwidth() / 1e6;
        assert!((40.0..140.0).contains(&megabytes), "{megabytes} MB/s under {kernel}");
    }
}

/// The flusher writes long runs of one file before it turns to the next.
#[test]
fn writeback_makes_large_requests() {
    let log = lab("[a]\nrw=write\nsize=8m\nend_fsync=1\n").run_logged().log;
    assert_eq!(log.kib(Op::Write), [512; 16]);
}

/// Reads beside a flood of writeback still come through, and the run ends.
#[test]
fn readers_and_writeback_share_the_disk() {
    let text = "[w]\nrw=write\nsize=128m\nbs=64k\n[r]\nrw=randread\nsize=64m\nnumber_ios=100\n";
    for scheduler in ["noop", "deadline", "cfq"] {
        let logged = lab(text).on("sata7200-2009").under(scheduler).cache_mib(32).run_logged();
        assert_eq!(logged.processes[1].ios(), 100, "{scheduler}");
    }
}

/// Processes that read and write the same pages of one file.
#[test]
fn a_shared_file_in_a_tiny_cache() {
    let text = "[global]\nfilename=x\nsize=2m\n[r]\nrw=randrw\nnumjobs=4\nbs=16k\n[s]\nrw=read\nnumjobs=2\n[w]\nrw=randwrite\nfsync=5\nnumjobs=2\n";
    for kernel in ["2.6.31", "6.12"] {
        let run = lab(text).on("flash-kd").kernel(kernel).cache_mib(1).run();
        let ios: u64 = run.processes.iter().map(|p| p.ios()).sum();
        assert_eq!(ios, 4 * 128 + 2 * 512 + 2 * 512);
    }
}

/// Without anything dirty the flusher sleeps: a run of direct I/O has no events but its own.
#[test]
fn an_idle_flusher_does_not_keep_the_clock_going() {
    let run = lab("[a]\nrw=read\nsize=4k\ndirect=1\nthinktime=100s\nruntime=400\n").run();
    assert!(run.duration_ns <= 400 * SECOND);
}
