//! The file system as a setting of scenarios, with fio's jobs on it.

use fairlift_sim::kernel::Filesystem;
use fairlift_sim::scenario::{parse, run_all};

fn scenario(settings: &str, job: &str) -> String {
    format!(
        "title = \"t\"\ndevice = \"sata7200-2009\"\nkernel = \"2.6.31\"\nschedulers = [\"deadline\"]\n{settings}\njobs = \"\"\"\n[job]\nsize=64m\n{job}\n\"\"\"\n"
    )
}

fn iops(settings: &str, job: &str) -> f64 {
    let scenario = parse(&scenario(settings, job), "t.toml").unwrap_or_else(|e| panic!("{e}"));
    let runs = run_all(&scenario, 1, &()).unwrap();
    runs[0][0].jobs()[0].iops()
}

#[test]
fn a_scenario_names_its_file_system() {
    let text = scenario("filesystem = \"ext3\"\nmount = \"data=writeback,barrier=1\"", "rw=write");
    let Filesystem::Ext(mount) = parse(&text, "t.toml").unwrap().filesystem else { panic!() };
    assert!(mount.barrier);
    assert_eq!(parse(&scenario("", "rw=write"), "t.toml").unwrap().filesystem, Filesystem::Raw);
    for (wrong, message) in [
        ("filesystem = \"xfs\"", "t.toml:5: unknown file system 'xfs' (allowed: raw, ext3, ext4)"),
        ("filesystem = \"ext4\"\nmount = \"data=all\"", "t.toml:6: unknown mount option 'data=all'"),
        ("mount = \"barrier=0\"", "t.toml:5: mount options need a file system: ext3 or ext4"),
    ] {
        let error = parse(&scenario(wrong, "rw=write"), "t.toml").unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// fio of 2009 leaves files that are only written empty: on ext3 "random direct writes" then run at sequential speed; laid out in full
/// they run at the disk's.
#[test]
fn random_direct_writes_into_fresh_files_are_not_random() {
    let job = "rw=randwrite\nbs=4k\ndirect=1\nruntime=10";
    let fresh = iops("filesystem = \"ext3\"\nfresh_files = true", job);
    let full = iops("filesystem = \"ext3\"", job);
    println!("random 4 KiB direct writes on ext3: fresh file {fresh:.0} IOPS, laid out {full:.0} IOPS");
    assert!(fresh > 3.0 * full, "{fresh} {full}");
}

/// fsync after every write: on a file system each costs a commit.
#[test]
fn fsync_jobs_commit() {
    let job = "rw=write\nbs=4k\nfsync=1\nruntime=5";
    let barrier = iops("filesystem = \"ext4\"", job);
    let none = iops("filesystem = \"ext4\"\nmount = \"barrier=0\"", job);
    let o_sync = iops("filesystem = \"ext4\"", "rw=write\nbs=4k\nsync=1\nruntime=5");
    println!("4 KiB writes with fsync on ext4: {barrier:.0} IOPS, barrier=0 {none:.0}, O_SYNC {o_sync:.0}");
    assert!(barrier < 80.0 && none > 5.0 * barrier);
    assert!((o_sync / barrier - 1.0).abs() < 0.1);
}
