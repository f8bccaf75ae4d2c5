//! Programs on the command line: what stands behind `--`.
//!
//! * first word `-…`: fio's own options, all of them;
//! * first word a plain name: one program, word by word, as one would start it;
//! * first word with a blank or `;` in it: every word is a whole command line.

use fairlift_sim::kernel::Filesystem;
use fairlift_sim::program::{self, ProgramSpec};
use fairlift_sim::scenario::{Case, Scenario};

use crate::error::Failure;

/// What files of programs are on when nothing is said.
const FILESYSTEM: &str = "ext4";

/// What stands behind `--`.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind<'a> {
    /// Nothing.
    Nothing,
    /// fio's options.
    FioOptions(&'a [String]),
    /// Command lines of programs.
    Programs(Vec<String>),
}

impl Behind<'_> {
    /// Tell them apart.
    pub fn of(words: &[String]) -> Behind<'_> {
        match words.first() {
            None => Behind::Nothing,
            Some(first) if first.starts_with('-') => Behind::FioOptions(words),
            Some(first) if is_plain(first) => Behind::Programs(vec![program::command_of(words)]),
            Some(_) => Behind::Programs(words.to_vec()),
        }
    }
}

fn is_plain(word: &str) -> bool {
    !word.contains(|c: char| c.is_whitespace() || c == ';')
}

/// Put these command lines into every case of `scenario`. One that ends in `&`, and one that never ends while others do, runs in
/// the background.
pub fn add(scenario: &mut Scenario, commands: &[String]) -> Result<(), Failure> {
    for command in commands {
        let (command, background) = match command.trim_end().strip_suffix('&') {
            Some(rest) => (rest.trim_end(), true),
            None => (command.trim(), false),
        };
        let spec = read(command, commands)?;
        for case in &mut scenario.cases {
            let mut spec = spec.clone();
            spec.name = free_name(case, &spec.name);
            spec.background = background || spec.program.is_endless();
            case.programs.push(spec);
        }
    }
    let ends = |case: &Case| !case.jobs.is_empty() || case.programs.iter().any(|p| !p.background);
    if !scenario.cases.iter().all(ends) {
        return Err(Failure::new(
            "nothing here ever ends: every program is in the background or a loop without end",
        )
        .at("command line")
        .help("add a job or a program that ends; the others are stopped then"));
    }
    Ok(())
}

fn read(command: &str, commands: &[String]) -> Result<ProgramSpec, Failure> {
    ProgramSpec::new("", command)
        .map(|spec| ProgramSpec { name: spec.program.name().to_owned(), ..spec })
        .map_err(|error| {
            let failure = Failure::of_program(&error, command);
            // One command word by word, in which a word is a command line itself: most likely several were meant.
            let several = commands.len() == 1 && command.contains(" '") && !command.starts_with("sh ");
            match several {
                true => failure.help(
                    "if these are several programs, the first one must have a blank in it: -- 'sync ' 'dd …'",
                ),
                false => failure,
            }
        })
}

/// `name`, or `name-2`, `name-3`, … if a job or program of the case is called so.
fn free_name(case: &Case, name: &str) -> String {
    let taken = |name: &str| {
        case.jobs.iter().any(|job| job.name == name)
            || case.programs.iter().any(|program| program.name == name)
    };
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// What `--filesystem` and `--mount` make of the scenario. Without them, programs and fio jobs that need files bring `ext4`, where
/// no scenario file (`is_scenario`) says what the jobs run on.
pub fn mount(
    scenario: &mut Scenario,
    name: Option<&str>,
    options: Option<&str>,
    programs_added: bool,
    is_scenario: bool,
) -> Result<(), Failure> {
    let needed = || {
        let mut programs = scenario.cases.iter().flat_map(|case| &case.programs);
        let mut jobs = scenario.cases.iter().flat_map(|case| &case.jobs);
        programs_added && programs.any(|p| p.program.needs_files())
            || !is_scenario && jobs.any(|job| job.needs_filesystem())
    };
    let name = match (name, scenario.filesystem) {
        (Some(name), _) => name,
        (None, Filesystem::Raw) if needed() => FILESYSTEM,
        (None, _) if options.is_none() => return Ok(()),
        (None, own) => own.name(),
    };
    let place = if options.is_some() { "--mount" } else { "--filesystem" };
    scenario.filesystem = Filesystem::parse(name, options.unwrap_or_default()).map_err(|message| {
        let failure = Failure::new(message).at(place);
        if name == "raw" { failure.help("name one: --filesystem ext4") } else { failure }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_first_word_tells_what_stands_behind_the_dashes() {
        let fio = words(&["--name=r", "--rw=read"]);
        assert_eq!(Behind::of(&fio), Behind::FioOptions(&fio));
        assert_eq!(Behind::of(&[]), Behind::Nothing);
        let one = Behind::Programs(vec!["fs_mark -S 1".to_owned()]);
        assert_eq!(Behind::of(&words(&["fs_mark", "-S", "1"])), one, "word by word");
        assert_eq!(Behind::of(&words(&["fs_mark -S 1"])), one, "quoted");
        let two = Behind::Programs(words(&["fs_mark -S 1", "sync"]));
        assert_eq!(Behind::of(&words(&["fs_mark -S 1", "sync"])), two);
        let shell = Behind::Programs(vec!["sh -c 'sync; sync'".to_owned()]);
        assert_eq!(Behind::of(&words(&["sh", "-c", "sync; sync"])), shell);
    }
}
