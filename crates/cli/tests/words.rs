//! One word for one thing: the glossary lists the words that were replaced, and none of them comes back in the pages, the help, the
//! messages, the documentation of the crates or the comments of the module.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::prose;

const TABLE: &str = "| word | was also called | places left |";

/// Names that contain one of the words and are not ours.
const NAMES: [&str; 2] = ["High throughput disk scheduling", "Scheduling policy"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The rows of the glossary's table: the word, what it was called, where that stands still.
fn rows() -> Vec<[String; 3]> {
    let glossary = read(&root().join("docs/glossary.md"));
    let (_, table) = glossary.split_once(TABLE).expect("the glossary has the table");
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> [String; 3] {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().expect("three columns")
    };
    lines.map(cells).collect()
}

/// The words that are no longer used, in lower case, each with the one to use.
fn replaced() -> Vec<(String, String)> {
    let mut out = Vec::new();
    for [word, former, _] in rows() {
        out.extend(former.split(',').map(|f| (f.trim().trim_matches('"').to_lowercase(), word.clone())));
    }
    out
}

/// Where a word of `text` stands that is no longer used, with its surroundings.
fn found(place: &str, text: &str, replaced: &[(String, String)]) -> Vec<String> {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in NAMES {
        text = text.replace(name, "");
    }
    let lower = text.to_ascii_lowercase();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = Vec::new();
    for (former, word) in replaced {
        for (at, _) in lower.match_indices(former) {
            let end = at + former.len();
            if is_word(lower[..at].chars().next_back()) || is_word(lower[end..].chars().next()) {
                continue;
            }
            let from = lower[..at].char_indices().rev().nth(40).map_or(0, |(from, _)| from);
            let to = lower[end..].char_indices().nth(40).map_or(lower.len(), |(to, _)| end + to);
            out.push(format!("{place}: '{former}', say '{word}': …{}…", &text[from..to]));
        }
    }
    out
}

/// The sentences among the strings of a source file, a line each: those with a blank, without what is filled in.
fn messages(source: &str) -> String {
    let mut out = String::new();
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '\'' => {
                // A character, such as '"', or a lifetime.
                if chars.next() == Some('\\') {
                    chars.next();
                }
                chars.next_if_eq(&'\'');
            }
            '"' => {
                let mut text = String::new();
                let mut depth = 0;
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => {
                            chars.next();
                            text.push(' ');
                        }
                        '{' => depth += 1,
                        '}' => depth -= i32::from(depth > 0),
                        c if depth == 0 => text.push(c),
                        _ => {}
                    }
                }
                if text.trim().contains(' ') {
                    out += &text;
                    out.push('\n');
                }
            }
            _ => {}
        }
    }
    out
}

/// All files of this ending below `folder`, tests and what is built excepted.
fn sources(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !["tests", "target", "node_modules"].contains(&name.as_str()) {
            out.extend(sources(&entry, ending));
        } else if entry.extension().is_some_and(|e| e == ending) && !name.ends_with("tests.rs") {
            out.push(entry);
        }
    }
    out.sort();
    out
}

fn without_tests(source: &str) -> &str {
    source.split_once("#[cfg(test)]\nmod tests {").map_or(source, |(code, _)| code)
}

#[test]
fn the_table_of_words_is_read_and_nothing_is_left_in_its_last_column() {
    let rows = rows();
    assert!(rows.len() > 10, "{rows:?}");
    let left: Vec<_> = rows.iter().filter(|[.., places]| !places.is_empty()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_word_is_found_at_its_boundaries_across_lines_and_not_in_names() {
    let words = [("comes out".to_owned(), "reproduced".to_owned())];
    assert_eq!(found("x", "It comes\nout.", &words).len(), 1);
    assert!(found("x", "It becomes outdated.", &words).is_empty());
    let words = [("throughput".to_owned(), "bandwidth".to_owned())];
    assert!(found("x", "*High throughput disk scheduling*", &words).is_empty());
    assert_eq!(messages("let a = '\"'; // \"not this\"\nfail(\"a b {c} d\", \"name\")"), "a b  d\n");
}

#[test]
fn the_pages_use_the_glossarys_words() {
    let replaced = replaced();
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    pages.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    pages.retain(|page| page.extension().is_some_and(|e| e == "md") && !page.ends_with("glossary.md"));
    pages.sort();
    let name = |page: &Path| page.file_name().unwrap().to_string_lossy().into_owned();
    let all: Vec<_> =
        pages.iter().flat_map(|page| found(&name(page), &prose(&read(page)), &replaced)).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn messages_and_help_use_the_glossarys_words() {
    let replaced = replaced();
    let mut all = Vec::new();
    for folder in
        std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"))
    {
        if !folder.is_dir() {
            continue;
        }
        for file in sources(&folder, "rs") {
            let source = read(&file);
            let place = file.strip_prefix(root()).unwrap().display().to_string();
            for message in messages(without_tests(&source)).lines() {
                all.extend(found(&place, message, &replaced));
            }
        }
    }
    let commands = help(&[]);
    let (_, list) = commands.split_once("Commands:").expect("a list of commands");
    let names = list.lines().skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = names.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).collect();
    assert!(names.len() > 10, "{commands}");
    all.extend(found("fairlift --help", &commands, &replaced));
    for name in names.iter().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
    {
        all.extend(found(&format!("fairlift {name} --help"), &help(&[name]), &replaced));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlift")).args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The documentation in a Rust file: of the module and of its items.
fn documentation(source: &str) -> String {
    let text = |line: &str| {
        let text = line.trim_start().strip_prefix("//")?.strip_prefix(['/', '!'])?.to_owned();
        Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
    };
    // What stands between two comments is not part of a sentence.
    let lines = source.lines().map(|line| text(line).unwrap_or_else(|| ".".to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The comments in a C file.
fn c_comments(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        let (end, close) = if rest[at..].starts_with("/*") { ("*/", 2) } else { ("\n", 1) };
        let length = rest[at + 2..].find(end).unwrap_or(rest.len() - at - 2);
        let comment = &rest[at + 2..at + 2 + length];
        out.extend(comment.lines().map(|line| format!("{}\n", line.trim().trim_start_matches('*'))));
        out.push_str(".\n");
        rest = rest.get(at + 2 + length + close..).unwrap_or_default();
    }
    out
}

#[test]
fn comments_are_read_across_their_lines() {
    let words = [("under way".to_owned(), "in flight".to_owned())];
    let rust = "/// Writes under\n/// way.\nfn f() {} // under way\n/// Under\nfn way() {}\n";
    assert_eq!(found("x", &documentation(rust), &words).len(), 1);
    let c = "/*\n * Writes under\n * way.\n */\nint under; /* under */ int way; // way, under\n// way";
    assert_eq!(found("x", &c_comments(c), &words).len(), 1);
}

#[test]
fn the_documentation_of_the_crates_uses_the_glossarys_words() {
    let replaced = replaced();
    let mut all = Vec::new();
    for file in sources(&root().join("crates"), "rs") {
        let place = file.strip_prefix(root()).unwrap().display().to_string();
        all.extend(found(&place, &prose(&documentation(&read(&file))), &replaced));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn the_comments_of_the_module_use_the_glossarys_words() {
    let replaced = replaced();
    let kernel = root().join("kernel");
    let files: Vec<PathBuf> = ["c", "h"].iter().flat_map(|ending| sources(&kernel, ending)).collect();
    assert!(files.len() > 15, "{files:?}");
    let of = |file: &PathBuf| {
        let place = file.strip_prefix(root()).unwrap().display().to_string();
        found(&place, &c_comments(&read(file)), &replaced)
    };
    let all: Vec<String> = files.iter().flat_map(of).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}
