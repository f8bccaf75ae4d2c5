//! `--explain`: why it took as long as it did, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fairlift_core::elevator::Finding;
use fairlift_sim::anatomy::{Anatomy, CallPart, Calls, Cause, RequestStory, Share, TaskId, TaskTimes, Whom};
use fairlift_sim::group::GroupResult;
use fairlift_sim::result::RunResult;

use crate::grid::{Grid, WIDTH, number, word, wrapped};
use crate::group_table::GROUPS_MAX;
use crate::number::{bytes, count, short};
use crate::style::Style;

/// Parts of a call below this share of it are added up in one line.
const SHARE_MIN: f64 = 0.001;
/// Causes named in the line of a slow request.
const CAUSES_MAX: usize = 5;

/// What was recorded of a run; nothing if nothing was.
pub fn explanation(run: &RunResult, style: Style) -> String {
    let Some(anatomy) = &run.explanation else { return String::new() };
    let teller = Teller { anatomy, elevator: run.scheduler.split(['@', ':']).next().unwrap_or_default() };
    let mut blocks: Vec<String> = anatomy.calls.iter().map(|calls| teller.calls(calls, style)).collect();
    blocks.push(teller.device(style));
    blocks.push(found(&run.found, style));
    blocks.push(teller.requests(style));
    blocks.push(teller.groups(&run.groups, style));
    blocks.push(teller.tasks(style));
    blocks.push(teller.slowest(style));
    blocks.retain(|block| !block.is_empty());
    format!(
        "{}\n\n{}",
        style.bold(&format!("Why, under {} on {}", run.scheduler, run.device)),
        blocks.join("\n")
    )
}

/// What the elevator had found out about the device by the end.
fn found(found: &[Finding], style: Style) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.row(vec![word(style.bold("what the scheduler measured").as_str()), word(""), word("")]);
    for Finding { what, sectors, value, unit } in found {
        let size = match sectors {
            0 => String::new(),
            sectors => format!(" of {}", bytes(u64::from(*sectors) * 512)),
        };
        let value = short(*value as f64 / unit.scale() as f64);
        grid.row(vec![word(format!("  {what}{size}")), number(value), word(unit.label())]);
    }
    grid.render(style, 0)
}

/// Milliseconds.
fn ms(ns: u64) -> String {
    short(ns as f64 / 1e6)
}

fn percent(part: u64, of: u64) -> String {
    format!("{:.1}", 100.0 * part as f64 / of.max(1) as f64)
}

/// Requests and where their time went, added up.
#[derive(Default)]
struct Waits {
    requests: u64,
    ns: u64,
    /// Slot, plugged, behind own and others', idled for own and others', other, queued inside the drive, served by it.
    parts: [u64; 9],
}

impl Waits {
    /// `own`: does it belong together with those whose requests these are?
    fn add(&mut self, requests: u64, ns: u64, causes: &[Share], own: impl Fn(Option<TaskId>) -> bool) {
        self.requests += requests;
        self.ns += ns;
        for share in causes {
            let column = match share.cause {
                Cause::Slot => 0,
                Cause::Plugged => 1,
                Cause::Behind(other) => 3 - usize::from(own(other)),
                Cause::Idling(other) => 5 - usize::from(own(other)),
                Cause::Inside(_) => 7,
                Cause::Device => 8,
                _ => 6,
            };
            self.parts[column] += share.ns;
        }
    }

    fn row(&self, grid: &mut Grid, name: String) {
        let mut row =
            vec![word(name), number(self.requests.to_string()), number(ms(self.ns / self.requests.max(1)))];
        row.extend(self.parts.map(|ns| number(percent(ns, self.ns))));
        grid.row(row);
    }
}

/// The head of a table of [`Waits`].
fn waits_grid(title: &str, style: Style) -> Grid {
    let mut grid = Grid::default();
    let heads = ["", "requests", "mean", "slot", "plugged", "behind", "behind", "idled for", "idled for"];
    grid.row(heads.into_iter().chain(["other", "in drive", "served"]).map(word).collect());
    let units = ["", "ms", "%", "%", "own, %", "others, %", "own, %", "others, %", "%", "%", "%"];
    grid.row(std::iter::once(style.bold(title).as_str()).chain(units).map(word).collect());
    grid
}

struct Teller<'a> {
    anatomy: &'a Anatomy,
    elevator: &'a str,
}

impl Teller<'_> {
    // ---- calls -----------------------------------------------------------------------------------------------------------

    fn calls(&self, calls: &Calls, style: Style) -> String {
        let mut grid = Grid::default();
        let title = format!("{}: {} x {}", calls.name, calls.count, calls.call.words());
        grid.text(format!(
            "{}, mean {} ms, longest {} ms, waiting for the device {} times each",
            style.bold(&title),
            ms(calls.total_ns / calls.count.max(1)),
            ms(calls.max_ns),
            short(calls.round_trips as f64 / calls.count.max(1) as f64),
        ));
        grid.row(
            ["  round trip, task: where its time went", "in so many", "mean of", "share"].map(word).into(),
        );
        grid.row(["", "calls", "all, ms", "%"].map(word).into());
        let mut parts: Vec<&CallPart> = calls.parts.iter().collect();
        parts.sort_by_key(|part| (part.step, std::cmp::Reverse(part.ns)));
        let small = |part: &&CallPart| (part.ns as f64) < SHARE_MIN * calls.total_ns as f64;
        let row = |grid: &mut Grid, text: String, of: Option<u64>, ns: u64| {
            let of = number(of.map_or("-".to_owned(), |n| n.to_string()));
            let each = number(format!("{:.3}", ns as f64 / 1e6 / calls.count.max(1) as f64));
            grid.row(vec![word(text), of, each, number(percent(ns, calls.total_ns))]);
        };
        for part in parts.iter().filter(|part| !small(part)) {
            row(&mut grid, self.call_part(part, &calls.name), Some(part.calls), part.ns);
        }
        let rest: u64 = parts.iter().filter(|part| small(part)).map(|part| part.ns).sum();
        if rest > 0 {
            row(&mut grid, "  the rest".to_owned(), None, rest);
        }
        grid.render(style, 0)
    }

    /// `  journal body, jbd2: cfq idles for fs_mark itself`.
    fn call_part(&self, part: &CallPart, caller: &str) -> String {
        let by = match &part.by {
            Whom::Caller | Whom::Nobody => String::new(),
            Whom::Sibling => format!(", another {caller}"),
            Whom::Named(name) => format!(", {name}"),
        };
        let whom = match &part.whom {
            Whom::Caller => format!("{caller} itself"),
            Whom::Sibling => format!("another {caller}"),
            Whom::Named(name) => name.clone(),
            Whom::Nobody => "no task".to_owned(),
        };
        format!("  {}{by}: {}", part.step.words(), self.cause(part.cause, &whom))
    }

    fn cause(&self, cause: Cause, whom: &str) -> String {
        cause.words(whom, self.elevator)
    }

    /// A cause, with the name of the task in it.
    fn named(&self, cause: Cause) -> String {
        self.anatomy.told(cause, self.elevator)
    }

    // ---- device ----------------------------------------------------------------------------------------------------------

    fn device(&self, style: Style) -> String {
        let all = self.anatomy.duration_ns;
        let mut by_text: BTreeMap<String, u64> = BTreeMap::new();
        let mut rest = all;
        for share in &self.anatomy.device.causes {
            let text = match share.cause {
                Cause::Behind(task) => format!("  works for {}", self.anatomy.name(task)),
                Cause::Plugged => "  idle: the queue is plugged".to_owned(),
                Cause::Held => "  idle, though requests are queued".to_owned(),
                Cause::Flush => "  flushes its cache".to_owned(),
                other => format!("  waits: {}", self.named(other)),
            };
            *by_text.entry(text).or_default() += share.ns;
            rest -= share.ns.min(rest);
        }
        by_text.insert("  has nothing to do".to_owned(), rest);
        let mut rows: Vec<(String, u64)> = by_text.into_iter().collect();
        rows.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let mut grid = Grid::default();
        grid.row([style.bold("the device").as_str(), "s", "%"].map(word).into());
        for (text, ns) in rows {
            grid.row(vec![word(text), number(format!("{:.3}", ns as f64 / 1e9)), number(percent(ns, all))]);
        }
        grid.render(Style::Plain, 0)
    }

    // ---- contexts --------------------------------------------------------------------------------------------------------

    /// Tasks of one name together, in the order of the first of each.
    fn by_name(&self, used: impl Fn(&TaskTimes) -> bool) -> Vec<(&str, Vec<&TaskTimes>)> {
        let mut names: Vec<(&str, Vec<&TaskTimes>)> = Vec::new();
        for task in self.anatomy.tasks.iter().filter(|task| used(task)) {
            match names.iter_mut().find(|(name, _)| *name == task.name) {
                Some((_, tasks)) => tasks.push(task),
                None => names.push((&task.name, vec![task])),
            }
        }
        names
    }

    fn requests(&self, style: Style) -> String {
        let names = self.by_name(|task| task.requests > 0);
        if names.is_empty() {
            return String::new();
        }
        let mut grid = waits_grid("requests of", style);
        for (name, tasks) in names {
            let mut waits = Waits::default();
            for task in &tasks {
                let own = |other| other == Some(task.task);
                waits.add(task.requests, task.request_ns, &task.request_causes, own);
            }
            waits.row(&mut grid, who(name, tasks.len()));
        }
        grid.render(Style::Plain, 0)
    }

    /// Each group with the groups below it: its own is what those do.
    fn groups(&self, groups: &[GroupResult], style: Style) -> String {
        if groups.len() < 2 || self.anatomy.groups.len() != groups.len() {
            return String::new();
        }
        let mut rows: Vec<(usize, Waits)> =
            (0..groups.len()).map(|place| (place, self.waits_of_group(groups, place))).collect();
        rows.sort_by_key(|(place, waits)| (*place > 0, std::cmp::Reverse(waits.ns)));
        rows.retain(|(_, waits)| waits.requests > 0);
        rows.truncate(GROUPS_MAX);
        rows.sort_by_key(|(place, _)| *place);
        let mut grid = waits_grid("requests of group", style);
        for (place, waits) in rows {
            waits.row(&mut grid, format!("  {}", groups[place].path));
        }
        let whys: String = groups.iter().filter_map(why_served).collect();
        format!("{}{whys}", grid.render(Style::Plain, 0))
    }

    fn waits_of_group(&self, groups: &[GroupResult], place: usize) -> Waits {
        let mut waits = Waits::default();
        // Parents stand before their children.
        let mut is_within = vec![false; groups.len()];
        for (other, group) in groups.iter().enumerate().skip(place) {
            is_within[other] = other == place || group.parent.is_some_and(|parent| is_within[parent]);
        }
        for (times, _) in self.anatomy.groups.iter().zip(&is_within).filter(|(_, within)| **within) {
            let own = |other| self.anatomy.group(other).is_some_and(|of| is_within[of]);
            waits.add(times.requests, times.request_ns, &times.request_causes, own);
        }
        waits
    }

    fn tasks(&self, style: Style) -> String {
        let names = self.by_name(|task| task.waits.iter().any(|w| w.cause != Cause::Unasked));
        let mut grid = Grid::default();
        let title = style.bold("tasks' time");
        grid.row(
            [title.as_str(), "computing", "I/O", "slot", "others", "paused", "asleep", "nothing to do"]
                .map(word)
                .into(),
        );
        grid.row(["", "s", "s", "s", "s", "s", "s", "s"].map(word).into());
        for (name, tasks) in &names {
            let sum = |wanted: fn(Cause) -> bool| {
                let waits = tasks.iter().flat_map(|t| &t.waits);
                let ns: u64 = waits.filter(|w: &&Share| wanted(w.cause)).map(|w| w.ns).sum();
                number(format!("{:.3}", ns as f64 / 1e9))
            };
            grid.row(vec![
                word(who(name, tasks.len())),
                sum(|c| matches!(c, Cause::Cpu | Cause::Switch)),
                sum(|c| c == Cause::Device),
                sum(|c| c == Cause::Slot),
                sum(|c| matches!(c, Cause::Task(_) | Cause::Handles)),
                sum(|c| matches!(c, Cause::Throttle | Cause::Congestion | Cause::Batching)),
                sum(|c| c == Cause::Sleep),
                sum(|c| c == Cause::Unasked),
            ]);
        }
        if names.is_empty() { String::new() } else { grid.render(Style::Plain, 0) }
    }

    // ---- requests --------------------------------------------------------------------------------------------------------

    fn slowest(&self, style: Style) -> String {
        if self.anatomy.slowest.is_empty() {
            return String::new();
        }
        let mut out = format!("{}\n", style.bold("the slowest requests"));
        for story in &self.anatomy.slowest {
            for (number, line) in wrapped(&self.request(story), WIDTH - 4).iter().enumerate() {
                let _ = writeln!(out, "{}{line}", if number == 0 { "  " } else { "    " });
            }
        }
        out
    }

    fn request(&self, story: &RequestStory) -> String {
        let mut causes: BTreeMap<Cause, u64> = BTreeMap::new();
        for span in &story.spans {
            *causes.entry(span.cause).or_default() += span.end_ns - span.start_ns;
        }
        let mut by_text: BTreeMap<String, u64> = BTreeMap::new();
        for (cause, ns) in causes {
            *by_text.entry(self.named(cause)).or_default() += ns;
        }
        let mut causes: Vec<(String, u64)> = by_text.into_iter().collect();
        causes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let rest: u64 = causes.iter().skip(CAUSES_MAX).map(|(_, ns)| ns).sum();
        causes.truncate(CAUSES_MAX);
        if rest > 0 {
            causes.push(("the rest".to_owned(), rest));
        }
        let told: Vec<String> = causes.iter().map(|(text, ns)| format!("{text} {}", ms(*ns))).collect();
        format!(
            "{} ms: {} {} of {} at sector {}, by {}, {:.4} s into the run: {}",
            ms(story.took_ns()),
            if story.sync { "sync" } else { "async" },
            story.op,
            bytes(u64::from(story.sectors) * 512),
            story.sector,
            self.anatomy.name(story.task),
            story.asked_ns as f64 / 1e9,
            told.join(", ")
        )
    }
}

/// `reader (4 tasks)`.
fn who(name: &str, tasks: usize) -> String {
    if tasks == 1 {
        format!("  {name}")
    } else {
        format!("  {name} ({})", count(tasks as u64, "task", "tasks"))
    }
}

/// Why a group's own requests went when they went, and what became of its latency goal; `None` unless a group has a reserve or a goal.
fn why_served(group: &GroupResult) -> Option<String> {
    let [by_weight, by_reserve, by_goal] = group.turns?;
    let mut text = String::new();
    if by_weight + by_reserve + by_goal > 0 {
        text += &format!(
            "{}: {by_weight} requests in turns by weight, {by_reserve} by a reserve, {by_goal} by its latency goal\n",
            group.path
        );
    }
    if let Some(goal) = &group.goal {
        let missed = goal.missed_above_due + goal.missed_within_due;
        text += &format!(
            "{}: {missed} of {} sync requests missed the latency goal of {} ms: {} after the group had had its due, {} within it (the device or a turn took longer)\n",
            group.path,
            goal.met + missed,
            goal.goal_ns as f64 / 1e6,
            goal.missed_above_due,
            goal.missed_within_due,
        );
    }
    Some(text)
}
