//! The screen: a table of tenants.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row as Cells, Table};

use super::sample::Row;

/// By what rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Device and name.
    #[default]
    Name,
    /// The most device time first.
    Had,
    /// The longest waits first.
    Wait,
    /// The highest bandwidth first.
    Bandwidth,
}

impl Order {
    const ALL: [(Order, &'static str); 4] = [
        (Order::Name, "name"),
        (Order::Had, "share had"),
        (Order::Wait, "wait"),
        (Order::Bandwidth, "bandwidth"),
    ];

    /// The one `steps` further on.
    pub fn step(self, steps: usize) -> Order {
        let at = Order::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0);
        Order::ALL[(at + steps) % Order::ALL.len()].0
    }

    fn word(self) -> &'static str {
        Order::ALL.iter().find(|(order, _)| *order == self).map_or("", |(_, word)| word)
    }

    /// Put `rows`, which come by device and name, in this order.
    pub fn sort(self, rows: &mut [Row]) {
        let most_first = |key: fn(&Row) -> f64| move |a: &Row, b: &Row| key(b).total_cmp(&key(a));
        match self {
            Order::Name => {}
            Order::Had => rows.sort_by(most_first(|row| row.had.unwrap_or(0.0))),
            Order::Wait => rows.sort_by(most_first(|row| row.wait_ns.unwrap_or(0.0))),
            Order::Bandwidth => rows.sort_by(most_first(|row| row.bps)),
        }
    }
}

/// All there is to draw.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// Whose tenants these are.
    pub place: &'a str,
    /// Of this many seconds.
    pub seconds: f64,
    /// Does it stand still?
    pub paused: bool,
    /// How `rows` are ordered.
    pub order: Order,
    /// The tenants.
    pub rows: &'a [Row],
}

const HEADER: [&str; 12] =
    ["DEVICE", "TENANT", "WEIGHT", "DUE", "HAD", "IO/S", "B/S", "WAIT", "SERVICE", "P99", "WAITING", "LIMIT"];
const WIDTHS: [u16; 12] = [10, 18, 6, 5, 5, 7, 7, 8, 8, 17, 7, 24];

/// Three digits with k, M or G, powers of 1,000.
fn rate(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(unit, _)| value >= unit * 0.9995) {
        Some((unit, name)) => format!("{}{name}", crate::number::short(value / unit)),
        None => format!("{value:.0}"),
    }
}

/// A time with three digits.
fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ns >= unit * 0.9995).unwrap_or((1e3, "us"));
    format!("{} {name}", crate::number::short(ns / unit))
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.0} %", part * 100.0))
}

/// What a tenant's bios took, and what they should.
fn latency(row: &Row) -> (String, bool) {
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| time(ns as f64));
    let missed = row.now.goal_ns.zip(row.p99_ns).is_some_and(|(goal, p99)| p99 > goal);
    match row.now.goal_ns {
        Some(_) => (format!("{} of {}", time(row.p99_ns), time(row.now.goal_ns)), missed),
        None => (time(row.p99_ns), false),
    }
}

fn cells(row: &Row) -> ([String; 12], bool) {
    let mean = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), time);
    let (p99, missed) = latency(row);
    let columns = [
        row.now.device.clone(),
        row.name.clone(),
        row.now.weight.map_or_else(|| "-".to_owned(), |weight| weight.to_string()),
        percent(row.now.due),
        percent(row.had),
        rate(row.iops),
        rate(row.bps),
        mean(row.wait_ns),
        mean(row.service_ns),
        p99,
        (row.now.waiting + row.now.in_device.unwrap_or(0)).to_string(),
        row.now.limits.clone(),
    ];
    (columns, missed)
}

/// A name comes from a file that any user may have written: nothing of it may move the cursor.
fn visible(text: &str) -> String {
    crate::style::Style::Plain.visible(text).replace(['\n', '\t'], " ")
}

/// Draw it.
pub fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(1)])
            .areas::<3>(frame.area());
    let paused = if view.paused { ", paused" } else { "" };
    let title = format!(
        "fairlift top  {}  {} in {:.1} s, by {}{paused}",
        visible(view.place),
        crate::number::count(view.rows.len() as u64, "tenant", "tenants"),
        view.seconds,
        view.order.word()
    );
    frame.render_widget(Line::from(title), top);
    draw_table(frame, view, middle);
    frame
        .render_widget(Line::from("q ends   p pauses   left, right: order   red: p99 over the goal"), bottom);
}

fn draw_table(frame: &mut Frame<'_>, view: &View<'_>, area: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let red = Style::new().fg(ratatui::style::Color::Red);
    let rows = view.rows.iter().map(|row| {
        let (columns, missed) = cells(row);
        let cell = |(at, text): (usize, String)| {
            let numeric = (2..9).contains(&at) || at == 10;
            let line = Line::from(visible(&text));
            let line = if numeric { line.right_aligned() } else { line };
            Cell::from(line).style(if missed && at == 9 { red } else { Style::new() })
        };
        Cells::new(columns.into_iter().enumerate().map(cell))
    });
    let heading = |(at, word): (usize, &'static str)| {
        let line = Line::from(word);
        if (2..9).contains(&at) || at == 10 { line.right_aligned() } else { line }
    };
    let header = Cells::new(HEADER.into_iter().enumerate().map(heading)).style(bold);
    let table = Table::new(rows, WIDTHS.map(Constraint::Length)).header(header).column_spacing(1);
    frame.render_widget(table, area);
}

/// Lines beside the rows: the title, an empty one, the header, the keys.
const LINES_BESIDE: u16 = 4;

/// The screen as text, without colours and keys: as wide as its columns, as high as its rows.
pub fn text(view: &View<'_>) -> String {
    let width = WIDTHS.iter().sum::<u16>() + WIDTHS.len() as u16 - 1;
    let rows = u16::try_from(view.rows.len()).unwrap_or(u16::MAX);
    let height = rows.saturating_add(LINES_BESIDE);
    let backend = ratatui::backend::TestBackend::new(width, height);
    let Ok(mut terminal) = ratatui::Terminal::new(backend);
    let Ok(_) = terminal.draw(|frame| draw(frame, view));
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height - 1).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}
