//! Which process works where: clones, shared files, parts of devices.

use fairlift_fio::offsets::{Layout, Stream};
use fairlift_fio::{Job, ParseOptions, Source, expand, parse};

fn jobs(text: &str) -> Vec<Job> {
    parse(&[Source::new("x.fio", text)], &ParseOptions::default()).expect("a correct file").jobs
}

fn layout(text: &str, clone_number: u32, device_bytes: u64) -> Result<Layout, String> {
    let jobs = jobs(text);
    let expansion = expand(&jobs, 0);
    let paths: Vec<_> =
        expansion.processes[0].files.iter().map(|&file| expansion.files[file].path.as_str()).collect();
    Layout::new(&jobs[0], &paths, clone_number, &|path| path.starts_with("/dev/").then_some(device_bytes))
}

#[test]
fn clones_count_down_and_have_files_of_their_own() {
    let jobs = jobs("[a]\nsize=1m\nnumjobs=3\n[b]\nsize=1m\ndirectory=/x\nnrfiles=2\n");
    let expansion = expand(&jobs, 0);
    let seen: Vec<_> =
        expansion.processes.iter().map(|p| (p.thread_number, p.clone_number, p.files.clone())).collect();
    assert_eq!(seen, [(1, 0, vec![0]), (2, 2, vec![1]), (3, 1, vec![2]), (4, 0, vec![3, 4])]);
    let paths: Vec<_> = expansion.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a.0.0", "a.2.0", "a.1.0", "/x/b.0.0", "/x/b.0.1"]);
}

#[test]
fn a_named_file_is_shared() {
    let jobs = jobs("[global]\nsize=1m\nfilename=/dev/sda\n[a]\nnumjobs=4\n[b]\n");
    let expansion = expand(&jobs, 0);
    assert_eq!(expansion.files.len(), 1);
    assert!(expansion.files[0].device);
    assert!(expansion.processes.iter().all(|process| process.files == [0]));
}

#[test]
fn parts_of_a_device() {
    let whole = layout("[a]\nfilename=/dev/sda\n", 0, 1 << 30).unwrap();
    assert_eq!((whole.pass_bytes, whole.files[0].part_bytes), (1 << 30, 1 << 30));
    let part =
        layout("[a]\nfilename=/dev/sda\nsize=10%\noffset=50%\noffset_increment=1m\n", 2, 1000 << 20).unwrap();
    assert_eq!((part.files[0].offset_bytes, part.files[0].part_bytes), (502 << 20, 100 << 20));
    let too_long = layout("[a]\nfilename=/dev/sda\nsize=2g\n", 0, 1 << 30).unwrap_err();
    assert_eq!(too_long, "job 'a' needs 2147483648 bytes of /dev/sda, which has 1073741824");
    assert!(
        layout("[a]\nfilename=/dev/sda\noffset=2g\n", 0, 1 << 30).unwrap_err().contains("behind the end")
    );
    let nowhere = jobs("[a]\nfilename=/dev/sda\n");
    let missing = Stream::new(&nowhere[0], &expand(&nowhere, 0), 0, &|_| None, 0).unwrap_err();
    assert_eq!(missing, "job 'a': size of device /dev/sda is not known");
}

#[test]
fn a_start_delay_is_drawn_from_its_range() {
    let jobs = jobs("[a]\nsize=1m\nnumjobs=5\nstartdelay=1-3\n");
    let delays: Vec<_> = expand(&jobs, 0).processes.iter().map(|process| process.start_delay_us).collect();
    assert!(delays.iter().all(|delay| (1_000_000..=3_000_000).contains(delay)));
    assert!(delays.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn what_would_eat_the_memory_is_an_error() {
    let huge = jobs("[a]\nsize=1p\nbs=512\nrw=randread\n");
    let error = Stream::new(&huge[0], &expand(&huge, 0), 0, &|_| None, 0).unwrap_err();
    assert!(error.contains("map of 2199023255552 blocks is too large"), "{error}");
    let many = Source::new("x.fio", "[a]\nsize=1g\nnrfiles=65536\nnumjobs=17\n");
    let errors = parse(&[many], &ParseOptions::default()).unwrap_err();
    assert_eq!(errors[0].to_string(), "x.fio:1: more than 1048576 files up to job 'a'");
}
