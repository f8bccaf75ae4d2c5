//! A recorded blktrace against what blkparse and btt 1.2.0 say of it.

mod common;

use std::collections::BTreeMap;
use std::io::Read;

use common::{data, text_of, xz};
use fairlift_trace::write::{BlkparseWriter, BlktraceWriter, EventWriter, Version};
use fairlift_trace::{Action, Event, Interval, Op, Options, Summary, TraceReader};

fn open(name: &str, rebase: bool) -> TraceReader {
    TraceReader::open(&data(name), &Options { rebase, ..Options::default() }).expect("the excerpt opens")
}

/// Letters of the sixth column.
fn letters(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for letter in text.lines().filter_map(|line| line.split_whitespace().nth(5)) {
        *counts.entry(letter.to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Lines by time and CPU: blkparse leaves equal times on different CPUs as it happened to read them.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Input file")).collect();
    let column = |line: &str, index: usize| line.split_whitespace().nth(index).expect("a column").to_owned();
    lines.sort_by_key(|line| {
        let (whole, part) =
            column(line, 3).split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("time");
        (whole.parse::<u64>().expect("seconds"), part, column(line, 1))
    });
    lines
}

#[test]
fn text_is_blkparse_s_line_for_line() {
    for name in ["head", "tail"] {
        let expected = String::from_utf8(xz(&format!("{name}.blkparse.xz"))).expect("text");
        let mut written = Vec::new();
        let mut writer = BlkparseWriter::new(&mut written);
        let mut reader = open(name, true);
        while let Some(event) = reader.next() {
            let event = event.expect("a good trace");
            // blkparse 1.2.0 does not print messages that carry a control group.
            if event.action != Action::Message {
                writer.write(&event, reader.texts()).expect("memory");
            }
        }
        writer.finish().expect("memory");
        drop(writer);
        let written = String::from_utf8(written).expect("text");
        assert_eq!(letters(&written), letters(&expected), "{name}");
        let (written, expected) = (sorted(&written), sorted(&expected));
        assert_eq!(written.len(), expected.len());
        for (number, (ours, theirs)) in written.iter().zip(&expected).enumerate() {
            assert_eq!(*ours, theirs.trim_end(), "{name}, line {}", number + 1);
        }
    }
}

#[test]
fn blkparse_text_reads_back_as_the_same_events() {
    for name in ["head", "tail"] {
        let text = String::from_utf8(xz(&format!("{name}.blkparse.xz"))).expect("text");
        let (text, lines) = (sorted(&text).join("\n"), sorted(&text).len());
        let mut from_text =
            TraceReader::from_read("text", std::io::Cursor::new(text), &Options::default()).unwrap();
        let mut binary = open(name, true);
        let mut count = 0;
        while let Some(event) = from_text.next() {
            let theirs = event.expect("a good line");
            let ours = loop {
                let event = binary.next().expect("as many events").expect("a good record");
                if !event.action.is_note() {
                    break event;
                }
            };
            let key = |e: &Event| (e.time_ns, e.device, e.cpu, e.sequence, e.pid, e.op, e.error);
            assert_eq!(key(&theirs), key(&ours));
            if let Action::Split { .. } = ours.action {
                assert_eq!((theirs.action, theirs.sector), (ours.action, ours.sector));
            } else if !matches!(ours.action, Action::Plug | Action::Unplug { .. }) && ours.bytes > 0 {
                assert_eq!(
                    (theirs.action, theirs.sector, theirs.bytes),
                    (ours.action, ours.sector, ours.bytes)
                );
            }
            if ours.action != Action::Complete {
                let names =
                    (theirs.comm.map(|c| from_text.names().get(c)), ours.comm.map(|c| binary.names().get(c)));
                assert_eq!(names.0, names.1);
            }
            count += 1;
        }
        assert_eq!(count, lines, "{name}");
    }
}

#[test]
fn bfq_s_notes_are_shown() {
    let mut reader = open("head", false);
    let (mut bfq, mut processes, mut clocks) = (0, Vec::new(), 0);
    while let Some(event) = reader.next() {
        let event = event.expect("a good trace");
        match event.action {
            Action::Message => {
                assert_eq!(event.cgroup, Some(1));
                let text = std::str::from_utf8(reader.payload()).expect("text");
                bfq += u64::from(text.starts_with("bfq"));
            }
            Action::Process => processes.push(reader.names().get(event.comm.expect("a name")).to_owned()),
            Action::Timestamp { seconds, .. } => clocks += u64::from(seconds > 1_700_000_000),
            _ => {}
        }
    }
    assert_eq!(bfq, 17_451, "messages of bfq");
    assert_eq!(clocks, 1);
    assert!(["fio", "jbd2/vda-8"].iter().all(|name| processes.iter().any(|process| process == name)));
}

#[test]
fn written_again_per_cpu_it_is_the_same_bytes() {
    for name in ["head", "tail"] {
        let directory = common::scratch(&format!("again-{name}"));
        let mut writer = BlktraceWriter::per_cpu_files(directory.join(name), Version::V7);
        let mut reader = open(name, false);
        while let Some(event) = reader.next() {
            writer.write(&event.expect("a good trace"), reader.texts()).expect("disk");
        }
        assert!(writer.finish().expect("disk").is_empty());
        for cpu in 0..2 {
            let mut written = Vec::new();
            let path = directory.join(format!("{name}.blktrace.{cpu}"));
            std::fs::File::open(path).expect("written").read_to_end(&mut written).expect("disk");
            let original = xz(&format!("{name}.blktrace.{cpu}.xz"));
            let differs = written.iter().zip(&original).position(|(a, b)| a != b);
            assert_eq!((written.len(), differs), (original.len(), None), "{name} CPU {cpu}");
        }
    }
}

/// The excerpt without the random reader, whose I/O overlaps the other reader's: there btt's figures mean something.
fn quiet(mut keep: impl FnMut(&Event, &TraceReader)) {
    let mut reader = open("head", false);
    while let Some(event) = reader.next() {
        let event = event.expect("a good trace");
        let random = event.op == Op::Read && event.bytes == 4096;
        if !random && event.action != Action::Message {
            keep(&event, &reader);
        }
    }
}

#[test]
fn intervals_are_btt_s() {
    let mut summary = Summary::new();
    quiet(|event, _| summary.add(event));
    // What btt 1.2.0 prints for this selection: minimum, average, maximum, number.
    let expected = text_of("quiet.btt");
    let mut compared = 0;
    for line in expected.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().expect("a name").trim_end_matches("dm");
        let Some(interval) = Interval::ALL.into_iter().find(|interval| interval.name() == name) else {
            continue;
        };
        let ours = summary.all.interval(interval);
        let ours = format!(
            "{:.9} {:.9} {:.9} {}",
            ours.min as f64 / 1e9,
            ours.mean() / 1e9,
            ours.max as f64 / 1e9,
            ours.count
        );
        assert_eq!(ours, words.collect::<Vec<_>>().join(" "), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

#[test]
fn btt_says_so_today() {
    let directory = common::scratch("btt");
    let path = directory.join("quiet.bin");
    let mut writer = BlktraceWriter::single(std::fs::File::create(&path).expect("disk"), Version::V7);
    quiet(|event, reader| writer.write(event, reader.texts()).expect("disk"));
    assert!(writer.finish().expect("disk").is_empty());
    let Some(output) = common::run("btt", &["-i", path.to_str().unwrap()], &directory) else { return };
    let figures: Vec<String> = output
        .lines()
        .filter(|line| ["Q2", "S2", "G2", "I2", "M2", "D2"].iter().any(|start| line.starts_with(start)))
        .filter(|line| !line.starts_with("Q2Q"))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(data("quiet.btt"), figures.join("\n") + "\n").expect("disk");
    }
    assert_eq!(figures.join("\n"), text_of("quiet.btt").trim_end());
}

#[test]
fn the_summary_of_the_whole_recording() {
    let archive =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/ext4-fsync-bfq.tar.xz");
    if !archive.exists() {
        eprintln!(
            "SKIPPED: the whole recording is not beside the repository; its excerpts are checked above"
        );
        return;
    }
    let directory = common::scratch("whole");
    let arguments = ["-xJf", archive.to_str().unwrap(), "-C", directory.to_str().unwrap()];
    if common::run("tar", &arguments, &directory).is_none() {
        return;
    }
    let mut summary = Summary::new();
    for event in TraceReader::open(&directory, &Options::default()).expect("opens") {
        summary.add(&event.expect("a good record"));
    }
    // blkparse's counts, and of the notes what a dump of the records shows.
    let counts = [
        ("C", 4765),
        ("D", 4621),
        ("Q", 4514),
        ("G", 4333),
        ("I", 4189),
        ("U", 4185),
        ("P", 4185),
        ("M", 215),
        ("X", 34),
        ("m", 93_814),
        ("process", 20),
        ("timestamp", 1),
    ];
    assert_eq!(summary.actions, BTreeMap::from(counts));
    assert_eq!(summary.all.interval(Interval::Q2C).count, 4514 + 34, "every bio and every part of a split");
}
