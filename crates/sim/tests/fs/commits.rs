//! When there is a commit, and what it waits for.

use super::harness::{SECOND, computer};
use fairlift_core::IoPrio;
use fairlift_sim::block::TraceKind;
use fairlift_sim::kernel::OpenFlags;

const KIB: u64 = 1024;

/// Whole-second times: on ext3 (2.6.32 and later) a second overwrite in the same second changes nothing that a commit would save.
/// ext4 keeps ticks and commits.
#[test]
fn timestamps_decide_whether_there_is_a_commit() {
    for (fs, commits) in [("ext3", 0), ("ext4", 2)] {
        let ran = computer("2.6.34", fs, "barrier=0").run(|sys, marks| async move {
            let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
            sys.pwrite(file, 0, 64 * KIB).await.unwrap();
            sys.fsync(file).await.unwrap();
            sys.sleep_until(20 * SECOND).await;
            sys.pwrite(file, 0, 4 * KIB).await.unwrap();
            sys.fsync(file).await.unwrap();
            sys.sleep(SECOND / 100).await;
            marks.set("again", &sys);
            sys.pwrite(file, 0, 64 * KIB).await.unwrap();
            sys.fsync(file).await.unwrap();
            marks.set("done", &sys);
            assert!(sys.now() < 21 * SECOND);
        });
        let issued = ran.issued("again", "done");
        let journal = issued.iter().filter(|l| !l.starts_with("app")).count();
        assert_eq!(journal, commits, "{fs}: {issued:?}");
        let data: u32 = ran
            .between("again", "done")
            .iter()
            .filter(|l| l.kind == TraceKind::Issued && l.task == "app")
            .map(super::harness::Line::kib)
            .sum();
        assert_eq!(data, 64);
    }
}

/// With barriers an fsync that finds everything committed still flushes the device: ext3 since 2.6.32, ext4 since 2.6.33.
#[test]
fn nothing_to_commit_means_a_flush_at_most() {
    for (version, fs, flushes) in [
        ("2.6.31", "ext3", 0),
        ("2.6.32", "ext3", 1),
        ("2.6.32", "ext4", 0),
        ("2.6.33", "ext4", 1),
        ("6.12", "ext4", 1),
    ] {
        let ran = computer(version, fs, "barrier=1").run(|sys, marks| async move {
            let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
            sys.pwrite(file, 0, 64 * KIB).await.unwrap();
            sys.fsync(file).await.unwrap();
            marks.set("again", &sys);
            sys.sleep(1).await;
            sys.fsync(file).await.unwrap();
            marks.set("done", &sys);
        });
        let after = ran.at("again");
        let issued = ran.between("again", "done");
        let count = issued.iter().filter(|l| l.kind == TraceKind::Issued && l.at_ns > after).count();
        assert_eq!(count, flushes, "{version} {fs}");
    }
}

/// fdatasync of an overwrite needs no commit: only the time changed.
#[test]
fn fdatasync_ignores_the_time() {
    let ran = computer("2.6.34", "ext4", "barrier=0").run(|sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
        sys.pwrite(file, 0, 8 * KIB).await.unwrap();
        sys.fsync(file).await.unwrap();
        sys.sleep_until(20 * SECOND).await;
        marks.set("overwrite", &sys);
        sys.pwrite(file, 0, 8 * KIB).await.unwrap();
        sys.fdatasync(file).await.unwrap();
        marks.set("longer", &sys);
        sys.sleep(1000).await;
        sys.pwrite(file, 8 * KIB, 4 * KIB).await.unwrap();
        sys.fdatasync(file).await.unwrap();
        marks.set("done", &sys);
    });
    assert_eq!(ran.issued("overwrite", "longer"), ["app: W+sync+noidle 8"]);
    assert_eq!(ran.issued("longer", "done").iter().filter(|l| l.starts_with("jbd2")).count(), 2);
}

/// Nobody asks: the transaction is committed at the first whole second after 5 s. ext3 writes its data first; ext4's has no place
/// yet and stays.
#[test]
fn a_transaction_is_committed_after_five_seconds() {
    for (fs, data) in [("ext3", 16), ("ext4", 0)] {
        let ran = computer("2.6.34", fs, "barrier=0").run(|sys, marks| async move {
            sys.sleep(SECOND / 3).await;
            let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
            sys.pwrite(file, 0, 64 * KIB).await.unwrap();
            marks.set("written", &sys);
            sys.sleep(8 * SECOND).await;
            marks.set("done", &sys);
        });
        let lines = ran.between("written", "done");
        let first = lines.first().unwrap();
        assert!((6 * SECOND..6 * SECOND + SECOND / 10).contains(&first.at_ns), "{fs} at {}", first.at_ns);
        // The superblock, the data, descriptor and copies, the commit block.
        let metadata = if fs == "ext3" { 6 } else { 4 };
        let bios = lines.iter().filter(|l| matches!(l.kind, TraceKind::Queued | TraceKind::Merged)).count();
        assert_eq!(bios, 1 + data + 1 + metadata + 1, "{fs}");
    }
}

/// data=writeback: a commit does not wait for data.
#[test]
fn writeback_mode_commits_without_data() {
    for (mount, kib) in [("data=ordered", 64), ("data=writeback", 0)] {
        let ran = computer("2.6.34", "ext3", mount).run(|sys, marks| async move {
            let other = sys.open("/other", OpenFlags::RDWR.create()).await.unwrap();
            sys.pwrite(other, 0, 64 * KIB).await.unwrap();
            let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
            marks.set("sync", &sys);
            sys.fsync(file).await.unwrap();
            marks.set("done", &sys);
        });
        // All that is written beyond the journal's area is the other file's data, by the journal's thread.
        let lines = ran.between("sync", "done");
        let journal_start =
            lines.iter().filter(|l| l.task == "kjournald").map(|l| l.sector).max().unwrap() - 4096;
        let data: u32 = lines
            .iter()
            .filter(|l| l.kind == TraceKind::Issued && l.task == "kjournald" && l.sector < journal_start)
            .map(super::harness::Line::kib)
            .sum();
        assert_eq!(data, kib, "{mount}");
    }
}

/// Four tasks: one commit serves several fsyncs, in 2.6.31 because a task that was not the last one waits for others, in 2.6.34
/// because they join while the commit before is on its way. One task alone gains nothing and commits each time.
#[test]
fn batching_serves_several_tasks_with_one_commit() {
    let commits = |version, tasks: usize| {
        let ran = computer(version, "ext4", "barrier=0").run(move |sys, _| async move {
            let children: Vec<_> = (0..tasks)
                .map(|t| {
                    sys.spawn(IoPrio::DEFAULT, move |sys| async move {
                        for n in 0..20 {
                            let file =
                                sys.open(&format!("/t{t}f{n}"), OpenFlags::RDWR.create()).await.unwrap();
                            sys.write(file, 4 * KIB).await.unwrap();
                            sys.fsync(file).await.unwrap();
                            sys.close(file).await.unwrap();
                        }
                    })
                })
                .collect();
            for child in children {
                sys.join(child).await;
            }
        });
        ran.simulation.with_machine(|m| m.kernel().journal_stats().unwrap().commits)
    };
    assert_eq!((commits("2.6.31", 1), commits("2.6.34", 1)), (20, 20));
    let (batched, not) = (commits("2.6.31", 4), commits("2.6.34", 4));
    println!("commits for 80 fsyncs of 4 tasks: 2.6.31 {batched}, 2.6.34 {not}");
    assert!(batched < 80 && not < 80);
}

/// A small journal: it wraps, old transactions are written home to make room, and it never holds more than it has.
#[test]
fn a_full_log_is_checkpointed_and_wraps() {
    for (version, fs) in [("2.6.31", "ext3"), ("2.6.34", "ext4"), ("6.12", "ext4")] {
        let mut small = computer(version, fs, "size_mib=4096");
        small.journal_blocks = Some(256);
        small.device = "san-nvram";
        let ran = small.run(|sys, _| async move {
            for n in 0..400 {
                let file = sys.open(&format!("/f{n}"), OpenFlags::RDWR.create()).await.unwrap();
                sys.write(file, 16 * KIB).await.unwrap();
                sys.fsync(file).await.unwrap();
                sys.close(file).await.unwrap();
            }
        });
        ran.simulation.with_machine(|m| {
            let stats = m.kernel().journal_stats().unwrap();
            println!("{version} {fs}: {stats:?}");
            assert!(stats.wraps >= 5 && stats.checkpoints > 0, "{version} {fs} {stats:?}");
            assert!(stats.log_used_max <= 255);
            assert_eq!(stats.commits, 400);
        });
    }
}

/// The yield to the journal's thread does no harm to elevators that do not know it.
#[test]
fn yielding_changes_nothing_under_deadline() {
    let run = |yields| {
        let mut with = computer("2.6.34", "ext4", "barrier=0");
        with.yields = yields;
        with.run(|sys, _| async move {
            for n in 0..10 {
                let file = sys.open(&format!("/f{n}"), OpenFlags::RDWR.create()).await.unwrap();
                sys.write(file, 64 * KIB).await.unwrap();
                sys.fsync(file).await.unwrap();
            }
        })
        .lines
    };
    assert_eq!(run(false), run(true));
}

/// jbd's commit writes what was dirty when the transaction was closed: a file that goes on growing does not keep it from ending.
#[test]
fn an_ordered_commit_ends_although_a_file_keeps_growing() {
    let mut small = computer("2.6.30", "ext3", "data=ordered");
    small.memory_mib = 256;
    small.scheduler = "deadline:classes=sync-async"; // the commit's writes are sync: they do not wait for the other's
    let ran = small.run(|sys, marks| async move {
        let growing = sys.spawn(IoPrio::DEFAULT, |sys| async move {
            let file = sys.open("/growing", OpenFlags::RDWR.create()).await.unwrap();
            for _ in 0..1024 {
                sys.write(file, 1024 * KIB).await.unwrap();
            }
        });
        sys.sleep(2 * SECOND).await;
        let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
        sys.write(file, 4 * KIB).await.unwrap();
        marks.set("sync", &sys);
        sys.fsync(file).await.unwrap();
        marks.set("synced", &sys);
        sys.join(growing).await;
        marks.set("grown", &sys);
    });
    // 51 MiB may be dirty, at 100 MB/s; the file grows for 10 s.
    assert!(ran.at("synced") + 3 * SECOND < ran.at("grown"), "{} of {}", ran.at("synced"), ran.at("grown"));
    let by_commit: u32 = ran
        .between("sync", "synced")
        .iter()
        .filter(|l| l.task == "kjournald" && matches!(l.kind, TraceKind::Queued | TraceKind::Merged))
        .map(super::harness::Line::kib)
        .sum();
    assert!(by_commit <= 60 * 1024, "{by_commit} KiB by the commit");
}
