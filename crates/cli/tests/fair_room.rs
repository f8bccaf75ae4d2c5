//! fair on flash, where reads and writes have room apart, and where deep writers take request slots: two loads of `scripts/fair-search`
//! (2215 and 2164) that lost before there was `elevator/fair/room.rs`.

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

/// The writes take an eighth of their share. Without room of their own their p99 is 4.3 ms.
#[test]
fn writes_find_the_room_that_reads_do_not_use() {
    let jobs = "[small]\nrw=write\nbs=4k\niodepth=64\nrate_iops=500\nrate_process=poisson\n\
        [writes]\nrw=randwrite\nbs=64k\niodepth=64\nrate_iops=500\nrate_process=poisson\n\
        [reads]\nrw=read\nbs=64k\niodepth=16\n";
    let (_, p99_ms) = under_fair("flash-kd", 2215, jobs, 1);
    assert!(p99_ms < 1.5, "{p99_ms} ms");
}

/// Two writers with 64 requests each. They leave the reader slots; without that it gets 915 a second.
#[test]
fn deep_writers_leave_slots_to_a_reader() {
    let jobs = "[large]\nrw=write\nbs=1m\niodepth=64\nrate_iops=1000\nrate_process=poisson\n\
        [reader]\nrw=randread\nbs=4k\niodepth=4\n\
        [small]\nrw=write\nbs=4k\niodepth=64\n";
    let (iops, _) = under_fair("sata-ssd-870", 2164, jobs, 1);
    assert!(iops > 3000.0, "{iops} a second");
}
