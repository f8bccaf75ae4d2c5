//! Commands of the README and the pages of the book: the command line takes each, and those that need nothing but files run.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::Folder;

/// Not run, with the reason.
const NOT_RUN: [(&str, &str); 10] = [
    ("calibrate", "measures a disk with fio for minutes"),
    ("capture", "needs root and a tracing kernel"),
    ("convert", "named with placeholders only"),
    ("ctl", "asks a server that runs; tests/serve.rs"),
    ("host", "prints the machine's own disks; tests/host.rs"),
    ("reproduce", "runs all published experiments; `make test` does"),
    ("serve", "runs until it is ended; tests/serve.rs"),
    ("top", "asks a server that runs; tests/serve.rs"),
    ("validate", "measured traces; tests/validate.rs"),
    ("which", "runs for minutes; `make test` does"),
];

/// What looks like a command and is none.
const NO_COMMANDS: [(&str, &str); 4] = [
    ("version", "a key of the JSON, docs/cli.md"),
    ("turn", "a message in a trace, docs/traces.md"),
    ("idle", "a message in a trace, docs/traces.md"),
    ("held", "a message in a trace, docs/traces.md"),
];
/// Experiments run for seconds to minutes; `fairlift reproduce` runs them, in `make test`.
const EXPERIMENTS: &str = "experiments/";

/// A command line of a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    page: String,
    words: Vec<String>,
    /// From a block of a shell: all of it stands there. Otherwise it may be a mention in a sentence.
    is_whole: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "crates/python/README.md"].map(|name| root().join(name)).into();
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    // What errors.md runs is wrong; tests/errors_page.rs runs it.
    pages.extend(
        docs.filter(|path| path.extension().is_some_and(|e| e == "md") && !path.ends_with("errors.md")),
    );
    pages.sort();
    pages
}

/// All command lines of all pages.
fn lines() -> Vec<Line> {
    let mut all = BTreeSet::new();
    for path in pages() {
        let page = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut fence: Option<String> = None;
        for line in text.lines() {
            match (line.trim_start().strip_prefix("```"), &fence) {
                (Some(info), None) => fence = Some(info.to_owned()),
                (Some(_), Some(_)) => fence = None,
                (None, Some(info)) if ["sh", "console"].contains(&info.as_str()) => {
                    all.extend(of_shell(line).map(|words| Line {
                        page: page.clone(),
                        words,
                        is_whole: true,
                    }));
                }
                (None, Some(_)) => {}
                (None, None) => {
                    let spans = line.split('`').skip(1).step_by(2);
                    let found = spans.flat_map(of_shell);
                    all.extend(found.map(|words| Line { page: page.clone(), words, is_whole: false }));
                }
            }
        }
    }
    all.into_iter().collect()
}

/// The commands of fairlift in a line for a shell, behind `fairlift`.
fn of_shell(line: &str) -> impl Iterator<Item = Vec<String>> {
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    let (mut word, mut quote, mut has_word) = (String::new(), None, false);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, has_word) = (Some(letter), true),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | ';' | '|' | '>') => {
                if has_word || !word.is_empty() {
                    let last = commands.len() - 1;
                    commands[last].push(std::mem::take(&mut word));
                    has_word = false;
                }
                match letter {
                    ';' | '|' => commands.push(Vec::new()),
                    // Where its output goes is no word of the command.
                    '>' => commands.push(vec![String::new()]),
                    _ => {}
                }
            }
            (None, letter) => word.push(letter),
        }
    }
    let of_ours = |mut words: Vec<String>| {
        words.retain(|word| word != "$");
        (words.first().is_some_and(|word| word == "fairlift") && words.len() > 1).then(|| words.split_off(1))
    };
    commands.into_iter().filter_map(of_ours)
}

#[test]
fn a_shells_line_is_cut_into_commands() {
    let cut = |line: &str| of_shell(line).map(|words| words.join("_")).collect::<Vec<_>>();
    assert_eq!(cut("fairlift host > mine.toml; fairlift run a 'b c' # d"), ["host", "run_a_b c"]);
    assert_eq!(cut("blkparse -i sda | fairlift inspect - --notes"), ["inspect_-_--notes"]);
    assert_eq!(cut("fairlift"), [""; 0]);
}

#[test]
fn the_command_line_takes_every_command_of_the_pages() {
    let lines = lines();
    assert!(lines.iter().filter(|line| line.is_whole).count() > 20, "{lines:?}");
    let mut wrong = Vec::new();
    for line in lines.iter().filter(|line| !NO_COMMANDS.iter().any(|(word, _)| line.words[0] == *word)) {
        let told = match fairlift_cli::api::understood(&line.words) {
            Ok(()) => continue,
            Err(failure) => failure.plain(),
        };
        // A sentence may name a command without what it needs.
        let is_mention = told.contains("required arguments") || told.contains("requires a subcommand");
        if line.is_whole || !is_mention {
            wrong.push(format!("{}: fairlift {}\n{told}", line.page, line.words.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files that the example names; mine.toml is what `fairlift host` or `fairlift calibrate` wrote.
fn folder(words: &[&str]) -> Folder {
    let jobs = "[global]\ndirect=1\nioengine=libaio\nsize=16m\ntime_based=1\nruntime=100ms\n\
                [db]\nrw=randread\nbs=8k\niodepth=4\ncgroup=db\n[batch]\nrw=read\nbs=128k\niodepth=2\ncgroup=batch\n";
    let trace = "8,0 0 1 0.000000000 10 Q R 0 + 8 [a]\n8,0 0 2 0.001000000 10 D R 0 + 8 [a]\n\
                 8,0 0 3 0.002000000 10 C R 0 + 8 [0]\n8,0 0 4 0.003000000 10 Q R 800 + 8 [a]\n";
    let alibaba = "7,R,0,4096,1000000\n9,W,8192,4096,1000100\n7,R,4096,4096,1000200\n";
    let sweep = "goal = \"p99 of db\"\n[fixed]\njobs = \"job.fio\"\ndevice = \"nvme\"\n[vary]\nscheduler = [\"none\", \"bfq\"]\n";
    let scenario = "title = \"t\"\ndevice = \"null\"\nkernel = \"2.6.31\"\nschedulers = [\"cfq\"]\njobs = '''\n[j]\nrw=randread\n\
                    size=1m\ndirect=1\ncgroup=vm1\n'''\n";
    let mine = match words.contains(&"--host") {
        true => {
            "title = \"mine\"\nkernel = \"6.12\"\ndevice = \"nvme\"\nschedulers = [\"none\"]\njobs = \"\"\"\n[j]\nrw=read\nsize=1m\n\"\"\"\n"
        }
        false => "based_on = \"nvme-970pro\"\n",
    };
    Folder::new()
        .with("job.fio", jobs)
        .with("job.toml", scenario)
        .with("sda.blktrace.0", trace)
        .with("lab.blktrace.0", trace)
        .with("disk.blktrace", trace)
        .with("alibaba.csv", alibaba)
        .with("fifo.toml", sweep)
        .with("mine.toml", mine)
}

#[test]
fn commands_that_need_only_files_run() {
    let mut failed = Vec::new();
    let mut run = 0;
    for line in lines().into_iter().filter(|line| line.is_whole) {
        let is_experiment = line.words.iter().any(|word| word.starts_with(EXPERIMENTS));
        if is_experiment || NOT_RUN.iter().any(|(command, _)| line.words[0] == *command) {
            continue;
        }
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let folder = folder(&words);
        let answer = folder.run_words("", &words);
        run += 1;
        if answer.code != 0 || answer.stdout.is_empty() && !words.contains(&"--output") {
            failed.push(format!("{}: fairlift {}\n{}", line.page, words.join(" "), answer.stderr));
        }
    }
    assert!(run > 12, "{run} commands");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
