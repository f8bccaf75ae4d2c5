//! Request slots: who waits for one, and that nobody waits for ever.

use crate::harness::{MS, job, lab};

fn deep(depth: u32, kernel: &'static str) -> crate::harness::Logged {
    let text = format!("[a]\nrw=randread\nsize=16m\ndirect=1\nioengine=libaio\niodepth={depth}\n");
    // Slow enough that the queue fills; any number in flight.
    lab(&text).on_latency(50 * MS).kernel(kernel).run_logged()
}

/// 128 slots; the task that fills the pool may take 32 more as a batcher, and never more than 192 at all.
#[test]
fn depth_256_fills_the_pool_and_nothing_is_lost() {
    let logged = deep(256, "2.6.31");
    assert!((128..=192).contains(&logged.log.in_flight_max), "{}", logged.log.in_flight_max);
    assert_eq!(logged.processes[0].ios(), 4096);
    assert_eq!(logged.unfinished, [0, 0, 0]);
}

#[test]
fn a_depth_within_the_pool_never_waits() {
    assert_eq!(deep(100, "2.6.31").log.in_flight_max, 100);
}

/// blk-mq: twice the device's depth, at most 256, shared by reads and writes.
#[test]
fn tags_are_the_limit_of_a_current_kernel() {
    let logged = deep(512, "6.12");
    assert_eq!(logged.log.in_flight_max, 256);
    assert_eq!((logged.processes[0].ios(), logged.unfinished), (4096, [0, 0, 0]));
}

/// Reads and sync writes wait in one line for tags: neither starves.
#[test]
fn neither_class_starves_for_tags() {
    let text = "[global]\nsize=64m\nioengine=libaio\ntime_based\nruntime=5\n[reads]\nrw=randread\ndirect=1\niodepth=64\nnumjobs=4\n\
                [writes]\nrw=write\nbs=1m\n";
    let run = lab(text).on("sata7200-2009").kernel("6.12").cache_mib(64).run();
    assert!(job(&run, "reads").ios() > 100, "{}", job(&run, "reads").ios());
    assert!(run.block.requests[1] > 5, "writeback came through: {:?}", run.block.requests);
}

#[test]
fn many_deep_jobs_share_the_pool() {
    let text = "[a]\nrw=randread\nsize=1m\ndirect=1\nioengine=libaio\niodepth=64\nnumjobs=16\n";
    for scheduler in ["noop", "deadline", "cfq"] {
        for kernel in ["2.6.31", "6.12"] {
            let logged = lab(text).on("sata7200-2009").under(scheduler).kernel(kernel).run_logged();
            assert!(logged.processes.iter().all(|p| p.ios() == 256), "{scheduler} {kernel}");
            assert_eq!(logged.unfinished, [0, 0, 0], "{scheduler} {kernel}");
        }
    }
}
