//! What a sweep runs: every point under every circumstance with every seed, each run as a command line.

use fairlift_sim::scheduler::names;
use rustc_hash::FxHashSet;

use super::axis::Axis;
use super::file::{Budget, Sweep};
use super::sample;
use crate::error::Failure;

/// Most runs of a sweep.
const ROWS_MAX: u64 = 100_000_000;
/// Most points.
const POINTS_MAX: usize = 10_000_000;

/// Settings and their values.
pub type Settings = Vec<(String, String)>;

/// All runs of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked for.
    pub sweep: Sweep,
    /// Each combination of what the answer is given for; at least one.
    pub circumstances: Vec<Settings>,
    /// What is to be chosen among.
    pub points: Vec<Settings>,
    /// By circumstance: the points that differ from all before them there.
    pub distinct: Vec<Vec<usize>>,
    /// One after the other; one, unless settings are left behind on the way.
    pub rungs: Vec<Rung>,
}

/// What the runs of a rung have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Which of the seeds are new.
    pub seeds: std::ops::Range<u64>,
    /// A shorter runtime than asked for.
    pub runtime_ns: Option<u64>,
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number.
    pub number: u64,
    /// Which rung.
    pub rung: usize,
    /// Which circumstance.
    pub circumstance: usize,
    /// Which point.
    pub point: usize,
    /// The seed it runs with.
    pub seed: u64,
}

impl Plan {
    /// Of a sweep.
    pub fn new(sweep: Sweep) -> Result<Plan, Failure> {
        let circumstances = grid(&sweep.over, &sweep.fixed)?;
        let points = match sweep.sample {
            None => grid(&sweep.vary, &sweep.fixed)?,
            Some(sample) => {
                let places = sample::points(sample.method, sweep.vary.len(), sample.points, sample.seed);
                let drawn = places.iter().map(|place| {
                    sweep
                        .vary
                        .iter()
                        .zip(place)
                        .map(|(axis, at)| (axis.key.clone(), axis.values.at(*at)))
                        .collect()
                });
                unlike(drawn, &sweep.fixed)
            }
        };
        let rungs = rungs(&sweep)?;
        let mut plan = Plan { sweep, circumstances, points, distinct: Vec::new(), rungs };
        let rows = plan.rows_of_rung() as u128 * plan.rungs.len() as u128;
        if rows > u128::from(ROWS_MAX) {
            return Err(too_many(format!("{rows} runs"), ROWS_MAX));
        }
        plan.distinct = (0..plan.circumstances.len()).map(|c| plan.distinct_in(c)).collect();
        Ok(plan)
    }

    /// How many runs it has if no setting is left behind.
    pub fn rows(&self) -> u64 {
        let seeds: u64 = self.rungs.iter().map(|rung| rung.seeds.end - rung.seeds.start).sum();
        seeds * self.distinct.iter().map(|points| points.len() as u64).sum::<u64>()
    }

    /// The runs of a rung, of these points by circumstance.
    pub fn rows_of(&self, rung: usize, alive: &[Vec<usize>]) -> Vec<u64> {
        let of_point = |circumstance: usize, point: usize| {
            self.rungs[rung].seeds.clone().map(move |seed| self.number(rung, circumstance, point, seed))
        };
        let points = alive.iter().enumerate();
        points.flat_map(|(c, points)| points.iter().flat_map(move |p| of_point(c, *p))).collect()
    }

    /// The number of a run; `seed` counts from 0. Rungs that only add seeds share their numbers.
    pub fn number(&self, rung: usize, circumstance: usize, point: usize, seed: u64) -> u64 {
        let rung = if self.has_runtimes() { rung } else { 0 };
        let points = self.points.len() as u64;
        let place = rung as u64 * self.circumstances.len() as u64 + circumstance as u64;
        (place * points + point as u64) * self.sweep.seeds + seed
    }

    /// The run of a number.
    pub fn row(&self, number: u64) -> Row {
        let (place, seed) = (number / self.sweep.seeds, number % self.sweep.seeds);
        let (place, point) = (place / self.points.len() as u64, place % self.points.len() as u64);
        let circumstances = self.circumstances.len() as u64;
        Row {
            number,
            rung: (place / circumstances) as usize,
            circumstance: (place % circumstances) as usize,
            point: point as usize,
            seed: self.sweep.first_seed + seed,
        }
    }

    /// Do rungs differ in their runtime?
    pub fn has_runtimes(&self) -> bool {
        self.rungs.iter().any(|rung| rung.runtime_ns.is_some())
    }

    /// The words of the command that makes the run, behind `fairlift`.
    pub fn words(&self, row: &Row) -> Vec<String> {
        let mut settings = self.settings(row.circumstance, row.point);
        if let Some(ns) = self.rungs[row.rung].runtime_ns {
            settings.retain(|(key, _)| key != "runtime");
            settings.push(("runtime".to_owned(), format!("{}us", ns / 1000)));
        }
        let mut words = self.words_of(&settings);
        words.extend(["--seed".to_owned(), row.seed.to_string()]);
        words
    }

    /// Everything that is set at a point under a circumstance and matters there.
    fn settings(&self, circumstance: usize, point: usize) -> Settings {
        let all = self.sweep.fixed.iter().chain(&self.circumstances[circumstance]).chain(&self.points[point]);
        that_matter(all.cloned().collect())
    }

    fn words_of(&self, settings: &Settings) -> Vec<String> {
        let value = |key: &str| settings.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        let mut words = match value("trace") {
            Some(trace) => vec!["replay".to_owned(), self.sweep.path(trace)],
            None => vec!["run".to_owned()],
        };
        words.extend(["jobs", "scenario"].into_iter().filter_map(value).map(|file| self.sweep.path(file)));
        for option in ["case", "device", "kernel", "filesystem", "mount", "scheduler", "timing", "runtime"] {
            let Some(value) = value(option) else { continue };
            let value = match option == "device" && self.is_file(value) {
                true => self.sweep.path(value),
                false => value.to_owned(),
            };
            words.extend([format!("--{option}"), value]);
        }
        for (key, value) in settings.iter().filter(|(key, _)| key.contains('.')) {
            words.extend(["--set".to_owned(), format!("{key}={value}")]);
        }
        words
    }

    fn is_file(&self, name: &str) -> bool {
        std::path::Path::new(&self.sweep.path(name)).is_file()
    }

    /// Names of the files that runs read, as the sweep file has them.
    pub fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = Vec::new();
        let named = self.circumstances.iter().chain(&self.points).chain([&self.sweep.fixed]).flatten();
        let of_key = |key: &str| ["jobs", "scenario", "trace", "device"].contains(&key);
        let named = named.filter(|(key, _)| of_key(key)).map(|(_, value)| value).chain(&self.sweep.files);
        for name in named {
            if self.is_file(name) && !files.contains(name) {
                files.push(name.clone());
            }
        }
        files
    }

    fn distinct_in(&self, circumstance: usize) -> Vec<usize> {
        let mut seen = FxHashSet::default();
        (0..self.points.len()).filter(|p| seen.insert(self.settings(circumstance, *p))).collect()
    }

    fn rows_of_rung(&self) -> u64 {
        (self.circumstances.len() as u64)
            .saturating_mul(self.points.len() as u64)
            .saturating_mul(self.sweep.seeds)
    }
}

/// The scheduler a tunable is of, if `key` is a tunable's.
fn scheduler_of(key: &str) -> Option<&str> {
    let (owner, _) = key.split_once('.')?;
    names::all().any(|name| name.word == owner).then_some(owner)
}

/// Without the tunables of schedulers that do not run.
fn that_matter(settings: Settings) -> Settings {
    let chosen = settings.iter().find(|(key, _)| key == "scheduler").map(|(_, value)| value.clone());
    let name = chosen.as_deref().map(|text| text.split([':', '@', '+']).next().unwrap_or_default());
    settings
        .into_iter()
        .filter(|(key, _)| scheduler_of(key).is_none_or(|owner| name.is_none_or(|name| name == owner)))
        .collect()
}

/// All combinations of the axes' values, the last axis fastest; one empty combination if there is none.
fn grid(axes: &[Axis], known: &Settings) -> Result<Vec<Settings>, Failure> {
    // Schedulers first: then it is known which tunables matter.
    let (first, then): (Vec<&Axis>, Vec<_>) = axes.iter().partition(|axis| scheduler_of(&axis.key).is_none());
    let mut points: Vec<Settings> = vec![Vec::new()];
    for axis in first.into_iter().chain(then) {
        let values = axis.values.grid();
        let mut wider = Vec::new();
        for point in points {
            let all: Settings = known.iter().chain(&point).cloned().collect();
            let asked = (axis.key.clone(), String::new());
            if !that_matter(all.into_iter().chain([asked.clone()]).collect()).contains(&asked) {
                wider.push(point);
                continue;
            }
            if wider.len() + values.len() > POINTS_MAX {
                return Err(too_many("points of the grid".to_owned(), POINTS_MAX as u64));
            }
            wider.extend(values.iter().map(|value| {
                let mut point = point.clone();
                point.push((axis.key.clone(), value.clone()));
                point
            }));
        }
        points = wider;
    }
    Ok(points)
}

/// Points as drawn, without what does not matter at them and without those that were there before.
fn unlike(points: impl Iterator<Item = Settings>, known: &Settings) -> Vec<Settings> {
    let mut seen = FxHashSet::default();
    points
        .map(|point| {
            let all = known.iter().cloned().chain(point).collect();
            that_matter(all).into_iter().filter(|setting| !known.contains(setting)).collect::<Settings>()
        })
        .filter(|point| seen.insert(point.clone()))
        .collect()
}

/// The rungs: seeds or runtime grow by the same factor by which settings become fewer.
fn rungs(sweep: &Sweep) -> Result<Vec<Rung>, Failure> {
    let whole = Rung { seeds: 0..sweep.seeds, runtime_ns: None };
    let Some(halving) = sweep.halving else { return Ok(vec![whole]) };
    let mut rungs = Vec::new();
    match halving.by {
        Budget::Seeds(start) => {
            let (mut done, mut next) = (0, start as f64);
            while done < sweep.seeds {
                let end = (next.round() as u64).clamp(done + 1, sweep.seeds);
                rungs.push(Rung { seeds: done..end, runtime_ns: None });
                (done, next) = (end, next / halving.keep);
            }
        }
        Budget::Runtime(start_ns) => {
            let runtime = sweep.fixed.iter().find(|(key, _)| key == "runtime");
            let (_, text) = runtime.ok_or_else(|| {
                Failure::new("halving by runtime needs the whole runtime").help("[fixed] runtime = \"10s\"")
            })?;
            let (whole_ns, mut next) = (crate::input::runtime_ns(text)?, start_ns as f64);
            // A rung that is nearly the whole would be run twice.
            while next < 0.9 * whole_ns as f64 {
                rungs.push(Rung { runtime_ns: Some(next as u64), ..whole.clone() });
                next /= halving.keep;
            }
            rungs.push(whole);
        }
    }
    Ok(rungs)
}

fn too_many(what: String, max: u64) -> Failure {
    Failure::new(format!("{what}: more than {max} are too many"))
        .help("fewer values, or [sample] with a number of points")
}
