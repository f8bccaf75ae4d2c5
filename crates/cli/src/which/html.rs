//! The page as one HTML file that needs no other.

use fairlift_report::{Block, Document, Table};

use super::page::{Figures, Row, choice};
use super::{Cell, Kind, SEEDS};
use crate::number::seconds;

/// The page, or a part of it.
pub fn document(rows: &[Row<'_>], kinds: &[&Kind]) -> Document {
    let mut blocks = vec![Block::Paragraph(about(kinds)), Block::Table(overview(rows, kinds))];
    for (load, cells) in rows {
        blocks.push(Block::Heading(load.title.to_owned()));
        let (about, job) = load.job.split_once('\n').unwrap_or(("", load.job));
        blocks.push(Block::Paragraph(about.trim_start_matches(';').trim().to_owned()));
        blocks.push(Block::Code(job.trim_end().to_owned()));
        for (cell, kind) in cells.iter().zip(kinds) {
            blocks.push(Block::Part(format!("{}: {}", kind.word, cell.scenario.device.name())));
            blocks.push(Block::Paragraph(cell.answer.sentences.join(" ")));
            blocks.push(Block::Table(table(cell, &format!("{} on {}", load.title, kind.word))));
        }
    }
    Document { title: "Which scheduler".to_owned(), blocks }
}

fn about(kinds: &[&Kind]) -> String {
    let times: Vec<String> =
        kinds.iter().map(|kind| format!("{} {}", kind.word, seconds(kind.runtime_ns))).collect();
    format!(
        "Which scheduler suits a load on a device? Find the load that is nearest to yours. Every figure is simulated under Linux 6.12, with \
         each scheduler at its defaults, and is the mean of {SEEDS} seeds (simulated time of a run: {}). The answers also consider devices that \
         are 20 % faster and slower. 'all alike': all schedulers come within 5 % of the best, so it makes no difference which one you take.",
        times.join(", ")
    )
}

fn overview(rows: &[Row<'_>], kinds: &[&Kind]) -> Table {
    let heads = ["load".to_owned(), "goal".to_owned()].into_iter();
    let row = |(load, cells): &Row<'_>| {
        let words = [load.title.to_owned(), load.goal.to_owned()].into_iter();
        words.chain(cells.iter().map(choice)).collect()
    };
    Table {
        caption: "The scheduler to take".to_owned(),
        heads: heads.chain(kinds.iter().map(|kind| kind.word.to_owned())).collect(),
        numbers: vec![false; kinds.len() + 2],
        rows: rows.iter().map(row).collect(),
    }
}

fn table(cell: &Cell, caption: &str) -> Table {
    let Figures { goal, jobs, rows } = Figures::of(cell);
    let of_jobs = jobs.iter().flat_map(|job| [format!("{job}: IOPS"), format!("{job}: p99, ms")]);
    let heads: Vec<String> = ["scheduler".to_owned()].into_iter().chain(goal).chain(of_jobs).collect();
    let rows = rows.into_iter().map(|row| {
        let best = if row.is_best { " (best)" } else { "" };
        let name = [format!("{}{best}", row.scheduler)];
        name.into_iter().chain(row.goal).chain(row.cells).collect()
    });
    Table {
        caption: caption.to_owned(),
        numbers: (0..heads.len()).map(|column| column > 0).collect(),
        rows: rows.collect(),
        heads,
    }
}
