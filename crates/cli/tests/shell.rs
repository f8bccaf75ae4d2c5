//! What surrounds the commands: doors, doctor, completions, manual pages.

mod common;

use common::Folder;

#[test]
fn without_a_command_it_shows_what_people_come_for() {
    let text = Folder::new().run("").ok();
    for door in ["Choose a scheduler", "Share a disk among tenants", "Write a scheduler"] {
        assert!(text.contains(door), "{text}");
    }
    assert!(text.lines().count() < 25, "one screen");
}

#[test]
fn doctor_answers_for_each_need_and_says_how_to_get_it() {
    let text = Folder::new().run("doctor").ok();
    for need in ["privileges", "calibrate", "capture", "the module", "QEMU"] {
        let line = text.lines().find(|line| line.contains(need)).unwrap_or_else(|| panic!("{need}: {text}"));
        assert!(line.starts_with("yes ") || line.starts_with("no "), "{line}");
    }
}

#[test]
fn each_shell_gets_its_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Folder::new().run(&format!("completions {shell}")).ok();
        assert!(script.contains("reproduce") && script.contains("scheduler"), "{shell}");
    }
    let complaint = Folder::new().run("completions tcsh").complaint();
    assert!(complaint.contains("bash, elvish, fish, powershell, zsh"), "{complaint}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = Folder::new();
    folder.run("man pages/man1").ok();
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages/man1").join(name)).unwrap();
    assert!(page("fairlift.1").contains("compare"));
    assert!(page("fairlift-compare.1").contains("\\-\\-scheduler"));
    assert!(page("fairlift-devices-import.1").contains("DiskSim"));
}

/// What is printed on a terminal, with these variables; `None` where util-linux' `script`, which makes the terminal, is missing.
fn on_a_terminal(variables: &[(&str, &str)]) -> Option<String> {
    let folder = Folder::new().with("small.fio", common::SMALL);
    let line = format!("{} compare small.fio --device null --kernel 2.6.31", env!("CARGO_BIN_EXE_fairlift"));
    let mut command = std::process::Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(folder.path());
    command.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
    let output = command.stdin(std::process::Stdio::null()).output();
    let output =
        output.map_err(|_| eprintln!("SKIPPED: colours were NOT tested: script (util-linux) is missing"));
    Some(String::from_utf8_lossy(&output.ok()?.stdout).into_owned())
}

#[test]
fn a_terminal_gets_colours_unless_they_are_unwanted() {
    const BOLD: &str = "\u{1b}[1m";
    let Some(coloured) = on_a_terminal(&[]) else { return };
    assert!(coloured.contains(BOLD), "{coloured:?}");
    assert!(on_a_terminal(&[("NO_COLOR", "")]).unwrap().contains(BOLD), "empty counts as not set");
    for unwanted in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_a_terminal(&[unwanted]).unwrap();
        assert!(plain.contains("device time") && !plain.contains(BOLD), "{plain:?}");
    }
}
