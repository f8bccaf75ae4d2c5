//! Elevators at a glance: what a person would look for first.

use fairlift_core::queue::NoMerges;
use fairlift_sim::device::Op;
use fairlift_sim::result::RunResult;

use crate::harness::{job, lab};

const READERS: &str = "[global]\ndirect=1\nsize=1g\ntime_based\nruntime=5\n[sequential]\nrw=read\nnumjobs=4\n[random]\nrw=randread\n";

fn sequential_mb_per_s(run: &RunResult) -> f64 {
    run.processes.iter().filter(|p| p.name == "sequential").map(|p| p.bandwidth()).sum::<f64>() / 1e6
}

/// cfq waits for the sequential reader's next request; noop goes elsewhere and loses the stream.
#[test]
fn cfq_idles_for_sequential_readers_and_noop_does_not() {
    let run = |scheduler| lab(READERS).on("sata7200-2009").under(scheduler).run();
    let (cfq, noop) = (run("cfq"), run("noop"));
    assert!(sequential_mb_per_s(&cfq) > 5.0 * sequential_mb_per_s(&noop));
    assert!(cfq.busy() < 0.99 && noop.busy() > 0.99, "{} {}", cfq.busy(), noop.busy());
    assert!(job(&noop, "random").ios() > job(&cfq, "random").ios());
}

#[test]
fn slice_idle_zero_takes_it_away() {
    let run = |scheduler| lab(READERS).on("sata7200-2009").under(scheduler).run();
    assert!(sequential_mb_per_s(&run("cfq")) > 3.0 * sequential_mb_per_s(&run("cfq:slice_idle=0")));
}

#[test]
fn priorities_reach_the_elevator() {
    let text = "[global]\ndirect=1\nrw=read\nsize=1g\ntime_based\nruntime=5\n[rt]\nprioclass=1\nprio=4\n[be]\nnumjobs=3\n";
    let iops =
        |scheduler, name: &str| job(&lab(text).on("sata7200-2009").under(scheduler).run(), name).iops();
    assert!(iops("cfq", "rt") > 10.0 * iops("cfq", "be"), "{} {}", iops("cfq", "rt"), iops("cfq", "be"));
    assert!(iops("noop", "rt") < 2.0 * iops("noop", "be"));
}

#[test]
fn a_better_level_gets_more_time() {
    let text = "[global]\ndirect=1\nrw=read\nsize=1g\ntime_based\nruntime=5\n[high]\nprio=0\n[low]\nprio=7\n";
    let run = lab(text).on("sata7200-2009").under("cfq").run();
    let share = run.device_share(job(&run, "high"));
    // Slices of 180 and 40 ms.
    assert!((0.7..0.9).contains(&share), "{share}");
}

#[test]
fn cfq_is_fair_where_deadline_is_fast() {
    let text = "[global]\ndirect=1\nsize=1g\ntime_based\nruntime=5\n[small]\nrw=randread\n[large]\nrw=randread\nbs=512k\nioengine=libaio\niodepth=4\n";
    let jain = |scheduler| lab(text).on("sata7200-2009").under(scheduler).run().jain_device_time();
    assert!(jain("cfq") > jain("noop"), "{} {}", jain("cfq"), jain("noop"));
}

/// Deadline sorts: deep random reads of one task take less seeking than under noop on a drive that does not sort itself.
#[test]
fn deadline_sorts() {
    let text = "[a]\ndirect=1\nrw=randread\nsize=100g\nioengine=libaio\niodepth=100\ntime_based\nruntime=5\nnorandommap\n";
    let fifo = disk_without_ncq();
    let iops = |scheduler: &str| {
        let lab = lab(text).under(scheduler);
        let lab = crate::harness::Lab { device: fifo.clone(), ..lab };
        lab.run().processes[0].iops()
    };
    assert!(iops("deadline") > 1.2 * iops("noop"), "{} {}", iops("deadline"), iops("noop"));
}

fn disk_without_ncq() -> fairlift_sim::device::DeviceSpec {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/sata7200-2009.toml");
    let text = std::fs::read_to_string(path).unwrap().replace("queue_depth = 31", "queue_depth = 1");
    fairlift_sim::device::DeviceSpec::parse(&text, "one.toml").unwrap()
}

/// Blocks submitted in one go merge on the task's plug; `nomerges` forbids it.
#[test]
fn nomerges_forbids_merging() {
    let lab = lab(
        "[a]\nrw=write\nbs=4k\nsize=1m\ndirect=1\nioengine=libaio\niodepth=64\niodepth_batch=64\niodepth_batch_complete_min=64\n",
    )
    .kernel("6.12");
    let requests =
        |nomerges| lab.run_logged_with(|block| block.queue().set_nomerges(nomerges)).log.count(Op::Write);
    assert!(requests(NoMerges::Off) < 64, "{}", requests(NoMerges::Off));
    assert_eq!(requests(NoMerges::All), 256);
}
