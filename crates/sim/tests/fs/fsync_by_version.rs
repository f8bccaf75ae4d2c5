//! One fsync of a freshly written 64 KiB file, and one of an overwrite: which requests, by whom, of what size, with which flags.
//! The table of `docs/filesystems.md`, row by row.

use super::harness::{Computer, Ran, SECOND, computer};
use fairlift_sim::kernel::OpenFlags;

const KIB: u64 = 1024;

const ASYNC: &str = "W";
const OLD_SYNC: &str = "W+sync+unplug";
const NOIDLE: &str = "W+sync+noidle";
const WRITE_SYNC: &str = "W+sync+noidle+unplug";
const TODAY: &str = "W+sync+meta";

/// A row: flags of data, journal body and commit block, for ext3 and ext4.
struct Row {
    version: &'static str,
    data: &'static str,
    body: [&'static str; 2],
    record: [&'static str; 2],
    /// Added to the commit block with barriers.
    barrier: &'static str,
    /// Flushes of ext4's caller after the commit, with barriers.
    ext4_flush_after: bool,
    /// Bios of the data: one a page or one for all, ext4.
    ext4_large_bios: bool,
}

const ROW: Row = Row {
    version: "",
    data: NOIDLE,
    body: [ASYNC, ASYNC],
    record: [WRITE_SYNC, NOIDLE],
    barrier: "+barrier",
    ext4_flush_after: false,
    ext4_large_bios: false,
};

const TABLE: &[Row] = &[
    Row { version: "2.6.28", data: ASYNC, record: [OLD_SYNC, ASYNC], ext4_flush_after: true, ..ROW },
    Row { version: "2.6.29", data: ASYNC, record: [ASYNC, OLD_SYNC], ext4_flush_after: true, ..ROW },
    Row { version: "2.6.30", body: [NOIDLE, NOIDLE], ext4_flush_after: true, ..ROW },
    Row { version: "2.6.31", body: [NOIDLE, NOIDLE], ext4_flush_after: true, ..ROW },
    Row { version: "2.6.32", body: [ASYNC, NOIDLE], ext4_flush_after: true, ..ROW },
    Row { version: "2.6.33", ..ROW },
    Row { version: "2.6.34", ..ROW },
    Row {
        version: "2.6.37",
        body: [WRITE_SYNC, WRITE_SYNC],
        record: [WRITE_SYNC, WRITE_SYNC],
        barrier: "+preflush+fua",
        ext4_large_bios: true,
        ..ROW
    },
    Row {
        version: "2.6.39",
        body: [NOIDLE, NOIDLE],
        record: [NOIDLE, NOIDLE],
        barrier: "+preflush+fua",
        ext4_large_bios: true,
        ..ROW
    },
    Row {
        version: "6.12",
        body: [TODAY, TODAY],
        record: [TODAY, TODAY],
        barrier: "+preflush+fua",
        ext4_large_bios: true,
        ..ROW
    },
];

/// Write 64 KiB into a new file and fsync; two seconds later overwrite and fsync.
fn fresh_and_overwrite(computer: &Computer) -> Ran {
    computer.run(|sys, marks| async move {
        // The very first commit also writes the journal's superblock.
        let warm = sys.open("/warm", OpenFlags::RDWR.create()).await.unwrap();
        sys.write(warm, 4096).await.unwrap();
        sys.fsync(warm).await.unwrap();
        sys.sleep_until(10 * SECOND).await;
        let file = sys.open("/file", OpenFlags::RDWR.create()).await.unwrap();
        sys.pwrite(file, 0, 64 * KIB).await.unwrap();
        marks.set("fresh", &sys);
        sys.fsync(file).await.unwrap();
        marks.set("fresh done", &sys);
        sys.sleep_until(12 * SECOND).await;
        sys.pwrite(file, 0, 64 * KIB).await.unwrap();
        marks.set("again", &sys);
        sys.fsync(file).await.unwrap();
        marks.set("again done", &sys);
    })
}

/// `count x task: flags KiB`, neighbours that are alike joined.
fn join(lines: &[(usize, String)]) -> Vec<String> {
    let mut joined: Vec<(usize, &String)> = Vec::new();
    for (count, line) in lines {
        match joined.last_mut() {
            Some((n, last)) if *last == line => *n += count,
            _ => joined.push((*count, line)),
        }
    }
    joined.into_iter().map(|(n, line)| format!("{n} x {line}")).collect()
}

impl Row {
    /// The bios of one fsync whose transaction has `metadata` blocks.
    fn bios(&self, ext4: bool, barrier: bool, metadata: usize) -> Vec<String> {
        let thread = if ext4 || self.version == "6.12" { "jbd2" } else { "kjournald" };
        let kind = usize::from(ext4);
        let mut lines = match (ext4, self.version) {
            (true, _) if self.ext4_large_bios => vec![(1, format!("app: {} 64", self.data))],
            // An indirect block lies between the 12th and the 13th block.
            (false, "6.12") => {
                vec![(1, format!("app: {} 48", self.data)), (1, format!("app: {} 16", self.data))]
            }
            _ => vec![(16, format!("app: {} 4", self.data))],
        };
        lines.push((metadata + 1, format!("{thread}: {} 4", self.body[kind])));
        let barriers = if barrier { self.barrier } else { "" };
        lines.push((1, format!("{thread}: {}{barriers} 4", self.record[kind])));
        if ext4 && barrier && self.ext4_flush_after {
            lines.push((1, "app: FLUSH+sync 0".to_owned()));
        }
        join(&lines)
    }

    /// The requests that reach a disk with a volatile cache and without FUA.
    fn requests(&self, ext4: bool, barrier: bool, metadata: usize) -> Vec<(u32, bool)> {
        let data: &[u32] = if ext4 { &[64] } else { &[48, 16] };
        let body = (metadata as u32 + 1) * 4;
        // An unplug with every block leaves nothing to merge with.
        let body = if self.version == "2.6.37" { vec![4; metadata + 1] } else { vec![body] };
        let mut sizes: Vec<(u32, bool)> = data.iter().chain(&body).map(|kib| (*kib, false)).collect();
        let flush = (0, true);
        if barrier {
            sizes.extend([flush, (4, false), flush]);
        } else {
            sizes.push((4, false));
        }
        if ext4 && barrier && self.ext4_flush_after {
            sizes.push(flush);
        }
        sizes
    }
}

fn requests(ran: &Ran, from: &str, to: &str) -> Vec<(u32, bool)> {
    ran.issued(from, to)
        .iter()
        .map(|line| (line.rsplit(' ').next().unwrap().parse().unwrap(), line.contains("FLUSH")))
        .collect()
}

#[test]
fn every_version_sends_what_its_row_says() {
    for row in TABLE {
        for ext4 in [false, true] {
            for barrier in [false, true] {
                let (name, mount) =
                    (if ext4 { "ext4" } else { "ext3" }, if barrier { "barrier=1" } else { "barrier=0" });
                let ran = fresh_and_overwrite(&computer(row.version, name, mount));
                // Fresh: inode bitmap, group descriptor, inode (its directory's inode in the same block), directory block, block
                // bitmap; ext3 also an indirect block. Overwrite: the inode.
                for (from, to, metadata) in
                    [("fresh", "fresh done", if ext4 { 5 } else { 6 }), ("again", "again done", 1)]
                {
                    let what = format!("{} {name} {mount} {from}", row.version);
                    assert_eq!(ran.bios(from, to), row.bios(ext4, barrier, metadata), "{what}");
                    assert_eq!(requests(&ran, from, to), row.requests(ext4, barrier, metadata), "{what}");
                }
            }
        }
    }
}

/// Data, body and commit block are three round trips: none starts before the one before is done.
#[test]
fn an_fsync_is_three_dependent_round_trips() {
    use fairlift_sim::block::TraceKind;
    for (version, fs) in [("2.6.31", "ext3"), ("2.6.34", "ext4"), ("6.12", "ext4")] {
        let ran = fresh_and_overwrite(&computer(version, fs, "barrier=0"));
        let lines = ran.between("again", "again done");
        let moment = |kind: TraceKind, pick: &dyn Fn(&str) -> bool, last: bool| {
            let mut times = lines.iter().filter(|l| l.kind == kind && pick(&l.task)).map(|l| l.at_ns);
            if last { times.next_back().unwrap() } else { times.next().unwrap() }
        };
        let (app, thread) = (|t: &str| t == "app", |t: &str| t != "app");
        assert!(moment(TraceKind::Completed, &app, true) < moment(TraceKind::Queued, &thread, false));
        let issued: Vec<u64> = lines
            .iter()
            .filter(|l| l.kind == TraceKind::Issued && thread(&l.task))
            .map(|l| l.at_ns)
            .collect();
        let first_done = moment(TraceKind::Completed, &thread, false);
        assert_eq!(issued.len(), 2);
        assert!(issued[0] < first_done && first_done <= issued[1], "{version} {fs}");
    }
}

/// The journal's blocks follow each other in the log, commit block included.
#[test]
fn a_commit_is_consecutive_in_the_log() {
    let ran = fresh_and_overwrite(&computer("2.6.34", "ext4", "barrier=0"));
    let log: Vec<_> = ran
        .lines
        .iter()
        .filter(|l| {
            l.task == "jbd2"
                && l.write
                && !matches!(
                    l.kind,
                    fairlift_sim::block::TraceKind::Issued | fairlift_sim::block::TraceKind::Completed
                )
        })
        .collect();
    // The first is the superblock.
    for pair in log[1..].windows(2) {
        assert_eq!(pair[0].sector + 8, pair[1].sector);
    }
    assert_eq!(log[0].sector + 8, log[1].sector, "the log begins behind the superblock");
}
