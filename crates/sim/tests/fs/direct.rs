//! O_DIRECT on files, and O_SYNC.

use super::harness::{Ran, SECOND, computer};
use fairlift_sim::block::TraceKind;
use fairlift_sim::kernel::OpenFlags;

const KIB: u64 = 1024;

/// A sparse file (ftruncate to 1 MiB): one direct write into the middle, one beyond the end, one over the first.
fn three_direct_writes(version: &'static str, fs: &'static str) -> Ran {
    computer(version, fs, "barrier=0").run(|sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create().direct()).await.unwrap();
        sys.ftruncate(file, 1024 * KIB).await.unwrap();
        sys.fsync(file).await.unwrap();
        sys.sleep_until(20 * SECOND).await;
        marks.set("hole", &sys);
        sys.pwrite(file, 512 * KIB, 16 * KIB).await.unwrap();
        marks.set("beyond", &sys);
        sys.pwrite(file, 1024 * KIB, 16 * KIB).await.unwrap();
        marks.set("over", &sys);
        sys.pwrite(file, 512 * KIB, 16 * KIB).await.unwrap();
        marks.set("done", &sys);
    })
}

/// ext3, and ext4 before 2.6.33, write into a hole through the page cache and wait; beyond the end and over existing blocks the
/// write goes directly (sync, but without NOIDLE).
#[test]
fn a_direct_write_into_a_hole_falls_back() {
    for (version, fs, buffered) in [
        ("2.6.31", "ext3", true),
        ("2.6.34", "ext3", true),
        ("2.6.32", "ext4", true),
        ("2.6.33", "ext4", false),
    ] {
        let ran = three_direct_writes(version, fs);
        let hole = if buffered { "4 x app: W+sync+noidle 4" } else { "1 x app: W+sync 16" };
        assert_eq!(ran.bios("hole", "beyond"), [hole], "{version} {fs}");
        assert_eq!(ran.bios("beyond", "over"), ["1 x app: W+sync 16"], "{version} {fs}");
        assert_eq!(ran.bios("over", "done"), ["1 x app: W+sync 16"], "{version} {fs}");
        // The data is where it was put the first time.
        let first = ran.between("hole", "beyond")[0].sector;
        assert_eq!(ran.between("over", "done")[0].sector, first);
    }
}

/// Scattered direct writes into a sparse ext3 file lie in a row on the disk: what fio of 2009 measured as random writes.
#[test]
fn scattered_writes_into_holes_lie_in_a_row() {
    let ran = computer("2.6.31", "ext3", "").run(|sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create().direct()).await.unwrap();
        sys.ftruncate(file, 64 << 20).await.unwrap();
        marks.set("start", &sys);
        for n in 0..200_u64 {
            sys.pwrite(file, (n * 7919 % 16_384) * 4 * KIB, 4 * KIB).await.unwrap();
        }
        marks.set("done", &sys);
    });
    let writes: Vec<u64> = ran
        .between("start", "done")
        .iter()
        .filter(|l| l.kind == TraceKind::Issued && l.task == "app")
        .map(|l| l.sector)
        .collect();
    assert_eq!(writes.len(), 200);
    let near = writes.windows(2).filter(|pair| pair[1].abs_diff(pair[0]) <= 8 * 16).count();
    assert!(near >= 190, "{near} of 199 steps are short");
}

/// libaio on an O_DIRECT file: submission into a hole blocks until it is written, into existing blocks it does not.
#[test]
fn submission_into_a_hole_blocks() {
    let ran = computer("2.6.31", "ext3", "").run(|sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create().direct()).await.unwrap();
        sys.ftruncate(file, 1024 * KIB).await.unwrap();
        for mark in ["hole", "over"] {
            marks.set(mark, &sys);
            for n in 0..4 {
                sys.submit_pwrite(file, n * 128 * KIB, 4 * KIB).await.unwrap();
            }
            marks.set(if mark == "hole" { "hole submitted" } else { "over submitted" }, &sys);
            for _ in 0..4 {
                sys.next_completion().await;
            }
            marks.set("collected", &sys);
        }
    });
    let done = |from, to| {
        ran.between(from, to).iter().filter(|l| l.kind == TraceKind::Completed && l.task == "app").count()
    };
    assert!(done("hole", "hole submitted") >= 4);
    assert_eq!(done("over", "over submitted"), 0);
}

/// O_SYNC is an fsync with every write: data, then a commit as the file grows.
#[test]
fn o_sync_commits_with_every_write() {
    let ran = computer("2.6.34", "ext4", "barrier=0").run(|sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create().o_sync()).await.unwrap();
        sys.pwrite(file, 0, 4 * KIB).await.unwrap();
        marks.set("second", &sys);
        sys.pwrite(file, 4 * KIB, 4 * KIB).await.unwrap();
        marks.set("done", &sys);
    });
    let issued = ran.issued("second", "done");
    assert_eq!(issued.len(), 3, "{issued:?}");
    assert_eq!(issued[0], "app: W+sync+noidle 4");
    assert!(issued[1].starts_with("jbd2") && issued[2].starts_with("jbd2"));
}
