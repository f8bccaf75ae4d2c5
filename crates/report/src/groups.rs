//! Each group's share of the device as the run went on, beside the share its weight entitles it to.

use std::ops::Range;

use fairlift_sim::group::{GroupClass, GroupOverTime, GroupResult};
use fairlift_sim::result::RunResult;

use crate::canvas::DUE;
use crate::chart::{Axis, Chart, Line, Scale, united};
use crate::curves::{Curve, Figure, JOBS_MAX, file_name, lines_over_time, title};
use crate::report::Column;
use crate::unit;
use crate::windows::windows;

/// A figure for each group but the root; at most [`JOBS_MAX`], of those that had most of the device.
pub(crate) fn shares(case: usize, label: &str, columns: &[Column<'_>]) -> Vec<Figure> {
    let histories: Vec<Vec<Stretch<'_>>> =
        columns.iter().map(|column| history(&column.first().groups, column.first().duration_ns)).collect();
    shown(columns).into_iter().filter_map(|group| share(case, label, group, columns, &histories)).collect()
}

/// The share of the device's working time that was due to a group over the whole run, 0 to 1; `None`: nothing was recorded.
pub(crate) fn due(run: &RunResult, group: usize) -> Option<f64> {
    let history = history(&run.groups, run.duration_ns);
    let worked = |stretch: &Stretch<'_>| stretch.whole.device_ns[0] as f64;
    let all: f64 = history.iter().map(worked).sum();
    let due: f64 = history.iter().map(|stretch| worked(stretch) * stretch.whole.due(group)).sum();
    (all > 0.0).then(|| due / all)
}

/// The groups that are shown, by their places.
pub(crate) fn shown(columns: &[Column<'_>]) -> Vec<usize> {
    let runs = || columns.iter().map(Column::first);
    let count = runs().next().map_or(0, |run| run.groups.len());
    let used = |group: usize| runs().filter_map(|r| r.groups.get(group)).map(|g| g.all.device_time_ns).max();
    let mut kept: Vec<usize> = (1..count).filter(|group| used(*group) > Some(0)).collect();
    kept.sort_by_key(|group| std::cmp::Reverse(used(*group)));
    kept.truncate(JOBS_MAX);
    kept.sort_unstable();
    kept
}

fn share(
    case: usize,
    label: &str,
    group: usize,
    columns: &[Column<'_>],
    histories: &[Vec<Stretch<'_>>],
) -> Option<Figure> {
    let path = columns.first()?.first().groups.get(group)?.path.as_str();
    let mut curves = Vec::new();
    let mut due = Vec::new();
    for (column, history) in columns.iter().zip(histories) {
        let at: Vec<&Stretch<'_>> = history.iter().filter(|stretch| stretch.whole.device_ns[0] > 0).collect();
        if at.len() < 2 {
            continue;
        }
        let points = |value: &dyn Fn(&Interval<'_>) -> f64| -> Vec<(f64, f64)> {
            at.iter().map(|stretch| (stretch.whole.middle_s, 100.0 * value(&stretch.whole))).collect()
        };
        let band = at.iter().map(|stretch| stretch.band(group)).collect();
        curves.push((column, Curve { points: points(&|interval| interval.had(group)), band }));
        due.push(Line {
            label: column.label.clone(),
            points: points(&|interval| interval.due(group)),
            band: Vec::new(),
            colour: column.at,
            dashed: true,
            values: Vec::new(),
            at: Vec::new(),
        });
    }
    let (mut lines, stops) = lines_over_time(curves, 1.0, unit::percent);
    if lines.is_empty() {
        return None;
    }
    let panels = lines.len() > 1;
    let mut due = told(united(due));
    for line in &mut due {
        let value = |x: f64| line.points.iter().find(|(at, _)| (at - x).abs() < 1e-9).copied();
        line.at = stops.places.iter().map(|(x, _)| value(*x)).collect();
        line.values =
            line.at.iter().map(|at| at.map_or_else(String::new, |(_, due)| unit::percent(due))).collect();
    }
    lines.extend(due);
    Some(Figure {
        name: file_name(&["share", label, "group", path.trim_start_matches('/')]),
        title: title("Share of device time", label, &format!("group {path}")),
        caption: "The group's share of the device's working time, with the groups below it, and the lowest and highest within \
                  each stretch; dashed: its due by weight among those that had requests waiting or in the device for at least half of it.",
        case,
        chart: Chart {
            head: Default::default(),
            x: Axis {
                label: "time since the run's start".into(),
                scale: Scale::Linear,
                write: unit::seconds,
            },
            y: Axis { label: "share of device time".into(), scale: Scale::Linear, write: unit::percent },
            y_includes: (0.0, 100.0),
            lines,
            panels,
            stops,
        },
    })
}

/// The lines of what was due: a single one holds for all schedulers, of several each is its scheduler's.
fn told(mut due: Vec<Line>) -> Vec<Line> {
    let is_one = due.len() == 1;
    for line in &mut due {
        if is_one {
            line.label = "due by weight".to_owned();
            line.colour = DUE;
        } else {
            line.label = format!("due, {}", line.label);
        }
    }
    due
}

/// A stretch of the run, and its parts.
struct Stretch<'a> {
    whole: Interval<'a>,
    parts: Vec<Interval<'a>>,
}

impl Stretch<'_> {
    /// The lowest and the highest share that a group had within it, percent.
    fn band(&self, group: usize) -> (f64, f64) {
        let had = 100.0 * self.whole.had(group);
        let parts =
            self.parts.iter().filter(|part| part.device_ns[0] > 0).map(|part| 100.0 * part.had(group));
        parts.fold((had, had), |(low, high), share| (low.min(share), high.max(share)))
    }
}

/// What the groups of a run had and asked for in a stretch of it, by their places.
struct Interval<'a> {
    groups: &'a [GroupResult],
    /// Its middle, seconds since the run's start.
    middle_s: f64,
    /// The device's time, with the groups below.
    device_ns: Vec<u64>,
    /// Its own tasks had something to be done for at least half of the time.
    asks_itself: Vec<bool>,
    /// They, or those of a group below.
    asks: Vec<bool>,
}

/// The run in stretches; none if nothing was recorded.
fn history(groups: &[GroupResult], duration_ns: u64) -> Vec<Stretch<'_>> {
    let over_time: Option<Vec<&GroupOverTime>> =
        groups.iter().map(|group| group.over_time.as_ref()).collect();
    let Some(over_time) = over_time.filter(|all| !all.is_empty()) else { return Vec::new() };
    let count = duration_ns.div_ceil(over_time[0].interval_ns) as usize;
    let interval = |at: Range<usize>| Interval::new(groups, &over_time, at);
    windows(count)
        .into_iter()
        .map(|window| Stretch {
            whole: interval(window.whole),
            parts: window.parts.into_iter().map(interval).collect(),
        })
        .collect()
}

impl Interval<'_> {
    /// Of those that were recorded, the ones `at`.
    fn new<'a>(groups: &'a [GroupResult], over_time: &[&GroupOverTime], at: Range<usize>) -> Interval<'a> {
        let interval_ns = over_time[0].interval_ns;
        let sum = |samples: &[u64]| samples.iter().take(at.end).skip(at.start).sum::<u64>();
        let half_ns = at.len() as u64 * interval_ns / 2;
        let mut device_ns: Vec<u64> = over_time.iter().map(|over| sum(&over.device_ns)).collect();
        let asks_itself: Vec<bool> = over_time.iter().map(|over| sum(&over.asking_ns) >= half_ns).collect();
        let mut asks = asks_itself.clone();
        // Children stand behind their parents.
        for group in (0..groups.len()).rev() {
            if let Some(parent) = groups[group].parent {
                device_ns[parent] += device_ns[group];
                asks[parent] |= asks[group];
            }
        }
        let middle_s = (at.start + at.end) as f64 * interval_ns as f64 / 2e9;
        Interval { groups, middle_s, device_ns, asks_itself, asks }
    }

    /// The share of the device's working time that a group had, 0 to 1.
    fn had(&self, group: usize) -> f64 {
        self.device_ns[group] as f64 / self.device_ns[0].max(1) as f64
    }

    /// The part that was its due: at each level its weight beside those of its siblings and of its parent's own tasks, of all that
    /// asked for the device. Classes are strict: who asks in a better one leaves nothing.
    fn due(&self, group: usize) -> f64 {
        let path = std::iter::successors(Some(group), |at| self.groups[*at].parent);
        path.map(|at| if self.asks[group] { self.due_of_parent(at) } else { 0.0 }).product()
    }

    /// Of what its parent has; the root has everything.
    fn due_of_parent(&self, group: usize) -> f64 {
        let Some(parent) = self.groups[group].parent else { return 1.0 };
        let siblings =
            (0..self.groups.len()).filter(|i| self.groups[*i].parent == Some(parent) && self.asks[*i]);
        let of = |i: usize| (rank(self.groups[i].class), self.groups[i].weight.unwrap_or(0));
        let own_tasks =
            self.asks_itself[parent].then(|| (rank(GroupClass::Be), self.groups[parent].leaf_weight));
        let asking: Vec<(u8, u32)> = siblings.map(of).chain(own_tasks).collect();
        let (class, weight) = of(group);
        if asking.iter().any(|(other, _)| *other < class) {
            return 0.0;
        }
        let all: u32 = asking.iter().filter(|(other, _)| *other == class).map(|(_, weight)| weight).sum();
        f64::from(weight) / f64::from(all.max(weight))
    }
}

/// Better classes come first.
const fn rank(class: GroupClass) -> u8 {
    match class {
        GroupClass::Rt => 0,
        GroupClass::Be => 1,
        GroupClass::Idle => 2,
    }
}

#[cfg(test)]
mod tests {
    use fairlift_sim::group::GroupFigures;

    use super::*;

    /// Two intervals of a second; in the first all ask, in the second `/b` does not.
    fn groups() -> Vec<GroupResult> {
        let group = |path: &str, parent, weight, device_ns: [u64; 2], asking_ns: [u64; 2]| GroupResult {
            path: path.to_owned(),
            parent,
            weight,
            leaf_weight: 100,
            class: GroupClass::Be,
            reserve: 0,
            goal: None,
            turns: None,
            own: GroupFigures::default(),
            all: GroupFigures::default(),
            share: 1.0,
            counted_ns: 2_000_000_000,
            over_time: Some(GroupOverTime {
                interval_ns: 1_000_000_000,
                device_ns: device_ns.map(|ms| ms * 1_000_000).into(),
                asking_ns: asking_ns.map(|ms| ms * 1_000_000).into(),
            }),
        };
        vec![
            group("/", None, None, [100, 0], [900, 0]),
            group("/a", Some(0), Some(300), [0, 0], [0, 0]),
            group("/b", Some(0), Some(100), [100, 0], [1000, 100]),
            group("/a/x", Some(1), Some(100), [150, 600], [1000, 1000]),
            group("/a/y", Some(1), Some(200), [150, 200], [1000, 1000]),
        ]
    }

    #[test]
    fn what_is_due_is_the_product_of_the_weights_among_those_that_ask() {
        let groups = groups();
        let history = history(&groups, 2_000_000_000);
        assert_eq!(history[0].whole.due(1), 300.0 / 500.0, "beside /b and the root's own tasks");
        assert_eq!(history[0].whole.due(3), 0.6 * (100.0 / 300.0));
        assert_eq!(
            [history[1].whole.due(1), history[1].whole.due(2)],
            [1.0, 0.0],
            "/b had work for a tenth of the second second"
        );
        assert_eq!(history[1].whole.due(4), 200.0 / 300.0);
    }

    #[test]
    fn a_better_class_has_everything_while_it_asks() {
        let mut groups = groups();
        groups[2].class = GroupClass::Rt;
        let history = history(&groups, 2_000_000_000);
        assert_eq!([history[0].whole.due(1), history[0].whole.due(2)], [0.0, 1.0]);
        assert_eq!(history[1].whole.due(1), 1.0);
    }

    #[test]
    fn a_group_had_what_those_below_it_had() {
        let groups = groups();
        let had: Vec<f64> =
            history(&groups, 2_000_000_000).iter().map(|stretch| stretch.whole.had(1)).collect();
        assert_eq!(had, [0.6, 1.0]);
    }

    #[test]
    fn equal_lines_of_what_is_due_are_one() {
        let line = |label: &str, value| Line {
            label: label.to_owned(),
            points: vec![(0.0, value), (1.0, value)],
            band: Vec::new(),
            colour: 0,
            dashed: true,
            values: Vec::new(),
            at: Vec::new(),
        };
        let labels = |lines| told(united(lines)).into_iter().map(|line| line.label).collect::<Vec<_>>();
        assert_eq!(labels(vec![line("noop", 50.0), line("cfq", 50.0)]), ["due by weight"]);
        assert_eq!(labels(vec![line("noop", 50.0), line("cfq", 60.0)]), ["due, noop", "due, cfq"]);
    }
}
