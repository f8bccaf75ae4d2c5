//! The README's table is what `make demo` prints. `FAIRLIFT_UPDATE=1 cargo test -p fairlift --test readme` rewrites it, and the
//! picture beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const BEGIN: &str = "<!-- table: make demo -->\n";
const END: &str = "<!-- end of table -->\n";
const DEMO: [&str; 4] = ["compare", "experiments/demo.toml", "--goal", "p99:database"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn updates() -> bool {
    std::env::var_os("FAIRLIFT_UPDATE").is_some()
}

fn demo(options: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlift"))
        .args(DEMO)
        .args(options)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let readme = root().join("README.md");
    let text = std::fs::read_to_string(&readme).unwrap();
    let begin = text.find(BEGIN).expect("the README marks the table") + BEGIN.len();
    let end = text.find(END).expect("the README marks the table's end");
    let shown = table(&demo(&["--output-format", "csv"])) + &answer(&demo(&[]));
    if updates() {
        std::fs::write(&readme, format!("{}{shown}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert_eq!(&text[begin..end], shown, "run with FAIRLIFT_UPDATE=1 to rewrite the table");
}

#[test]
fn the_readmes_picture_is_the_demos() {
    let folder = std::env::temp_dir().join(format!("fairlift-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    demo(&["--plots", folder.to_str().unwrap()]);
    let drawn = std::fs::read_to_string(folder.join("latency-database.svg")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let picture = root().join("docs/img/demo.svg");
    if updates() {
        std::fs::write(&picture, drawn).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(picture).unwrap() == drawn,
        "run with FAIRLIFT_UPDATE=1 to draw it again"
    );
}

/// What each scheduler does to both; schedulers that do the same share a row.
fn table(csv: &str) -> String {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut order: Vec<String> = Vec::new();
    let mut cells: BTreeMap<(String, String), BTreeMap<&str, f64>> = BTreeMap::new();
    for line in lines {
        let row: BTreeMap<&str, &str> = head.iter().copied().zip(line.split(',')).collect();
        if !order.iter().any(|name| name == row["scheduler"]) {
            order.push(row["scheduler"].to_owned());
        }
        let numbers =
            row.iter().filter_map(|(name, value)| Some((*name, value.parse::<f64>().ok()?))).collect();
        cells.insert((row["scheduler"].to_owned(), row["job"].to_owned()), numbers);
    }
    let mut rows: Vec<(String, String)> = Vec::new();
    for scheduler in order {
        let of = |job: &str| &cells[&(scheduler.clone(), job.to_owned())];
        let (database, backup) = (of("database"), of("backup"));
        let figures = format!(
            "{:.0} | {:.0} ms | {:.0} ms | {:.0} MiB/s",
            database["iops_per_s"],
            database["clat_p99_ns"] / 1e6,
            database["clat_max_ns"] / 1e6,
            backup["bandwidth_bytes_per_s"] / f64::from(1 << 20),
        );
        match rows.iter_mut().find(|(_, other)| *other == figures) {
            Some((names, _)) => *names += &format!(", {scheduler}"),
            None => rows.push((scheduler, figures)),
        }
    }
    let mut out = String::from("| | database: reads/s | p99 | longest | backup |\n|---|--:|--:|--:|--:|\n");
    for (names, figures) in rows {
        let _ = writeln!(out, "| {names} | {figures} |");
    }
    out
}

/// The answer's sentences, as a quotation.
fn answer(text: &str) -> String {
    let from = text.find("Answer, goal").expect("an answer");
    let sentences: Vec<&str> = text[from..].lines().take_while(|line| !line.is_empty()).collect();
    let words: Vec<&str> = sentences.iter().flat_map(|line| line.split_whitespace()).collect();
    let mut out = String::from("\n>");
    let mut width = 1;
    for word in words {
        if width + 1 + word.len() > 135 {
            out.push_str("\n>");
            width = 1;
        }
        out.push(' ');
        out.push_str(word);
        width += 1 + word.len();
    }
    out + "\n"
}
