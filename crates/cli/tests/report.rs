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
        "<caption>stream, reads</caption>",
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
    assert_eq!(page.matches("<section class=\"case\"").count(), 1);
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
        "<caption>group /vms/heavy, weight 300</caption>",
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
