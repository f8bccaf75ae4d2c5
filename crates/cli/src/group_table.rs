//! The comparison of groups: a paragraph per group, with what it got under each scheduler.

use fairlift_sim::group::{GoalFigures, GroupClass, GroupResult};

use crate::grid::{Cell, Grid, word};
use crate::number::short;
use crate::plan::Columns;
use crate::style::Style;
use crate::table::{plain, rows_of};

/// Most groups that have a paragraph.
pub const GROUPS_MAX: usize = 24;

/// A column: heading, unit, and its figure of a group.
type Column = (&'static str, &'static str, Box<dyn Fn(&GroupResult) -> Option<f64>>);

/// The groups of a case, if it has some, at most [`GROUPS_MAX`]; `names` are the rows' heads, at least `first` wide.
pub fn groups(
    runs: &Columns<'_>,
    names: &[String],
    bandwidth: (f64, &'static str),
    style: Style,
    first: usize,
) -> String {
    let count = runs.first().and_then(|seeds| seeds.first()).map_or(0, |run| run.groups.len());
    if count == 0 {
        return String::new();
    }
    let mut columns = columns(bandwidth);
    if runs.iter().flatten().any(|run| run.groups.iter().any(|group| group.goal.is_some())) {
        columns.extend(goal_columns());
    }
    let mut grid = Grid::default();
    let head = |text: fn(&Column) -> &'static str| {
        std::iter::once(word("")).chain(columns.iter().map(|c| word(text(c)))).collect()
    };
    grid.head(head(|c| c.0), (6, 8), "requests");
    grid.row(head(|c| c.1));
    let shown = shown(runs, count);
    for index in shown.iter().copied() {
        let by_seed = runs.iter().map(|seeds| seeds.iter().filter_map(|run| run.groups.get(index)).collect());
        let results: Vec<Vec<&GroupResult>> = by_seed.collect();
        let Some(any) = results.first().and_then(|seeds| seeds.first()) else { continue };
        grid.text(format!("{}{}", style.bold(&any.path), about(any)));
        let column = |figure: &dyn Fn(&GroupResult) -> Option<f64>| -> Vec<Cell> {
            plain(&results, |group| figure(group), short)
        };
        let figures: Vec<Vec<Cell>> = columns.iter().map(|(.., figure)| column(figure)).collect();
        rows_of(&mut grid, names, &figures);
    }
    if shown.len() < count {
        grid.text(format!(
            "{} more groups had less of the device: --output-format json and csv have all",
            count - shown.len()
        ));
    }
    grid.render(style, first)
}

/// The groups to show: all, or those that had most of the device under any scheduler, in their order.
fn shown(runs: &Columns<'_>, count: usize) -> Vec<usize> {
    let used = |index: usize| {
        let results = runs.iter().flatten().filter_map(|run| run.groups.get(index));
        results.map(|group| group.all.device_time_ns).max()
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|index| std::cmp::Reverse(used(*index)));
    order.truncate(GROUPS_MAX);
    order.sort_unstable();
    order
}

fn columns((unit, name): (f64, &'static str)) -> Vec<Column> {
    let ms = |ns: f64| Some(ns / 1e6);
    let some = |value: f64| Some(value).filter(|v| *v > 0.0);
    vec![
        ("device", "time %", Box::new(|g| g.parent.map(|_| 100.0 * g.share))),
        ("device", "s", Box::new(|g| Some(g.all.device_time_ns as f64 / 1e9))),
        ("reads", name, Box::new(move |g| some(g.per_second(512 * g.all.sectors[0]) / unit))),
        ("writes", name, Box::new(move |g| some(g.per_second(512 * g.all.sectors[1]) / unit))),
        ("merged", "bios", Box::new(move |g| some(g.all.merged as f64))),
        ("", "1/s", Box::new(|g| Some(g.per_second(g.all.requests.iter().sum())))),
        ("", "mean ms", Box::new(move |g| any(g).then(|| ms(g.all.latency.mean_ns())).flatten())),
        ("", "max ms", Box::new(move |g| any(g).then(|| ms(g.all.latency.max_ns() as f64)).flatten())),
        ("longest", "gap ms", Box::new(move |g| some(g.all.gap_longest_ns as f64 / 1e6))),
    ]
}

/// Sync requests that missed their group's latency goal, and those of them that came when the group had had its due.
fn goal_columns() -> [Column; 2] {
    let all = |goal: &GoalFigures| (goal.met + goal.missed_above_due + goal.missed_within_due).max(1) as f64;
    [
        ("missed", "goal %", Box::new(|g| g.goal.map(|goal| 100.0 * goal.missed()))),
        (
            "above",
            "due %",
            Box::new(move |g| g.goal.map(|goal| 100.0 * goal.missed_above_due as f64 / all(&goal))),
        ),
    ]
}

fn any(group: &GroupResult) -> bool {
    group.all.latency.count() > 0
}

/// ` (weight 500)`, and its class if it is not the usual one.
fn about(group: &GroupResult) -> String {
    let Some(weight) = group.weight else { return " (all of it)".to_owned() };
    let class = match group.class {
        GroupClass::Be => "",
        GroupClass::Rt => ", class rt",
        GroupClass::Idle => ", class idle",
    };
    let mut entitled = String::new();
    if group.reserve > 0 {
        entitled += &format!(", reserve {} %", group.reserve);
    }
    if let Some(goal) = &group.goal {
        entitled += &format!(", latency goal {} ms", short(goal.goal_ns as f64 / 1e6));
    }
    format!(" (weight {weight}{class}{entitled})")
}
