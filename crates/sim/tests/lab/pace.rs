//! Rates, pauses, and when a job runs.

use crate::harness::{MS, SECOND, assert_near, job, lab};

#[test]
fn rates_are_kept_within_a_percent() {
    let bandwidth = |options: &str| {
        let run = lab(&format!("[a]\nsize=1g\ndirect=1\ntime_based\nruntime=4\n{options}\n")).run();
        (run.processes[0].bandwidth(), run.processes[0].iops())
    };
    assert_near(bandwidth("rw=read\nrate=1m").0, 1_048_576.0, 0.01);
    assert_near(bandwidth("rw=randwrite\nbs=16k\nrate=8m").0, 8_388_608.0, 0.01);
    assert_near(bandwidth("rw=randread\nrate_iops=700").1, 700.0, 0.01);
    assert_near(bandwidth("rw=randread\nioengine=libaio\niodepth=16\nrate_iops=2500").1, 2500.0, 0.01);
    // Mean gap of 2500 I/Os a second is a whole number of microseconds, as fio needs it; 10,000 gaps scatter by 1 %.
    assert_near(bandwidth("rw=randread\nrate_iops=2500\nrate_process=poisson").1, 2500.0, 0.02);
}

/// The clock chooses the direction of a mixed job, so each has its own rate.
#[test]
fn a_mixed_job_keeps_both_rates() {
    let run = lab("[a]\nrw=randrw\nsize=1g\ndirect=1\ntime_based\nruntime=4\nrate=2m,512k\n").run();
    let of = |d: usize| run.processes[0].transfers[d].bytes as f64 / 4.0;
    assert_near(of(0), 2_097_152.0, 0.01);
    assert_near(of(1), 524_288.0, 0.01);
}

/// With poisson gaps and helper threads arrivals do not wait for completions.
#[test]
fn offload_makes_an_open_loop() {
    let text = "[a]\nrw=randread\nsize=1g\ndirect=1\niodepth=256\nrate_iops=1000\nrate_process=poisson\ntime_based\nruntime=10\n";
    let inline = lab(text).kernel("6.12").on_latency(50 * MS).run();
    let open = lab(&format!("{text}io_submit_mode=offload\n")).kernel("6.12").on_latency(50 * MS).run();
    assert_near(inline.processes[0].iops(), 20.0, 0.05);
    assert_near(open.processes[0].iops(), 1000.0, 0.03);
    assert_near(open.processes[0].clat().mean_ns(), 50e6, 0.01);
}

#[test]
fn a_pause_follows_every_so_many_blocks() {
    let run = lab("[a]\nrw=read\nsize=400k\ndirect=1\nthinktime=10ms\nthinktime_blocks=10\n").run();
    // 100 blocks, ten pauses; the blocks themselves take 6 us each.
    assert_near(run.duration_ns as f64, 100e6, 0.02);
}

#[test]
fn a_pause_drains_the_queue() {
    let text = "[a]\nrw=randread\nsize=256k\ndirect=1\nioengine=libaio\niodepth=8\nthinktime=10ms\nthinktime_blocks=4\n";
    let by = |kind: &str| {
        lab(&format!("{text}thinktime_blocks_type={kind}\n")).kernel("6.12").on_latency(MS).run_logged().log
    };
    let issues = by("issue");
    assert_eq!(issues.in_flight_max, 4, "counts what is issued");
    let completions = by("complete");
    assert_eq!(completions.in_flight_max, 8, "fills the depth before anything completes");
    let bursts = completions.commands.windows(2).filter(|w| w[1].0 - w[0].0 > 9 * MS).count();
    assert_eq!(bursts, 5, "64 blocks in bursts of 12: 8, and one more for each of the first 4 that complete");
}

/// A job with a rate catches up after a pause, unless told not to.
#[test]
fn a_pause_may_be_forgiven() {
    let text = "[a]\nrw=read\nsize=1g\ndirect=1\ntime_based\nruntime=4\nrate=4m\nthinktime=500ms\nthinktime_blocks=512\n";
    let rate = |text: &str| lab(text).run().processes[0].bandwidth();
    let caught_up = rate(text);
    let forgiven = rate(&format!("{text}rate_ignore_thinktime=1\n"));
    assert_near(caught_up, 4_194_304.0, 0.15);
    assert_near(forgiven, 4_194_304.0 / 2.0, 0.15);
}

#[test]
fn no_sleep_outlasts_the_runtime() {
    let paced = |options: &str| {
        lab(&format!("[a]\nrw=read\nsize=1g\ndirect=1\nruntime=1\n{options}\n")).run().duration_ns
    };
    assert_near(paced("rate=1") as f64, 1e9, 0.001);
    assert_near(paced("thinktime=100s") as f64, 1e9, 0.001);
}

#[test]
fn a_delay_counts_from_the_start_of_the_run() {
    let run = lab("[a]\nrw=read\nsize=4k\ndirect=1\nstartdelay=2\n").run();
    assert_eq!(run.processes[0].started_ns, 2 * SECOND);
    let behind = lab("[a]\nrw=read\nsize=1g\ndirect=1\nruntime=1\ntime_based\n[b]\nstonewall\nrw=read\nsize=4k\nstartdelay=500ms\n").run();
    assert_near(job(&behind, "b").started_ns as f64, 1e9, 0.001);
}

#[test]
fn ramp_time_is_not_counted_and_comes_on_top() {
    let run =
        lab("[a]\nrw=read\nsize=1g\ndirect=1\nrate_iops=100\nruntime=3\ntime_based\nramp_time=2\n").run();
    let a = &run.processes[0];
    assert_near(run.duration_ns as f64, 5e9, 0.001);
    assert_eq!(a.started_ns, 2 * SECOND);
    assert_near(a.ios() as f64, 300.0, 0.01);
    assert_near(a.iops(), 100.0, 0.01);
}

/// A job that is done before its ramp time is over has nothing to report.
#[test]
fn a_job_may_end_within_its_ramp_time() {
    let run = lab("[a]\nrw=read\nsize=64k\ndirect=1\nramp_time=5\n").run();
    assert_eq!((run.processes[0].ios(), run.processes[0].runtime_ns()), (0, 1));
    assert_eq!(run.bandwidth(), 0.0);
}

#[test]
fn the_runtime_ends_a_job_early_and_time_based_keeps_it_going() {
    let text = "[a]\nrw=read\ndirect=1\nrate_iops=1000\nbs=4k\n";
    let run = |options: &str| lab(&format!("{text}{options}\n")).run();
    assert_near(run("size=1g\nruntime=2").duration_ns as f64, 2e9, 0.001);
    assert_near(run("size=400k\nruntime=2").duration_ns as f64, 0.1e9, 0.02);
    assert_near(run("size=400k\nruntime=2\ntime_based").duration_ns as f64, 2e9, 0.001);
}

#[test]
fn a_job_without_end_is_an_error() {
    let error = lab("[a]\nrw=read\nsize=4m\ndirect=1\nthinktime=1h\n").try_run().unwrap_err();
    assert_eq!(error.to_string(), "the jobs are not done after a day of simulated time: give them a runtime");
}
