//! The commands of docs/errors.md, run with the files that the page shows, say what stands below them.
//! `FAIRLIFT_UPDATE=1 cargo test -p fairlift --test errors_page` rewrites the page.

mod common;

use std::path::Path;

use common::Folder;

/// What runs on behalf of `$ fairlift ...`.
const PROMPT: &str = "$ fairlift ";

#[test]
fn the_pages_commands_say_what_stands_below_them() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (fresh, commands) = run(&text);
    assert!(commands > 25, "{commands} commands");
    if std::env::var_os("FAIRLIFT_UPDATE").is_some() {
        std::fs::write(&page, fresh).unwrap();
        return;
    }
    assert_eq!(text, fresh, "run with FAIRLIFT_UPDATE=1 to rewrite the page");
}

/// The page as it should be, and how many commands it has. A block is a file if a name follows its language.
fn run(text: &str) -> (String, usize) {
    let mut folder = Folder::new();
    let (mut fresh, mut commands) = (String::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        fresh += &format!("{line}\n");
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info.split_once(' ') {
            Some((_, name)) => {
                folder = folder.with(name, block.join("\n") + "\n");
                block.iter().for_each(|line| fresh += &format!("{line}\n"));
            }
            None => {
                assert_eq!(info, "console", "blocks are files or commands");
                for command in block.iter().filter_map(|line| line.strip_prefix(PROMPT)) {
                    let answer = folder.run(command);
                    assert_eq!(
                        (answer.code, answer.stdout.as_str()),
                        (2, ""),
                        "{command}: {}",
                        answer.stderr
                    );
                    fresh += &format!("{PROMPT}{command}\n{}", answer.stderr);
                    commands += 1;
                }
            }
        }
        fresh += "```\n";
    }
    (fresh, commands)
}
