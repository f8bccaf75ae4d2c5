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
    /// What the host takes for a command beside the device; the device has no part in it.
    pub cpu_ns: u64,
    /// Jobs that were looked at.
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Series<'a> {
    /// These jobs; `unknown_cpu_ns` where they do not tell what the host takes.
    pub fn new(jobs: &'a [Measured], unknown_cpu_ns: u64) -> Series<'a> {
        let cpu_ns = host_ns(jobs).unwrap_or(unknown_cpu_ns);
        Series { jobs, cpu_ns, asked: RefCell::default() }
    }

    /// The largest rate of any job, bytes per second, whether it is fitted or not: no link is slower.
    pub fn fastest(&self) -> f64 {
        self.jobs.iter().map(|job| job.figures.bandwidth).fold(0.0, f64::max)
    }

    /// The size of the target, if the series tells it.
    pub fn target_bytes(&self) -> Option<u64> {
        bytes(self.jobs.iter().find(|job| job.name == super::series::SEQUENTIAL)?.option("size")?)
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

/// What the host takes to submit a command: the least mean of the ladder's deeper steps, which submit apart from waiting. Not more
/// than the highest rate allows: then it is the host that holds this rate.
fn host_ns(jobs: &[Measured]) -> Option<u64> {
    let ladder = jobs.iter().filter(|job| job.name.starts_with(super::series::RANDOM));
    let submits = ladder.clone().map(|job| job.figures.submit_ns).filter(|ns| *ns > 0.0);
    let least = submits.min_by(f64::total_cmp)?;
    let highest = ladder.map(|job| job.figures.iops).fold(1.0, f64::max);
    Some(least.min(1e9 / highest) as u64)
}

/// A size as fio's reports have it: digits, perhaps with a unit.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let shift = match unit.chars().next() {
        None => 0,
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        Some('t') => 40,
        Some(_) => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
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
    /// `flash`, `disk` or `cloud`.
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

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_as_fio_writes_them() {
        let of = ["4294967296", "4096m", "4g", "1Ti", "10x", "m", ""].map(bytes);
        assert_eq!(of, [Some(4 << 30), Some(4 << 30), Some(4 << 30), Some(1 << 40), None, None, None]);
    }
}
