//! Bad input: what is said, where, and what is still read.

mod common;

use std::io::Cursor;

use common::{data, scratch, xz};
use fairlift_trace::write::{BlktraceWriter, EventWriter, Version};
use fairlift_trace::{
    Action, Device, DeviceNumber, ErrorKind, Event, Format, Names, Op, Options, Texts, TraceError,
    TraceReader,
};

const KEEP_GOING: Options =
    Options { format: None, blkparse_format: None, keep_going: true, sort_window: Some(0), rebase: false };

/// Ten records of 48 bytes.
fn ten() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = BlktraceWriter::single(&mut bytes, Version::V7);
    for number in 0..10u64 {
        let event = Event {
            time_ns: number * 1000,
            sector: number * 8,
            bytes: 4096,
            action: Action::Queue,
            op: Op::Read,
            device: Device::Number(DeviceNumber::new(8, 0).unwrap()),
            pid: Some(1),
            cpu: Some(0),
            ..Event::default()
        };
        writer.write(&event, Texts { names: &Names::default(), payload: b"" }).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn open(bytes: impl Into<Vec<u8>>, options: &Options) -> Result<TraceReader, TraceError> {
    TraceReader::from_read("sda", Cursor::new(bytes.into()), options)
}

/// The first fault, and how many events are read with and without it.
fn fault(bytes: impl Into<Vec<u8>>) -> (TraceError, usize, usize) {
    let bytes = bytes.into();
    let mut before = 0;
    let mut error = None;
    for event in open(bytes.clone(), &Options::default()).expect("a known format") {
        match event {
            Ok(_) => before += 1,
            Err(fault) => error = Some(fault),
        }
    }
    let mut reader = open(bytes, &KEEP_GOING).expect("a known format");
    let usable = reader.by_ref().inspect(|event| assert!(event.is_ok(), "faults are skipped")).count();
    assert!(reader.skipped().faults >= 1);
    (error.expect("a fault"), before, usable)
}

#[test]
fn truncated() {
    let mut bytes = ten();
    bytes.truncate(48 * 9 + 20);
    let (error, before, usable) = fault(bytes);
    assert_eq!(error.to_string(), "sda: record 10 at byte 432: the file ends 20 bytes into a record of 48");
    assert_eq!((error.kind, before, usable), (ErrorKind::Truncated, 9, 9));
}

#[test]
fn corrupted() {
    let mut bytes = ten();
    bytes[48 * 4..48 * 4 + 4].copy_from_slice(b"junk");
    let (error, before, usable) = fault(bytes);
    assert_eq!(
        error.to_string(),
        "sda: record 5 at byte 192: expected the magic number 0x65617407 or 0x65617408, found 0x6b6e756a"
    );
    assert_eq!((error.kind, before, usable), (ErrorKind::Corrupt, 4, 9));

    // A payload length that reaches past the end loses one record, not the rest.
    let mut bytes = ten();
    bytes[48 * 4 + 46..48 * 5].copy_from_slice(&60_000u16.to_ne_bytes());
    let (error, before, usable) = fault(bytes);
    assert_eq!((error.kind, before, usable), (ErrorKind::Corrupt, 4, 9), "{error}");

    let mut bytes = ten();
    bytes[48 * 4 + 28] = 99;
    let (error, _, usable) = fault(bytes);
    assert_eq!((error.kind, usable), (ErrorKind::Corrupt, 9), "{error}");
}

/// The bytes of each field the other way round.
fn swapped(record: &[u8]) -> Vec<u8> {
    let sizes = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
    let mut out = Vec::new();
    let mut at = 0;
    for size in sizes {
        out.extend(record[at..at + size].iter().rev());
        at += size;
    }
    out
}

#[test]
fn both_byte_orders() {
    let foreign: Vec<u8> = ten().chunks(48).flat_map(swapped).collect();
    let theirs: Vec<Event> =
        open(foreign.clone(), &Options::default()).unwrap().map(Result::unwrap).collect();
    let ours: Vec<Event> = open(ten(), &Options::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(theirs, ours);

    let mixed: Vec<u8> = ten().into_iter().chain(foreign).collect();
    let (error, before, usable) = fault(mixed);
    assert_eq!((error.kind, before, usable), (ErrorKind::ByteOrder, 10, 10), "{error}");
    assert!(error.to_string().starts_with("sda: record 11 at byte 480: this record is "), "{error}");
}

#[test]
fn out_of_order() {
    let mut bytes = ten();
    bytes[48 * 6 + 8..48 * 6 + 16].copy_from_slice(&1u64.to_ne_bytes());
    let (error, before, usable) = fault(bytes.clone());
    assert_eq!((error.kind, before, usable), (ErrorKind::OutOfOrder, 6, 9));
    assert!(
        error.to_string().starts_with("sda: record 7 at byte 288: time runs backwards: 1 ns after 5000 ns"),
        "{error}"
    );
    let sorted = Options { sort_window: Some(8), ..Options::default() };
    let times: Vec<u64> = open(bytes, &sorted).unwrap().map(|event| event.unwrap().time_ns).collect();
    assert!(times.is_sorted() && times.len() == 10);
}

#[test]
fn negative_times() {
    let text = "0.5 0 1 8 1\n-0.25 0 9 8 1\n1.0 0 17 8 0\n";
    let (error, before, usable) = fault(text);
    assert_eq!((error.kind, before, usable), (ErrorKind::NegativeTime, 1, 2));
    assert_eq!(error.to_string(), "sda:2 (byte 12): the arrival time in ms is negative (-0.25)");
    let before_1970 = "1,usr,0,Read,0,512,1\n128166372003061629,usr,0,Read,0,512,1\n128166372003061639,usr,0,Read,0,512,1\n";
    let options = Options { format: Some(Format::Msr), ..Options::default() };
    assert_eq!(
        open(before_1970, &options).unwrap().next().unwrap().unwrap_err().kind,
        ErrorKind::NegativeTime
    );
}

#[test]
fn empty_and_unknown() {
    for (text, kind) in
        [("", ErrorKind::Empty), (" \n\n", ErrorKind::Empty), ("lorem ipsum\n", ErrorKind::UnknownFormat)]
    {
        assert_eq!(open(text, &Options::default()).expect_err(text).kind, kind);
    }
    let binary = open([0u8, 1, 2, 3, 4], &Options::default()).expect_err("no format");
    assert!(binary.message.contains("neither blktrace"), "{binary}");
    for format in Format::all().filter(|format| *format != Format::BlkparseFormat) {
        for keep_going in [false, true] {
            let options = Options { format: Some(format), keep_going, ..Options::default() };
            let error = open("", &options).unwrap().next().expect("a word").expect_err("nothing to read");
            assert_eq!(error.kind, ErrorKind::Empty, "{format}");
        }
    }
}

#[test]
fn a_line_cut_in_two() {
    let (error, before, usable) = fault("13.2 30 0 5 1\n15.0 30 0 5 1\n17.8 20 57");
    assert_eq!((error.kind, before, usable), (ErrorKind::Truncated, 2, 2));
    assert!(error.to_string().starts_with("sda:3 (byte 28): expected 5 columns"), "{error}");
}

#[test]
fn mixed_devices() {
    let directory = scratch("mixed");
    for name in ["sda.blktrace.0", "sda.blktrace.1", "sdb.blktrace.0"] {
        std::fs::write(directory.join(name), ten()).unwrap();
    }
    let error = TraceReader::open(&directory, &Options::default()).expect_err("two devices");
    assert_eq!(error.kind, ErrorKind::MixedDevices);
    assert!(error.message.contains("sda, sdb"), "{error}");
    for name in ["sda", "sda.blktrace", "sda.blktrace.*"] {
        let reader = TraceReader::open(&directory.join(name), &Options::default()).expect(name);
        assert_eq!(reader.filter(|event| event.is_ok()).count(), 20, "{name}");
    }
    assert!(TraceReader::open(&directory.join("sdc"), &Options::default()).is_err());
}

#[test]
fn one_bad_file_of_a_set_leaves_the_other() {
    let directory = scratch("half");
    let (mut zero, one) = (xz("tail.blktrace.0.xz"), xz("tail.blktrace.1.xz"));
    let whole =
        TraceReader::open(&data("tail"), &Options::default()).unwrap().filter(|event| event.is_ok()).count();
    zero.truncate(zero.len() / 2);
    std::fs::write(directory.join("t.blktrace.0"), zero).unwrap();
    std::fs::write(directory.join("t.blktrace.1"), &one).unwrap();
    let mut reader = TraceReader::open(&directory.join("t"), &KEEP_GOING).unwrap();
    let read = reader.by_ref().inspect(|event| assert!(event.is_ok())).count();
    assert!(read > whole / 2 && read < whole, "{read} of {whole}");
    assert_eq!(reader.skipped().faults, 1);
    assert!(reader.skipped().first[0].place.file.ends_with("t.blktrace.0"));
}
