//! The streams against real fio: `tests/vectors/cases.txt` says what ran, `record.sh` how.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fairlift_fio::offsets::{Io, IoKind, Stream};
use fairlift_fio::{Direction, Expansion, Job, expand, parse_command_line};

/// Result of cksum(1), POSIX: CRC-32 of the bytes and their number.
fn cksum(bytes: &[u8]) -> u32 {
    let mut crc = 0u32;
    let mut feed = |byte: u8| {
        crc ^= u32::from(byte) << 24;
        for _ in 0..8 {
            crc = if crc & (1 << 31) != 0 { (crc << 1) ^ 0x04c1_1db7 } else { crc << 1 };
        }
    };
    bytes.iter().copied().for_each(&mut feed);
    let mut length = bytes.len();
    while length > 0 {
        feed(length as u8);
        length >>= 8;
    }
    !crc
}

fn line(expansion: &Expansion, process: usize, io: Io) -> String {
    let file = &expansion.files[expansion.processes[process].files[io.file]].path;
    match io.kind {
        IoKind::Sync => format!("{file} s"),
        IoKind::DataSync => format!("{file} d"),
        IoKind::Data(direction) => {
            let letter = ["r", "w", "t"][direction.index()];
            format!("{file} {letter} {} {}", io.offset_bytes, io.length_bytes)
        }
    }
}

fn jobs(arguments: &str) -> Vec<Job> {
    let arguments: Vec<_> = ["--name=a"].into_iter().chain(arguments.split_whitespace()).collect();
    // The null engine of the recordings is synchronous at depth 1 and asynchronous above.
    let deep = arguments.iter().any(|argument| argument.starts_with("--iodepth"));
    let arguments: Vec<_> = arguments.into_iter().chain(deep.then_some("--ioengine=libaio")).collect();
    parse_command_line(&arguments, false).expect("a case parses").jobs
}

/// What differs, or nothing.
fn compare(name: &str, arguments: &str, recorded: &str) -> Option<String> {
    let jobs = jobs(arguments);
    let expansion = expand(&jobs, 0);
    let mut lines = recorded.lines().peekable();
    // fio's processes print in no order: match them by their first file and, when shared, by content.
    let mut recorded = Vec::new();
    while let Some(head) = lines.next() {
        let numbers: Vec<u32> =
            head.strip_prefix("process ")?.split(' ').map(|n| n.parse().unwrap()).collect();
        let mut kept = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("process ")) {
            kept.push(line.to_owned());
        }
        recorded.push((numbers[0] as usize, numbers[1], kept));
    }
    if recorded.len() != expansion.processes.len() {
        return Some(format!("{name}: {} processes, fio {}", expansion.processes.len(), recorded.len()));
    }
    for process in 0..expansion.processes.len() {
        let mut stream = match Stream::new(&jobs[0], &expansion, process, &|_| None, 0) {
            Ok(stream) => stream,
            Err(error) => return Some(format!("{name}: {error}")),
        };
        let limit = recorded.iter().map(|(count, ..)| *count).max().unwrap_or(0) + 1;
        let ours: Vec<_> = std::iter::from_fn(|| stream.next()).take(limit).collect();
        let ours: Vec<_> = ours.into_iter().map(|io| line(&expansion, process, io)).collect();
        let same_start = recorded
            .iter()
            .filter(|(_, _, kept)| kept.iter().zip(&ours).all(|(a, b)| a == b))
            .collect::<Vec<_>>();
        let [(count, sum, _)] = same_start[..] else {
            let nearest = recorded.iter().map(|(count, _, kept)| {
                let at = kept.iter().zip(&ours).position(|(a, b)| a != b);
                (at.unwrap_or(usize::MAX), kept.get(at.unwrap_or(0)).cloned(), *count)
            });
            let (at, theirs, count) = nearest.max().unwrap();
            return Some(format!(
                "{name}: process {process}: line {at}: {:?}, fio {theirs:?} (of {count})",
                ours.get(at)
            ));
        };
        // A timed job ran as long as it ran.
        let ours = if jobs[0].schedule.time_based { &ours[..(*count).min(ours.len())] } else { &ours[..] };
        let mut text = String::new();
        ours.iter().for_each(|line| writeln!(text, "{line}").unwrap());
        if (ours.len(), cksum(text.as_bytes())) != (*count, *sum) {
            return Some(format!(
                "{name}: process {process}: {} I/Os, fio {count}, or they differ after the first 200",
                ours.len()
            ));
        }
    }
    None
}

#[test]
fn every_recorded_stream_is_reproduced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let cases = fs::read_to_string(folder.join("cases.txt")).unwrap();
    let cases = cases.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let mut differences = Vec::new();
    let mut seen = 0;
    for (name, arguments) in cases {
        seen += 1;
        let recorded = fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
        differences.extend(compare(name, arguments, &recorded));
    }
    assert!(seen >= 60);
    assert!(differences.is_empty(), "{} of {seen} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn the_caller_may_choose_the_direction_of_a_mixed_job() {
    let jobs = jobs("--rw=rw --size=64k");
    let mut stream = Stream::new(&jobs[0], &expand(&jobs, 0), 0, &|_| None, 0).unwrap();
    let io = stream.next_in(Some(Direction::Write)).unwrap();
    assert_eq!(io.kind, IoKind::Data(Direction::Write));
    assert_eq!(stream.issued(), [0, 1, 0]);
}

#[test]
fn entropy_decides_only_what_may_vary() {
    let first = |arguments: &str, entropy| {
        let jobs = jobs(arguments);
        Stream::new(&jobs[0], &expand(&jobs, entropy), 0, &|_| None, entropy).unwrap().next()
    };
    assert_eq!(first("--rw=randread --size=1g", 1), first("--rw=randread --size=1g", 2));
    assert_ne!(
        first("--rw=randread --size=1g --randrepeat=0", 1),
        first("--rw=randread --size=1g --randrepeat=0", 2)
    );
}
