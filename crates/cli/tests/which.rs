//! The page "which scheduler" says what the runs say: a part of it is made again. `make which` makes all of it.

mod common;

use common::Folder;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/which-scheduler.md");

#[test]
fn the_page_is_up_to_date() {
    for part in ["--device hdd --load streams", "--device cloud --load tenants"] {
        let answer = Folder::new().run(&format!("which {part} --check {PAGE}")).ok();
        assert!(answer.contains("is up to date"), "{answer}");
    }
}

#[test]
fn a_page_that_says_something_else_is_not() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let at = page.find("### hdd").expect("a section of the disk");
    let (before, after) = page.split_at(at);
    let changed = before.to_owned() + &after.replacen("| none |", "| none | 1 |", 1);
    let load = "database";
    let folder = Folder::new().with("page.md", changed);
    let complaint = folder.run(&format!("which --device hdd --load {load} --check page.md")).complaint();
    assert!(
        complaint.contains("is not what the runs say now") && complaint.contains("make it anew"),
        "{complaint}"
    );
}

#[test]
fn parts_there_are_not_are_refused() {
    let folder = Folder::new();
    assert!(folder.run("which --device tape").complaint().contains("allowed: nvme, sata-ssd, hdd, cloud"));
    assert!(folder.run("which --load idle").complaint().contains("allowed: database, beside-a-writer"));
}
