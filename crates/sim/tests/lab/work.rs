//! What a job does: amounts, sizes, mixes.

use fairlift_sim::device::Op;

use crate::harness::{assert_near, lab};

fn moved(text: &str) -> (u64, u64) {
    let run = lab(text).run();
    (run.processes.iter().map(|p| p.bytes()).sum(), run.processes.iter().map(|p| p.ios()).sum())
}

#[test]
fn a_job_moves_its_size_and_no_more() {
    assert_eq!(moved("[a]\nrw=read\nsize=1m\ndirect=1\n"), (1 << 20, 256));
    assert_eq!(moved("[a]\nrw=randwrite\nsize=1m\nbs=64k\ndirect=1\n"), (1 << 20, 16));
    assert_eq!(moved("[a]\nrw=read\nsize=1m\nio_size=256k\ndirect=1\n"), (256 << 10, 64));
    assert_eq!(moved("[a]\nrw=read\nsize=1m\nnumber_ios=10\ndirect=1\n"), (40 << 10, 10));
    assert_eq!(moved("[a]\nrw=read\nsize=1m\nloops=3\ndirect=1\nioengine=libaio\n"), (3 << 20, 768));
    assert_eq!(moved("[a]\nrw=read\nsize=1m\nnumjobs=5\ndirect=1\n"), (5 << 20, 5 * 256));
}

#[test]
fn clones_have_files_of_their_own() {
    let logged = lab("[a]\nrw=read\nsize=1m\nbs=64k\nnumjobs=4\ndirect=1\n").run_logged();
    let mut sectors: Vec<u64> = logged.log.commands.iter().map(|(_, c)| c.sector).collect();
    sectors.sort_unstable();
    sectors.dedup();
    assert_eq!(sectors.len(), 64, "four files of 16 blocks");
}

#[test]
fn clones_share_a_named_file() {
    let logged = lab("[a]\nfilename=x\nrw=read\nsize=1m\nbs=64k\nnumjobs=4\ndirect=1\n").run_logged();
    assert!(logged.log.commands.iter().all(|(_, c)| c.sector + u64::from(c.sectors) <= 2048));
}

#[test]
fn a_mixed_job_keeps_its_mix() {
    let run = lab("[a]\nrw=randrw\nrwmixread=70\nsize=64m\ndirect=1\n").run();
    let [reads, writes, _] = &run.processes[0].transfers;
    assert_near(reads.ios as f64 / (reads.ios + writes.ios) as f64, 0.70, 0.03);
}

#[test]
fn sizes_follow_bssplit() {
    let logged = lab(
        "[a]\nrw=randread\nbssplit=4k/50:16k/30:64k/20\nsize=256m\nnumber_ios=5000\nnorandommap\ndirect=1\n",
    )
    .run_logged();
    let kib = logged.log.kib(Op::Read);
    let share = |size| kib.iter().filter(|k| **k == size).count() as f64 / kib.len() as f64;
    assert_near(share(4), 0.5, 0.05);
    assert_near(share(16), 0.3, 0.05);
    assert_near(share(64), 0.2, 0.08);
}

#[test]
fn a_device_that_is_too_small_is_an_error() {
    let error = lab("[a]\nrw=read\nsize=2t\ndirect=1\n").try_run().unwrap_err();
    assert_eq!(
        error.to_string(),
        "job 'a' needs 2199023255552 bytes of disk (with the files before it), the device has 1099511627776"
    );
}

/// `cmdprio_percentage`: those I/Os overtake the others wherever the elevator knows priorities.
#[test]
fn some_ios_get_a_priority_of_their_own() {
    let text = "[global]\nrw=randread\nsize=16g\nnorandommap\ndirect=1\nioengine=libaio\ntime_based\nruntime=10\n\
                [crowd]\niodepth=100\n[one]\niodepth=1\n";
    let mean_ms = |options: &str| {
        let run = lab(&format!("{text}{options}")).on("sata7200-2009").under("deadline:classes=full").run();
        run.processes[1].clat().mean_ns() / 1e6
    };
    let (plain, urgent) = (mean_ms(""), mean_ms("cmdprio_percentage=100\ncmdprio_class=1\n"));
    assert!(urgent < 0.7 * plain, "{urgent} {plain}");
}
