//! Equal setups give equal results; a seed decides what is random.

use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{self, run_all};

use crate::harness::lab;

/// Everything a run reports, as text.
fn all_of(run: &RunResult) -> String {
    format!("{run:?}")
}

const MIXED: &str = "[a]\nrw=randrw\nsize=8m\ndirect=1\nioengine=libaio\niodepth=8\nnumjobs=3\n[b]\nrw=write\nsize=4m\nfsync=16\n";

#[test]
fn the_same_setup_gives_the_same_result() {
    for (device, scheduler, kernel) in [
        ("sata7200-2009", "cfq", "2.6.31"),
        ("flash-kd", "deadline", "6.12"),
        ("san-nvram", "cfq", "2.6.34"),
        ("cloud-gp3", "noop", "6.12"),
    ] {
        let lab = lab(MIXED).on(device).under(scheduler).kernel(kernel);
        assert_eq!(all_of(&lab.run()), all_of(&lab.run()), "{device}");
    }
}

#[test]
fn threads_change_nothing() {
    let text = "title = \"t\"\ndevice = \"sata7200-2009\"\nschedulers = [\"noop\", \"deadline\", \"cfq\"]\nruntime_s = 1.0\n\
                jobs = \"\"\"\n[a]\nrw=randread\nsize=1g\ndirect=1\nnumjobs=${N}\n[b]\nrw=read\nsize=1g\n\"\"\"\n\
                [[case]]\nname = \"1\"\nvars = { N = \"1\" }\n[[case]]\nname = \"3\"\nvars = { N = \"3\" }\n";
    let scenario = scenario::parse(text, "t.toml").unwrap();
    let runs = |threads| format!("{:?}", run_all(&scenario, threads, &()).unwrap());
    assert_eq!(runs(1), runs(2));
}

#[test]
fn another_seed_is_another_run_where_randomness_is_asked_for() {
    let random =
        lab("[a]\nrw=randread\nrandrepeat=0\nsize=64m\nnumber_ios=500\ndirect=1\n").on("sata7200-2009");
    assert_ne!(random.run().duration_ns, random.clone().seed(2).run().duration_ns);
    let repeated = lab("[a]\nrw=randread\nsize=64m\nnumber_ios=500\ndirect=1\n").on_latency(100_000);
    assert_eq!(repeated.run().duration_ns, repeated.clone().seed(2).run().duration_ns);
}
