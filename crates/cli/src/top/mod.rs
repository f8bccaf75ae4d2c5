//! `fairlift top`: who gets what of a device, live, from a running server or the kernel module.

pub mod args;
mod kernel;
mod sample;
mod screen;
mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fairlift_server::net::Address;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::error::Failure;
use crate::output;
use args::TopArguments;
use sample::{Row, Sample, rows};
use screen::{Order, View, draw, text};

/// Where counters come from.
enum Source {
    Server(server::Source),
    Kernel(PathBuf),
}

impl Source {
    fn look(&mut self, at_ns: u64) -> io::Result<Sample> {
        match self {
            Source::Server(server) => server.look(at_ns),
            Source::Kernel(root) => kernel::look(root, at_ns),
        }
    }
}

/// Two looks, the last ones.
struct Looks {
    source: Source,
    place: String,
    began: Instant,
    before: Sample,
    now: Sample,
}

impl Looks {
    fn open(arguments: &TopArguments) -> Result<Looks, Failure> {
        let (place, source) = match &arguments.address {
            Some(place) => {
                let address = Address::parse(place).map_err(|message| Failure::new(message).at("ADDRESS"))?;
                let source = server::Source::connect(&address).map_err(|error| failed(place, &error))?;
                (place.clone(), Source::Server(source))
            }
            None => (arguments.cgroups.display().to_string(), Source::Kernel(arguments.cgroups.clone())),
        };
        let mut looks =
            Looks { source, place, began: Instant::now(), before: Sample::default(), now: Sample::default() };
        looks.look()?;
        Ok(looks)
    }

    /// Look again.
    fn look(&mut self) -> Result<(), Failure> {
        let at_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = self.source.look(at_ns).map_err(|error| failed(&self.place, &error))?;
        self.before = std::mem::replace(&mut self.now, now);
        Ok(())
    }

    fn rows(&self, order: Order) -> Vec<Row> {
        let mut rows = rows(&self.before, &self.now);
        order.sort(&mut rows);
        rows
    }

    fn view<'a>(&'a self, rows: &'a [Row], order: Order, paused: bool) -> View<'a> {
        let seconds = self.now.at_ns.saturating_sub(self.before.at_ns) as f64 / 1e9;
        View { place: &self.place, seconds, paused, order, rows }
    }
}

fn failed(place: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot look: {}", output::reason(error))).at(place)
}

/// Show it until the user presses q.
pub fn top(arguments: &TopArguments) -> Result<(), Failure> {
    let mut looks = Looks::open(arguments)?;
    let interval = Duration::from_secs_f64(arguments.interval);
    if arguments.once {
        std::thread::sleep(interval);
        looks.look()?;
        let rows = looks.rows(Order::Name);
        return output::print(&text(&looks.view(&rows, Order::Name, false)));
    }
    let mut terminal = ratatui::try_init().map_err(|error| {
        Failure::new(format!("this is no terminal: {}", output::reason(&error)))
            .at("fairlift top")
            .help("--once prints text")
    })?;
    let answer = live(&mut terminal, &mut looks, interval);
    ratatui::restore();
    answer
}

/// What a key asks for.
enum Key {
    End,
    Pause,
    Order(usize),
    Nothing,
}

fn key(event: &Event) -> Key {
    let Event::Key(key) = event else { return Key::Nothing };
    match key.code {
        _ if key.kind == KeyEventKind::Release => Key::Nothing,
        KeyCode::Char('q') | KeyCode::Esc => Key::End,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::End,
        KeyCode::Char('p' | ' ') => Key::Pause,
        KeyCode::Right => Key::Order(1),
        // One step back among four.
        KeyCode::Left => Key::Order(3),
        _ => Key::Nothing,
    }
}

fn live(
    terminal: &mut ratatui::DefaultTerminal,
    looks: &mut Looks,
    interval: Duration,
) -> Result<(), Failure> {
    let wrong = |error: io::Error| failed("the terminal", &error);
    let (mut order, mut paused, mut next) = (Order::Name, false, Instant::now() + interval);
    loop {
        let rows = looks.rows(order);
        terminal.draw(|frame| draw(frame, &looks.view(&rows, order, paused))).map_err(wrong)?;
        if event::poll(next.saturating_duration_since(Instant::now())).map_err(wrong)? {
            match key(&event::read().map_err(wrong)?) {
                Key::End => return Ok(()),
                Key::Pause => paused = !paused,
                Key::Order(steps) => order = order.step(steps),
                Key::Nothing => {}
            }
        }
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !paused {
                looks.look()?;
            }
        }
    }
}
