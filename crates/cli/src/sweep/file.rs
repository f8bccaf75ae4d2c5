//! Sweep files: what varies, over what, and what is looked for. See docs/sweep.md for the format.

use std::path::{Path, PathBuf};

use fairlift_sim::scheduler::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::axis::{Axis, Range, Values};
use super::goal::{Goal, GoalError};
use super::sample::{Method, SOBOL_DIMENSIONS_MAX};
use crate::error::Failure;

/// Most values of a setting.
const VALUES_MAX: usize = 100_000;
/// Most points of a sample.
const POINTS_MAX: u64 = 10_000_000;
/// Most seeds of a setting.
const SEEDS_MAX: u64 = 100_000;
/// Keys of a sweep file, of its tables and of a range.
const KEYS: [&str; 11] =
    ["title", "about", "goal", "seeds", "first_seed", "files", "fixed", "over", "vary", "sample", "halving"];
const SAMPLE_KEYS: [&str; 3] = ["method", "points", "seed"];
const HALVING_KEYS: [&str; 3] = ["by", "start", "keep"];
const RANGE_KEYS: [&str; 4] = ["from", "to", "steps", "scale"];
/// Settings that are options of the command; all others have a point in their names and are given with `--set`.
pub const OPTIONS: [&str; 11] = [
    "jobs",
    "scenario",
    "trace",
    "case",
    "device",
    "kernel",
    "filesystem",
    "mount",
    "scheduler",
    "runtime",
    "timing",
];

/// A sweep, as its file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// One line for people.
    pub title: String,
    /// Anything more there is to say.
    pub about: String,
    /// The folder that files named in it are in.
    pub folder: PathBuf,
    /// Settings that stay.
    pub fixed: Vec<(String, String)>,
    /// The answer is given for each combination of these.
    pub over: Vec<Axis>,
    /// What is to be chosen.
    pub vary: Vec<Axis>,
    /// What is looked for.
    pub goal: Goal,
    /// Each setting runs with so many seeds, from `first_seed` on.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
    /// A sample instead of a grid.
    pub sample: Option<Sample>,
    /// Bad settings are left behind early.
    pub halving: Option<Halving>,
    /// More files that runs need where they run: includes, device files that others are based on.
    pub files: Vec<String>,
}

/// Points drawn instead of all combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How.
    pub method: Method,
    /// How many.
    pub points: usize,
    /// What decides them.
    pub seed: u64,
}

/// Successive halving (Karnin, Koren, Somekh 2013; Jamieson, Talwalkar 2016).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halving {
    /// What a rung has more of.
    pub by: Budget,
    /// This part of the settings goes on to the next rung, which has as many times more.
    pub keep: f64,
}

/// What the first rung has of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many of the seeds.
    Seeds(u64),
    /// All seeds, and this runtime, nanoseconds.
    Runtime(u64),
}

/// Reads one file.
struct Reader<'a> {
    text: &'a str,
    origin: &'a str,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Sweep {
    /// Read a sweep's text; `origin` is what errors call it, and files it names start at its folder.
    pub fn parse(text: &str, origin: &str) -> Result<Sweep, Failure> {
        let reader = Reader { text, origin };
        let table = DeTable::parse(text).map_err(|e| {
            reader.at(e.span().map_or(0, |span| span.start), format!("not TOML: {}", e.message().trim()))
        })?;
        reader.sweep(table.get_ref())
    }

    /// A path named in the file, as seen from where the command runs.
    pub fn path(&self, name: &str) -> String {
        match self.folder.as_os_str().is_empty() || Path::new(name).is_absolute() {
            true => name.to_owned(),
            false => self.folder.join(name).display().to_string(),
        }
    }
}

impl Reader<'_> {
    fn sweep(&self, table: &DeTable<'_>) -> Result<Sweep, Failure> {
        self.known(table, &KEYS, "a sweep file")?;
        let text =
            |key: &str| table.get(key).map(|v| self.text(key, v)).transpose().map(Option::unwrap_or_default);
        let goal = table.get("goal").ok_or_else(|| {
            self.whole("the sweep has no goal")
                .help("say what is looked for: goal = \"p99 of db < 20 ms, then bandwidth of batch\"")
        })?;
        let goal = Goal::parse(&self.text("goal", goal)?).map_err(|e| self.of_goal(goal, &e))?;
        let fixed =
            self.section(table, "fixed", |key, value| Ok((key.to_owned(), self.word(key, value)?)))?;
        let sample = table.get("sample").map(|v| self.sample(v)).transpose()?;
        let over = self.section(table, "over", |key, value| self.axis(key, value, true))?;
        let vary = self.section(table, "vary", |key, value| self.axis(key, value, sample.is_none()))?;
        if vary.is_empty() {
            return Err(self
                .whole("nothing varies")
                .help("[vary] lists the settings to choose among: scheduler = [\"none\", \"bfq\"]"));
        }
        if sample.is_some_and(|s| s.method == Method::Sobol) && vary.len() > SOBOL_DIMENSIONS_MAX {
            return Err(self
                .whole(&format!(
                    "Sobol's sequence has at most {SOBOL_DIMENSIONS_MAX} settings here, and {} vary",
                    vary.len()
                ))
                .help("method = \"latin-hypercube\" has no such limit"));
        }
        self.once(&fixed, &over, &vary)?;
        let whole = |key: &str, default, max| {
            table.get(key).map_or(Ok(default), |v| self.whole_number(key, v, 1, max))
        };
        let files = table.get("files").map(|v| self.words("files", v)).transpose()?.unwrap_or_default();
        let title = text("title")?;
        Ok(Sweep {
            title: if title.is_empty() { goal.text.clone() } else { title },
            about: text("about")?,
            folder: Path::new(self.origin).parent().unwrap_or(Path::new("")).to_owned(),
            fixed,
            over,
            vary,
            goal,
            seeds: whole("seeds", 1, SEEDS_MAX)?,
            first_seed: whole("first_seed", 1, i64::MAX as u64 / 2)?,
            sample,
            halving: table.get("halving").map(|v| self.halving(v)).transpose()?,
            files,
        })
    }

    /// A table of settings, in the order written.
    fn section<T>(
        &self,
        table: &DeTable<'_>,
        name: &str,
        read: impl Fn(&str, &Value<'_>) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let Some(section) = table.get(name) else { return Ok(Vec::new()) };
        let settings = self.table(name, section)?;
        let mut entries: Vec<_> = settings.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries
            .into_iter()
            .map(|(key, value)| {
                let name = key.get_ref();
                if value.get_ref().as_table().is_some_and(|t| !t.contains_key("from")) {
                    let quoted = format!("settings with a point in their names stand in quotes: \"{name}.…\" = …");
                    return Err(self.at(key.span().start, format!("'{name}' is a table, not a setting")).help(quoted));
                }
                if !name.contains('.') && !OPTIONS.contains(&name.as_ref()) {
                    return Err(self.unknown(key.span().start, "setting", name, &OPTIONS).help(
                        "or device.SECTION.KEY, job.NAME.OPTION, group.PATH.KEY, SCHEDULER.TUNABLE, in quotes",
                    ));
                }
                read(name, value)
            })
            .collect()
    }

    fn axis(&self, key: &str, value: &Value<'_>, is_grid: bool) -> Result<Axis, Failure> {
        let values = match value.get_ref() {
            DeValue::Table(range) => Values::Range(self.range(key, value, range, is_grid)?),
            DeValue::Array(_) => Values::List(self.words(key, value)?),
            _ => Values::List(vec![self.word(key, value)?]),
        };
        if matches!(&values, Values::List(list) if list.is_empty() || list.len() > VALUES_MAX) {
            return Err(self.at(value.span().start, format!("{key} needs 1 to {VALUES_MAX} values")));
        }
        Ok(Axis { key: key.to_owned(), values })
    }

    fn range(
        &self,
        key: &str,
        place: &Value<'_>,
        range: &DeTable<'_>,
        is_grid: bool,
    ) -> Result<Range, Failure> {
        self.known(range, &RANGE_KEYS, "a range")?;
        let end = |name: &str| {
            let value = range.get(name);
            let value =
                value.ok_or_else(|| self.at(place.span().start, format!("{key}: a range needs {name}")))?;
            Ok::<_, Failure>((self.number(name, value)?, matches!(value.get_ref(), DeValue::Integer(_))))
        };
        let ((from, whole_from), (to, whole_to)) = (end("from")?, end("to")?);
        let log = match range.get("scale").map(|v| self.text("scale", v)).transpose()?.as_deref() {
            None | Some("linear") => false,
            Some("log") => true,
            Some(other) => return Err(self.unknown(place.span().start, "scale", other, &["linear", "log"])),
        };
        let steps =
            range.get("steps").map(|v| self.whole_number("steps", v, 1, VALUES_MAX as u64)).transpose()?;
        let wrong = match () {
            () if from > to => "from is above to",
            () if log && from <= 0.0 => "a logarithmic scale begins above 0",
            () if is_grid && steps.is_none() => "a grid needs steps: how many of them it takes",
            () => {
                return Ok(Range {
                    from,
                    to,
                    whole: whole_from && whole_to,
                    log,
                    steps: steps.map(|s| s as usize),
                });
            }
        };
        Err(self.at(place.span().start, format!("{key}: {wrong}")))
    }

    fn sample(&self, value: &Value<'_>) -> Result<Sample, Failure> {
        let table = self.table("sample", value)?;
        self.known(table, &SAMPLE_KEYS, "[sample]")?;
        let needed = |key: &str| {
            table.get(key).ok_or_else(|| self.at(value.span().start, format!("[sample] needs {key}")))
        };
        let name = needed("method")?;
        let method = match self.text("method", name)?.as_str() {
            "latin-hypercube" => Method::LatinHypercube,
            "sobol" => Method::Sobol,
            other => {
                return Err(self.unknown(name.span().start, "method", other, &["latin-hypercube", "sobol"]));
            }
        };
        let points = self.whole_number("points", needed("points")?, 1, POINTS_MAX)? as usize;
        let seed = table.get("seed").map_or(Ok(1), |v| self.whole_number("seed", v, 0, i64::MAX as u64))?;
        Ok(Sample { method, points, seed })
    }

    fn halving(&self, value: &Value<'_>) -> Result<Halving, Failure> {
        let table = self.table("halving", value)?;
        self.known(table, &HALVING_KEYS, "[halving]")?;
        let needed = |key: &str| {
            table.get(key).ok_or_else(|| self.at(value.span().start, format!("[halving] needs {key}")))
        };
        let (by, start) = (needed("by")?, needed("start")?);
        let by = match self.text("by", by)?.as_str() {
            "seeds" => Budget::Seeds(self.whole_number("start", start, 1, SEEDS_MAX)?),
            "runtime" => Budget::Runtime(
                crate::input::runtime_ns(&self.word("start", start)?)
                    .map_err(|e| self.at(start.span().start, e.message()))?,
            ),
            other => return Err(self.unknown(by.span().start, "budget", other, &["seeds", "runtime"])),
        };
        let keep = table.get("keep").map_or(Ok(0.5), |v| self.number("keep", v))?;
        if !(keep > 0.0 && keep < 1.0) {
            return Err(self.at(
                value.span().start,
                "keep must be above 0 and below 1: the part that goes on".to_owned(),
            ));
        }
        Ok(Halving { by, keep })
    }

    /// A setting stands in one place.
    fn once(&self, fixed: &[(String, String)], over: &[Axis], vary: &[Axis]) -> Result<(), Failure> {
        let keys: Vec<&str> = fixed
            .iter()
            .map(|(key, _)| key)
            .chain(over.iter().chain(vary).map(|axis| &axis.key))
            .map(String::as_str)
            .collect();
        match keys.iter().enumerate().find(|(place, key)| keys[..*place].contains(key)) {
            None => Ok(()),
            Some((_, key)) => Err(self
                .whole(&format!("'{key}' is set twice"))
                .help("a setting stands in one of [fixed], [over] and [vary]")),
        }
    }

    // ---- values -------------------------------------------------------------------------------------------------------

    fn table<'v>(&self, key: &str, value: &'v Value<'_>) -> Result<&'v DeTable<'v>, Failure> {
        value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.at(value.span().start, format!("{key} must be a table: [{key}]")))
    }

    fn text(&self, key: &str, value: &Value<'_>) -> Result<String, Failure> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.at(value.span().start, format!("{key} must be a text in quotes"))),
        }
    }

    /// A value of a setting, as a command line writes it.
    fn word(&self, key: &str, value: &Value<'_>) -> Result<String, Failure> {
        match value.get_ref() {
            DeValue::String(text) if text.contains(['\n', '\r', '\t']) => {
                Err(self.at(value.span().start, format!("{key}: a value stands on one line")))
            }
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(i) => Ok(i.as_str().to_owned()),
            DeValue::Float(f) => Ok(f.as_str().to_owned()),
            DeValue::Boolean(b) => Ok(if *b { "1" } else { "0" }.to_owned()),
            _ => Err(self.at(value.span().start, format!("{key} must be a text, a number, true or false"))),
        }
    }

    fn words(&self, key: &str, value: &Value<'_>) -> Result<Vec<String>, Failure> {
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.at(value.span().start, format!("{key} must be a list")));
        };
        let words = list.iter().map(|entry| self.word(key, entry)).collect::<Result<Vec<_>, _>>()?;
        match words.iter().enumerate().find(|(place, word)| words[..*place].contains(word)) {
            Some((_, twice)) => Err(self.at(value.span().start, format!("{key} has '{twice}' twice"))),
            None => Ok(words),
        }
    }

    fn number(&self, key: &str, value: &Value<'_>) -> Result<f64, Failure> {
        let number = match value.get_ref() {
            DeValue::Integer(i) => i.as_str().parse::<f64>().ok(),
            DeValue::Float(f) => f.as_str().parse::<f64>().ok(),
            _ => None,
        };
        number
            .filter(|n| n.is_finite() && n.abs() < 1e15)
            .ok_or_else(|| self.at(value.span().start, format!("{key} must be a number")))
    }

    fn whole_number(&self, key: &str, value: &Value<'_>, min: u64, max: u64) -> Result<u64, Failure> {
        let number = match value.get_ref() {
            DeValue::Integer(i) => u64::from_str_radix(i.as_str(), i.radix()).ok(),
            _ => None,
        };
        number.filter(|n| (min..=max).contains(n)).ok_or_else(|| {
            self.at(value.span().start, format!("{key} must be a whole number, {min} to {max}"))
        })
    }

    // ---- errors -------------------------------------------------------------------------------------------------------

    fn known(&self, table: &DeTable<'_>, keys: &[&str], of: &str) -> Result<(), Failure> {
        match table.keys().find(|key| !keys.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(key) => Err(self.unknown(key.span().start, &format!("key of {of}"), key.get_ref(), keys)),
        }
    }

    fn unknown(&self, at: usize, what: &str, word: &str, allowed: &[&str]) -> Failure {
        let mut failure = self.at(at, format!("unknown {what} '{word}'"));
        if let Some(near) = nearest(word, allowed.iter().copied()) {
            failure = failure.help(format!("did you mean '{near}'?"));
        }
        failure.help(format!("allowed: {}", allowed.join(", ")))
    }

    fn of_goal(&self, place: &Value<'_>, error: &GoalError) -> Failure {
        let mut failure = self.at(place.span().start, format!("goal: {}", error.message));
        if let Some(near) = &error.nearest {
            failure = failure.help(format!("did you mean '{near}'?"));
        }
        failure.help(format!("allowed: {}", error.allowed))
    }

    fn whole(&self, message: &str) -> Failure {
        Failure::new(message).at(self.origin)
    }

    fn at(&self, offset: usize, message: String) -> Failure {
        let line = 1 + self.text.bytes().take(offset).filter(|b| *b == b'\n').count();
        Failure::new(message).at(format!("{}:{line}", self.origin))
    }
}
