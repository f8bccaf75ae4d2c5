//! Fast commits of ext4: what an fsync sends, and when a whole commit is needed all the same.

use super::harness::{Computer, Ran, SECOND, computer};
use fairlift_sim::kernel::{Filesystem, OpenFlags, version};

const KIB: u64 = 1024;

/// A file that is written to and fsynced so many times, `gap_ns` apart.
fn appends(mount: &'static str, times: u64, gap_ns: u64) -> Ran {
    appends_on(&computer("6.12", "ext4", mount), times, gap_ns)
}

fn appends_on(computer: &Computer, times: u64, gap_ns: u64) -> Ran {
    computer.run(move |sys, marks| async move {
        let file = sys.open("/f", OpenFlags::RDWR.create()).await.unwrap();
        sys.pwrite(file, 0, 4 * KIB).await.unwrap();
        sys.fsync(file).await.unwrap();
        marks.set("first", &sys);
        for n in 1..=times {
            sys.sleep(gap_ns).await;
            sys.pwrite(file, n * 4 * KIB, 4 * KIB).await.unwrap();
            sys.fsync(file).await.unwrap();
        }
        marks.set("done", &sys);
        sys.sync().await;
        sys.sleep(40 * SECOND).await;
    })
}

fn stats(ran: &Ran) -> (u64, u64) {
    ran.simulation.with_machine(|m| {
        let stats = m.kernel().journal_stats().unwrap();
        (stats.fast_commits, stats.commits)
    })
}

/// Two requests, both of the caller: its data, and a block that says what changed. Without it the journal's thread writes two.
#[test]
fn an_fsync_writes_one_block_and_wakes_nobody() {
    let with = appends("fast_commit=1", 1, 0);
    let issued: Vec<String> = with.issued("first", "done");
    let writes: Vec<&String> = issued.iter().filter(|line| !line.contains("FLUSH")).collect();
    assert_eq!(writes, ["app: W+sync+noidle 4", "app: W+sync 4"], "{issued:?}");
    assert_eq!(issued.len(), 4, "a flush before and one behind, as the disk has no FUA: {issued:?}");
    assert_eq!(stats(&with).0, 2);

    let without = appends("", 1, 0);
    let issued = without.issued("first", "done");
    assert_eq!(issued.iter().filter(|line| line.starts_with("jbd2")).count(), 2, "{issued:?}");
    assert_eq!(stats(&without).0, 0);
    // On an array each request costs a round trip: two in place of three, and no switch of tasks.
    let took = |mount| {
        let ran = appends_on(&Computer { device: "san-nvram", ..computer("6.12", "ext4", mount) }, 100, 0);
        (ran.at("done") - ran.at("first")) / 100_000
    };
    let (with_us, without_us) = (took("fast_commit=1"), took(""));
    assert!(with_us * 4 < without_us * 3, "{with_us} us, without them {without_us} us");
}

/// The area has 256 blocks: then a whole commit empties it.
#[test]
fn a_full_area_needs_a_whole_commit() {
    let ran = appends("fast_commit=1,barrier=0", 300, 0);
    let (fast, whole) = stats(&ran);
    // The first fsync, then 300; one of them found the area full.
    assert_eq!(fast, 300);
    assert!((1..=3).contains(&whole), "{whole}");
    assert_eq!(ran.simulation.with_machine(|m| m.kernel().leftovers()), Default::default());
}

/// The transaction goes on and is committed after 5 s, as ever.
#[test]
fn the_timer_commits_as_ever() {
    let ran = appends("fast_commit=1", 12, SECOND);
    let (fast, whole) = stats(&ran);
    assert_eq!(fast, 13);
    assert!((3..=4).contains(&whole), "{whole}: after 5 and 10 s and at the end");
}

/// Several tasks: none waits for ever, all is on the device in the end, and a commit of one may do for others.
#[test]
fn tasks_share_them() {
    let ran = computer("6.12", "ext4", "fast_commit=1").run(|sys, _| async move {
        let tasks: Vec<_> = (0..4u64)
            .map(|n| {
                sys.spawn(fairlift_core::IoPrio::DEFAULT, move |sys| async move {
                    for round in 0..40u64 {
                        let path = format!("/f{n}-{round}");
                        let file = sys.open(&path, OpenFlags::RDWR.create()).await.unwrap();
                        sys.pwrite(file, 0, 16 * KIB).await.unwrap();
                        sys.fsync(file).await.unwrap();
                        sys.close(file).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            sys.join(task).await;
        }
        sys.sync().await;
        sys.sleep(40 * SECOND).await;
    });
    let (fast, whole) = stats(&ran);
    assert!((40..=160).contains(&fast) && whole >= 1, "{fast} {whole}");
    assert_eq!(ran.simulation.with_machine(|m| m.kernel().leftovers()), Default::default());
}

#[test]
fn old_kernels_and_ext3_have_none() {
    let mounted = Filesystem::parse("ext4", "fast_commit=1").unwrap();
    assert!(mounted.check(version::find("6.12").unwrap()).is_ok());
    assert!(mounted.check(version::find("2.6.34").unwrap()).unwrap_err().contains("6.12 has them"));
    assert!(Filesystem::parse("ext3", "fast_commit=1").unwrap_err().contains("ext4 has"));
}
