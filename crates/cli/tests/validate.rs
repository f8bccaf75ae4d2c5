//! The drive model on the measured drives: scores no worse than 1.2 times DiskSim's own, and faults of input.

mod common;

use std::path::{Path, PathBuf};

use common::Folder;

fn measured() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/measured")
}

/// DiskSim's score of a drive as our program gives it, ms.
fn rms_ms(drive: &str) -> f64 {
    let folder = Folder::new();
    let answer = folder.run(&format!(
        "validate {0}/{drive}.parv --trace {0}/{drive}.trace.xz --output-format json",
        measured().display()
    ));
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(report["timing"], "closed");
    report["runs"][0]["rms_ms"].as_f64().unwrap()
}

#[test]
fn atlas10k_scores_as_well_as_disksim() {
    let rms = rms_ms("atlas10k");
    assert!(rms <= 1.2 * 0.268, "{rms}");
}

#[test]
fn cheetah9lp_scores_as_well_as_disksim() {
    let rms = rms_ms("cheetah9LP");
    assert!(rms <= 1.2 * 0.107, "{rms}");
}

#[test]
fn hp_c3323a_scores_as_well_as_disksim() {
    let rms = rms_ms("hp_c3323a");
    assert!(rms <= 1.2 * 0.305, "{rms}");
}

#[test]
fn a_disk_of_another_decade_does_not_pass() {
    let folder = Folder::new();
    let trace = measured().join("atlas10k.trace.xz");
    let answer =
        folder.run(&format!("validate sata7200-2009 --trace {} --output-format json", trace.display()));
    let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(report["runs"][0]["rms_ms"].as_f64().unwrap() > 1.0);
}

#[test]
fn an_imported_file_scores_like_its_source_and_is_drawn() {
    let folder = Folder::new();
    let dir = measured();
    let dir = dir.display();
    let import = format!("devices import {dir}/hp_c3323a.parv --output hp.toml");
    assert_eq!(folder.run(&import).code, 0);
    let both = format!(
        "validate hp.toml {dir}/hp_c3323a.parv --trace {dir}/hp_c3323a.trace.xz --output-format json"
    );
    for plot in ["cdf.svg", "cdf.png"] {
        let answer = folder.run(&format!("{both} --plot {plot}"));
        let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(report["runs"][0]["rms_ms"], report["runs"][1]["rms_ms"]);
    }
    let svg = std::fs::read_to_string(folder.path().join("cdf.svg")).unwrap();
    assert!(svg.contains("measured") && svg.contains("hp.toml"));
    assert!(std::fs::read(folder.path().join("cdf.png")).unwrap().starts_with(b"\x89PNG"));
}

/// The three files of a small drive, `change` applied to all of them.
fn small_drive(change: impl Fn(String) -> String) -> Folder {
    let mut folder = Folder::new();
    for name in [
        "hp_c3323a.parv",
        "hp_c3323a_validate.diskspecs",
        "hp_c3323a_validate.model",
        "hp_c3323a_validate.seek",
    ] {
        let text = std::fs::read_to_string(measured().join(name)).unwrap();
        folder = folder.with(name, change(text));
    }
    folder
}

fn complaint(from: &str, to: &str) -> String {
    let folder = small_drive(|text| text.replace(from, to));
    let answer = folder.run("devices import hp_c3323a.parv --output out.toml");
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(!folder.names().contains(&"out.toml".to_owned()), "nothing half-written");
    answer.stderr
}

#[test]
fn a_fault_in_a_drive_file_has_file_line_word_and_what_is_right() {
    let text = complaint("Head switch time = 0.650000", "Head switch tyme = 0.65");
    assert!(text.contains("no parameter \"Head switch time\"; did you mean \"Head switch tyme\"?"), "{text}");
    assert!(text.contains("hp_c3323a_validate.model:"), "{text}");
    let text = complaint("Fast write level = 0", "Fast write level = 7");
    assert!(text.contains("\"Fast write level\" is 7, but must be a number from 0 to 2"), "{text}");
    let text = complaint("dm_layout_g1 {", "dm_layout_g4 {");
    assert!(text.contains("layout \"dm_layout_g4\"; only dm_layout_g1 can be imported"), "{text}");
    let text = complaint("5,      1.738734700", "3,      1.738734700");
    assert!(text.contains("hp_c3323a_validate.seek:6") && text.contains("do not lie behind"), "{text}");
    let text = complaint("source hp_c3323a_validate.model", "source gone.model");
    assert!(text.contains("source gone.model"), "{text}");
    let text = complaint("Max queue length = 1,", "Max queue length = 1");
    assert!(text.contains("expected ',' or '}'"), "{text}");
}

#[test]
fn a_layout_alone_and_a_wrong_name_are_told_apart() {
    let folder = small_drive(|text| text);
    let alone = folder.run("devices import hp_c3323a_validate.model");
    assert!(alone.stderr.contains("only a layout (dm_disk)"), "{}", alone.stderr);
    let named = folder.run("devices import hp_c3323a.parv --disk HP_C3323_validate");
    assert!(named.stderr.contains("did you mean \"HP_C3323A_validate\"?"), "{}", named.stderr);
    assert_eq!((alone.code, named.code), (2, 2));
}

#[test]
fn no_cut_of_a_drive_file_makes_it_panic() {
    let text = std::fs::read_to_string(measured().join("hp_c3323a_validate.model")).unwrap();
    for end in (0..text.len()).step_by(97) {
        let folder = small_drive(|text| text).with("hp_c3323a_validate.model", &text[..end]);
        assert_eq!(folder.run("devices import hp_c3323a.parv").code, 2, "cut at {end}");
    }
}

#[test]
fn traces_that_do_not_fit_are_refused() {
    let trace = "R Hit 999999999 8 5000.0 1000.0\n";
    let beyond = Folder::new().with("far.trace", trace);
    let path = measured().join("hp_c3323a.parv");
    let answer =
        beyond.run(&format!("validate {} --trace far.trace --format disksim-validation", path.display()));
    assert!(answer.code == 2 && answer.stderr.contains("request 1 ends at sector 1000000007"), "{answer:?}");
    let untimed = Folder::new().with("a.trace", "0.5 0 2048 8 1\n1.25 0 2056 8 0\n");
    let answer = untimed.run("validate sata7200-2009 --trace a.trace --format disksim");
    assert!(
        answer.code == 2 && answer.stderr.contains("no request with a measured response time"),
        "{answer:?}"
    );
    let wrong = untimed.run("validate sata7200-2009 --trace a.trace --plot cdf.gif");
    assert!(wrong.code == 2 && wrong.stderr.contains("must end in .svg or .png"), "{wrong:?}");
}
