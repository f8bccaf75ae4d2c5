//! How much a job keeps in flight.

use fairlift_sim::device::DeviceSpec;

use crate::harness::{Lab, MS, assert_near, job, lab};

fn in_flight_max(options: &str) -> usize {
    let text = format!("[a]\nrw=randread\nsize=16m\ndirect=1\n{options}\n");
    lab(&text).kernel("6.12").on_latency(MS).run_logged().log.in_flight_max
}

#[test]
fn asynchronous_engines_keep_their_depth() {
    for engine in ["libaio", "io_uring", "posixaio"] {
        for depth in [1, 2, 8, 32, 100] {
            assert_eq!(in_flight_max(&format!("ioengine={engine}\niodepth={depth}")), depth, "{engine}");
        }
    }
}

#[test]
fn synchronous_engines_have_one() {
    for engine in ["sync", "psync", "vsync", "pvsync"] {
        assert_eq!(in_flight_max(&format!("ioengine={engine}\niodepth=32")), 1, "{engine}");
    }
}

/// Little's law: 32 in flight, a millisecond each.
#[test]
fn depth_gives_its_throughput() {
    let text = "[a]\nrw=randread\nsize=64m\ndirect=1\nioengine=libaio\niodepth=32\n";
    let run = lab(text).kernel("6.12").on_latency(MS).run();
    assert_near(run.processes[0].iops(), 32_000.0, 0.07);
    assert_near(run.block.queue_ns as f64 / run.duration_ns as f64, 32.0, 0.07);
}

/// `iodepth_low`: once full, nothing more until only that many are left.
#[test]
fn a_low_mark_makes_bursts() {
    let text = "[a]\nrw=randread\nsize=1m\ndirect=1\nioengine=libaio\niodepth=16\niodepth_low=4\n";
    let logged = lab(text).kernel("6.12").on_latency(MS).run_logged();
    assert_eq!(logged.log.in_flight_max, 16);
    let starts: Vec<u64> = logged.log.commands.iter().map(|(at, _)| *at).collect();
    let pauses = starts.windows(2).filter(|w| w[1] - w[0] > MS / 2).count();
    // 16 at first, then 12 a round for the other 240.
    assert_eq!(pauses, 20);
}

/// `iodepth_batch`: requests of one system call gather on the task's plug.
#[test]
fn a_batch_arrives_together() {
    let text = "[a]\nrw=randread\nsize=64g\nnumber_ios=256\ndirect=1\nioengine=libaio\niodepth=8\niodepth_batch=8\niodepth_batch_complete_min=8\n";
    let logged = lab(text).kernel("6.12").on_latency(MS).run_logged();
    for batch in logged.log.commands.chunks(8) {
        assert!(batch.iter().all(|(at, _)| *at == batch[0].0), "{batch:?}");
    }
}

#[test]
fn buffered_io_blocks_whatever_the_depth() {
    let text = "[a]\nrw=randread\nsize=4m\nioengine=libaio\niodepth=32\n";
    assert_eq!(lab(text).kernel("6.12").on_latency(MS).run_logged().log.in_flight_max, 1);
}

#[test]
fn helper_threads_keep_the_depth_of_any_engine() {
    let text = "[a]\nrw=randread\nsize=4m\ndirect=1\nioengine=psync\niodepth=8\nio_submit_mode=offload\n";
    assert_eq!(lab(text).kernel("6.12").on_latency(MS).run_logged().log.in_flight_max, 8);
}

/// What a real-time read that comes now and then waits, beside eight others on a device that takes one request for a millisecond, ms.
fn urgent_beside_eight(budget: bool) -> f64 {
    let device = format!(
        "model = \"null\"\ndescription = \"test\"\nsectors = 2_147_483_648\nlatency_ns = 1_000_000\n\
         [limits]\nqueue_depth = 1\nmax_kib = 1280\nmax_segments = 256\nbudget = {budget}\n"
    );
    let text = "[global]\nrw=randread\nsize=1g\ndirect=1\ntime_based\nruntime=2\n\
                [urgent]\nprioclass=1\nprio=0\nthinktime=10300\n[others]\nioengine=libaio\niodepth=8\n";
    let lab = lab(text).under("mq-deadline:prio_aging_expire=100000:nr_requests=64").kernel("6.12");
    let run = Lab { device: DeviceSpec::parse(&device, "test.toml").unwrap(), ..lab }.run();
    job(&run, "urgent").clat().mean_ns() / 1e6
}

/// `__blk_mq_do_dispatch_sched`: without a budget the scheduler gives one request more than there are tags of the driver's, and it
/// goes before whatever comes later. With one a request waits for what is in the device only.
#[test]
fn one_request_is_parked_where_the_driver_gives_no_budget() {
    let (with, without) = (urgent_beside_eight(true), urgent_beside_eight(false));
    assert!((1.0..2.0).contains(&with), "{with}");
    assert_near(without - with, 1.0, 0.05);
}
