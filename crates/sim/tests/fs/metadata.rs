//! Reads of metadata: the blocks that say where a file's blocks lie.

use super::harness::{Computer, Line, Marks, computer, lines};
use fairlift_core::IoPrio;
use fairlift_sim::block::TraceKind;
use fairlift_sim::engine::{Outcome, Sys};
use fairlift_sim::kernel::OpenFlags;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// What reaches the device for a program that reads a file of 16 MiB which is there before the run.
fn issued<F: Future<Output = ()> + 'static>(
    on: &Computer,
    program: impl FnOnce(Sys, Marks) -> F,
) -> Vec<Line> {
    let mut simulation = on.build();
    simulation.with_machine(|m| {
        m.make_file("/f", 16 * MIB).expect("there is room");
        m.block_mut().start_trace();
    });
    let task = simulation.spawn(IoPrio::DEFAULT, |sys| program(sys, Marks::default()));
    simulation.with_machine(|m| m.set_name(task, "app"));
    assert_eq!(simulation.run(3_600_000_000_000, &mut |_| {}), Outcome::Finished);
    lines(&simulation).into_iter().filter(|line| line.kind == TraceKind::Issued).collect()
}

/// 4 KiB direct reads of the first block, of two neighbours within the first indirect block's 4 MiB, of the third's, and of the first
/// indirect block's once more.
fn scattered(on: &Computer) -> Vec<Line> {
    issued(on, |sys, _| async move {
        let file = sys.open("/f", OpenFlags::RDWR.direct()).await.expect("it is there");
        for offset in [0, MIB, MIB + 4 * KIB, 10 * MIB, 3 * MIB] {
            sys.pread(file, offset, 4 * KIB).await.expect("a read");
        }
    })
}

#[test]
fn ext3_reads_an_indirect_block_before_what_it_leads_to_and_once() {
    let reads = scattered(&computer("2.6.34", "ext3", "metadata=cold"));
    // Direct block; indirect and data; data; the third indirect block (through the first) and data; data.
    assert_eq!(reads.len(), 7, "{reads:?}");
    assert!(reads.iter().all(|line| line.kib() == 4 && !line.write));
    // Where they lie: an indirect block stands before the blocks it leads to, 16 KiB or 4 MiB of data further on.
    let sector = |index: usize| reads[index].sector;
    assert_eq!(sector(1), sector(0) + 12 * 8, "behind the twelve blocks of the inode");
    assert_eq!(sector(2), sector(1) + 8 + (MIB / 512 - 12 * 8));
    assert_eq!(sector(3), sector(2) + 8);
    assert_eq!(sector(5) - sector(4), 8 + (10 * MIB - 8 * MIB - 48 * KIB) / 512);
    // One after the other: the data is asked for when the indirect block is there.
    assert!(reads.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
}

#[test]
fn in_memory_they_cost_nothing() {
    assert_eq!(scattered(&computer("2.6.34", "ext3", "")).len(), 5);
    assert_eq!(
        scattered(&computer("6.12", "ext4", "metadata=cold")).len(),
        5,
        "four extents fit into ext4's inode"
    );
}

/// Single blocks out of 256 parts of a file, each with an index block of its own.
#[test]
fn a_part_of_them_can_be_in_memory() {
    let extra = |mount| {
        let on = computer("2.6.34", "ext3", mount);
        let mut simulation = on.build();
        simulation.with_machine(|m| {
            m.make_file("/f", 1024 * MIB).expect("there is room");
            m.block_mut().start_trace();
        });
        simulation.spawn(IoPrio::DEFAULT, |sys| async move {
            let file = sys.open("/f", OpenFlags::RDWR.direct()).await.expect("it is there");
            for n in 0..256 {
                sys.pread(file, n * 4 * MIB + MIB, 4 * KIB).await.expect("a read");
            }
        });
        assert_eq!(simulation.run(3_600_000_000_000, &mut |_| {}), Outcome::Finished);
        lines(&simulation).iter().filter(|line| line.kind == TraceKind::Issued).count() - 256
    };
    assert_eq!((extra("metadata=100%"), extra("metadata=0%")), (0, extra("metadata=cold")));
    assert_eq!(extra("metadata=cold"), 256);
    let of_a_tenth = extra("metadata=90%");
    assert!((13..=38).contains(&of_a_tenth), "{of_a_tenth} of 256; 26 within 2.6 standard deviations");
}

#[test]
fn a_buffered_stream_reads_one_every_4_mib() {
    let stream = |mount| {
        let on = computer("2.6.34", "ext3", mount);
        let read = issued(&on, |sys, _| async move {
            let file = sys.open("/f", OpenFlags::RDWR).await.expect("it is there");
            for n in 0..256 {
                sys.pread(file, n * 64 * KIB, 64 * KIB).await.expect("a read");
            }
        });
        read.iter().map(|line| u64::from(line.sectors)).sum::<u64>() / 8
    };
    // 4,096 blocks of data; 12 of them are the inode's, the others those of four indirect blocks, the last of 1,012.
    assert_eq!((stream("metadata=cached"), stream("metadata=cold")), (4096, 4100));
}

/// Memory of 64 MiB: a file that is read again finds its data gone, and so are its indirect blocks.
#[test]
fn what_is_evicted_is_read_again() {
    let on = Computer { memory_mib: 64, ..computer("2.6.34", "ext3", "metadata=cold") };
    let reads = issued(&on, |sys, _| async move {
        let file = sys.open("/f", OpenFlags::RDWR.direct()).await.expect("it is there");
        let other = sys.open("/g", OpenFlags::RDWR.create()).await.expect("a new file");
        sys.pread(file, MIB, 4 * KIB).await.expect("a read");
        for n in 0..192 {
            sys.pwrite(other, n * MIB, MIB).await.expect("a write");
            sys.fsync(other).await.expect("a sync");
        }
        sys.pread(file, MIB, 4 * KIB).await.expect("a read");
    });
    let of_app = reads.iter().filter(|line| !line.write && line.task == "app").count();
    assert_eq!(of_app, 4, "each time the indirect block and the data");
}
