//! What is written here, read by blkparse, btt and fio. Skipped, aloud, where they are not installed.

mod common;

use std::fs::File;
use std::path::Path;

use common::{data, run, scratch, xz};
use fairlift_trace::write::{BlktraceWriter, ChromeWriter, EventWriter, IologVersion, IologWriter, Version};
use fairlift_trace::{Action, Event, Options, TraceReader};

fn copy(writer: &mut dyn EventWriter, name: &str, keep: impl Fn(&Event) -> bool) {
    let mut reader = TraceReader::open(&data(name), &Options::default()).expect("opens");
    while let Some(event) = reader.next() {
        let event = event.expect("a good record");
        if keep(&event) {
            writer.write(&event, reader.texts()).expect("disk");
        }
    }
    writer.finish().expect("disk");
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.split_whitespace().count() > 6).collect()
}

#[test]
fn blkparse_prints_what_was_recorded() {
    let directory = scratch("blkparse");
    for name in ["head", "tail"] {
        copy(&mut BlktraceWriter::per_cpu_files(directory.join(name), Version::V7), name, |_| true);
        let Some(output) = run("blkparse", &["-q", "-i", name], &directory) else { return };
        let expected = String::from_utf8(xz(&format!("{name}.blkparse.xz"))).expect("text");
        assert_eq!(lines(&output), lines(&expected));
    }
}

#[test]
fn blkparse_reads_one_stream_of_all_cpus() {
    let directory = scratch("stream");
    let path = directory.join("one.bin");
    copy(&mut BlktraceWriter::single(File::create(&path).unwrap(), Version::V7), "head", |_| true);
    if run("blkparse", &["-V"], &directory).is_none() {
        return;
    }
    // A file of several CPUs is for its standard input; by name it takes one CPU's.
    let Some(output) = run("sh", &["-c", "blkparse -q -i - < one.bin"], &directory) else { return };
    let expected = String::from_utf8(xz("head.blkparse.xz")).expect("text");
    let mut both = [lines(&output), lines(&expected)];
    both.iter_mut().for_each(|lines| lines.sort_unstable());
    assert_eq!(both[0], both[1]);
}

#[test]
fn what_blkparse_merges_is_read_back() {
    let directory = scratch("merged");
    copy(&mut BlktraceWriter::per_cpu_files(directory.join("two"), Version::V7), "head", |_| true);
    let Some(output) = run("blkparse", &["-q", "-i", "two", "-d", "merged.bin"], &directory) else { return };
    let merged = TraceReader::open(&directory.join("merged.bin"), &Options::default()).expect("opens");
    let events: Vec<Event> = merged.map(|event| event.expect("a good record")).collect();
    assert_eq!(events.iter().filter(|event| !event.action.is_note()).count(), lines(&output).len());
    assert_eq!(events.iter().filter(|event| event.action == Action::Message).count(), 17_451);
}

#[test]
fn fio_replays_blktrace_and_iologs() {
    let directory = scratch("fio");
    let is_io = |event: &Event| event.action != Action::Message;
    let queued = |event: &Event| event.action == Action::Queue;
    let expected = TraceReader::open(&data("head"), &Options::default())
        .expect("opens")
        .filter(|event| queued(event.as_ref().expect("a good record")))
        .count();
    copy(
        &mut BlktraceWriter::single(File::create(directory.join("t.bin")).unwrap(), Version::V7),
        "head",
        is_io,
    );
    for (name, version) in [("t.v2", IologVersion::V2), ("t.v3", IologVersion::V3)] {
        let file = File::create(directory.join(name)).unwrap();
        copy(&mut IologWriter::new(file, version, Action::Queue), "head", queued);
    }
    File::create(directory.join("disk")).unwrap().set_len(1 << 30).unwrap();
    for name in ["t.bin", "t.v2", "t.v3"] {
        let log = format!("--read_iolog={name}");
        // `null` moves no data; the device of the trace is replaced by a file.
        let fixed = ["--name=replay", "--ioengine=null", "--replay_no_stall=1", "--replay_redirect=disk"];
        let arguments: Vec<&str> = fixed.into_iter().chain(["--output-format=json", log.as_str()]).collect();
        let Some(output) = run("fio", &arguments, &directory) else { return };
        assert_eq!(total_ios(&output), expected, "{name}:\n{output}");
    }
}

/// The sum of all `total_ios` in fio's JSON. fio counts writes with a flush before them as syncs.
fn total_ios(json: &str) -> usize {
    let counts = json.lines().filter_map(|line| line.trim().strip_prefix("\"total_ios\" : "));
    counts.map(|value| value.trim_end_matches(',').parse::<usize>().expect("a number")).sum()
}

#[test]
fn perfetto_json_is_json() {
    let directory = scratch("chrome");
    let path = directory.join("trace.json");
    copy(&mut ChromeWriter::new(File::create(&path).unwrap()), "tail", |_| true);
    let script = "import json,sys; t=json.load(open(sys.argv[1]))['traceEvents']; \
                  print(sum(e['ph']=='b' for e in t), sum(e['ph']=='e' for e in t), \
                  sum(e['ph']=='i' for e in t), sum(e['name']=='process_name' for e in t))";
    let Some(output) = run("python3", &["-c", script, path.to_str().unwrap()], Path::new(".")) else {
        return;
    };
    let counts: Vec<usize> = output.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    assert!(counts[0] > 100 && counts[0] == counts[1] && counts[2] > 0 && counts[3] > 0, "{counts:?}");
}
