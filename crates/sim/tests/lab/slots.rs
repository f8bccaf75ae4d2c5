//! Request slots: who waits for one, and that nobody waits for ever.

use fairlift_core::queue::Admission;
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::version;
use fairlift_sim::result::JobResult;

use crate::harness::{Lab, MS, job, lab};

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

/// What a depth-1 job gets beside one that has twice the tags in flight, if it can: its I/Os, all I/Os, the tags.
fn beside_twice_the_tags(device: &DeviceSpec, scheduler: &str, one: &str, deep: &str) -> (u64, u64, u64) {
    let limits = *device.build(1).limits();
    let tags = match version::find("6.12").unwrap().queue_config(&limits, 4).admission {
        Admission::Tags { nr_requests } => nr_requests,
        Admission::Pools { .. } => unreachable!("6.12 has tags"),
    };
    // One file for both: a drive that prefers near requests has no favourite.
    let runtime = if limits.rotational { "60s" } else { "200ms" };
    let text = format!(
        "[global]\ndirect=1\nfilename=f\nsize=1g\nnorandommap\ntime_based\nruntime={runtime}\n[one]\nrw={one}\n\
         [deep]\nrw={deep}\nioengine=libaio\niodepth={}\n",
        2 * tags
    );
    let run = Lab { device: device.clone(), ..lab(&text).under(scheduler).kernel("6.12") }.run();
    let (one, deep) = (job(&run, "one").ios(), job(&run, "deep").ios());
    (one, one + deep, u64::from(tags))
}

/// A device that serves `depth` commands at a time, each in `latency_us`.
fn null_of(depth: u32, latency_us: u32) -> DeviceSpec {
    let text = format!(
        "model = \"null\"\ndescription = \"test\"\nsectors = 2_147_483_648\nlatency_ns = {}\n\
         [limits]\nqueue_depth = {depth}\nmax_kib = 1280\nmax_segments = 256\n",
        latency_us * 1000
    );
    DeviceSpec::parse(&text, "test.toml").unwrap()
}

const LOADS: [(&str, &str); 3] =
    [("randread", "randread"), ("randread", "randwrite"), ("randwrite", "randread")];

/// Whoever waits for a tag gets the next free one, after which every other tag is served once: where requests are served in order
/// of arrival, that is the part of one that has a tag in turn with all others.
#[test]
fn depth_1_beside_twice_the_tags_gets_its_turn() {
    for (depth, us) in [(1, 2000), (2, 1000), (8, 100), (32, 1000), (128, 4000)] {
        for (one, deep) in LOADS {
            let (ios, all, tags) = beside_twice_the_tags(&null_of(depth, us), "noop", one, deep);
            // The run ends within a round.
            assert!((ios + 1) * (tags + 1) >= all, "depth {depth}: {one} beside {deep}: {ios} of {all}");
        }
    }
}

/// A drive or a scheduler that reorders may pass it, but not for ever: deadline, which goes furthest, lets two batches of reads
/// pass a write. (cfq gives the deep job slices of time, whatever becomes of tags.)
#[test]
fn nor_is_it_forgotten_where_requests_are_reordered() {
    let presets = ["sata7200-2009", "flash-kd"].map(|name| DeviceSpec::load(name).unwrap());
    for device in presets.iter().chain(&[null_of(8, 100), null_of(32, 1000)]) {
        for scheduler in ["noop", "deadline", "anticipatory"] {
            for (one, deep) in LOADS {
                let (ios, all, tags) = beside_twice_the_tags(device, scheduler, one, deep);
                assert!(
                    3 * (ios + 1) * (tags + 1) >= all,
                    "{} {scheduler}: {one} beside {deep}: {ios} of {all}",
                    device.name()
                );
            }
        }
    }
}

/// The longest wait wins even when batches of eight are woken for one tag: forty of them, none starves.
#[test]
fn many_waiters_beside_a_deep_job_share_what_it_leaves() {
    let text = "[global]\ndirect=1\nsize=1g\nnorandommap\ntime_based\nruntime=10\nrw=randread\n[one]\nnumjobs=40\n\
                [deep]\nioengine=libaio\niodepth=128\n";
    let run = Lab { device: null_of(32, 1000), ..lab(text).kernel("6.12") }.run();
    let ios: Vec<u64> = run.processes.iter().filter(|p| p.name == "one").map(JobResult::ios).collect();
    let (least, most) = (ios.iter().min().unwrap(), ios.iter().max().unwrap());
    assert!(*least * 2 > *most, "{ios:?}");
}

/// The schedulers of today: kyber wakes waiters in batches of an eighth of its 75 % of the tags, none of its tags, and they are
/// asked for a batch before anybody is woken; mq-deadline one by one, and it goes furthest in reordering.
#[test]
fn under_todays_schedulers_too() {
    let presets = [DeviceSpec::load("flash-kd").unwrap()];
    for device in
        presets.iter().chain(&[null_of(1, 2000), null_of(8, 100), null_of(32, 1000), null_of(128, 4000)])
    {
        for scheduler in ["none", "mq-deadline", "kyber"] {
            for (one, deep) in LOADS {
                let (ios, all, tags) = beside_twice_the_tags(device, scheduler, one, deep);
                let patience = tags + 8;
                assert!(
                    3 * (ios + 1) * (patience + 1) >= all,
                    "{} {scheduler}: {one} beside {deep}: {ios} of {all}, {tags} tags",
                    device.name()
                );
            }
        }
    }
}

/// A task that sleeps for whatever reason hands over what it has gathered. A flusher that waits for the journal, which waits for a tag, would
/// else keep the only tag for ever.
#[test]
fn no_task_sleeps_on_a_plug() {
    let text =
        "[global]\nrw=write\nbs=256k\nsize=100g\ntime_based\nruntime=20\n[a]\ncgroup=a\n[b]\ncgroup=b\n";
    for scheduler in ["none", "mq-deadline"] {
        let mut setup =
            lab(text).kernel("6.12").under(scheduler).cache_mib(400).mounted("ext4", "data=writeback");
        setup.fresh_files = true;
        let run = setup.run_on_depth_1();
        let busy = run.device_busy_ns as f64 / run.duration_ns as f64;
        assert!(busy > 0.95, "{scheduler}: busy {busy:.2} of the time");
    }
}
