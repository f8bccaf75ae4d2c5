//! A job under every scheduler in one picture: latency, bandwidth, and the share of the device that it had and was due.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::stats::Latency;

use crate::canvas::{
    Anchor, Area, Canvas, Colour, DUE, Font, Series, Stroke, Svg, shortened, text_width, wrapped,
};
use crate::chart::{BOLD, BUTTON, FINE, PLAIN, SMALL, TEXT, WIDER, label_lines};
use crate::curves::title;
use crate::estimate::Estimate;
use crate::report::{Column, Report};
use crate::{groups, ticks, unit};

const MARGIN: f64 = 12.0;
const LINE: f64 = 17.0;
/// The title's two lines.
const HEAD: f64 = 48.0;
/// The names of what is drawn, above it, and the axis below.
const NAMES: f64 = 24.0;
const AXIS: f64 = 22.0;
/// Height of a row of two lines of text; names may take one more.
const ROW: f64 = 40.0;
const NAME_LINES: usize = 4;
const GAP: f64 = 16.0;
/// Room for the figures in words, beside what is drawn.
const WORDS: f64 = 84.0;
/// Left of a row's name: its colour.
const NAME_INDENT: f64 = 10.0;
/// Latencies that differ by more lie on a logarithmic axis.
const WIDE: f64 = 20.0;

/// A job's picture.
pub(crate) struct JobChart {
    /// What it shows.
    pub title: String,
    conditions: String,
    rows: Vec<Row>,
    parts: Vec<Part>,
}

/// A scheduler's row.
struct Row {
    label: String,
    at: usize,
    chosen: bool,
}

/// One of the quantities: what is drawn for each row.
struct Part {
    name: String,
    write: fn(f64) -> String,
    logarithmic: bool,
    /// Marks of the axis are round in this.
    unit: f64,
    /// The axis reaches at least so far.
    to: f64,
    marks: Vec<Option<Mark>>,
}

/// What is drawn in a row.
struct Mark {
    figure: Estimate,
    /// A line from here to there through the figure's dot, instead of a bar.
    reach: Option<(f64, f64)>,
    /// What would be due.
    due: Option<f64>,
    words: String,
    more: String,
}

impl JobChart {
    /// Of a job in a case; `None`: it did nothing.
    pub(crate) fn new(
        report: &Report<'_>,
        case: usize,
        columns: &[Column<'_>],
        job: &str,
    ) -> Option<JobChart> {
        let results: Vec<Vec<JobResult>> = columns.iter().map(|column| column.job(job)).collect();
        if results.iter().flatten().all(|result| result.ios() == 0) {
            return None;
        }
        let label = report.case_name(case);
        let latency = latency(report.percentile, &results);
        let bandwidth = bandwidth(&results);
        let share = share(columns, job);
        let names: Vec<&str> =
            [&latency, &bandwidth].into_iter().chain(share.as_ref()).map(|part| part.name.as_str()).collect();
        Some(JobChart {
            title: title(&names.join(", "), label, job),
            conditions: report.conditions(case),
            rows: columns
                .iter()
                .map(|column| Row { label: column.label.clone(), at: column.at, chosen: column.chosen })
                .collect(),
            parts: [latency, bandwidth].into_iter().chain(share).collect(),
        })
    }

    /// What the picture says, for those who do not see it.
    pub(crate) fn words(&self) -> String {
        let row = |(at, row): (usize, &Row)| {
            let words = self.parts.iter().filter_map(|part| {
                let mark = part.marks[at].as_ref()?;
                Some(format!("{} ({})", mark.words, mark.more))
            });
            format!("{}: {}", row.label, words.collect::<Vec<_>>().join(", "))
        };
        self.rows.iter().enumerate().map(row).collect::<Vec<_>>().join("; ")
    }

    /// The lines of a row's name.
    fn name(&self, row: &Row, width: f64) -> Vec<String> {
        let mut lines = label_lines(&row.label, width - NAME_INDENT);
        if lines.len() > NAME_LINES {
            let rest = lines.split_off(NAME_LINES - 1).join(" ");
            lines.push(shortened(&rest, TEXT, width - NAME_INDENT));
        }
        lines
    }

    /// Height of a row where names have so much room.
    fn row(&self, width: f64) -> f64 {
        let lines = self.rows.iter().map(|row| self.name(row, width).len()).max().unwrap_or(1);
        ROW.max((lines as f64 + 0.4) * LINE)
    }

    /// The quantities beside each other.
    pub(crate) fn wide(&self) -> String {
        const WIDTH: f64 = 740.0;
        const LABELS: f64 = 160.0;
        let room = (WIDTH - 2.0 * MARGIN - LABELS - GAP * self.parts.len() as f64) / self.parts.len() as f64;
        let height = self.rows.len() as f64 * self.row(LABELS);
        let head = self.head_height(WIDTH);
        let mut svg = Svg::new((WIDTH, head + NAMES + height + AXIS + MARGIN / 2.0));
        self.head(&mut svg, WIDTH);
        let top = head + NAMES;
        self.labels(&mut svg, top, LABELS);
        for (at, part) in self.parts.iter().enumerate() {
            let left = MARGIN + LABELS + GAP + at as f64 * (room + GAP);
            self.part(&mut svg, part, Area { left, top, width: room, height });
        }
        svg.inline()
    }

    /// The quantities below each other, for a telephone.
    pub(crate) fn narrow(&self) -> String {
        const WIDTH: f64 = 390.0;
        const LABELS: f64 = 112.0;
        let height = self.rows.len() as f64 * self.row(LABELS);
        let block = NAMES + height + AXIS + GAP / 2.0;
        let head = self.head_height(WIDTH);
        let mut svg = Svg::new((WIDTH, head + self.parts.len() as f64 * block + MARGIN));
        self.head(&mut svg, WIDTH);
        for (at, part) in self.parts.iter().enumerate() {
            let top = head + NAMES + at as f64 * block;
            self.labels(&mut svg, top, LABELS);
            let left = MARGIN + LABELS + GAP / 2.0;
            self.part(&mut svg, part, Area { left, top, width: WIDTH - left - MARGIN, height });
        }
        svg.inline()
    }

    fn head(&self, canvas: &mut Svg, width: f64) {
        let width = width - 2.0 * MARGIN;
        canvas.text(
            (MARGIN, LINE * 0.8),
            Anchor::Start,
            BOLD,
            Colour::Ink,
            &shortened(&self.title, TEXT * WIDER, width - BUTTON),
        );
        for (at, line) in self.condition_lines(width).iter().enumerate() {
            canvas.text((MARGIN, LINE * (1.9 + at as f64)), Anchor::Start, FINE, Colour::Soft, line);
        }
    }

    /// The conditions under the title, in as many lines as they need in `width` pixels.
    fn condition_lines(&self, width: f64) -> Vec<String> {
        wrapped(&self.conditions, SMALL, width)
    }

    /// Height of title and conditions in a picture of `width` pixels.
    fn head_height(&self, width: f64) -> f64 {
        HEAD + LINE * (self.condition_lines(width - 2.0 * MARGIN).len() as f64 - 1.0)
    }

    fn labels(&self, canvas: &mut Svg, top: f64, width: f64) {
        let row_height = self.row(width);
        for (at, row) in self.rows.iter().enumerate() {
            canvas.begin_key(row.at, &row.label);
            let middle = top + (at as f64 + 0.5) * row_height;
            let lines = self.name(row, width);
            let first = middle - (lines.len() as f64 - 1.0) * LINE / 2.0;
            let font = Font { bold: row.chosen, ..PLAIN };
            for (number, line) in lines.iter().enumerate() {
                canvas.text(
                    (MARGIN + NAME_INDENT, first + number as f64 * LINE),
                    Anchor::Start,
                    font,
                    Colour::Ink,
                    line,
                );
            }
            let height = row_height - 10.0;
            canvas.bar(
                Area { left: MARGIN, top: middle - height / 2.0, width: 4.0, height },
                Colour::of_column(row.at),
            );
            canvas.end();
        }
    }

    fn part(&self, canvas: &mut Svg, part: &Part, area: Area) {
        let plot = Area { width: area.width - WORDS, ..area };
        canvas.text(
            (area.left, area.top - NAMES / 2.0),
            Anchor::Start,
            BOLD,
            Colour::Ink,
            &shortened(&part.name, TEXT * WIDER, area.width),
        );
        let range = part.range();
        let place = |value: f64| {
            let value = if part.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
            plot.left + ((value - range.0) / (range.1 - range.0)).clamp(0.0, 1.0) * plot.width
        };
        let bottom = area.bottom();
        let mut free = f64::NEG_INFINITY;
        for (value, text) in part.ticks(range) {
            let (at, half) = (place(value), text_width(&text, SMALL) / 2.0);
            if at - half > free {
                canvas.line((at, area.top), (at, bottom), Colour::Rule);
                canvas.text((at, bottom + AXIS / 2.0), Anchor::Middle, FINE, Colour::Soft, &text);
                free = at + half + 8.0;
            }
        }
        let row_height = area.height / self.rows.len() as f64;
        for (at, (row, mark)) in self.rows.iter().zip(&part.marks).enumerate() {
            let Some(mark) = mark else { continue };
            let middle = area.top + (at as f64 + 0.5) * row_height;
            let values = [format!("{} ({})", mark.words, mark.more)];
            canvas.begin(&Series { name: &row.label, values: &values, column: row.at, places: Vec::new() });
            mark.draw(canvas, &place, (plot.left, middle), Colour::of_column(row.at));
            let left = plot.right() + 10.0;
            canvas.text(
                (left, middle - LINE * 0.45),
                Anchor::Start,
                Font { bold: row.chosen, ..PLAIN },
                Colour::Ink,
                &mark.words,
            );
            canvas.text(
                (left, middle + LINE * 0.5),
                Anchor::Start,
                Font { size: SMALL - 1.0, bold: false },
                Colour::Soft,
                &mark.more,
            );
            canvas.end();
        }
        canvas.line((plot.left, area.top), (plot.left, bottom), Colour::Soft);
    }
}

impl Mark {
    fn draw(
        &self,
        canvas: &mut Svg,
        place: &impl Fn(f64) -> f64,
        (left, middle): (f64, f64),
        colour: Colour,
    ) {
        const HEIGHT: f64 = ROW * 0.42;
        let at = place(self.figure.value);
        match self.reach {
            Some((from, to)) => {
                canvas.path(&[(place(from), middle), (place(to), middle)], Stroke::Solid(3.0), colour);
                for end in [from, to] {
                    canvas.path(
                        &[(place(end), middle - 4.0), (place(end), middle + 4.0)],
                        Stroke::Solid(2.0),
                        colour,
                    );
                }
                canvas.dot((at, middle), 6.0, colour);
            }
            None => canvas.bar(
                Area { left, top: middle - HEIGHT / 2.0, width: (at - left).max(1.0), height: HEIGHT },
                colour,
            ),
        }
        if self.figure.seeds {
            let (low, high) = (place(self.figure.low), place(self.figure.high));
            let y = middle + HEIGHT / 2.0 + 3.0;
            canvas.path(
                &[(low, y - 3.0), (low, y), (high, y), (high, y - 3.0)],
                Stroke::Solid(1.0),
                Colour::Ink,
            );
        }
        if let Some(due) = self.due {
            let x = place(due);
            canvas.path(
                &[(x, middle - ROW * 0.36), (x, middle + ROW * 0.36)],
                Stroke::Dashed(2.0),
                Colour::Line(DUE),
            );
        }
    }
}

impl Part {
    /// Values at the axis' ends, or their logarithms.
    fn range(&self) -> (f64, f64) {
        let values = || self.marks.iter().flatten().flat_map(Mark::values);
        let high = values().fold(self.to, f64::max);
        if !self.logarithmic {
            return (0.0, if high > 0.0 { high * 1.02 } else { 1.0 });
        }
        let low = values().filter(|value| *value > 0.0).fold(high, f64::min);
        let (low, high) = (low.log10(), high.log10());
        (low - 0.06 * (high - low), high + 0.02 * (high - low))
    }

    fn ticks(&self, range: (f64, f64)) -> Vec<(f64, String)> {
        let values: Vec<f64> = match self.logarithmic {
            true => ticks::logarithmic(range, 3.0).into_iter().map(|place| 10f64.powf(place)).collect(),
            false => ticks::linear((range.0 / self.unit, range.1 / self.unit), 3.0)
                .into_iter()
                .map(|place| place * self.unit)
                .collect(),
        };
        let written = |value: f64| if value == 0.0 { "0".to_owned() } else { (self.write)(value) };
        values.into_iter().map(|value| (value, written(value))).collect()
    }
}

impl Mark {
    fn values(&self) -> impl Iterator<Item = f64> {
        let reach = self.reach.into_iter().flat_map(|(from, to)| [from, to]);
        reach.chain([self.figure.value, self.figure.high]).chain(self.due)
    }
}

/// Latency at the percentile, within the reach from the median to the longest.
fn latency(percent: f64, results: &[Vec<JobResult>]) -> Part {
    let mark = |jobs: &Vec<JobResult>| {
        let latencies: Vec<Latency> = jobs.iter().map(JobResult::clat).collect();
        let figure = Estimate::percentile(&latencies.iter().collect::<Vec<_>>(), percent)?;
        let mut all = Latency::new();
        latencies.iter().for_each(|latency| all.merge(latency));
        let median = all.percentile_ns(50.0).min(all.max_ns()) as f64;
        Some(Mark {
            figure,
            reach: Some((median.min(figure.value), all.max_ns() as f64)),
            due: None,
            words: unit::time(figure.value),
            more: format!("max {}", unit::time(all.max_ns() as f64)),
        })
    };
    let marks: Vec<Option<Mark>> = results.iter().map(mark).collect();
    let values = || marks.iter().flatten().flat_map(Mark::values).filter(|value| *value > 0.0);
    let (low, high) = values().fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    Part {
        name: format!("p{percent} latency"),
        write: unit::time,
        logarithmic: high > WIDE * low,
        unit: 1.0,
        to: 0.0,
        marks,
    }
}

fn bandwidth(results: &[Vec<JobResult>]) -> Part {
    let mark = |jobs: &Vec<JobResult>| {
        let figure = Estimate::of_seeds(jobs.iter().map(JobResult::bandwidth))?;
        let iops = jobs.iter().map(JobResult::iops).sum::<f64>() / jobs.len().max(1) as f64;
        let more = format!("{} IOPS", unit::short(iops));
        Some(Mark { figure, reach: None, due: None, words: unit::bandwidth(figure.value), more })
    };
    let marks: Vec<Option<Mark>> = results.iter().map(mark).collect();
    let unit = unit::of_bandwidth(marks.iter().flatten().map(|mark| mark.figure.value).fold(0.0, f64::max)).0;
    Part { name: "bandwidth".to_owned(), write: unit::bandwidth, logarithmic: false, unit, to: 0.0, marks }
}

/// The share that it had and was due; `None`: it is the only one.
fn share(columns: &[Column<'_>], job: &str) -> Option<Part> {
    let mark = |column: &Column<'_>| {
        let figure = column.share(job)?;
        let due = due(column.first(), job);
        let more = due.map_or_else(|| "no weights".to_owned(), |due| format!("due {}", unit::percent(due)));
        Some(Mark { figure, reach: None, due, words: unit::percent(figure.value), more })
    };
    if columns.iter().all(|column| column.first().processes.len() < 2) {
        return None;
    }
    let marks = columns.iter().map(mark).collect();
    Some(Part {
        name: "device time".to_owned(),
        write: unit::percent,
        logarithmic: false,
        unit: 1.0,
        to: 100.0,
        marks,
    })
}

/// The percent of the device time of all jobs that a job was due: an even part for each process; with groups an even part of what its
/// group's weight entitled it to while it asked. `None` where groups below its own had a part of that, or nothing was recorded.
pub(crate) fn due(run: &RunResult, job: &str) -> Option<f64> {
    let all = run.processes.len();
    let own = run.processes.iter().filter(|process| process.name == job).count();
    if all < 2 || own == 0 {
        return None;
    }
    if run.groups.len() < 2 {
        return Some(100.0 * own as f64 / all as f64);
    }
    let tasks = &run.explanation.as_ref()?.tasks;
    let group = tasks.iter().find(|task| task.name == job)?.group;
    if run.groups.iter().any(|other| other.parent == Some(group) && other.all.device_time_ns > 0) {
        return None;
    }
    let within = || tasks.iter().filter(|task| task.group == group && task.requests > 0);
    let part = within().filter(|task| task.name == job).count() as f64 / within().count().max(1) as f64;
    Some(100.0 * part * groups::due(run, group)?)
}
