//! The comparison, for people.

use std::fmt::Write as _;

use fairlift_fio::Job;
use fairlift_sim::kernel::Filesystem;
use fairlift_sim::result::{JobResult, RunResult, Transfer};
use fairlift_sim::scenario::{Case, Scenario};
use fairlift_sim::stats::Latency;

use crate::explain::explanation;
use crate::grid::WIDTH;
use crate::grid::{Cell, Grid, best, length, number, word, wrapped};
use crate::number::{bytes, count, seconds, short};
use crate::plan::Columns;
use crate::spread::Spread;
use crate::style::Style;
use crate::{group_table, program_table};

/// Names of the directions, by their numbers.
const DIRECTIONS: [&str; 3] = ["reads", "writes", "trims"];
/// Shown where there is nothing to show.
pub const NOTHING: &str = "-";

/// The whole comparison: a head, then a block per case. Of several seeds figures are means with half of their confidence interval.
pub fn table(scenario: &Scenario, cases: &[Columns<'_>], style: Style) -> String {
    let units = Units::of(cases);
    let mut out = head(scenario, cases, style);
    for (case, runs) in scenario.cases.iter().zip(cases) {
        if !case.name.is_empty() {
            let title = format!("case {}", case.name);
            let rule = "-".repeat(WIDTH - 1 - length(&title));
            let _ = write!(out, "\n{} {rule}\n", style.bold(&title));
        }
        out.push('\n');
        out.push_str(&block(case, runs, &units, style));
        for run in runs.iter().filter_map(|seeds| seeds.first()).filter(|run| run.explanation.is_some()) {
            out.push('\n');
            out.push_str(&explanation(run, style));
        }
    }
    out
}

fn head(scenario: &Scenario, cases: &[Columns<'_>], style: Style) -> String {
    let durations = || cases.iter().flatten().flatten().map(|r| r.duration_ns);
    let (shortest, longest) = (durations().min().unwrap_or(0), durations().max().unwrap_or(0));
    let simulated = match seconds(shortest) == seconds(longest) {
        true => seconds(longest),
        false => format!("{} to {}", seconds(shortest), seconds(longest)),
    };
    let mut out = String::new();
    for line in wrapped(&scenario.title, WIDTH) {
        let _ = writeln!(out, "{}", style.bold(&line));
    }
    let filesystem = match scenario.filesystem {
        Filesystem::Raw => String::new(),
        mounted => format!(" with {}", mounted.name()),
    };
    let mut own: Vec<&str> = scenario.cases.iter().filter_map(|c| Some(c.device.as_ref()?.name())).collect();
    own.dedup();
    let device = if own.is_empty() { scenario.device.name().to_owned() } else { own.join(" and ") };
    let facts = format!(
        "device {device}{filesystem}, Linux {}, {}; {simulated} simulated",
        scenario.rules.version,
        seeds(scenario, cases)
    );
    for line in wrapped(&facts, WIDTH) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// `seed 1`, `seeds 1 to 5 (…)`.
fn seeds(scenario: &Scenario, cases: &[Columns<'_>]) -> String {
    let (first, count) = (scenario.seed, cases.iter().flatten().map(Vec::len).max().unwrap_or(1) as u64);
    match count {
        0 | 1 => format!("seed {first}"),
        _ => format!(
            "seeds {first} to {} (means and half of the 95 % confidence interval, in percent)",
            first.wrapping_add(count - 1)
        ),
    }
}

/// Units of a whole table, so that all of it can be compared.
struct Units {
    bandwidth: (f64, &'static str),
    latency: (f64, &'static str),
}

impl Units {
    fn of(cases: &[Columns<'_>]) -> Units {
        let all = || cases.iter().flatten().flatten();
        let fastest = all().map(|run| run.bandwidth()).fold(0.0, f64::max);
        let slowest = all().flat_map(|run| run.jobs()).map(|j| j.clat().mean_ns()).fold(0.0, f64::max);
        Units {
            bandwidth: if fastest >= 10.0 * 1024.0 * 1024.0 {
                (1024.0 * 1024.0, "MiB/s")
            } else {
                (1024.0, "KiB/s")
            },
            latency: if slowest >= 1e6 { (1e6, "ms") } else { (1e3, "us") },
        }
    }
}

fn block(case: &Case, runs: &Columns<'_>, units: &Units, style: Style) -> String {
    let names: Vec<String> =
        runs.iter().filter_map(|seeds| seeds.first()).map(|r| format!("  {}", r.scheduler)).collect();
    let first = names.iter().map(|n| length(n)).max().unwrap_or(0);
    let blocks = [
        if runs.iter().flatten().any(|r| !r.processes.is_empty()) {
            jobs(case, runs, &names, units, style, first)
        } else {
            String::new()
        },
        program_table::programs(runs, &names, style, first),
        group_table::groups(runs, &names, units.bandwidth, style, first),
        totals(runs, &names, units, style, first),
    ];
    let blocks: Vec<String> = blocks.into_iter().filter(|block| !block.is_empty()).collect();
    blocks.join("\n")
}

/// The fio jobs, a paragraph each.
fn jobs(
    case: &Case,
    runs: &Columns<'_>,
    names: &[String],
    units: &Units,
    style: Style,
    first: usize,
) -> String {
    let mut grid = Grid::default();
    let (bandwidth, latency) = (units.bandwidth.1, units.latency.1);
    let heads = ["", "bandwidth", "IOPS", "", "", "", "", "", "device"].map(word).into();
    grid.head(heads, (3, 7), format!("completion latency, {latency}"));
    grid.row(["", bandwidth, "1/s", "mean", "p50", "p99", "p99.9", "max", "time %"].map(word).into());
    let jobs: Vec<Vec<Vec<JobResult>>> =
        runs.iter().map(|seeds| seeds.iter().map(|run| run.jobs()).collect()).collect();
    for index in 0..jobs.first().and_then(|seeds| seeds.first()).map_or(0, Vec::len) {
        let column: Vec<Vec<&JobResult>> =
            jobs.iter().map(|seeds| seeds.iter().filter_map(|j| j.get(index)).collect()).collect();
        job_rows(&mut grid, case, runs, names, &column, units, style);
    }
    grid.render(style, first)
}

/// The rows of one job: each direction it moved data in, and its fsyncs.
fn job_rows(
    grid: &mut Grid,
    case: &Case,
    runs: &Columns<'_>,
    names: &[String],
    results: &[Vec<&JobResult>],
    units: &Units,
    style: Style,
) {
    let Some(first) = results.first().and_then(|seeds| seeds.first()) else { return };
    let title = style.bold(&first.name);
    let about = describe(case, first);
    let share = |(run, job): (&&RunResult, &&JobResult)| 100.0 * run.device_share(job);
    let shares: Vec<Vec<f64>> =
        runs.iter().zip(results).map(|(runs, jobs)| runs.iter().zip(jobs).map(share).collect()).collect();
    let all = || results.iter().flatten();
    let moved: Vec<usize> = (0..3).filter(|d| all().any(|r| r.transfers[*d].ios > 0)).collect();
    if moved.is_empty() {
        grid.text(format!("{title} ({about})"));
        let empty = Transfer::default();
        let columns: Vec<Vec<(&Transfer, u64)>> =
            results.iter().map(|seeds| vec![(&empty, 1); seeds.len()]).collect();
        direction_rows(grid, names, &columns, Some(&shares), units);
    }
    for (position, direction) in moved.iter().enumerate() {
        let which = if moved.len() > 1 { format!(", {}", DIRECTIONS[*direction]) } else { String::new() };
        let about = if position == 0 { format!(" ({about})") } else { String::new() };
        grid.text(format!("{title}{which}{about}"));
        let by_seed = results
            .iter()
            .map(|seeds| seeds.iter().map(|r| (&r.transfers[*direction], r.runtime_ns())).collect());
        let columns: Vec<Vec<(&Transfer, u64)>> = by_seed.collect();
        direction_rows(grid, names, &columns, (position == 0).then_some(&shares[..]), units);
    }
    if all().any(|r| r.sync.count() > 0) {
        grid.text(format!("{title}, fsync"));
        sync_rows(grid, names, results, units);
    }
}

fn direction_rows(
    grid: &mut Grid,
    names: &[String],
    columns: &[Vec<(&Transfer, u64)>],
    shares: Option<&[Vec<f64>]>,
    units: &Units,
) {
    let per_second = |amount: u64, ns: u64| amount as f64 * 1e9 / ns as f64;
    let figures: Vec<Vec<Cell>> = [
        marked(columns, Best::Highest, |(t, ns)| {
            (t.ios > 0).then(|| per_second(t.bytes, *ns) / units.bandwidth.0)
        }),
        marked(columns, Best::Highest, |(t, ns)| (t.ios > 0).then(|| per_second(t.ios, *ns))),
    ]
    .into_iter()
    .chain(latency_columns(columns, |(t, _)| &t.clat, units))
    .chain([match shares {
        Some(shares) => plain(shares, |s| Some(*s), tenths),
        None => vec![number(NOTHING); columns.len()],
    }])
    .collect();
    rows_of(grid, names, &figures);
}

fn sync_rows(grid: &mut Grid, names: &[String], results: &[Vec<&JobResult>], units: &Units) {
    let rate =
        |r: &&JobResult| (r.sync.count() > 0).then(|| r.sync.count() as f64 * 1e9 / r.runtime_ns() as f64);
    let figures: Vec<Vec<Cell>> =
        [vec![number(NOTHING); results.len()], marked(results, Best::Highest, rate)]
            .into_iter()
            .chain(latency_columns(results, |r| &r.sync, units))
            .chain([vec![number(NOTHING); results.len()]])
            .collect();
    rows_of(grid, names, &figures);
}

fn latency_columns<T>(results: &[Vec<T>], of: impl Fn(&T) -> &Latency, units: &Units) -> Vec<Vec<Cell>> {
    let column = |figure: fn(&Latency) -> f64| {
        marked(results, Best::Lowest, |r| {
            let latency = of(r);
            (latency.count() > 0).then(|| figure(latency) / units.latency.0)
        })
    };
    // A percentile is its bucket's middle, which may lie above the largest value; it is not shown so.
    vec![
        column(Latency::mean_ns),
        column(|l| l.percentile_ns(50.0).min(l.max_ns()) as f64),
        column(|l| l.percentile_ns(99.0).min(l.max_ns()) as f64),
        column(|l| l.percentile_ns(99.9).min(l.max_ns()) as f64),
        column(|l| l.max_ns() as f64),
    ]
}

/// One line per scheduler over all jobs.
fn totals(runs: &Columns<'_>, names: &[String], units: &Units, style: Style, first: usize) -> String {
    let mut grid = Grid::default();
    let busy = plain(runs, |r| Some(100.0 * r.busy()), tenths);
    let simulated = plain(runs, |r| Some(r.duration_ns as f64 / 1e9), short);
    if runs.iter().flatten().all(|r| r.processes.is_empty()) {
        // Only programs: their I/O is not counted call by call.
        let moved =
            |direction: usize| plain(runs, |r| Some(r.block.sectors[direction] as f64 / 2048.0), short);
        grid.row(["", "device", "reads", "writes", "simulated"].map(word).into());
        grid.row(["", "busy %", "MiB", "MiB", "s"].map(word).into());
        grid.text(style.bold("device"));
        rows_of(&mut grid, names, &[busy, moved(0), moved(1), simulated]);
        return grid.render(style, first);
    }
    grid.row(["", "bandwidth", "IOPS", "device", "Jain index of", "simulated"].map(word).into());
    grid.row(["", units.bandwidth.1, "1/s", "busy %", "device time", "s"].map(word).into());
    let processes = runs.first().and_then(|seeds| seeds.first()).map_or(0, |r| r.processes.len()) as u64;
    grid.text(format!("{} ({})", style.bold("all jobs"), count(processes, "process", "processes")));
    let jain = marked_as(runs, Best::Highest, |r| Some(r.jain_device_time()), |v| format!("{v:.3}"));
    let figures = [
        marked(runs, Best::Highest, |r| Some(r.bandwidth() / units.bandwidth.0)),
        marked(runs, Best::Highest, |r| Some(r.iops())),
        busy,
        jain,
        simulated,
    ];
    rows_of(&mut grid, names, &figures);
    grid.render(style, first)
}

/// Columns to rows.
pub fn rows_of(grid: &mut Grid, names: &[String], figures: &[Vec<Cell>]) {
    for (i, name) in names.iter().enumerate() {
        let cells = figures.iter().filter_map(|column| column.get(i).cloned());
        grid.row(std::iter::once(word(name.clone())).chain(cells).collect());
    }
}

/// Which value of a column is the best.
#[derive(Clone, Copy)]
pub enum Best {
    /// The highest.
    Highest,
    /// The lowest.
    Lowest,
}

fn marked<T>(of: &[Vec<T>], rule: Best, figure: impl Fn(&T) -> Option<f64>) -> Vec<Cell> {
    marked_as(of, rule, figure, short)
}

/// A column, by seed, with its best value marked: of one seed unless all look the same, of several if its confidence interval is
/// apart from all others'.
pub fn marked_as<T>(
    of: &[Vec<T>],
    rule: Best,
    figure: impl Fn(&T) -> Option<f64>,
    show: impl Fn(f64) -> String,
) -> Vec<Cell> {
    let spreads = spreads(of, figure);
    let means = || spreads.iter().flatten().map(|spread| spread.mean);
    let winner = match rule {
        Best::Highest => means().reduce(f64::max),
        Best::Lowest => means().reduce(f64::min),
    };
    let several = of.iter().any(|seeds| seeds.len() > 1);
    let wins = |spread: &Spread| match several {
        false => Some(show(spread.mean)) == winner.map(&show),
        true => Some(spread.mean) == winner,
    };
    let behind = |spread: &Spread| !several || apart(spread, &spreads);
    let differ = spreads.iter().flatten().any(|spread| !wins(spread));
    let cell = |spread: &Option<Spread>| match spread {
        None => number(NOTHING),
        Some(spread) if differ && wins(spread) && behind(spread) => best(shown(spread, several, &show)),
        Some(spread) => number(shown(spread, several, &show)),
    };
    spreads.iter().map(cell).collect()
}

/// A column, by seed, in which nothing is best.
pub fn plain<T>(
    of: &[Vec<T>],
    figure: impl Fn(&T) -> Option<f64>,
    show: impl Fn(f64) -> String,
) -> Vec<Cell> {
    let several = of.iter().any(|seeds| seeds.len() > 1);
    let cell = |spread: Option<Spread>| {
        number(spread.map_or_else(|| NOTHING.to_owned(), |spread| shown(&spread, several, &show)))
    };
    spreads(of, figure).into_iter().map(cell).collect()
}

fn spreads<T>(of: &[Vec<T>], figure: impl Fn(&T) -> Option<f64>) -> Vec<Option<Spread>> {
    of.iter().map(|seeds| Spread::of(seeds.iter().filter_map(&figure))).collect()
}

/// Is it apart from all the others?
fn apart(spread: &Spread, all: &[Option<Spread>]) -> bool {
    all.iter().flatten().all(|other| other == spread || other.is_apart_from(spread))
}

/// `12.3`, of several seeds `12.3±4%`.
fn shown(spread: &Spread, several: bool, show: impl Fn(f64) -> String) -> String {
    match several {
        false => show(spread.mean),
        true => format!("{}±{:.0}%", show(spread.mean), spread.percent()),
    }
}

/// One digit behind the point.
fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// What a job does, in a few words.
fn describe(case: &Case, result: &JobResult) -> String {
    let processes = count(u64::from(result.processes), "process", "processes");
    let job = case.jobs.iter().find(|j| j.name == result.name && j.schedule.group_id == result.group_id);
    match job {
        None => processes,
        Some(job) => format!("{processes}: {}", access(job)),
    }
}

fn access(job: &Job) -> String {
    let sizes = &job.blocks[if job.access.reads {
        0
    } else if job.access.writes {
        1
    } else {
        2
    }];
    let size = match sizes.min_bytes == sizes.max_bytes {
        true => bytes(sizes.min_bytes),
        false => format!("{} to {}", bytes(sizes.min_bytes), bytes(sizes.max_bytes)),
    };
    let path = if job.submission.direct { "direct" } else { "buffered" };
    format!("{} of {size}, {path}, depth {}", job.access.name(), job.submission.depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_marked_where_there_is_a_difference() {
        let by_seed = |values: &[f64]| values.iter().map(|v| vec![*v]).collect::<Vec<_>>();
        let column = |values: &[f64], rule| marked(&by_seed(values), rule, |v| Some(*v));
        assert_eq!(column(&[1.0, 2.0, 2.0], Best::Highest), [number("1.00"), best("2.00"), best("2.00")]);
        assert_eq!(column(&[1.0, 2.0], Best::Lowest), [best("1.00"), number("2.00")]);
        assert_eq!(
            column(&[1.001, 1.002], Best::Lowest),
            [number("1.00"), number("1.00")],
            "they look the same"
        );
        assert_eq!(column(&[7.0], Best::Highest), [number("7.00")], "one is no comparison");
        assert_eq!(
            marked(&by_seed(&[0.0, 3.0]), Best::Lowest, |v| (*v > 0.0).then_some(*v)),
            [number("-"), number("3.00")]
        );
    }

    #[test]
    fn of_several_seeds_only_a_difference_beyond_the_spread_is_marked() {
        let column =
            |a: [f64; 3], b: [f64; 3]| marked(&[a.to_vec(), b.to_vec()], Best::Highest, |v| Some(*v));
        assert_eq!(column([9.0, 10.0, 11.0], [9.5, 10.5, 11.5]), [number("10.0±25%"), number("10.5±24%")]);
        assert_eq!(column([10.0, 10.1, 10.2], [11.0, 11.1, 11.2]), [number("10.1±2%"), best("11.1±2%")]);
        assert_eq!(column([5.0; 3], [5.0; 3]), [number("5.00±0%"), number("5.00±0%")]);
    }
}
