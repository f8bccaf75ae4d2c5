//! Nothing handed in makes the reader or the streams panic, hang or eat memory.

use std::fs;
use std::path::Path;

use fairlift_fio::offsets::{Rng, Stream};
use fairlift_fio::{MAX_DIAGNOSTICS, ParseOptions, Source, expand, parse, parse_command_line, table};
use proptest::prelude::*;

/// Reads a file and, if it is right, draws from every stream.
fn swallow(bytes: Vec<u8>) {
    let reads_itself = bytes.clone();
    let read_file = move |_: &Path| Ok(reads_itself.clone());
    let options = ParseOptions { read_file: &read_file, ..ParseOptions::default() };
    match parse(&[Source::new("x.fio", bytes)], &options) {
        Err(errors) => assert!(!errors.is_empty() && errors.len() <= MAX_DIAGNOSTICS + 1),
        Ok(parsed) => {
            let expansion = expand(&parsed.jobs, 7);
            for (index, process) in expansion.processes.iter().enumerate().take(3) {
                let job = &parsed.jobs[process.job];
                // Maps and zeta sums of huge files are right but slow: not the subject here.
                let small = |path: &str| path.starts_with("/dev/").then_some(1 << 28);
                let fits = matches!(job.extent.size, Some(fairlift_fio::Amount::Bytes(..=0x1000_0000)))
                    && job.files.file_bytes < 1 << 28;
                if fits
                    && job.files.count < 100
                    && let Ok(mut stream) = Stream::new(job, &expansion, index, &small, 7)
                {
                    (0..100).for_each(|_| _ = stream.next());
                }
            }
        }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn ten_megabytes_of_garbage() {
    let mut rng = Rng::taus88(1);
    swallow((0..10 << 20).map(|_| rng.next_value() as u8).collect());
    swallow((0..1 << 20).map(|_| (rng.next_value() as u8) & 0x7f).collect());
    swallow((0..1 << 20).map(|_| b"[]=\n;#,:/%$({}k19a "[rng.between(0, 18) as usize]).collect());
    swallow("[a]\n".repeat(200_000).into_bytes());
    swallow("bs\n".repeat(300_000).into_bytes());
    swallow([b"[a]\n".to_vec(), "include x\n".repeat(50_000).into_bytes()].concat());
    swallow([b"[a]\n".to_vec(), "nonsense=1\n".repeat(50_000).into_bytes()].concat());
    swallow(vec![b'['; 1 << 20]);
}

#[test]
fn invalid_utf8_has_a_line() {
    let errors =
        parse(&[Source::new("x.fio", b"[a]\nrw=\xff\n".to_vec())], &ParseOptions::default()).unwrap_err();
    assert_eq!(errors[0].to_string(), "x.fio:2: not a text file: invalid UTF-8");
}

#[test]
fn mutated_examples() {
    let corpus = corpus();
    let mut rng = Rng::taus88(2);
    for round in 0..2000 {
        let mut bytes = corpus[round % corpus.len()].clone();
        for _ in 0..rng.between(1, 8) {
            let Some(last) = bytes.len().checked_sub(1) else { break };
            let at = rng.between(0, last as u64) as usize;
            match rng.between(0, 4) {
                0 => bytes[at] = rng.next_value() as u8,
                1 => bytes[at] = b"=[];:,%-0123456789kmg\n "[rng.between(0, 22) as usize],
                2 => drop(bytes.remove(at)),
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let other = &corpus[rng.between(0, corpus.len() as u64 - 1) as usize];
                    let from = rng.between(0, other.len() as u64 - 1) as usize;
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        swallow(bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_option_survives_every_value(picks in prop::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,24}|[0-9]{1,20}[kmgtp%]?|[0-9]{1,9}[-:/,][0-9]{1,9}|(read|randrw|zipf|zoned|pareto|normal|lfsr):[0-9./:]{0,9}"), 1..12)) {
        let mut text = "[a]\nsize=1m\n".to_owned();
        let mut arguments = vec!["--name=a".to_owned(), "--size=1m".to_owned()];
        for (pick, value) in picks {
            let name = pick.get(table::options()).name;
            text.push_str(&format!("{name}={value}\n"));
            arguments.push(format!("--{name}={value}"));
        }
        swallow(text.into_bytes());
        _ = parse_command_line(&arguments, false);
    }

    #[test]
    fn usual_jobs_stay_inside_their_part(
        mode in prop::sample::select(vec!["read", "write", "rw", "randread", "randwrite", "randrw", "randtrim", "randtrimwrite", "trimwrite", "randread:3", "write:4k", "read:-8k"]),
        blocks in prop::sample::select(vec!["bs=4k", "bs=3k", "bsrange=1k-9k", "bssplit=4k/50:8k/50", "bs=4k,16k", "bs=8k,4k"]),
        extra in prop::sample::select(vec!["norandommap", "percentage_random=40", "random_generator=lfsr", "random_distribution=zipf:0.9", "random_distribution=normal:10", "nrfiles=3", "loops=2", "io_size=900k", "fsync=3", "blockalign=512"]),
        size in 50_000u64..600_000, // three files hold the largest block
    ) {
        let text = format!("[a]\nrw={mode}\n{blocks}\n{extra}\nsize={size}\n");
        let parsed = parse(&[Source::new("p.fio", text)], &ParseOptions::default()).unwrap();
        let expansion = expand(&parsed.jobs, 0);
        let mut stream = Stream::new(&parsed.jobs[0], &expansion, 0, &|_| None, 0).unwrap();
        let ends: Vec<_> = stream.files().map(|file| file.total_bytes).collect();
        let mut count = 0;
        while let Some(io) = stream.next() {
            prop_assert!(io.offset_bytes + io.length_bytes <= ends[io.file], "{:?}", io);
            count += 1;
            prop_assert!(count < 20_000, "no end");
        }
        // fio stops at the first block that does not fit: a distribution may begin with the file's last, partial block, and a
        // register that counts small blocks behind the end for large ones (tests/vectors/zipf_partial_block).
        prop_assert!(count > 0 || extra.ends_with("lfsr") || extra.contains("distribution"));
    }
}
