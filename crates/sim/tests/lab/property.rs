//! Whatever the jobs, scheduler, kernel and device: a run ends, and its books balance.

use fairlift_fio::{ParseOptions, Source, parse};
use fairlift_sim::device::PRESETS;
use proptest::prelude::*;
use proptest::sample::select;

use crate::harness::{Lab, lab};

fn section() -> impl Strategy<Value = String> {
    let mode = select(vec![
        "read",
        "write",
        "rw",
        "randread",
        "randwrite",
        "randrw",
        "trim",
        "randtrim",
        "randread:4",
        "write:8k",
    ]);
    let engine = select(vec![
        "ioengine=psync",
        "ioengine=libaio\niodepth=3",
        "ioengine=io_uring\niodepth=40\niodepth_batch=8",
        "ioengine=libaio\niodepth=200\niodepth_low=20",
    ]);
    let blocks = select(vec!["bs=4k", "bs=512", "bs=64k", "bsrange=4k-32k", "bssplit=4k/80:256k/20"]);
    let pace = select(vec![
        "",
        "",
        "rate=4m",
        "rate=2m,1m",
        "rate_iops=900",
        "rate_iops=2000\nrate_process=poisson",
    ]);
    let extras = prop::collection::vec(
        select(vec![
            "fsync=3",
            "fdatasync=7",
            "end_fsync=1",
            "sync=1",
            "thinktime=500",
            "thinktime=2ms\nthinktime_blocks=20",
            "runtime=1",
            "ramp_time=100ms",
            "startdelay=50ms",
            "numjobs=3",
            "stonewall",
            "new_group",
            "exitall",
            "prioclass=1",
            "prioclass=3",
            "prio=0",
            "nrfiles=3",
            "filename=shared",
            "invalidate=0",
            "fadvise_hint=0",
            "loops=2",
            "norandommap",
            "random_distribution=zipf:1.1",
            "io_submit_mode=offload",
            "cmdprio_percentage=30",
            "percentage_random=50",
            "group_reporting",
            "overwrite=1",
        ]),
        0..4,
    );
    (mode, any::<bool>(), engine, blocks, pace, extras, 256u32..900).prop_map(
        |(mode, direct, engine, blocks, pace, extras, kib)| {
            let cmdprio_fits = direct && engine != "ioengine=psync";
            let extras: Vec<_> =
                extras.into_iter().filter(|e| cmdprio_fits || !e.starts_with("cmdprio")).collect();
            format!(
                "rw={mode}\ndirect={}\n{engine}\n{blocks}\nsize={kib}k\n{pace}\n{}\n",
                u8::from(direct),
                extras.join("\n")
            )
        },
    )
}

fn any_lab() -> impl Strategy<Value = (String, Lab)> {
    let jobs = prop::collection::vec(section(), 1..4);
    let device = select(PRESETS.iter().map(|p| p.name).collect::<Vec<_>>());
    let scheduler = select(vec![
        "noop",
        "deadline",
        "deadline:classes=sync-async",
        "cfq@2.6.31",
        "cfq@2.6.34",
        "cfq:slice_idle=0",
    ]);
    let kernel = select(vec!["2.6.31", "2.6.34", "6.12"]);
    let throttled = any::<bool>();
    (jobs, device, (scheduler, throttled), kernel, 1u64..64, any::<bool>(), any::<u64>()).prop_map(
        |(jobs, device, (scheduler, throttled), kernel, mib, fresh_files, seed)| {
            let throttle = if kernel == "6.12" && !throttled { ":wbt_lat_usec=0" } else { "" };
            let scheduler = &format!("{scheduler}{throttle}");
            let sections = jobs.iter().enumerate().map(|(i, job)| format!("[job{i}]\n{job}"));
            let text = sections.collect::<String>();
            let parsed = parse(&[Source::new("p.fio", text.as_str())], &ParseOptions::default())
                .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
            let base =
                lab("[x]\nsize=4k\n").on(device).under(scheduler).kernel(kernel).cache_mib(mib).seed(seed);
            (text, Lab { jobs: parsed.jobs, fresh_files, ..base })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_ends_and_its_books_balance((text, lab) in any_lab()) {
        let run = lab.try_run().unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert!(run.block.busy_ns <= run.duration_ns, "busy {} of {}\n{}", run.block.busy_ns, run.duration_ns, text);
        let jain = run.jain_device_time();
        prop_assert!(jain > 0.0 && jain <= 1.0 + 1e-9, "Jain {}\n{}", jain, text);
        prop_assert_eq!(run.block.device_time_ns.iter().sum::<u64>(), run.block.busy_ns);
        for process in &run.processes {
            prop_assert!(process.ended_ns >= process.started_ns);
            for transfer in &process.transfers {
                prop_assert_eq!(transfer.clat.count(), transfer.ios);
                prop_assert_eq!(transfer.samples.iter().map(|(_, s)| s.bytes).sum::<u64>(), transfer.bytes);
            }
        }
        let logged = lab.run_logged();
        let programs_wait_for_nothing = logged.unfinished[0] == 0;
        // Writeback may still be on its way when the last program ends; direct I/O may not.
        let buffered_writes = lab.jobs.iter().any(|j| !j.submission.direct);
        prop_assert!(programs_wait_for_nothing || buffered_writes, "{}", text);
        if !buffered_writes {
            prop_assert_eq!(logged.unfinished, [0, 0, 0], "{}", text);
        }
        // The logged run has no writeback throttling.
        let throttled = lab.kernel == "6.12" && !lab.scheduler.to_string().contains("wbt_lat_usec=0");
        for (process, again) in run.processes.iter().zip(&logged.processes).filter(|_| !throttled) {
            prop_assert_eq!(process, again, "the recorder changes nothing");
        }
    }
}
