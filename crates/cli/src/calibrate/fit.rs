//! What a fit is made of: the measured series, and the parameters found.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::measured::{Figures, Measured};
use crate::error::Failure;

/// The measured series, by name.
#[derive(Debug)]
pub struct Series<'a> {
    jobs: &'a [Measured],
    /// Processor time for each command in the simulation: the device has no part in it.
    pub cpu_ns: u64,
    /// Jobs that were looked at.
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Series<'a> {
    /// These jobs.
    pub fn new(jobs: &'a [Measured], cpu_ns: u64) -> Series<'a> {
        Series { jobs, cpu_ns, asked: RefCell::default() }
    }

    /// Figures of a job, if it ran.
    pub fn get(&self, name: &str) -> Option<Figures> {
        self.asked.borrow_mut().insert(name.to_owned());
        self.jobs.iter().find(|job| job.name == name).map(|job| job.figures)
    }

    /// The jobs that something was fitted to; all others are predicted.
    pub fn asked(self) -> BTreeSet<String> {
        self.asked.into_inner()
    }

    /// Figures of a job without which there is no fit.
    pub fn need(&self, name: &str) -> Result<Figures, Failure> {
        self.get(name).ok_or_else(|| {
            Failure::new(format!("job '{name}' is missing"))
                .help("fairlift calibrate --print-series shows the jobs that a fit needs")
        })
    }
}

/// `a` over `b`, less one.
pub fn relative(a: f64, b: f64) -> f64 {
    a / b - 1.0
}

/// One parameter found.
#[derive(Clone, Debug)]
struct Parameter {
    section: &'static str,
    key: &'static str,
    value: String,
    source: String,
}

/// Parameters of a device file, in the order they were found.
#[derive(Clone, Debug)]
pub struct Fit {
    /// `flash` or `disk`.
    pub model: &'static str,
    preset: &'static str,
    parameters: Vec<Parameter>,
    /// Sentences about it without a final stop.
    pub notes: Vec<String>,
}

impl Fit {
    /// Nothing yet: everything is as in `preset`.
    pub fn new(model: &'static str, preset: &'static str) -> Fit {
        Fit { model, preset, parameters: Vec::new(), notes: Vec::new() }
    }

    /// A measured number, in the key's unit.
    pub fn number(&mut self, section: &'static str, key: &'static str, value: f64, source: &str) {
        self.add(
            section,
            key,
            format!("{value:.9}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            source,
        );
    }

    /// A whole number.
    pub fn whole(&mut self, section: &'static str, key: &'static str, value: u64, source: &str) {
        self.add(section, key, value.to_string(), source);
    }

    /// A word in quotes.
    pub fn word(&mut self, section: &'static str, key: &'static str, value: &str, source: &str) {
        self.add(section, key, format!("\"{value}\""), source);
    }

    /// A word without quotes: true or false.
    pub fn word_bare(&mut self, section: &'static str, key: &'static str, value: &str, source: &str) {
        self.add(section, key, value.to_owned(), source);
    }

    fn add(&mut self, section: &'static str, key: &'static str, value: String, source: &str) {
        self.parameters.push(Parameter { section, key, value, source: source.to_owned() });
    }

    /// Something to know of it.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The device file, headed by the lines of `head` as comments.
    pub fn device_file(&self, description: &str, head: &str) -> String {
        let mut out = String::new();
        for line in head.lines() {
            let _ = writeln!(out, "{}", format!("# {line}").trim_end());
        }
        let description = description.replace(['"', '\\'], "'");
        let _ = writeln!(out, "\nbased_on = \"{}\"\ndescription = \"{description}\"", self.preset);
        let mut sections: Vec<&str> = Vec::new();
        for parameter in &self.parameters {
            if !sections.contains(&parameter.section) {
                sections.push(parameter.section);
            }
        }
        // Keys of no section have to stand first.
        sections.sort_by_key(|section| !section.is_empty());
        for section in sections {
            if !section.is_empty() {
                let _ = writeln!(out, "\n[{section}]");
            }
            for parameter in self.parameters.iter().filter(|p| p.section == section) {
                let setting = format!("{} = {}", parameter.key, parameter.value);
                let _ = writeln!(out, "{setting:<34} # {}", parameter.source);
            }
        }
        out
    }
}
