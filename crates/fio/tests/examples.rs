//! The 86 example job files of fio, and the command lines of the founding posts: each runs or is refused with the reason.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fairlift_fio::offsets::Stream;
use fairlift_fio::{Job, ParseOptions, Source, expand, parse, parse_command_line};

const GIB: u64 = 1 << 30;

fn summary(job: &Job) -> String {
    let [read, write, _] = &job.blocks;
    let size = |b: &fairlift_fio::BlockSizes| format!("{}-{}", b.min_bytes, b.max_bytes);
    format!(
        "runs: {} x{} {} bs={}/{} {} depth={} group={}",
        job.name,
        job.numjobs,
        job.access.name(),
        size(read),
        size(write),
        job.submission.engine,
        job.submission.depth,
        job.schedule.group_id
    )
}

fn examples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    names.sort();
    names
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn each_example_runs_or_is_refused_with_the_reason() {
    let files = examples();
    assert_eq!(files.len(), 86);
    let env = |name: &str| match name {
        "FIO_RW" => Some("randread".to_owned()),
        "FIO_BS" => Some("4k".to_owned()),
        "FIO_IODEPTH" => Some("16".to_owned()),
        name => Some(format!("/dev/{}", name.to_lowercase())),
    };
    let options = ParseOptions { env: &env, ..ParseOptions::default() };
    let mut listing = String::new();
    for (name, bytes) in files {
        writeln!(listing, "{name}").unwrap();
        match parse(&[Source::new(name, bytes)], &options) {
            Err(errors) => errors.iter().for_each(|error| writeln!(listing, "    error: {error}").unwrap()),
            Ok(parsed) => {
                for job in &parsed.jobs {
                    writeln!(listing, "    {}", summary(job)).unwrap();
                }
                for refused in &parsed.refused {
                    for reason in &refused.reasons {
                        writeln!(listing, "    refused: {}: {reason}", refused.name).unwrap();
                    }
                }
                parsed
                    .warnings
                    .iter()
                    .for_each(|warning| writeln!(listing, "    warning: {warning}").unwrap());
            }
        }
    }
    insta::assert_snapshot!("examples", listing);
}

/// What is said of an example in the table of docs/fio.md: `None` if it runs, else why not.
fn refusal(name: &str, bytes: Vec<u8>) -> Option<String> {
    let environment = |name: &str| match name {
        "FIO_RW" => Some("randread".to_owned()),
        "FIO_BS" => Some("4k".to_owned()),
        "FIO_IODEPTH" => Some("16".to_owned()),
        name => Some(format!("/dev/{}", name.to_lowercase())),
    };
    let options = ParseOptions { env: &environment, ..ParseOptions::default() };
    match parse(&[Source::new(name, bytes)], &options) {
        Err(errors) => Some(errors.first().map_or(String::new(), |error| error.message.clone())),
        Ok(parsed) => {
            let reason = &parsed.refused.first()?.reasons.first()?.message;
            // Of an engine or option what it does counts, not its name.
            Some(reason.split_once(": ").map_or(reason.as_str(), |(_, why)| why).to_owned())
        }
    }
}

/// The table in docs/fio.md is made of the examples; `FAIRLIFT_UPDATE=1` rewrites it.
#[test]
fn the_page_says_which_examples_run() {
    const BEGIN: &str = "<!-- table: fio's examples -->\n";
    const END: &str = "<!-- end of table -->";
    let mut by_reason: std::collections::BTreeMap<Option<String>, Vec<String>> = Default::default();
    for (name, bytes) in examples() {
        let reason = refusal(&name, bytes);
        by_reason.entry(reason).or_default().push(name.trim_end_matches(".fio").to_owned());
    }
    let mut table = String::from("| | | examples |\n|---|--:|---|\n");
    for (reason, names) in &by_reason {
        let what = reason.as_ref().map_or("run".to_owned(), |reason| format!("refused: {reason}"));
        writeln!(table, "| {what} | {} | {} |", names.len(), names.join(", ")).unwrap();
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fio.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table's mark");
    let (_, after) = rest.split_once(END).expect("its end");
    let fresh = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("FAIRLIFT_UPDATE").is_some() {
        fs::write(&page, fresh).unwrap();
        return;
    }
    assert_eq!(text, fresh, "run with FAIRLIFT_UPDATE=1 to rewrite the table");
}

/// Zones of 2 blocks, 3 skipped: what `disk-zone-profile.fio` does, small.
#[test]
fn strided_zones_are_read_and_the_rest_is_skipped() {
    let line = "--name=z --rw=read --bs=4k --size=64k --zonemode=strided --zonesize=8k --zoneskip=12k";
    let parsed = parse_command_line(&line.split(' ').collect::<Vec<_>>(), true).unwrap();
    assert!(parsed.refused.is_empty(), "{:?}", parsed.refused);
    let mut stream = Stream::new(&parsed.jobs[0], &expand(&parsed.jobs, 1), 0, &|_| None, 1).unwrap();
    let blocks: Vec<u64> = std::iter::from_fn(|| stream.next()).map(|io| io.offset_bytes >> 12).collect();
    assert_eq!(blocks, [0, 1, 5, 6, 10, 11, 15]);
    let random = line.replace("--rw=read", "--rw=randread");
    let refused = parse_command_line(&random.split(' ').collect::<Vec<_>>(), false).unwrap().refused;
    assert!(refused[0].reasons[0].message.contains("random"), "{refused:?}");
    let endless = parse_command_line(&["--name=z", "--size=1m", "--zonemode=strided"], false).unwrap_err();
    assert!(endless[0].message.contains("strided access without zonesize"), "{endless:?}");
}

#[test]
fn each_running_example_has_a_stream() {
    for (name, bytes) in examples() {
        let Ok(parsed) = parse(&[Source::new(&*name, bytes)], &ParseOptions::default()) else { continue };
        let expansion = expand(&parsed.jobs, 1);
        // A device, and a file that a job fills it with, are as large as the device.
        let fills = |path: &str| {
            let names =
                parsed.jobs.iter().filter(|job| job.extent.fills_device).flat_map(|job| &job.files.names);
            path.starts_with("/dev/") || names.into_iter().any(|name| name == path)
        };
        for (index, process) in expansion.processes.iter().enumerate().take(20) {
            let job = &parsed.jobs[process.job];
            match Stream::new(job, &expansion, index, &|path| fills(path).then_some(8192 * GIB), 1) {
                Ok(mut stream) => assert!(stream.next().is_some(), "{name}: {} issues nothing", job.name),
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

#[test]
fn the_lines_of_the_founding_posts_run() {
    let depth4 =
        "--rw=randwrite --bs=64K --size=2G --runtime=30 --direct=1 --ioengine=libaio --iodepth=4 --numjobs=";
    for numjobs in [1, 2, 4, 8, 16, 32] {
        let line = format!("{depth4}{numjobs}");
        let job = &parse_command_line(&line.split(' ').collect::<Vec<_>>(), true).unwrap().jobs[0];
        assert_eq!((job.numjobs, job.submission.depth, job.submission.direct), (numjobs, 4, true));
        assert_eq!(job.blocks[1].min_bytes, 65_536);
        assert_eq!(job.schedule.runtime_us, 30_000_000);
    }
    for mode in ["randread", "read", "write", "randwrite"] {
        for numjobs in [1, 2, 4, 8, 16] {
            let line =
                format!("fio --rw={mode} --bs=4K --size=2G --runtime=30 --direct=1 --numjobs={numjobs}");
            let parsed = parse_command_line(&line.split(' ').collect::<Vec<_>>(), true).unwrap();
            assert_eq!(parsed.jobs[0].access.name(), mode);
            assert_eq!(expand(&parsed.jobs, 0).files.len(), numjobs);
            assert_eq!(parsed.jobs[0].submission.depth, 1);
        }
    }
}
