//! What a comparison runs: every case on every device, with every seed; and its results, sorted again.

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Case, Scenario};

/// Results of a case: by scheduler, then seed.
pub type Columns<'a> = Vec<Vec<&'a RunResult>>;

/// How long everything takes the device, percent, where it is asked whether that turns the order around.
const PACES: [u32; 2] = [80, 120];

/// The runs of a comparison.
#[derive(Debug)]
pub struct Plan {
    /// What is shown: a case for each device.
    pub shown: Scenario,
    /// What is run: cases by shown case, then pace, then seed.
    pub run: Scenario,
    seeds: u64,
}

/// Results by shown case.
#[derive(Debug)]
pub struct Compared {
    /// Of the first seed, by case and scheduler.
    pub first: Vec<Vec<RunResult>>,
    /// Of the other seeds: by case, scheduler, seed.
    others: Vec<Vec<Vec<RunResult>>>,
    /// The same on a device that is faster or slower: by case; percent, and by scheduler and seed.
    paced: Vec<Vec<(u32, Vec<Vec<RunResult>>)>>,
}

impl Plan {
    /// All cases of `scenario` on each of `devices` (none: the scenario's own) with `seeds` seeds from the scenario's on. With one
    /// seed a run is as fio would repeat it.
    pub fn new(scenario: Scenario, devices: &[DeviceSpec], seeds: u64) -> Plan {
        let mut shown = scenario;
        if devices.len() > 1 {
            shown.cases = devices.iter().flat_map(|device| on_device(&shown.cases, device)).collect();
        }
        let mut run = shown.clone();
        if seeds > 1 {
            run.cases = shown.cases.iter().flat_map(|case| variants(case, &shown, seeds)).collect();
        }
        Plan { shown, run, seeds }
    }

    /// Sort the results of what was run.
    pub fn sort(&self, runs: Vec<Vec<RunResult>>) -> Compared {
        let width = self.shown.schedulers.len();
        let mut runs = runs.into_iter();
        let mut compared = Compared { first: Vec::new(), others: Vec::new(), paced: Vec::new() };
        for _ in &self.shown.cases {
            compared.first.push(runs.next().unwrap_or_default());
            compared.others.push(by_scheduler(runs.by_ref().take(self.seeds as usize - 1), width));
            let paces = if self.seeds > 1 { &PACES[..] } else { &[] };
            let mut of =
                |percent: &u32| (*percent, by_scheduler(runs.by_ref().take(self.seeds as usize), width));
            compared.paced.push(paces.iter().map(&mut of).collect());
        }
        compared
    }
}

impl Compared {
    /// Results by case and scheduler, of one seed.
    pub fn of_one_seed(first: Vec<Vec<RunResult>>) -> Compared {
        let cases = first.len();
        Compared { first, others: vec![Vec::new(); cases], paced: vec![Vec::new(); cases] }
    }

    /// Forget why things took as long as they did: it was recorded for a page only.
    pub fn forget_explanations(&mut self) {
        let others = self.others.iter_mut().flatten().flatten();
        self.first.iter_mut().flatten().chain(others).for_each(|run| run.explanation = None);
    }

    /// The results of a case.
    pub fn columns(&self, case: usize) -> Columns<'_> {
        let others = &self.others[case];
        let column = |(at, first)| {
            let others: &[RunResult] = others.get(at).map_or(&[], Vec::as_slice);
            std::iter::once(first).chain(others).collect()
        };
        self.first[case].iter().enumerate().map(column).collect()
    }

    /// The results of a case on a faster and a slower device, if that was run.
    pub fn paced(&self, case: usize) -> Vec<(u32, Columns<'_>)> {
        self.paced[case].iter().map(|(percent, results)| (*percent, borrowed(results))).collect()
    }

    /// The results of all cases.
    pub fn by_case(&self) -> Vec<Columns<'_>> {
        (0..self.first.len()).map(|case| self.columns(case)).collect()
    }

    /// Every run on the device as it is: by case, then scheduler, then seed.
    pub fn all(&self) -> Vec<Vec<&RunResult>> {
        (0..self.first.len()).map(|case| self.columns(case).concat()).collect()
    }
}

/// Results by case and scheduler, borrowed.
pub fn flat(runs: &[Vec<RunResult>]) -> Vec<Vec<&RunResult>> {
    runs.iter().map(|runs| runs.iter().collect()).collect()
}

/// Results by case and scheduler as those of one seed.
pub fn single(runs: &[Vec<RunResult>]) -> Vec<Columns<'_>> {
    runs.iter().map(|runs| runs.iter().map(|run| vec![run]).collect()).collect()
}

fn borrowed(results: &[Vec<RunResult>]) -> Columns<'_> {
    results.iter().map(|of| of.iter().collect()).collect()
}

/// The cases on a device, called after it.
fn on_device(cases: &[Case], device: &DeviceSpec) -> Vec<Case> {
    let name = |case: &Case| match case.name.as_str() {
        "" => device.name().to_owned(),
        name => format!("{name}, {}", device.name()),
    };
    let on = |case: &Case| Case { name: name(case), device: Some(device.clone()), ..case.clone() };
    cases.iter().map(on).collect()
}

/// A case with each seed, on the device as it is, faster and slower.
fn variants(case: &Case, scenario: &Scenario, seeds: u64) -> Vec<Case> {
    let device = case.device.as_ref().unwrap_or(&scenario.device);
    let with = |percent: u32, seed: u64| Case {
        device: Some(device.paced(percent)),
        seed: Some(scenario.seed.wrapping_add(seed)),
        ..case.clone()
    };
    let paces = std::iter::once(100).chain(PACES);
    paces.flat_map(|percent| (0..seeds).map(move |seed| (percent, seed))).map(|(p, s)| with(p, s)).collect()
}

/// Results by case to results by scheduler and case.
fn by_scheduler(cases: impl Iterator<Item = Vec<RunResult>>, width: usize) -> Vec<Vec<RunResult>> {
    let mut columns: Vec<Vec<RunResult>> = (0..width).map(|_| Vec::new()).collect();
    for runs in cases {
        columns.iter_mut().zip(runs).for_each(|(column, run)| column.push(run));
    }
    columns
}
