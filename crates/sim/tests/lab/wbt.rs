//! Writeback throttling under a kernel of today: a reader beside somebody who writes through the page cache.

use fairlift_sim::lab::LabError;
use fairlift_sim::result::RunResult;

use crate::harness::{Lab, job, lab};

const READER_AND_WRITER: &str = "[reader]\nrw=randread\nbs=4k\nsize=1g\ndirect=1\nnorandommap\ntime_based\nruntime=4\n\
    [writer]\nrw=write\nbs=1m\nsize=4g\ntime_based\nruntime=4\n";

fn today(text: &str, scheduler: &str, device: &str) -> Lab {
    lab(text).kernel("6.12").under(scheduler).on(device).cache_mib(512)
}

/// Mean of the reader's latency, ms, and the writer's bytes.
fn figures(run: &RunResult) -> (f64, u64) {
    let latency = &job(run, "reader").transfers[0].clat;
    (latency.mean_ns() / 1e6, job(run, "writer").bytes())
}

/// Without it the flusher's requests fill the drive; the reader waits behind them.
#[test]
fn a_reader_is_protected_from_buffered_writes() {
    for scheduler in ["none", "kyber"] {
        let of = |setting: &str| {
            figures(&today(READER_AND_WRITER, &format!("{scheduler}{setting}"), "sata-ssd-870").run())
        };
        let ((off, off_bytes), (on, on_bytes)) = (of(":wbt_lat_usec=0"), of(""));
        assert!(on * 2.0 < off, "{scheduler}: mean {on} ms with, {off} ms without");
        assert!(on_bytes * 4 > off_bytes, "{scheduler}: the writer goes on: {on_bytes} of {off_bytes}");
    }
}

/// bfq and fl-cfq switch it off, unless somebody sets it; so the same target makes no difference to none, and does to fl-cfq.
#[test]
fn off_under_bfq_and_fl_cfq_unless_it_is_set() {
    let of = |scheduler: &str| figures(&today(READER_AND_WRITER, scheduler, "sata-ssd-870").run());
    assert_eq!(of("none"), of("none:wbt_lat_usec=2000"), "the default without seeks");
    for scheduler in ["bfq", "fl-cfq"] {
        let (default, off) = (of(scheduler), of(&format!("{scheduler}:wbt_lat_usec=0")));
        assert_eq!(default, off, "{scheduler}");
        assert_ne!(default, of(&format!("{scheduler}:wbt_lat_usec=2000")), "{scheduler}");
    }
}

/// O_DIRECT writes pass: nothing changes for them.
#[test]
fn direct_writes_are_not_throttled() {
    let text = READER_AND_WRITER.replace("bs=1m\n", "bs=1m\ndirect=1\nioengine=libaio\niodepth=16\n");
    let of = |scheduler: &str| figures(&today(&text, scheduler, "sata-ssd-870").run());
    assert_eq!(of("none"), of("none:wbt_lat_usec=0"));
}

#[test]
fn old_kernels_have_none() {
    let refused = lab(READER_AND_WRITER).under("noop:wbt_lat_usec=2000").try_run();
    let Err(LabError::Setting(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("Linux 2.6.31 has no writeback throttling; 6.12 has it"), "{message}");
}
