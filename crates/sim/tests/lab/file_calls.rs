//! fio's engines that call the file system in place of I/O, and jobs that fill a device.

use fairlift_fio::Direction;
use fairlift_sim::device::Op;

use crate::harness::{Lab, lab};

fn on_ext4(text: &str) -> Lab {
    lab(text).kernel("6.12").under("noop").mounted("ext4", "size_mib=1024")
}

/// Bytes that the first process moved in `direction`.
fn bytes(processes: &[fairlift_sim::result::JobResult], number: usize, direction: Direction) -> u64 {
    processes[number].transfers[direction.index()].bytes
}

/// A call each tenth of a second: the journal commits every five seconds.
const SLOWLY: &str = "bs=4k\nthinktime=100ms\nthinktime_blocks=1\n";

#[test]
fn created_files_reach_the_device_by_the_journal_only() {
    let created =
        on_ext4(&format!("[a]\nioengine=filecreate\nfilesize=4k\nnrfiles=100\n{SLOWLY}")).run_logged();
    assert_eq!(created.processes[0].ios(), 100);
    let kib = created.log.kib(Op::Write);
    assert!((2..20).contains(&kib.len()), "a body and a commit block each time: {kib:?}");
    assert_eq!(created.log.count(Op::Read), 0);
}

#[test]
fn a_file_is_created_once_however_many_blocks_it_would_have() {
    let text = "[a]\nioengine=filecreate\nfilesize=64k\nbs=4k\nnrfiles=10\nloops=2\n";
    assert_eq!(on_ext4(text).run_logged().processes[0].ios(), 20, "ten files a loop");
}

/// The second loop finds nothing to delete: the job ends with the error, as under fio.
#[test]
fn deleted_files_are_gone() {
    let text = format!("[a]\nioengine=filedelete\nfilesize=4k\nnrfiles=60\nloops=2\n{SLOWLY}");
    let deleted = on_ext4(&text).run_logged();
    assert_eq!(deleted.processes[0].ios(), 60);
    assert!(deleted.log.count(Op::Write) > 0);
}

#[test]
fn looking_files_up_costs_processor_time_only() {
    let text = format!("[a]\nioengine=filestat\nfilesize=4k\nnrfiles=60\n{SLOWLY}");
    let looked_up = on_ext4(&text).run_logged();
    assert_eq!(looked_up.processes[0].ios(), 60);
    assert_eq!(looked_up.log.commands.len(), 0);
}

#[test]
fn truncating_changes_metadata_and_writes_no_data() {
    let text =
        format!("[a]\nioengine=ftruncate\nrw=randwrite\nnorandommap\nsize=10m\nnumber_ios=100\n{SLOWLY}");
    let cut = on_ext4(&text).run_logged();
    assert_eq!(cut.processes[0].ios(), 100);
    let written: u32 = cut.log.kib(Op::Write).iter().sum();
    assert!((8..2_000).contains(&written), "{written} KiB");
}

/// A hole of the whole file leaves nothing to read back; a quarter leaves three.
#[test]
fn what_is_punched_is_not_read_back() {
    let read = |punched: &str| {
        let text = format!(
            "[global]\nfilename=x\nfilesize=1m\nbs=64k\n[punch]\nioengine=falloc\nrw=trim\n{punched}\n\
             [read]\nstonewall\nrw=read\n"
        );
        on_ext4(&text).run_logged().log.kib(Op::Read).iter().sum::<u32>()
    };
    assert_eq!(read("io_size=1m"), 0);
    assert_eq!(read("io_size=256k"), 768);
}

#[test]
fn calls_need_the_file_system_that_has_them() {
    let error = |lab: Lab| lab.try_run().unwrap_err().to_string();
    for engine in ["filecreate", "filedelete", "filestat", "falloc"] {
        let text = format!("[a]\nioengine={engine}\nfilesize=4k\n");
        assert!(error(lab(&text)).contains(&format!("engine {engine} needs a file system")), "{engine}");
    }
    let punch = "[a]\nioengine=falloc\nrw=trim\nsize=1m\n";
    let old = error(lab(punch).kernel("2.6.34").mounted("ext4", ""));
    assert!(old.contains("ext4 of Linux 2.6.34 cannot fallocate, or not punch holes"), "{old}");
    let write = "[a]\nioengine=falloc\nrw=write\nsize=1m\n";
    assert!(error(lab(write).kernel("2.6.34").mounted("ext3", "")).contains("ext3 of Linux 2.6.34"));
    lab(write).kernel("2.6.34").mounted("ext4", "").run();
}

/// fio's `surface-scan`, on a small file system, direct and through the page cache.
#[test]
fn a_job_fills_the_device_and_another_reads_what_is_there() {
    for direct in [0, 1] {
        let text = format!(
            "[global]\nbs=64k\ndirect={direct}\nfilename=f\n[fill]\nrw=write\nfill_device=1\n\
             [scan]\nstonewall\nrw=read\n"
        );
        let filled = lab(&text).kernel("6.12").mounted("ext4", "size_mib=256").run_logged();
        let written = bytes(&filled.processes, 0, Direction::Write);
        assert!((200 << 20..256 << 20).contains(&written), "direct={direct}: {written}");
        let read = bytes(&filled.processes, 1, Direction::Read);
        assert!(written.abs_diff(read) < 64 << 10, "direct={direct}: {written} written, {read} read");
    }
}
