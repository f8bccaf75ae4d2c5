//! `fairlift reproduce`: verdicts, exit codes, pages.

mod common;

use common::{Answer, Folder};
use insta::assert_snapshot;
use serde_json::Value;

/// An experiment whose only job reads 1 MiB from a device that always takes the same time, and one published figure.
fn experiment(published: f64, tolerance: f64, more: &str) -> String {
    format!(
        r#"
title = "A reader"
device = "null"
schedulers = ["noop"]
source = "a table"
jobs = """
[reader]
rw=read
direct=1
size=1m
numjobs=${{N}}
"""
[[case]]
name = "1"
vars = {{ N = "1" }}
[[published]]
scheduler = "noop"
job = "reader"
metric = "iops"
values = {{ 1 = {published} }}
tolerance = {tolerance}
{more}
"#
    )
}

fn reproduce(text: &str, arguments: &str) -> (Answer, Folder) {
    let folder = Folder::new().with("x.toml", text);
    (folder.run(&format!("reproduce x.toml {arguments}")), folder)
}

/// What our reader reaches, I/Os per second.
fn ours() -> f64 {
    let (answer, _) = reproduce(&experiment(1.0, 1.0, "why = { 1 = \"made up\" }"), "--output-format json");
    let page: Value = serde_json::from_str(&answer.stdout).unwrap();
    page["experiments"][0]["rows"][0]["cells"][0]["ours"].as_f64().unwrap()
}

fn status(answer: &Answer) -> String {
    let page: Value = serde_json::from_str(&answer.stdout).unwrap();
    page["experiments"][0]["rows"][0]["cells"][0]["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_figure_within_its_tolerance_is_reproduced() {
    let (answer, _) = reproduce(&experiment(ours() * 1.1, 0.2, ""), "--output-format json");
    assert_eq!((answer.code, status(&answer).as_str()), (0, "reproduced"));
}

#[test]
fn a_figure_that_is_not_reproduced_is_exit_code_1() {
    let (answer, _) = reproduce(&experiment(ours() * 2.0, 0.2, ""), "--output-format json");
    assert_eq!((answer.code, status(&answer).as_str()), (1, "not-reproduced"));
    let (answer, _) = reproduce(&experiment(ours() * 2.0, 0.2, ""), "");
    assert!(answer.stdout.contains("NOT REPRODUCED"), "{}", answer.stdout);
    assert!(
        answer.stdout.ends_with("0 of 1 comparisons are reproduced, 1 NOT REPRODUCED\n"),
        "{}",
        answer.stdout
    );
}

#[test]
fn a_row_may_be_of_several_schedulers() {
    let of_two = experiment(1.0, 1.0, "compare = \"at-least\"")
        .replace("schedulers = [\"noop\"]", "schedulers = [\"noop\", \"deadline\"]")
        .replace("scheduler = \"noop\"", "schedulers = [\"noop\", \"deadline\"]");
    let (answer, _) = reproduce(&of_two, "--output-format json");
    let page: Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = page["experiments"][0]["rows"].as_array().unwrap();
    let schedulers: Vec<_> = rows.iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    assert_eq!((answer.code, schedulers), (0, vec!["noop", "deadline"]));

    let both = experiment(1.0, 1.0, "schedulers = [\"noop\"]");
    let neither = experiment(1.0, 1.0, "").replace("scheduler = \"noop\"\n", "");
    for wrong in [both, neither] {
        let said = reproduce(&wrong, "").0.complaint();
        assert!(said.contains("either a scheduler or a list of schedulers"), "{said}");
    }
}

#[test]
fn more_than_at_least_is_better() {
    let (answer, _) = reproduce(&experiment(1.0, 0.2, "compare = \"at-least\""), "--output-format json");
    assert_eq!((answer.code, status(&answer).as_str()), (0, "better"));
}

#[test]
fn a_known_difference_is_shown_with_its_reason_and_is_no_failure() {
    let why = format!("why = {{ 1 = \"{}\" }}", "a long story about the model ".repeat(8));
    let (answer, _) = reproduce(&experiment(ours() * 2.0, 0.2, &why), "");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("not reproduced (known: a long story"), "{}", answer.stdout);
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 100), "{}", answer.stdout);
}

#[test]
fn a_reason_for_a_figure_that_comes_out_is_stale() {
    let (answer, _) = reproduce(&experiment(ours(), 0.2, "why = { 1 = \"old\" }"), "");
    assert_eq!(answer.code, 0);
    assert!(answer.stdout.contains("reproduced; the reason why not is stale (old)"), "{}", answer.stdout);
    assert!(answer.stdout.contains("1 reproduced but still listed as known not to be"), "{}", answer.stdout);
}

#[test]
fn a_page_names_the_command_that_wrote_it() {
    let (answer, folder) = reproduce(&experiment(1.0, 0.2, "why = { 1 = \"a | b\" }"), "--output page.md");
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""));
    let page = std::fs::read_to_string(folder.path().join("page.md")).unwrap();
    let ours = ours();
    assert_snapshot!(page.replace(&format!("{ours:.0}"), "(ours)"));
    let data = std::fs::read_to_string(folder.path().join("page.csv")).unwrap();
    let rows: Vec<&str> = data.lines().collect();
    assert_eq!(rows.len(), 2, "{data}");
    assert!(
        rows[0].starts_with("experiment,letter,origin,scheduler,of,figure,unit,case,published,ours,ratio"),
        "{data}"
    );
    assert!(
        rows[1].starts_with("x,,our aim,noop,reader,IOPS,") && rows[1].ends_with(",known,a | b,a table"),
        "{data}"
    );
}

#[test]
fn experiments_are_found_in_the_folder_first_and_in_the_program_else() {
    let folder = Folder::new();
    let away = folder.run("reproduce goyal-flat-randread --output-format json");
    assert!(away.code <= 1, "{}", away.stderr);
    assert!(away.stdout.contains("\"name\": \"goyal-flat-randread\""));
    std::fs::create_dir(folder.path().join("experiments")).unwrap();
    let text = experiment(1.0, 0.2, "compare = \"at-least\"");
    std::fs::write(folder.path().join("experiments/goyal-flat-randread.toml"), text).unwrap();
    let here = folder.run("reproduce goyal-flat-randread").ok();
    assert!(here.contains("A reader"), "{here}");
    let all = folder.run("reproduce").ok();
    assert!(all.contains("1 are better"), "{all}");
}

/// What a random reader gets of a disk depends on the offsets it draws: within a millionth no other seed gives it.
#[test]
fn verdicts_that_chance_decides_are_listed() {
    let of_disk = |published: f64, tolerance: f64, more: &str| {
        let text = experiment(published, tolerance, more);
        text.replace("\"null\"", "\"sata7200-2009\"").replace("rw=read\n", "rw=randread\n")
    };
    let (json, _) = reproduce(&of_disk(1.0, 1.0, "why = { 1 = \"made up\" }"), "--output-format json");
    let page: Value = serde_json::from_str(&json.stdout).unwrap();
    let ours = page["experiments"][0]["rows"][0]["cells"][0]["ours"].as_f64().unwrap();
    let (narrow, _) = reproduce(&of_disk(ours, 1e-6, ""), "--seeds 2..3");
    assert!(narrow.stdout.contains("1 of 1 comparisons change their verdict"), "{}", narrow.stdout);
    assert!(!narrow.stdout.contains("printed figures"), "no letter's: {}", narrow.stdout);
    assert_eq!(narrow.code, 1);
    let (wide, _) = reproduce(&of_disk(ours, 0.9, ""), "--seeds 2..3");
    assert!(wide.stdout.contains("0 of 1 comparisons change their verdict"), "{}", wide.stdout);
    assert_eq!(wide.code, 0);
    let (wrong, _) = reproduce(&of_disk(ours, 0.9, ""), "--seeds 5..2");
    assert!(wrong.stderr.contains("no seed from 5 to 2"), "{}", wrong.stderr);
    assert_eq!(wrong.code, 2);
}

/// What `--seeds` says of the figures that a letter prints: all seeds, some, none.
#[test]
fn printed_figures_are_counted_by_how_many_seeds_reproduce_them() {
    let of_disk = |published: f64| {
        let text = experiment(published, 0.1, "compare = \"at-least\"\nletter = \"A letter\"");
        text.replace("\"null\"", "\"sata7200-2009\"").replace("rw=read\n", "rw=randread\n")
    };
    let count = |text: &str| {
        let (answer, _) = reproduce(text, "--seeds 2..3");
        let row = answer.stdout.lines().find(|line| line.starts_with("A letter")).map(str::to_owned);
        let row = row.unwrap_or_else(|| panic!("{}", answer.stdout));
        row.split_whitespace().skip(2).map(|n| n.parse().unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(count(&of_disk(1.0)), [1, 0, 0]);
    assert_eq!(count(&of_disk(1e6)), [0, 0, 1]);
}

/// A figure that another experiment counts is not one more printed figure.
#[test]
fn a_figure_shown_again_counts_apart() {
    let text = experiment(1.0, 1.0, "compare = \"at-least\"\nletter = \"A letter\"");
    let (printed, _) = reproduce(&text, "");
    assert!(printed.stdout.contains("printed: A letter"), "{}", printed.stdout);
    let (again, _) = reproduce(&text.replace("letter =", "origin = \"again\"\nletter ="), "");
    assert!(again.stdout.contains("again: A letter"), "{}", again.stdout);
    assert!(!again.stdout.contains("printed: A letter"), "{}", again.stdout);
}

/// `hole_write_us`: each direct write into a hole of an ext3 file takes so much longer; one over blocks that are there does not, nor does
/// one beyond the file's end, as nine of the 256 here are.
#[test]
fn a_write_into_a_hole_takes_what_the_scenario_says_besides() {
    let of_a_write_us = |fresh: bool, more: f64| {
        let text = experiment(1.0, 1.0, "compare = \"at-least\"")
            .replace("rw=read\n", "rw=randwrite\n")
            .replace(
                "device = \"null\"",
                &format!(
                    "device = \"null\"\nkernel = \"2.6.31\"\nfilesystem = \"ext3\"\nfresh_files = {fresh}\nhole_write_us = {more}"
                ),
            );
        let (answer, _) = reproduce(&text, "--output-format json");
        let page: Value =
            serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
        1e6 / page["experiments"][0]["rows"][0]["cells"][0]["ours"].as_f64().unwrap()
    };
    let longer = |fresh| of_a_write_us(fresh, 93.0) - of_a_write_us(fresh, 0.0);
    assert!((longer(true) - 93.0 * 247.0 / 256.0).abs() < 0.1, "{}", longer(true));
    assert!(longer(false).abs() < 1.0, "{}", longer(false));
}
