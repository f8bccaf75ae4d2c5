//! Loads on which fair once lost, each with its cause: those with numbers are `scripts/fair-search`'s.

mod common;

use common::Folder;
use serde_json::Value;

/// IOPS and p99 in ms of a job under fair.
fn under_fair(device: &str, seed: u32, jobs: &str, index: usize) -> (f64, f64) {
    let global = "[global]\ntime_based\nramp_time=2\nruntime=4\ndirect=1\nioengine=libaio\nsize=900m\n";
    let folder = Folder::new().with("job.fio", format!("{global}{jobs}"));
    let text = folder
        .run(&format!("run job.fio --device {device} --scheduler fair --seed {seed} --output-format json"))
        .ok();
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let job = &answer["jobs"][index];
    let part = [&job["read"], &job["write"]].into_iter().max_by_key(|part| part["total_ios"].as_u64());
    let part = part.expect("two directions");
    let p99 = part["clat_ns"]["percentile"]["99.000000"].as_f64().expect("a p99");
    (part["iops"].as_f64().expect("a rate"), p99 / 1e6)
}

/// Load 2215. The writes take an eighth of their share. Without room of their own their p99 is 4.3 ms.
#[test]
fn writes_find_the_room_that_reads_do_not_use() {
    let jobs = "[small]\nrw=write\nbs=4k\niodepth=64\nrate_iops=500\nrate_process=poisson\n\
        [writes]\nrw=randwrite\nbs=64k\niodepth=64\nrate_iops=500\nrate_process=poisson\n\
        [reads]\nrw=read\nbs=64k\niodepth=16\n";
    let (_, p99_ms) = under_fair("flash-kd", 2215, jobs, 1);
    assert!(p99_ms < 1.5, "{p99_ms} ms");
}

/// Load 2164. Two writers with 64 requests each. They leave the reader slots; without that it gets 915 a second.
#[test]
fn deep_writers_leave_slots_to_a_reader() {
    let jobs = "[large]\nrw=write\nbs=1m\niodepth=64\nrate_iops=1000\nrate_process=poisson\n\
        [reader]\nrw=randread\nbs=4k\niodepth=4\n\
        [small]\nrw=write\nbs=4k\niodepth=64\n";
    let (iops, _) = under_fair("sata-ssd-870", 2164, jobs, 1);
    assert!(iops > 3000.0, "{iops} a second");
}

/// Load 75. While writes are paced, reads go on. The small writer is far below its share; it does not stand behind what the large one could not
/// get meanwhile. (Else its p99 is 1.1 to 1.9 s with seven of twelve seeds.)
#[test]
fn who_comes_while_writes_are_paced_does_not_stand_behind_old_credit() {
    let jobs = "[small]\nrw=randwrite\nbs=64k\niodepth=64\nrate_iops=100\nrate_process=poisson\n\
        [large]\nrw=write\nbs=1m\niodepth=64\n\
        [reader]\nrw=read\nbs=4k\niodepth=16\n";
    let (iops, p99_ms) = under_fair("cloud-gp3", 75, jobs, 0);
    assert!(p99_ms < 20.0 && iops > 90.0, "{p99_ms} ms, {iops} a second");
}

/// Load 25. The drive stalls for 5 ms every 128 writes, and reads that come meanwhile are done afterwards. They do not pay for the stall. (Else
/// their p99 is 45 ms.)
#[test]
fn reads_do_not_pay_for_the_stalls_of_writes() {
    let jobs = "[reads]\nrw=randread\nbs=16k\niodepth=64\nrate_iops=1000\nrate_process=poisson\n\
        [writes]\nrw=randwrite\nbs=4k\niodepth=16\n";
    let (_, p99_ms) = under_fair("nvme-p3plus", 25, jobs, 0);
    assert!(p99_ms < 1.0, "{p99_ms} ms");
}

/// A rate limit in tokens lets a request go and makes the next one wait. Who sends small requests does not pay for the large ones before them. (Else
/// fsyncs get 14 a second and random reads 42.)
#[test]
fn small_requests_do_not_pay_for_the_large_ones_before_them() {
    let jobs = "[fsync]\nrw=write\nbs=4k\nsize=64m\nfsync=1\ndirect=0\nioengine=psync\n\
        [seq]\nrw=read\nbs=64k\ndirect=0\nioengine=psync\n\
        [random]\nrw=randread\nbs=4k\n";
    let serial = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/serial32.toml --filesystem ext4");
    let (fsyncs, _) = under_fair(serial, 1, jobs, 0);
    let (random, _) = under_fair(serial, 1, jobs, 2);
    assert!(fsyncs > 25.0 && random > 80.0, "{fsyncs} fsyncs and {random} random reads a second");
}
