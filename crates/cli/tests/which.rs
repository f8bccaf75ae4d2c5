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

#[test]
fn the_page_as_html_says_the_same() {
    let folder = Folder::new();
    let printed = folder.run("which --device cloud --load tenants --page page.html").ok();
    assert!(printed.is_empty(), "{printed}");
    let html = std::fs::read_to_string(folder.path().join("page.html")).expect("the HTML page");
    let markdown = std::fs::read_to_string(PAGE).expect("the page");
    let (_, load) = markdown.split_once("## Two tenants at 1:3").expect("the load");
    let (_, section) = load.split_once("### cloud").expect("the device");
    let section = section.split("\n#").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 7);
    for row in rows {
        for cell in row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('*')) {
            assert!(
                html.contains(&format!(">{cell}<")) || html.contains(&format!(">{cell} (best)<")),
                "{cell}"
            );
        }
    }
    let links = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!links.contains("http://") && !links.contains("https://"), "it needs no network");
}
