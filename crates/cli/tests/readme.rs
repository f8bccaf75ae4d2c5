//! The README's table is what `make demo` prints. `FAIRLIFT_UPDATE=1 cargo test -p fairlift --test readme` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- table: make demo -->\n";
const END: &str = "<!-- end of table -->\n";

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = root.join("README.md");
    let text = std::fs::read_to_string(&readme).unwrap();
    let begin = text.find(BEGIN).expect("the README marks the table") + BEGIN.len();
    let end = text.find(END).expect("the README marks the table's end");
    let table = table(&root);
    if std::env::var_os("FAIRLIFT_UPDATE").is_some() {
        std::fs::write(&readme, format!("{}{table}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert_eq!(&text[begin..end], table, "run with FAIRLIFT_UPDATE=1 to rewrite the table");
}

/// Sequential bandwidth and the random reader's p99, by number of readers and scheduler.
fn table(root: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlift"))
        .args(["compare", "experiments/demo-readers.toml", "--output-format", "csv"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = String::from_utf8(output.stdout).unwrap();
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut cells: BTreeMap<(u32, String), [f64; 2]> = BTreeMap::new();
    for line in lines {
        let row: BTreeMap<&str, &str> = head.iter().copied().zip(line.split(',')).collect();
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        let cell = cells.entry((row["case"].parse().unwrap(), row["scheduler"].to_owned())).or_default();
        match row["job"] {
            "sequential" => cell[0] = number("bandwidth_bytes_per_s") / (1 << 20) as f64,
            _ => cell[1] = number("clat_p99_ns") / 1e6,
        }
    }
    let mut out = String::from(
        "| sequential readers | noop, deadline: sequential, all | random read p99 | cfq: sequential, all | random read p99 |\n|--:|--:|--:|--:|--:|\n",
    );
    for readers in [1, 2, 4, 8, 16] {
        let at = |scheduler: &str| cells[&(readers, scheduler.to_owned())];
        assert_eq!(at("noop"), at("deadline"), "one column for both is only honest while they agree");
        let ([noop, noop_p99], [cfq, cfq_p99]) = (at("noop"), at("cfq"));
        let _ = writeln!(
            out,
            "| {readers} | {noop:.1} MiB/s | {noop_p99:.0} ms | {cfq:.1} MiB/s | {cfq_p99:.0} ms |"
        );
    }
    out
}
