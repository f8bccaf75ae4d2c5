//! What a recorder lost, and times that cannot be.

mod common;

use std::io::Cursor;

use common::data;
use fairlift_trace::write::{BlkparseWriter, BlktraceWriter, CsvWriter, EventWriter, Version};
use fairlift_trace::{
    Action, ErrorKind, Event, Format, Interval, Lost, Options, Step, Summary, TraceReader, Tracker,
};

/// Two reads of one sector; of the first the completion, of the second the beginning is lost.
const TORN: &str = "\
fio-7 [000] 1.000000: block_bio_queue: 8,0 R 1000 + 8 [fio]
fio-7 [000] 1.000010: block_rq_issue: 8,0 R 4096 () 1000 + 8 [fio]
CPU:0 [LOST 12 EVENTS]
fio-7 [000] 3.000000: block_rq_complete: 8,0 R () 1000 + 8 [0]
fio-7 [000] 4.000000: block_bio_queue: 8,0 R 2000 + 8 [fio]
fio-7 [000] 4.000010: block_rq_issue: 8,0 R 4096 () 2000 + 8 [fio]
fio-7 [000] 4.000100: block_rq_complete: 8,0 R () 2000 + 8 [0]
CPU:1 [LOST EVENTS]
fio-7 [000] 5.000000: block_bio_queue: 8,0 R 3000 + 8 [fio]
";

fn ftrace(text: &str) -> TraceReader {
    let options = Options { format: Some(Format::Ftrace), ..Options::default() };
    TraceReader::from_read("pipe", Cursor::new(text.to_owned()), &options).unwrap()
}

fn all(reader: &mut TraceReader) -> Vec<(Event, Vec<u8>)> {
    let mut events = Vec::new();
    while let Some(event) = reader.next() {
        events.push((event.expect("a good record"), reader.payload().to_vec()));
    }
    events
}

#[test]
fn a_recorder_that_lost_events_is_heard() {
    let mut reader = ftrace(TORN);
    let events = all(&mut reader);
    assert_eq!(reader.lost(), Lost { gaps: 2, events: 12 });
    let gaps: Vec<_> =
        events.iter().filter(|(event, _)| matches!(event.action, Action::Lost { .. })).collect();
    assert_eq!(gaps[0].0.action, Action::Lost { events: 12 });
    assert_eq!((gaps[0].0.time_ns, gaps[0].1.as_slice()), (1_000_010_000, &b"[LOST 12 EVENTS]"[..]));
    assert_eq!(gaps[1].0.action, Action::Lost { events: 0 }, "it does not say how many");
}

#[test]
fn nothing_is_paired_across_a_gap() {
    let (mut tracker, mut done) = (Tracker::default(), Vec::new());
    let mut summary = Summary::new();
    for (event, _) in all(&mut ftrace(TORN)) {
        summary.add(&event);
        tracker.event(&event, |step| {
            if let Step::Done(bio, ns) = step {
                done.push((bio.sector, ns));
            }
        });
    }
    assert_eq!(done, [(2000, 4_000_100_000)], "the read of sector 1000 would have taken 2 s");
    assert_eq!((tracker.forgotten(), tracker.open()), (1, 1));
    assert_eq!(summary.all.interval(Interval::Q2C).count, 1);
    assert_eq!(summary.outstanding.max, 1, "what was under way before a gap is not under way after it");
    assert_eq!(summary.unfinished(), 2);
}

#[test]
fn every_format_with_messages_keeps_the_gap() {
    let events = all(&mut ftrace(TORN));
    let names = fairlift_trace::Names::default();
    let write = |writer: &mut dyn EventWriter| {
        for (event, payload) in &events {
            let event = Event { comm: None, ..*event };
            writer.write(&event, fairlift_trace::Texts { names: &names, payload }).unwrap();
        }
        writer.finish().unwrap();
    };
    let mut files = [Vec::new(), Vec::new(), Vec::new()];
    let [blktrace, blkparse, csv] = &mut files;
    write(&mut BlktraceWriter::single(blktrace, Version::V7));
    write(&mut BlkparseWriter::new(blkparse));
    write(&mut CsvWriter::new(csv));
    for file in files {
        let mut reader = TraceReader::from_read("copy", Cursor::new(file), &Options::default()).unwrap();
        all(&mut reader);
        assert_eq!(reader.lost(), Lost { gaps: 2, events: 12 }, "{}", reader.format());
    }
}

/// DiskSim's lines with these arrival times.
fn arrivals(times: &[&str]) -> String {
    times.iter().enumerate().map(|(at, time)| format!("{time} 0 {} 8 1\n", at * 8)).collect()
}

fn sectors(text: &str, keep_going: bool) -> (Vec<u64>, Option<ErrorKind>, u64) {
    let options = Options { keep_going, format: Some(Format::DiskSim), ..Options::default() };
    let mut reader = TraceReader::from_read("t", Cursor::new(text.to_owned()), &options).unwrap();
    let (mut sectors, mut fault) = (Vec::new(), None);
    for event in reader.by_ref() {
        match event {
            Ok(event) => sectors.push(event.sector / 8),
            Err(error) => fault = Some(error.kind),
        }
    }
    (sectors, fault, reader.skipped().faults)
}

#[test]
fn a_time_far_ahead_costs_its_record_and_no_other() {
    let text = arrivals(&["1", "2", "99999999", "3", "4", "5"]);
    assert_eq!(sectors(&text, true), (vec![0, 1, 3, 4, 5], None, 1));
    let (read, fault, _) = sectors(&text, false);
    assert_eq!(
        (read, fault),
        (vec![0, 1, 2], Some(ErrorKind::OutOfOrder)),
        "without --keep-going it ends the reading"
    );
}

#[test]
fn so_does_one_at_either_end_and_one_that_runs_backwards() {
    assert_eq!(sectors(&arrivals(&["99999999", "1", "2"]), true), (vec![1, 2], None, 1));
    assert_eq!(
        sectors(&arrivals(&["1", "2", "99999999"]), true),
        (vec![0, 1, 2], None, 0),
        "nothing shows it wrong"
    );
    assert_eq!(sectors(&arrivals(&["1", "5", "6", "2", "7"]), true).0.len(), 4);
    assert_eq!(sectors(&arrivals(&["1", "9", "2", "8", "3", "4"]), true), (vec![0, 2, 4, 5], None, 2));
}

#[test]
fn whoever_keeps_going_reads_a_good_trace_with_the_same_texts() {
    let read = |keep_going| {
        let options = Options { keep_going, ..Options::default() };
        all(&mut TraceReader::open(&data("head"), &options).unwrap())
    };
    let (plain, careful) = (read(false), read(true));
    assert!(plain.iter().any(|(_, payload)| !payload.is_empty()));
    assert!(plain == careful);
}

#[test]
fn a_corpus_of_many_volumes_is_sorted_without_being_asked() {
    let rows: String =
        [5u64, 3, 9, 7].iter().map(|ms| format!("1,R,{},4096,157778400{ms}000000\n", ms * 4096)).collect();
    let options = Options { format: Some(Format::Alibaba), ..Options::default() };
    let mut reader = TraceReader::from_read("ali", Cursor::new(rows.clone()), &options).unwrap();
    let read = all(&mut reader);
    assert!(read.len() == 4 && read.is_sorted_by_key(|(event, _)| event.time_ns));
    let unsorted = Options { sort_window: Some(0), ..options };
    let mut reader = TraceReader::from_read("ali", Cursor::new(rows), &unsorted).unwrap();
    assert!(reader.by_ref().any(|event| event.is_err()), "0 turns it off");
}
