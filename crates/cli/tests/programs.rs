//! Programs on the command line: their results in every format, beside jobs or alone, and wrong command lines.

mod common;

use common::{Answer, Folder, SMALL};
use insta::assert_snapshot;

const MARK: &str = "fs_mark -S 1 -D 4 -N 4 -n 16 -s 65536 -t 1 -w 4096";

fn small() -> Folder {
    Folder::new().with("small.fio", SMALL)
}

/// `arguments --` and these words.
fn with_programs(arguments: &str, programs: &[&str]) -> Answer {
    small().run_words(&format!("{arguments} --"), programs)
}

#[test]
fn a_program_alone_has_its_own_columns() {
    assert_snapshot!(with_programs("compare --device san-nvram --kernel 2.6.34", &[MARK]).ok());
}

#[test]
fn programs_beside_jobs_have_a_paragraph_each() {
    let table = with_programs(
        "compare --kernel 2.6.31 small.fio --device flash-kd",
        &[
            "tiotest -t 2 -f 1 -r 4",
            "iozone -s 64 -e",
            "while :; do dd if=/dev/zero of=big bs=1M count=1; sync; rm big; done",
        ],
    );
    assert_snapshot!(table.ok());
}

#[test]
fn a_program_word_by_word_is_the_same_as_in_quotes() {
    let device = "compare --kernel 2.6.31 --device flash-kd --output-format csv";
    let words: Vec<&str> = MARK.split(' ').collect();
    assert_eq!(with_programs(device, &words).ok(), with_programs(device, &[MARK]).ok());
}

#[test]
fn options_of_fio_behind_the_dashes_stay_options_of_fio() {
    let table = with_programs(
        "compare --kernel 2.6.31 --device null",
        &["--name=r", "--rw=randread", "--size=1m", "--direct=1"],
    );
    assert!(table.ok().contains("r (1 process: randread of 4 KiB, direct, depth 1)"));
}

#[test]
fn the_report_shows_what_the_program_prints() {
    let report = with_programs(
        "run --kernel 2.6.31 --device flash-kd --scheduler noop",
        &["iozone -s 64 -e -f F -i 0", "dd if=/dev/zero of=x bs=1M count=2"],
    );
    assert_snapshot!(report.ok());
}

#[test]
fn json_has_figures_and_text_beside_fios_report() {
    let json = with_programs(
        "compare --kernel 2.6.31 small.fio --device null --scheduler noop --output-format json",
        &[MARK],
    )
    .ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let program = &json["runs"][0]["programs"][0];
    assert_eq!(program["name"], "fs_mark");
    assert_eq!(program["command"], MARK);
    assert_eq!(program["figures"][4]["name"], "files");
    assert_eq!(program["figures"][4]["value"], 16.0);
    assert!(program["text"].as_str().unwrap().contains("FSUse%"));
    assert_eq!(json["runs"][0]["fio"]["jobs"].as_array().unwrap().len(), 3);
    let fio = with_programs(
        "run --kernel 2.6.31 small.fio --device null --scheduler noop --output-format json",
        &[MARK],
    )
    .ok();
    let fio: serde_json::Value = serde_json::from_str(&fio).unwrap();
    assert_eq!(fio["fairlift"]["programs"][0], *program);
    assert_eq!(fio["jobs"].as_array().unwrap().len(), 3);
}

#[test]
fn csv_has_a_row_per_figure() {
    let csv = with_programs(
        "compare --kernel 2.6.31 small.fio --device null --scheduler noop --output-format csv",
        &["sync", "iozone -s 64"],
    );
    let csv = csv.complaint();
    assert!(csv.contains("sync"), "a word without a blank starts one program: {csv}");
    let csv = with_programs(
        "compare --kernel 2.6.31 small.fio --device null --scheduler noop --output-format csv",
        &["iozone -s 64", "sync"],
    )
    .ok();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let last = rows[0].len();
    assert_eq!(rows[0][last - 3..], ["metric", "value", "unit"]);
    let of = |name: &str| rows.iter().filter(|r| r[5] == name).map(|r| r[last - 3]).collect::<Vec<_>>();
    let passes = ["write", "rewrite", "read", "reread"];
    let metrics: Vec<String> =
        passes.iter().flat_map(|p| [format!("{p}_kib_s"), format!("{p}_ms")]).collect();
    assert_eq!(of("iozone"), metrics);
    assert_eq!(of("sync"), ["sync_s"]);
}

#[test]
fn programs_join_a_scenario_and_names_stay_apart() {
    let scenario = "title = \"x\"\ndevice = \"null\"\nschedulers = [\"noop\"]\nfilesystem = \"ext3\"\n[[program]]\nname = \"sync\"\ncommand = \"sync\"\n";
    let folder = Folder::new().with("x.toml", scenario);
    let table = folder.run_words("compare x.toml --", &["sync ", "sync"]).ok();
    for word in ["\nsync (sync)", "\nsync-2 (sync)", "\nsync-3 (sync)", "null with ext3"] {
        assert!(table.contains(word), "no '{word}' in\n{table}");
    }
}

#[test]
fn file_systems_are_chosen_and_have_a_default() {
    let head = |options: &str, program: &str| {
        let table = with_programs(
            &format!("compare --kernel 2.6.31 --device null --scheduler noop {options}"),
            &[program],
        )
        .ok();
        table.lines().nth(1).unwrap().to_owned()
    };
    assert!(head("", MARK).starts_with("device null with ext4,"));
    assert!(head("--filesystem ext3 --mount data=writeback", MARK).starts_with("device null with ext3,"));
    assert!(head("--filesystem raw", MARK).starts_with("device null,"));
    assert!(
        head("", "dd if=/dev/sda of=/dev/null bs=1M count=1").starts_with("device null,"),
        "no file, no file system"
    );
}

#[test]
fn a_program_in_the_background_is_stopped_at_the_end() {
    let report =
        with_programs("run --kernel 2.6.31 --device null --scheduler noop", &["sleep 9 &", "sleep 1"]).ok();
    assert!(report.contains("$ sleep 9 &\n[sleep: stopped at 1.000 s]"), "{report}");
}

#[test]
fn wrong_program_options_are_answered_with_the_right_ones() {
    let wrong = [
        "fs_mark -T 4",
        "fs_mark -S 9",
        "iozone --size 4",
        "iozone -a",
        "tiotest -l",
        "fsync-tester --masom",
        "dd if=/dev/zero of=f cuont=1",
        "fsmark -S 1",
        "sync now",
        "sh -c 'sync",
        "dd if=a of=b | cat",
    ];
    let all: String =
        wrong.map(|command| with_programs("run --kernel 2.6.31", &[command]).complaint()).concat();
    assert_snapshot!(all);
}

#[test]
fn wrong_combinations() {
    let all = [
        with_programs("run --kernel 2.6.31", &["fsync-tester", "sync; sync"]).complaint(),
        with_programs("run --kernel 2.6.31", &["while :; do sync; done"]).complaint(),
        with_programs("run --kernel 2.6.31", &["sleep 1 &"]).complaint(),
        with_programs("run --kernel 2.6.31 --filesystem ext5", &[MARK]).complaint(),
        with_programs("run --kernel 2.6.31 --mount data=journal", &[MARK]).complaint(),
        small().run("run --kernel 2.6.31 small.fio --mount barrier=0").complaint(),
        with_programs("run --kernel 2.6.31", &[" "]).complaint(),
    ];
    assert_snapshot!(all.concat());
}

#[test]
fn tables_of_programs_fit_the_line() {
    let schedulers = "noop,cfq:slice_idle=0:quantum=8:back_seek_penalty=3:slice_sync=55";
    let long = format!(
        "{MARK} -d /a/folder/whose/name/is/longer/than/most/names/of/folders/one/sees/anywhere/these/days"
    );
    for program in ["tiotest -t 2 -f 1 -r 4", &long, "fsync-tester -n 2", "iozone -s 64"] {
        let table =
            with_programs(&format!("compare --kernel 2.6.31 --scheduler {schedulers}"), &[program]).ok();
        assert!(table.lines().skip(1).all(|line| line.chars().count() <= 100), "{table}");
    }
}
