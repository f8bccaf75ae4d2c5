//! A table in docs/devices.md that names a command is what the command prints.
//! `FAIRLIFT_UPDATE=1 cargo test -p fairlift --test docs_tables` rewrites them.

use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- table: fairlift ";
const END: &str = "<!-- end of table -->";

#[test]
fn tables_of_the_devices_page_are_what_their_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/devices.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let mut fresh = String::new();
    let mut rest = text.as_str();
    let mut tables = 0;
    while let Some(at) = rest.find(BEGIN) {
        let (command, after) = rest[at + BEGIN.len()..].split_once(" -->\n").expect("the mark ends its line");
        let end = after.find(END).expect("the table's end is marked");
        fresh.push_str(&rest[..at]);
        fresh.push_str(&format!("{BEGIN}{command} -->\n{}", printed(&root, command)));
        rest = &after[end..];
        tables += 1;
    }
    fresh.push_str(rest);
    assert!(tables > 0, "the page has tables made by commands");
    if std::env::var_os("FAIRLIFT_UPDATE").is_some() {
        std::fs::write(&page, fresh).unwrap();
        return;
    }
    assert_eq!(text, fresh, "run with FAIRLIFT_UPDATE=1 to rewrite the tables");
}

fn printed(root: &Path, command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlift"))
        .args(command.split(' '))
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
