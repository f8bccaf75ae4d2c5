//! What groups promise, on modelled devices: shares by weight over ten seconds at defaults, a latency that does not depend on how many
//! queues the neighbour has, and a reader beside a greedy neighbour on flash. The loads are those of `experiments/groups-*.toml`.

use std::path::{Path, PathBuf};

use fairlift_sim::group::GroupResult;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{self, Scenario, Verdict};

/// Weighted Jain index that sharing has to reach.
const JAIN_MIN: f64 = 0.999;

fn experiments(prefix: &str) -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.file_name().unwrap().to_string_lossy().starts_with(prefix));
    files.sort();
    assert!(!files.is_empty(), "no experiment is called {prefix}...");
    files.iter().map(|file| scenario::load(file).unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn run(scenario: &Scenario) -> Vec<Vec<RunResult>> {
    scenario::run_all(scenario, 1, &()).unwrap()
}

fn find<'a>(
    scenario: &Scenario,
    runs: &'a [Vec<RunResult>],
    case: &str,
    scheduler: &str,
) -> Option<&'a RunResult> {
    let case = scenario.cases.iter().position(|c| c.name == case)?;
    let scheduler = scenario.schedulers.iter().position(|s| s.to_string() == scheduler)?;
    runs[case].get(scheduler)
}

/// Jain's index of what each got per weight: 1 if all got the same.
fn jain(groups: &[&GroupResult]) -> f64 {
    let per_weight: Vec<f64> =
        groups.iter().map(|g| g.all.device_time_ns as f64 / f64::from(g.weight.unwrap_or(1))).collect();
    let (sum, squares): (f64, f64) = (per_weight.iter().sum(), per_weight.iter().map(|x| x * x).sum());
    sum * sum / (per_weight.len() as f64 * squares)
}

/// Over ten seconds, at defaults, but for the cells that the experiment says cannot come out.
fn shares_hold(scenario: &Scenario) {
    let runs = run(scenario);
    for row in &scenario.published {
        for cell in row.cells(|case, scheduler| find(scenario, &runs, case, scheduler)) {
            if cell.why.is_some() {
                continue;
            }
            let place = format!("{}, {}, case {}", scenario.name, row.scheduler, cell.case);
            assert!(
                cell.verdict != Verdict::NotReproduced,
                "{place}: {} got {:.4} of the device's time instead of {:.4}",
                row.job,
                cell.ours,
                cell.published
            );
            let result = find(scenario, &runs, &cell.case, &row.scheduler).unwrap();
            let siblings: Vec<&GroupResult> = result.groups.iter().filter(|g| g.parent == Some(0)).collect();
            assert!(jain(&siblings) >= JAIN_MIN, "{place}: Jain's index is {:.5}", jain(&siblings));
        }
    }
}

#[test]
fn groups_get_what_their_weights_say() {
    experiments("groups-shares-").iter().for_each(shares_hold);
}

#[test]
fn so_they_do_in_a_tree_of_three_levels() {
    experiments("groups-tree-").iter().for_each(shares_hold);
}

#[test]
fn a_groups_latency_does_not_depend_on_the_number_of_queues_in_others() {
    for scenario in experiments("groups-queues") {
        let runs = run(&scenario);
        for row in &scenario.published {
            for cell in row.cells(|case, scheduler| find(&scenario, &runs, case, scheduler)) {
                let known = cell.verdict != Verdict::NotReproduced || cell.why.is_some();
                assert!(
                    known,
                    "{}, case {}: {} instead of {}",
                    row.scheduler, cell.case, cell.ours, cell.published
                );
            }
        }
    }
}

/// The setting of `docs/isolation.md`: turns, and a neighbour that weighs six times as much.
#[test]
fn a_reader_keeps_its_latency_and_the_neighbour_most_of_its_throughput() {
    for mut scenario in experiments("groups-isolation") {
        scenario
            .schedulers
            .retain(|scheduler| ["fl-noop", "fl-noop:groups=0"].contains(&scheduler.to_string().as_str()));
        scenario.cases.retain(|case| case.name == "alone" || case.name.ends_with("1:6"));
        let runs = run(&scenario);
        let mut cells = 0;
        for row in scenario.published.iter().filter(|row| row.scheduler == "fl-noop") {
            for cell in row.cells(|case, scheduler| find(&scenario, &runs, case, scheduler)) {
                cells += 1;
                let came_out = cell.verdict != Verdict::NotReproduced;
                assert!(came_out, "case {}, {}: {} of {}", cell.case, row.job, cell.ours, cell.published);
            }
        }
        assert_eq!(cells, 6, "two figures beside each of three neighbours");
    }
}
