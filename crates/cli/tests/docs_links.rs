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

#[test]
fn a_page_of_the_book_links_to_pages_of_the_book_only() {
    let mut out = Vec::new();
    for page in pages().iter().filter(|page| page.parent().unwrap().ends_with("docs")) {
        let links = links(&prose(&std::fs::read_to_string(page).unwrap()));
        out.extend(
            links.into_iter().filter(|link| link.starts_with("..")).map(|link| format!("{page:?}: {link}")),
        );
    }
    assert!(out.is_empty(), "these are dead in the book:\n{}", out.join("\n"));
}

/// The pages below a heading of the summary.
fn part(summary: &str, name: &str) -> Vec<String> {
    let (_, from) = summary.split_once(&format!("# {name}\n")).unwrap_or_else(|| panic!("no part {name}"));
    links(from.split("\n# ").next().unwrap())
}

#[test]
fn the_book_has_its_four_parts_and_pages_that_explain_have_a_figure() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let parts: Vec<&str> = summary.lines().filter_map(|line| line.strip_prefix("# ")).skip(1).collect();
    assert_eq!(parts, ["Use", "Understand", "Believe", "Build"]);
    for name in parts {
        assert!(part(&summary, name).len() >= 4, "{name}");
    }
    let shows = |page: &str| {
        let text = std::fs::read_to_string(docs.join(page)).unwrap();
        text.contains("![") || text.split("```\n").any(|block| block.contains('─'))
    };
    for page in [
        "cfq",
        "groups",
        "deadline-classes",
        "yield",
        "fair",
        "devices",
        "filesystems",
        "core",
        "architecture",
    ] {
        assert!(shows(&format!("{page}.md")), "{page}.md has no figure");
        assert!(summary.contains(&format!("({page}.md)")), "{page}.md is not in the book");
    }
}
