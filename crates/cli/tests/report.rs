//! `--report` and `--plots`: a page and pictures of the results.

mod common;

use std::fs;

use common::Folder;

const JOBS: &str = "\
[global]
direct=1
size=64m
runtime=2
time_based
[stream]
rw=read
bs=64k
[points]
rw=randread
bs=4k
";

fn folder() -> Folder {
    Folder::new().with("mix.fio", JOBS)
}

#[test]
fn the_page_is_one_file_with_tables_figures_settings_and_stories() {
    let folder = folder();
    folder.run("compare --kernel 2.6.31 mix.fio --scheduler deadline,cfq --seed 7 --report page.html").ok();
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!(folder.names(), ["mix.fio", "page.html"], "nothing else is left");
    for wanted in [
        "<dt>Seed</dt><dd>7</dd>",
        "fairlift compare --kernel 2.6.31 mix.fio --scheduler deadline,cfq --seed 7 --report page.html",
        "stream, reads</th>",
        "id=\"tables\"",
        "class=\"map drawn\"",
        "aria-label=\"Latency: points. ",
        "aria-label=\"Bandwidth: stream. ",
        "aria-label=\"Share of device time: points. ",
        "aria-label=\"Device busy. ",
        "queued behind stream",
    ] {
        assert!(page.contains(wanted), "the page has no '{wanted}'");
    }
    for foreign in ["src=\"http", "href=\"http", "@import", "url("] {
        assert!(!page.contains(foreign), "the page asks for another file: {foreign}");
    }
    assert_eq!(page.matches("<details class=\"fold\"").count(), 5, "tables, figures, waits, map, settings");
}

/// The page of the demo, as the tests in a browser have it.
fn demo(options: &str) -> String {
    let folder = Folder::new();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/demo.toml");
    folder.run(&format!("compare {scenario} --goal p99:database --report page.html {options}")).ok();
    fs::read_to_string(folder.path().join("page.html")).unwrap()
}

#[test]
fn the_demos_page_begins_with_its_answer_and_is_small() {
    let page = demo("");
    assert!(page.len() < 300_000, "{} bytes", page.len());
    let places: Vec<usize> =
        ["Goal p99:database: the lowest p99", "fair (", "class=\"plot drawn wide\"", "id=\"tables\""]
            .iter()
            .map(|part| page.find(part).unwrap_or_else(|| panic!("the page has no '{part}'")))
            .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("none = mq-deadline = kyber = fl-deadline</th>"), "equal rows are one");
    assert!(page.contains("queued inside the drive, behind backup"));
}

#[test]
fn several_seeds_have_intervals() {
    let page = demo("--seeds 2 --runtime 3");
    assert!(page.contains("seeds 1 to 2") && page.contains(" \u{b1}"), "figures have their intervals");
}

const SERIES: &str = "\
title = \"readers\"
device = \"hdd\"
schedulers = [\"mq-deadline\", \"bfq\"]
kernel = \"6.12\"
runtime_s = 0.3
case_variable = \"readers, all alike\"
jobs = \"\"\"
[reader]
direct=1
rw=randread
bs=4k
size=64m
numjobs=${N}
\"\"\"
";

#[test]
fn a_series_of_cases_is_a_line_over_its_variable() {
    let case = |n: u32| format!("[[case]]\nname = \"{n}\"\nvars = {{ N = \"{n}\" }}\n");
    let text = SERIES.to_owned() + &[1, 2, 4].map(case).concat();
    let folder = Folder::new().with("series.toml", &text);
    folder.run("compare series.toml --report page.html").ok();
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for wanted in ["aria-label=\"reader: p99 latency, by readers, all alike. ", "readers, all alike: 4"] {
        assert!(page.contains(wanted), "the page has no '{wanted}'");
    }
}

const GROUPS: &str = "\
[global]
direct=1
size=64m
runtime=3
time_based
rw=randread
bs=4k
numjobs=4
[heavy]
cgroup=vms/heavy
cgroup_weight=300
[light]
cgroup=vms/light
";

#[test]
fn groups_have_their_share_beside_what_is_due_to_their_weight() {
    let folder = Folder::new().with("groups.fio", GROUPS);
    folder
        .run("compare --kernel 2.6.31 groups.fio --scheduler cfq,noop --report page.html --plots figures")
        .ok();
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for wanted in [
        "aria-label=\"Share of device time: group /vms/heavy. ",
        "aria-label=\"Share of device time: group /vms/light. ",
        "due by weight",
        "group /vms/heavy, weight 300</th>",
    ] {
        assert!(page.contains(wanted), "the page has no '{wanted}'");
    }
    assert!(folder.path().join("figures/share-group-vms_heavy.svg").is_file());
    folder
        .run("compare --kernel 2.6.31 groups.fio --scheduler cfq --output-format json --output plain.json")
        .ok();
    folder
        .run("compare --kernel 2.6.31 groups.fio --scheduler cfq --output-format json --output told.json --report page.html")
        .ok();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("plain.json"), read("told.json"), "recording changes nothing");
}

#[test]
fn the_same_seed_gives_the_same_page() {
    let page = || {
        let folder = folder();
        folder.run("run --kernel 2.6.31 mix.fio --report page.html").ok();
        fs::read(folder.path().join("page.html")).unwrap()
    };
    assert_eq!(page(), page());
}

#[test]
fn a_page_changes_no_other_output() {
    let folder = folder();
    for arguments in [
        "compare --kernel 2.6.31 mix.fio --output-format json",
        "compare --kernel 2.6.31 mix.fio",
        "run --kernel 2.6.31 mix.fio",
    ] {
        let without = folder.run(arguments).ok();
        assert_eq!(folder.run(&format!("{arguments} --report page.html")).ok(), without, "{arguments}");
    }
}

#[test]
fn every_figure_is_a_png_and_an_svg() {
    let folder = folder();
    folder.run("compare --kernel 2.6.31 mix.fio --plots figures").ok();
    let mut names: Vec<String> = fs::read_dir(folder.path().join("figures"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let figures = [
        "bandwidth-points",
        "bandwidth-stream",
        "busy",
        "latency-points",
        "latency-stream",
        "share-points",
        "share-stream",
    ];
    let wanted: Vec<String> =
        figures.iter().flat_map(|name| ["png", "svg"].map(|ending| format!("{name}.{ending}"))).collect();
    assert_eq!(names, wanted);
    for name in names {
        let bytes = fs::read(folder.path().join("figures").join(&name)).unwrap();
        let start: &[u8] = if name.ends_with("png") { b"\x89PNG\r\n\x1a\n" } else { b"<svg " };
        assert!(bytes.starts_with(start), "{name}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_said_before_anything_runs() {
    let folder = folder();
    for arguments in
        ["--report nowhere/page.html", "--report .", "--plots mix.fio", "--plots mix.fio/figures"]
    {
        let (option, path) = arguments.split_once(' ').unwrap();
        let answer = folder.run(&format!("compare --kernel 2.6.31 mix.fio {arguments}"));
        assert_eq!(answer.code, 2, "{arguments}");
        assert!(answer.stdout.is_empty(), "{arguments}: {}", answer.stdout);
        assert!(answer.stderr.contains(option) && answer.stderr.contains(path), "{}", answer.stderr);
        assert_eq!(folder.names(), ["mix.fio"], "{arguments}");
    }
}

#[test]
fn a_run_that_fails_leaves_no_page_and_the_old_one_as_it_was() {
    let folder = folder().with("page.html", "old");
    let answer = folder.run("compare --kernel 2.6.31 mix.fio --set nonsense=1 --report page.html");
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert_eq!(fs::read_to_string(folder.path().join("page.html")).unwrap(), "old");
    assert_eq!(folder.names(), ["mix.fio", "page.html"]);
}
