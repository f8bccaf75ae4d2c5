//! Experiments by name: in `./experiments`, or those compiled into the program.

use std::fs;
use std::io;
use std::path::Path;

use fairlift_sim::scenario::{self, Scenario, ScenarioError};
use fairlift_sim::scheduler::nearest;

use crate::error::Failure;
use crate::input;

/// The files of the source tree's `experiments/`, names and texts.
const EMBEDDED: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/experiments.rs"));
const FOLDER: &str = "experiments";

/// The scenarios called for: by name, by path, or by group (`moyer` for all `moyer-…`); without names all. Of those not
/// called by their own name only the ones with published figures.
pub fn scenarios(names: &[String]) -> Result<Vec<Scenario>, Failure> {
    let known = known();
    let mut wanted: Vec<(&String, bool)> = Vec::new();
    for name in names {
        match group(&known, name).as_slice() {
            [] => wanted.push((name, true)),
            members => wanted.extend(members.iter().map(|member| (*member, false))),
        }
    }
    if names.is_empty() {
        wanted = known.iter().map(|name| (name, false)).collect();
    }
    let mut scenarios = Vec::new();
    for (name, by_name) in wanted {
        let scenario = load(name)?;
        if !scenario.published.is_empty() {
            scenarios.push(scenario);
        } else if by_name {
            return Err(Failure::new(format!("'{name}' has no published figures to compare with"))
                .help(format!("'fairlift compare {FOLDER}/{name}' runs it", name = file_name(name))));
        }
    }
    if scenarios.is_empty() {
        return Err(Failure::new("there are no experiments").help("name a scenario file"));
    }
    Ok(scenarios)
}

/// The members of a group: experiments whose names start with its name and a dash. An experiment is no group.
fn group<'a>(known: &'a [String], name: &str) -> Vec<&'a String> {
    let is_member = |known: &&String| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    if known.iter().any(|k| k == name) { Vec::new() } else { known.iter().filter(is_member).collect() }
}

fn load(name: &str) -> Result<Scenario, Failure> {
    let failed = |e: ScenarioError| Failure::of_scenario(&e);
    let in_folder = format!("{FOLDER}/{}", file_name(name));
    let looks_like_path = name.contains(['/', '\\']) || name.ends_with(".toml");
    for path in [name, in_folder.as_str()] {
        let wanted = if path == name { looks_like_path } else { true };
        if wanted && Path::new(path).exists() {
            let text = String::from_utf8(input::read(path)?)
                .map_err(|_| Failure::new("not a text file (not UTF-8)").at(path))?;
            return scenario::parse(&text, path).map_err(failed);
        }
    }
    match embedded(&file_name(name)) {
        Some(text) => {
            let beside = |other: &str| {
                embedded(other).map(|text| (other.to_owned(), Ok::<_, io::Error>(text.to_owned())))
            };
            scenario::parse_among(text, &file_name(name), &beside).map_err(failed)
        }
        None => {
            let known = known();
            let mut failure = Failure::new(format!("no experiment and no file is called '{name}'"));
            if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
                failure = failure.help(format!("did you mean '{near}'?"));
            }
            Err(failure.help(format!("experiments: {}", known.join(", "))))
        }
    }
}

fn file_name(name: &str) -> String {
    if name.ends_with(".toml") { name.to_owned() } else { format!("{name}.toml") }
}

fn embedded(file: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(name, _)| *name == file).map(|(_, text)| *text)
}

/// Names of all scenarios: of `./experiments` if there are some, else of the program.
fn known() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(FOLDER)
        .map(|entries| {
            let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
            let paths = entries.flatten().map(|e| e.path());
            paths
                .filter(|p| p.extension().is_some_and(|e| e == "toml") && is_scenario(&text(p)))
                .filter_map(|p| stem(&p))
                .collect()
        })
        .unwrap_or_default();
    if names.is_empty() {
        names = EMBEDDED
            .iter()
            .filter(|(_, text)| is_scenario(text))
            .filter_map(|(n, _)| stem(Path::new(n)))
            .collect();
    }
    names.sort();
    names
}

fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_owned())
}

/// A scenario names schedulers; a device file beside it does not.
fn is_scenario(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("schedulers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_what_starts_with_its_name_and_a_dash() {
        let known = ["a", "a-b", "goyal-test2", "goyal-x", "moyer-x", "moyers"].map(String::from);
        assert_eq!(group(&known, "moyer"), ["moyer-x"]);
        assert_eq!(group(&known, "goyal"), ["goyal-test2", "goyal-x"]);
        assert!(group(&known, "a").is_empty(), "an experiment of that name comes first");
        assert!(group(&known, "goyal-x").is_empty());
        assert!(group(&known, "").is_empty());
    }

    #[test]
    fn every_embedded_experiment_can_be_read_without_its_folder() {
        for (file, text) in
            EMBEDDED.iter().filter(|(file, text)| file.ends_with(".toml") && is_scenario(text))
        {
            let beside =
                |other: &str| embedded(other).map(|t| (other.to_owned(), Ok::<_, io::Error>(t.to_owned())));
            if let Err(e) = scenario::parse_among(text, file, &beside) {
                panic!("{e}");
            }
        }
    }
}
