//! Every line of docs/cgroups.md for the lab runs in the lab.

mod common;

use std::path::Path;

use common::Folder;

/// The lab's cells of the page's tables.
fn lines() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cgroups.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.contains("| in the lab |"));
    let cell = |row: &str| {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells.len(), 3, "{row}");
        cells[1].trim().trim_matches('`').to_owned()
    };
    rows.map(cell).collect()
}

/// A scenario with this line in a group's table, or in the root's.
fn scenario(line: &str) -> String {
    let of_root = line.starts_with("io.cost");
    let enable = if line.starts_with("io.cost.model") { "io.cost.qos = \"enable=1\"\n" } else { "" };
    let root = if of_root { format!("[[group]]\npath = \"/\"\n{line}\n{enable}") } else { String::new() };
    let own = if of_root { "" } else { line };
    format!(
        "title = \"t\"\ndevice = \"null\"\nkernel = \"6.12\"\nschedulers = [\"none\", \"bfq\"]\njobs = '''\n[j]\nrw=randrw\ndirect=1\n\
         size=1m\nruntime=1\ncgroup=db\n'''\n{root}[[group]]\npath = \"db\"\n{own}\n"
    )
}

#[test]
fn every_line_for_the_lab_runs() {
    let lines = lines();
    assert!(lines.len() > 30, "{lines:?}");
    for line in lines {
        let folder = Folder::new().with("line.toml", scenario(&line));
        let answer = folder.run("compare line.toml --output-format csv");
        assert_eq!(answer.code, 0, "{line}: {}", answer.stderr);
    }
}

/// A page whose lines did not count would pass as well: a wrong word does not.
#[test]
fn a_wrong_line_would_be_seen() {
    for line in ["io.max = \"8:16 rbp=2097152\"", "io.waight = 300", "io.cost.qos = \"enable=2\""] {
        let folder = Folder::new().with("line.toml", scenario(line));
        let answer = folder.run("compare line.toml --output-format csv");
        assert_eq!(answer.code, 2, "{line}: {}", answer.stderr);
    }
}
