//! Command lines of programs: those of the posts are understood, wrong ones are answered with what would be right.

use fairlift_sim::program::parse;
use proptest::prelude::*;

/// Every program's command line in the founding posts (listed in `docs/programs.md`).
const OF_THE_POSTS: &[(&str, &str)] = &[
    ("iozone", "iozone -s 64 -e -f F -i 0"),
    ("iozone", "iozone -s 16m -ec -r 4 -f F -i 0 -i 1"),
    ("fs_mark", "fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096"),
    ("fs_mark", "fs_mark -S 1 -D 100 -N 1000 -d /mnt/test/fs_mark -s 65536 -t 1 -w 4096"),
    ("fsync-tester", "./fsync-tester"),
    ("tiotest", "tiotest -t 32 -f 80"),
    ("sh", "while : ; do time sh -c \"dd if=/dev/zero of=bigfile bs=8M count=256 ; sync; rm bigfile\"; done"),
];

const WRONG: &[&str] = &[
    "",
    "fsmark -S 1",
    "fs_mark -X 1",
    "fs_mark -T 1",
    "fs_mark -S 7",
    "fs_mark -S",
    "fs_mark -t 0",
    "fs_mark -n -3",
    "fs_mark -N 10",
    "fs_mark -p 10 -r 20",
    "fs_mark 1000",
    "fs_mark -F",
    "iozone -a",
    "iozone -i 2",
    "iozone -i 1",
    "iozone -s 4 -r 8",
    "iozone -s big",
    "iozone --size 4",
    "fsync-tester --masom",
    "fsync-tester -n 0",
    "tiotest -l",
    "tiotest -R",
    "tiotest -f 99999999999",
    "tiotest -f 1 -b 2000000",
    "dd if=/dev/zero of=f",
    "dd if=/dev/zero of=f cuont=1",
    "dd if=/dev/zero of=f count=1 oflag=dierct",
    "dd if=a of=a",
    "dd count=1",
    "sync now",
    "sleep",
    "sleep -1",
    "rm",
    "rm -rf x",
    "sh script.sh",
    "sh -c ''",
    "sh -c 'while :; do sync'",
    "while true; sync; done",
    "sync; done",
    "sync | cat",
    "dd 'if=x",
];

#[test]
fn the_posts_command_lines_are_understood() {
    for (name, command) in OF_THE_POSTS {
        match parse(command) {
            Ok(program) => assert_eq!(program.name(), *name, "{command}"),
            Err(error) => panic!("{command}: {error}"),
        }
    }
}

#[test]
fn wrong_command_lines_say_what_is_right() {
    let answers: Vec<String> = WRONG
        .iter()
        .map(|command| match parse(command) {
            Ok(_) => panic!("'{command}' was taken"),
            Err(error) => format!("$ {command}\n{error}\n"),
        })
        .collect();
    insta::assert_snapshot!(answers.join("\n"));
}

#[test]
fn quotes_keep_blanks_together() {
    assert!(parse("rm 'a b' \"c;d\" e\\ f").is_ok());
    assert!(parse("sh -c \"sh -c 'sync; sleep 1'; rm 'x y'\"").is_ok());
}

#[test]
fn metrics_are_known_before_the_run() {
    let names = |command: &str| parse(command).unwrap().metrics().iter().map(|m| m.name).collect::<Vec<_>>();
    assert_eq!(names("iozone -i 0"), ["write_kib_s", "write_ms", "rewrite_kib_s", "rewrite_ms"]);
    assert_eq!(names("iozone -i 0 -+n"), ["write_kib_s", "write_ms"]);
    assert!(
        names("tiotest").contains(&"random_read_mean_ms")
            && !names("tiotest -k 3").contains(&"random_read_mean_ms")
    );
    assert!(names(OF_THE_POSTS[6].1).contains(&"mib_s"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Whatever is written, the answer is a program or a message.
    #[test]
    fn any_text_is_answered(text in "(fs_mark|iozone|dd|tiotest|sh -c|sleep|rm|while :; do)?[ -~é\n]{0,60}") {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
