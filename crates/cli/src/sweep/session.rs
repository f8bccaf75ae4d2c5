//! A sweep as it runs: what has run, what is next, which settings are left.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fairlift_sim::scheduler::nearest;

use super::file::Sweep;
use super::goal::RUN;
use super::journal::Journal;
use super::plan::Plan;
use super::rank::Ranking;
use super::row::{Done, Lab};
use crate::error::{Failure, quietly};
use crate::output::reason;

/// Most runs whose settings are tried before anything runs.
const TRIED_MAX: usize = 2000;

/// A sweep as it runs.
pub struct Session {
    /// What it runs.
    pub plan: Plan,
    /// What has run.
    pub journal: Journal,
    /// Where its results are.
    pub folder: PathBuf,
    /// The rung that runs now.
    pub rung: usize,
    /// By circumstance: the points that are in it.
    pub alive: Vec<Vec<usize>>,
}

impl Session {
    /// Begin the sweep of this file, or go on with it, with its results in `folder`.
    pub fn open(file: &str, folder: &Path, lab: &Lab) -> Result<Session, Failure> {
        let text = String::from_utf8(crate::input::read(file)?)
            .map_err(|_| Failure::new("not a text file (not UTF-8)").at(file))?;
        let plan = Plan::new(Sweep::parse(&text, file)?).map_err(|e| e.at(file))?;
        try_out(&plan, lab)?;
        let hash = hash(&plan, &text)?;
        std::fs::create_dir_all(folder).map_err(|e| {
            Failure::new(format!("cannot write into '{}': {}", folder.display(), reason(&e))).at("--output")
        })?;
        let goal = plan.sweep.goal.terms.iter().map(|term| term.column.clone()).collect();
        let journal = Journal::open(&folder.join("results.log"), hash, goal)?;
        let alive = plan.distinct.clone();
        Ok(Session { plan, journal, folder: folder.to_owned(), rung: 0, alive })
    }

    /// The runs of this rung that have not run.
    pub fn pending(&self) -> Vec<u64> {
        let mut rows = self.plan.rows_of(self.rung, &self.alive);
        rows.retain(|number| !self.journal.has(*number));
        rows
    }

    /// A run is done.
    pub fn record(&mut self, done: &Done) -> Result<(), Failure> {
        self.journal.record(done)
    }

    /// The rung has run: leave the worse settings behind and go on to the next; false after the last.
    pub fn advance(&mut self) -> bool {
        let Some(halving) = self.plan.sweep.halving else { return false };
        if self.rung + 1 >= self.plan.rungs.len() {
            return false;
        }
        let ranking = Ranking { plan: &self.plan, journal: &self.journal };
        for (circumstance, points) in self.alive.iter_mut().enumerate() {
            let kept = ((points.len() as f64 * halving.keep).ceil() as usize).max(1);
            let best = ranking.scores(circumstance).into_iter().map(|score| score.point);
            let best: Vec<usize> = best.filter(|point| points.contains(point)).take(kept).collect();
            points.retain(|point| best.contains(point));
        }
        self.rung += 1;
        true
    }

    /// The ranking of all that has run.
    pub fn ranking(&self) -> Ranking<'_> {
        Ranking { plan: &self.plan, journal: &self.journal }
    }
}

/// Read what the settings amount to, before anything runs: of each circumstance, and of points as many as can be tried quickly. A
/// setting that only the run can refuse becomes a row with its reason.
fn try_out(plan: &Plan, lab: &Lab) -> Result<(), Failure> {
    let mut tried = 0;
    for (circumstance, points) in plan.distinct.iter().enumerate() {
        let share = (TRIED_MAX / plan.distinct.len()).max(1);
        let step = points.len().div_ceil(share).max(1);
        for point in points.iter().step_by(step) {
            let row = plan.row(plan.number(plan.rungs.len() - 1, circumstance, *point, 0));
            let words = plan.words(&row);
            let read = || lab.scenario(&words);
            // Remarks about the jobs are worth reading once.
            let scenario = if tried == 0 { read() } else { quietly(read) };
            let scenario = scenario.map_err(|e| e.help(format!("the run is: {}", command(&words))))?;
            if tried == 0 || *point == points[0] {
                has_figures(plan, &scenario)?;
            }
            tried += 1;
        }
    }
    Ok(())
}

/// The goal's figures are of a job that runs.
fn has_figures(plan: &Plan, scenario: &fairlift_sim::scenario::Scenario) -> Result<(), Failure> {
    let case = &scenario.cases[0];
    let jobs = case.jobs.iter().map(|job| job.name.clone());
    let programs = case.programs.iter().map(|program| program.name.clone());
    let traced = case.replaying.iter().flat_map(|r| r.trace.processes.iter().map(|p| p.name.clone()));
    let groups = case.groups.iter().map(|group| group.path.clone());
    let known: Vec<String> = jobs.chain(programs).chain(traced).chain(groups).collect();
    for term in plan.sweep.goal.terms.iter().filter(|term| !term.of.is_empty() && term.of != RUN) {
        if !known.contains(&term.of) {
            let mut failure = Failure::new(format!("goal: no job, program or group is called '{}'", term.of));
            if let Some(near) = nearest(&term.of, known.iter().map(String::as_str)) {
                failure = failure.help(format!("did you mean '{near}'?"));
            }
            return Err(failure.help(format!("allowed: {}", known.join(", "))));
        }
    }
    Ok(())
}

/// A run's words as a line for a shell.
pub fn command(words: &[String]) -> String {
    let words = words.iter().map(|word| crate::view::quoted(word));
    std::iter::once("fairlift".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// What the results depend on, as a number: the sweep's text, the files it names, and which fairlift runs it. FNV-1a: it finds changes,
/// not forgeries.
fn hash(plan: &Plan, text: &str) -> Result<u64, Failure> {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.add(env!("CARGO_PKG_VERSION").as_bytes());
    hash.end();
    hash.add(text.as_bytes());
    hash.end();
    for name in plan.files() {
        let path = plan.sweep.path(&name);
        hash.add(name.as_bytes());
        hash.end();
        let fail = |e: &std::io::Error| Failure::new(format!("cannot read '{path}': {}", reason(e)));
        let mut file = File::open(&path).map_err(|e| fail(&e))?;
        let mut part = vec![0; 1 << 20];
        loop {
            match file.read(&mut part).map_err(|e| fail(&e))? {
                0 => break,
                read => hash.add(&part[..read]),
            }
        }
        hash.end();
    }
    Ok(hash.0)
}

struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    /// The end of a part counts: "a" and "bc" are not "ab" and "c".
    fn end(&mut self) {
        self.add(&[0xff]);
    }
}
