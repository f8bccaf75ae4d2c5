//! Volumes of several disks: where bios go, and what the disks' queues share out.

use fairlift_sim::block::Volume;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario;

const NULL: &str = "model = \"null\"\nsectors = 200_000_000\nlatency_ns = 1_000_000\n\
     [limits]\nqueue_depth = 1\nmax_kib = 1280\nmax_segments = 256\n";

/// A scenario on three null disks, each of which serves one request in a millisecond.
fn scenario(jobs: &str, rest: &str) -> Result<scenario::Scenario, scenario::ScenarioError> {
    let text = format!(
        "title = \"t\"\ndevice = \"null.toml\"\nkernel = \"2.6.31\"\nruntime_s = 5\njobs = \"\"\"\n{jobs}\"\"\"\n{rest}"
    );
    let beside = |name: &str| (name == "null.toml").then(|| (name.to_owned(), Ok(NULL.to_owned())));
    scenario::parse_among(&text, "volume.toml", &beside)
}

fn run(jobs: &str, rest: &str) -> RunResult {
    let scenario = scenario(jobs, rest).unwrap();
    scenario::run_all(&scenario, 1, &()).unwrap().remove(0).remove(0)
}

const GROUPS: &str = "[[group]]\npath = \"a\"\nweight = 1000\n[[group]]\npath = \"b\"\nweight = 500\n";
const THREE: &str = "[volume]\ndisks = 3\nstripe_kib = 64\n";

#[test]
fn every_sector_lies_on_one_disk() {
    let volume = Volume { disks: 3, stripe_sectors: 8 };
    assert_eq!(volume.place(0), (0, 0));
    assert_eq!(volume.place(7), (0, 7));
    assert_eq!(volume.place(8), (1, 0));
    assert_eq!(volume.place(23), (2, 7));
    assert_eq!(volume.place(24), (0, 8));
    assert_eq!(volume.room(5), 3);
    let mut places: Vec<_> = (0..240).map(|sector| volume.place(sector)).collect();
    places.sort_unstable();
    let each: Vec<_> = (0..3).flat_map(|disk| (0..80).map(move |sector| (disk, sector))).collect();
    assert_eq!(places, each);
}

#[test]
fn three_disks_serve_three_times_as_much_and_nothing_is_lost() {
    let jobs = "[a]\nrw=randread\nbs=4k\nsize=1g\nnumjobs=24\ndirect=1\n";
    let one = run(jobs, "schedulers = [\"noop\"]\n");
    let three = run(jobs, &format!("schedulers = [\"noop\"]\n{THREE}"));
    let iops = |run: &RunResult| run.block.requests[0] as f64 / (run.duration_ns as f64 / 1e9);
    assert!((iops(&one) - 1000.0).abs() < 10.0, "{}", iops(&one));
    assert!((2800.0..3001.0).contains(&iops(&three)), "{}", iops(&three));
    assert_eq!(three.block.bios, three.block.requests[0] + three.block.merged);
    assert_eq!(three.block.sectors[0], 8 * three.block.bios);
}

#[test]
fn a_bio_ends_where_its_stripe_does() {
    let jobs = "[a]\nrw=read\nbs=1m\nsize=64m\ndirect=1\n";
    let run = run(jobs, &format!("schedulers = [\"noop\"]\n{THREE}"));
    assert!(run.block.bios > 1000, "{}", run.block.bios);
    assert_eq!(run.block.sectors[0], 128 * run.block.bios, "each bio is a stripe of 64 KiB");
}

/// Each disk shares its own time; the volume is shared by weight because the load is spread evenly.
#[test]
fn groups_share_each_disk() {
    let jobs = "[a]\nrw=randread\nbs=4k\nsize=1g\nnumjobs=32\ndirect=1\ncgroup=a\n[b]\nrw=randread\nbs=4k\nsize=1g\nnumjobs=32\ndirect=1\ncgroup=b\n";
    let run = run(jobs, &format!("schedulers = [\"noop\"]\n{THREE}{GROUPS}"));
    let time = |path: &str| run.group(path).unwrap().all.device_time_ns as f64;
    let ratio = time("a") / time("b");
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    let all = time("/");
    assert!(all > 2.7 * run.duration_ns as f64, "three disks were busy: {all}");
}

/// Task a is on one disk, task b on another: weights have nothing to share out.
#[test]
fn without_contention_both_get_the_same() {
    let jobs = "[a]\nrw=read\nbs=4k\nsize=1g\ndirect=1\ncgroup=a\n[b]\nrw=read\nbs=4k\nsize=1g\ndirect=1\ncgroup=b\n";
    let linear = "[volume]\ndisks = 3\nstripe_kib = 1048576\n";
    let run = run(jobs, &format!("schedulers = [\"noop\"]\n{linear}{GROUPS}"));
    let [a, b] = ["a", "b"].map(|path| run.group(path).unwrap().all.bytes());
    assert_eq!(a, b);
}

/// fsync on ext3 sends flushes and barriers: all disks take them, and the run comes to its end.
#[test]
fn a_file_system_works_on_a_volume() {
    let jobs = "[a]\nrw=randwrite\nbs=4k\nsize=16m\nfsync=1\nruntime=2000\n";
    let ext = "schedulers = [\"cfq\"]\nfilesystem = \"ext3\"\nmount = \"barrier=1\"\n";
    let run = run(jobs, &format!("{ext}{THREE}"));
    assert!(run.block.sectors[1] > 0);
    assert!(run.processes.iter().all(|job| job.name == "a"));
}

#[test]
fn what_a_volume_cannot_do_is_an_error_with_its_line() {
    let jobs = "[a]\nrw=read\nsize=1m\n";
    let refused =
        |volume: &str| scenario(jobs, &format!("schedulers = [\"noop\"]\n{volume}")).unwrap_err().to_string();
    let error = refused("[volume]\ndisks = 1\nstripe_kib = 64\n");
    assert!(error.contains("volume.toml:12") && error.contains("disks must be 2 to 16"), "{error}");
    let error = refused("[volume]\ndisks = 2\nstripe_kib = 3\n");
    assert!(error.contains("volume.toml:13") && error.contains("multiple of 4"), "{error}");
    let error = refused("[volume]\ndisks = 2\nstripe_kib = 1099511627776\n");
    assert!(error.contains("more than null.toml holds"), "{error}");
    let mut explained = scenario(jobs, &format!("schedulers = [\"noop\"]\n{THREE}")).unwrap();
    explained.explain = true;
    let error = scenario::run_all(&explained, 1, &()).unwrap_err().to_string();
    assert!(error.contains("does not go with --explain"), "{error}");
}
