//! Where on the device requests went and who had it, over time: one picture that scrolls.

use std::fmt::Write as _;

use fairlift_sim::anatomy::{Anatomy, Cause, Served, TaskId, Window};
use maud::{Markup, PreEscaped, html};

use super::in_case;
use crate::canvas::{Anchor, Canvas, Colour, DUE, Font, Stroke, Svg};
use crate::chart::{FINE, SMALL};
use crate::report::{Column, Report};
use crate::{ticks, unit};

/// Width for each request, pixels, and of the whole at least and at most.
const PER_REQUEST: f64 = 2.0;
const WIDTH: (f64, f64) = (900.0, 2400.0);
/// Height of the sectors' part, and of a line of those below.
const SECTORS: f64 = 240.0;
const LANE: f64 = 24.0;
const TOP: f64 = 30.0;
const GAP: f64 = 26.0;
const AXIS: f64 = 24.0;
/// Width of the names on the left, which do not scroll.
const NAMES: f64 = 104.0;
/// Tasks with a lane; the others share the last.
const LANES_MAX: usize = 7;
const GIB: f64 = (1u64 << 30) as f64;

/// A picture of each column's window; `None`: nothing was recorded.
pub(super) fn maps(report: &Report<'_>, case: usize, columns: &[Column<'_>]) -> Option<Markup> {
    let label = in_case(report.case_name(case));
    let windows = columns.iter().filter_map(|column| {
        let anatomy = column.first().explanation.as_ref()?;
        (anatomy.window.requests.len() > 1).then_some((column, anatomy))
    });
    let maps: Vec<(&Column<'_>, Map<'_>)> =
        windows.map(|(column, anatomy)| (column, Map::new(anatomy))).collect();
    if maps.is_empty() {
        return None;
    }
    Some(html! {
        p {
            "A stretch of each run, request by request. Above: where on the device each was, from when the device began to serve it to when "
            "it was done (writes are thin). Below: the task that the device worked for, and "
            span.swatch.idling aria-hidden="true" {} "the task that the scheduler let it idle for. It scrolls to the right; the pointer, or Shift "
            "and an arrow key, reads a request."
        }
        @for (column, map) in &maps {
            section data-column=(column.at) {
                h3 { (column.label) }
                div.map.drawn tabindex="0" role="region" data-from=(seconds(map.window.from_ns)) data-to=(seconds(map.window.to_ns)) aria-label={ "Sectors over time, " (column.label) (label) ": " (map.words()) } {
                    div.fixed { (PreEscaped(map.names())) }
                    (PreEscaped(map.picture(&format!("Sectors and device over time, {}: {}", column.label, report.conditions(case)))))
                }
            }
        }
    })
}

struct Map<'a> {
    anatomy: &'a Anatomy,
    window: &'a Window,
    /// Names of the tasks with a lane, in the order in which they come first.
    lanes: Vec<&'a str>,
    sectors: (f64, f64),
    width: f64,
}

impl<'a> Map<'a> {
    fn new(anatomy: &'a Anatomy) -> Map<'a> {
        let window = &anatomy.window;
        let mut lanes: Vec<&str> = Vec::new();
        for served in &window.requests {
            let name = anatomy.name(served.task);
            if !lanes.contains(&name) && lanes.len() < LANES_MAX {
                lanes.push(name);
            }
        }
        let ends =
            window.requests.iter().flat_map(|s| [s.sector as f64, s.sector as f64 + f64::from(s.sectors)]);
        let (low, high) =
            ends.fold((f64::INFINITY, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
        let room = (high - low).max(8.0) * 0.02;
        let width = (window.requests.len() as f64 * PER_REQUEST).clamp(WIDTH.0, WIDTH.1);
        Map { anatomy, window, lanes, sectors: (low - room, high + room), width }
    }

    fn words(&self) -> String {
        let count = self.window.requests.len();
        let time = unit::time((self.window.to_ns - self.window.from_ns) as f64);
        format!("{count} requests in {time} of {}", self.lanes.join(", "))
    }

    fn height(&self) -> f64 {
        TOP + SECTORS + GAP + self.lanes.len() as f64 * LANE + AXIS
    }

    fn lane(&self, task: Option<TaskId>) -> usize {
        let name = self.anatomy.name(task);
        self.lanes.iter().position(|lane| *lane == name).unwrap_or(self.lanes.len() - 1)
    }

    /// From the other end of the colours than the schedulers'.
    const fn colour(lane: usize) -> Colour {
        Colour::Line(DUE - 1 - lane % DUE)
    }

    fn x(&self, ns: u64) -> f64 {
        let all = (self.window.to_ns - self.window.from_ns).max(1) as f64;
        (ns.clamp(self.window.from_ns, self.window.to_ns) - self.window.from_ns) as f64 / all * self.width
    }

    fn y(&self, sector: f64) -> f64 {
        TOP + SECTORS * (1.0 - (sector - self.sectors.0) / (self.sectors.1 - self.sectors.0))
    }

    /// Marks of the sectors' axis, sectors, and the unit they are written in.
    fn marks(&self) -> (Vec<f64>, f64, &'static str) {
        let span = (self.sectors.1 - self.sectors.0) * 512.0;
        let (size, name) = if span > 2.0 * GIB { (GIB, "GiB") } else { (GIB / 1024.0, "MiB") };
        let range = (self.sectors.0 * 512.0 / size, self.sectors.1 * 512.0 / size);
        (ticks::linear(range, 5.0).into_iter().map(|mark| mark * size / 512.0).collect(), size, name)
    }

    /// What does not scroll: the names of the axis and the lanes.
    fn names(&self) -> String {
        let mut svg = Svg::new((NAMES, self.height()));
        let (marks, size, name) = self.marks();
        let at = NAMES - 6.0;
        svg.text((at, TOP / 2.0), Anchor::End, FINE, Colour::Soft, &format!("offset, {name}"));
        for mark in marks {
            svg.text((at, self.y(mark)), Anchor::End, FINE, Colour::Ink, &unit::short(mark * 512.0 / size));
        }
        for (lane, name) in self.lanes.iter().enumerate() {
            let middle = TOP + SECTORS + GAP + (lane as f64 + 0.5) * LANE;
            let name = crate::canvas::shortened(name, SMALL, NAMES - 10.0);
            svg.text((at, middle), Anchor::End, Font { size: SMALL, bold: true }, Map::colour(lane), &name);
        }
        svg.inline_of(NAMES)
    }

    fn picture(&self, title: &str) -> String {
        let bottom = TOP + SECTORS + GAP + self.lanes.len() as f64 * LANE;
        let mut svg = Svg::new((self.width, self.height()));
        svg.text((4.0, TOP / 2.0), Anchor::Start, Font { size: SMALL, bold: true }, Colour::Ink, title);
        for mark in self.marks().0 {
            svg.line((0.0, self.y(mark)), (self.width, self.y(mark)), Colour::Rule);
        }
        let range = (seconds(self.window.from_ns), seconds(self.window.to_ns));
        for mark in ticks::linear(range, self.width / 110.0) {
            let x = self.x((mark * 1e9) as u64);
            svg.line((x, TOP), (x, bottom), Colour::Rule);
            if x < self.width - 24.0 {
                svg.text(
                    (x, bottom + AXIS / 2.0),
                    Anchor::Start,
                    FINE,
                    Colour::Ink,
                    &fine_seconds(mark, range.1 - range.0),
                );
            }
        }
        svg.path(&[(0.0, TOP + SECTORS), (self.width, TOP + SECTORS)], Stroke::Solid(1.0), Colour::Soft);
        for lane in 0..self.lanes.len() {
            for write in [false, true] {
                let of = |served: &&Served| served.write == write && self.lane(served.task) == lane;
                let requests = || self.window.requests.iter().filter(of);
                let runs = requests().map(|served| {
                    let (from, to) = (self.x(served.began_ns), self.x(served.done_ns));
                    (from, self.y(served.sector as f64), (to - from).max(1.5))
                });
                let what = if write { "write" } else { "read" };
                let name = format!("{}: {what}", self.lanes[lane]);
                let attributes = [("data-name", &*name), ("data-requests", &*packed(requests()))];
                svg.runs_with(runs, if write { 1.2 } else { 2.5 }, &Map::colour(lane), &attributes);
            }
        }
        self.draw_lanes(&mut svg);
        svg.inline_of(self.width)
    }

    /// The job that the device worked or idled for.
    fn draw_lanes(&self, svg: &mut Svg) {
        let middle = |lane: usize| TOP + SECTORS + GAP + (lane as f64 + 0.5) * LANE;
        for lane in 0..self.lanes.len() {
            let run = |idles: bool| {
                let of = move |cause: Cause| match cause {
                    Cause::Behind(task) if !idles => self.lane(task) == lane,
                    Cause::Idling(task) if idles => self.lane(task) == lane,
                    _ => false,
                };
                let spans = self.window.spans.iter().filter(move |span| of(span.cause));
                joined(spans.map(|span| (self.x(span.start_ns), self.x(span.end_ns))))
                    .into_iter()
                    .map(move |(from, to)| (from, middle(lane), to - from))
            };
            svg.runs(run(false), LANE * 0.65, &Map::colour(lane));
            svg.runs_of(run(true), LANE * 0.65, "k-idling", &[]);
        }
    }
}

/// Requests for the page's script, in base 36 and parted by blanks: sectors from the end of the one before to this one, its time in the
/// device (microseconds) and, where it is not as long as the one before, its sectors. A stream costs a few bytes a request.
fn packed<'a>(requests: impl Iterator<Item = &'a Served>) -> String {
    let (mut end, mut length) = (0, 0);
    let mut out = String::new();
    for served in requests {
        if !out.is_empty() {
            out.push(' ');
        }
        let gap = i128::from(served.sector) - i128::from(end);
        if gap != 0 {
            let sign = if gap < 0 { "-" } else { "" };
            let _ = write!(out, "{sign}{}", base_36(gap.unsigned_abs() as u64));
        }
        let _ = write!(out, ",{}", base_36((served.done_ns - served.began_ns) / 1000));
        if served.sectors != length {
            let _ = write!(out, ",{}", base_36(served.sectors.into()));
        }
        (end, length) = (served.sector + u64::from(served.sectors), served.sectors);
    }
    out
}

fn base_36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize]);
        number /= 36;
        if number == 0 {
            return digits.iter().rev().map(|digit| char::from(*digit)).collect();
        }
    }
}

/// Stretches without the gaps that cannot be seen.
fn joined(stretches: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    const UNSEEN: f64 = 0.3;
    let mut out: Vec<(f64, f64)> = Vec::new();
    for (from, to) in stretches {
        match out.last_mut() {
            Some(last) if from - last.1 < UNSEEN => last.1 = to,
            _ => out.push((from, to)),
        }
    }
    out
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Seconds with as many digits as marks of a span so long need.
fn fine_seconds(value: f64, span: f64) -> String {
    let digits = (2.0 - span.log10()).clamp(0.0, 6.0).floor() as usize;
    format!("{value:.digits$} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_packed_into_few_bytes() {
        let served = |sector, sectors, us: u64| Served {
            task: None,
            write: false,
            sector,
            sectors,
            issued_ns: 0,
            began_ns: 0,
            done_ns: us * 1000,
        };
        let requests = [served(72, 8, 36), served(80, 8, 37), served(40, 16, 1)];
        assert_eq!(packed(requests.iter()), "20,10,8 ,11 -1c,1,g");
        assert_eq!([base_36(0), base_36(35), base_36(u64::MAX)], ["0", "z", "3w5e11264sgsf"]);
    }

    #[test]
    fn stretches_that_touch_are_one() {
        assert_eq!(joined([(0.0, 1.0), (1.1, 2.0), (3.0, 4.0)].into_iter()), [(0.0, 2.0), (3.0, 4.0)]);
    }

    #[test]
    fn marks_have_the_digits_they_need() {
        assert_eq!([fine_seconds(17.25, 6.0), fine_seconds(0.012_34, 0.01)], ["17.2 s", "0.0123 s"]);
    }
}
