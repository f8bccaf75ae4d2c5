//! Every link of the pages leads somewhere, and every page is in the book.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::prose;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|e| e == "md")));
    pages.sort();
    pages
}

/// The targets of `[text](target)`.
fn links(prose: &str) -> Vec<String> {
    let starts = prose.match_indices("](").map(|(at, _)| at + 2);
    starts.filter_map(|at| Some(prose[at..].split_once(')')?.0.to_owned())).collect()
}

/// What a heading is called in a link, by GitHub's and mdBook's rule.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut seen = BTreeSet::new();
    for heading in text.lines().filter(|line| line.starts_with('#')) {
        let name = anchor(heading);
        let mut again = 0;
        let mut unique = name.clone();
        while !seen.insert(unique.clone()) {
            again += 1;
            unique = format!("{name}-{again}");
        }
    }
    seen
}

#[test]
fn every_link_leads_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        for link in links(&prose(&std::fs::read_to_string(&page).unwrap())) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, part) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let there = target.exists() && (part.is_empty() || anchors(&target).contains(part));
            if !there {
                dead.push(format!("{}: {link}", page.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let summary = root().join("docs/SUMMARY.md");
    let listed: BTreeSet<String> =
        links(&prose(&std::fs::read_to_string(&summary).unwrap())).into_iter().collect();
    let there: BTreeSet<String> = pages()
        .iter()
        .filter(|page| page.parent().unwrap().ends_with("docs") && !page.ends_with("SUMMARY.md"))
        .map(|page| page.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, there);
}
