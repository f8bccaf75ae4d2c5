//! The page of a sweep: what is best under each circumstance, how sure that is, what it is a trade against, and what each setting is
//! worth.

use std::fmt::Write as _;

use fairlift_report::{Block, Document, Dot, Drawing, Scatter, Table};

use super::goal::Term;
use super::plan::Settings;
use super::rank::{Effect, Ranking, Score};
use super::session::{Session, command};
use crate::number::short;

/// Best settings that are listed.
const LISTED: usize = 10;
/// Circumstances with sections of their own; a page of hundreds is not read, and the table has all of them.
const SECTIONS_MAX: usize = 60;

/// The page.
pub fn page(session: &Session) -> Document {
    let plan = &session.plan;
    let ranking = session.ranking();
    let mut blocks: Vec<Block> = plan
        .sweep
        .about
        .split("\n\n")
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .map(|p| Block::Paragraph(p.to_owned()))
        .collect();
    blocks.push(Block::Paragraph(method(session)));
    let scores: Vec<Vec<Score>> = (0..plan.circumstances.len()).map(|c| ranking.scores(c)).collect();
    if plan.circumstances.len() > 1 {
        blocks.push(Block::Heading("The best settings".to_owned()));
        blocks.push(Block::Table(overview(&ranking, &scores)));
    }
    for (circumstance, scores) in scores.iter().enumerate().take(SECTIONS_MAX) {
        section(session, circumstance, scores, &mut blocks);
    }
    if scores.len() > SECTIONS_MAX {
        blocks.push(Block::Paragraph(format!(
            "{} more circumstances have no section of their own; the table above and the files have them.",
            scores.len() - SECTIONS_MAX
        )));
    }
    Document { title: plan.sweep.title.clone(), blocks }
}

/// What ran, and what the words below mean.
fn method(session: &Session) -> String {
    let plan = &session.plan;
    let failed = session.journal.failed().count();
    let mut text = format!(
        "Goal: {}. {} settings, {} circumstances, {} seeds each: {} runs.",
        plan.sweep.goal.text,
        plan.points.len(),
        plan.circumstances.len(),
        plan.sweep.seeds,
        session.journal.len()
    );
    if failed > 0 {
        let _ = write!(text, " {failed} of them failed; the rows say why.");
    }
    if plan.rungs.len() > 1 {
        let _ = write!(
            text,
            " Settings were left behind in {} rungs, so that bad ones cost little.",
            plan.rungs.len()
        );
    }
    text.push_str(
        " A figure is the mean over the seeds, ± half of its 95 % interval (Student); a limit is kept if the worst seed keeps it. \
         Settings count as alike if they differ from the best by 1 % or less, or if the differences, seed by seed, have an interval that includes 0.",
    );
    text
}

/// One line per circumstance.
fn overview(ranking: &Ranking<'_>, scores: &[Vec<Score>]) -> Table {
    let plan = ranking.plan;
    let over = plan.sweep.over.iter().map(|axis| axis.key.clone());
    let terms = &plan.sweep.goal.terms;
    let heads = over
        .chain(["best".to_owned()])
        .chain(terms.iter().map(head))
        .chain(["limits".to_owned(), "alike".to_owned()]);
    let heads: Vec<String> = heads.collect();
    let words = plan.sweep.over.len() + 1;
    let numbers = (0..heads.len()).map(|i| i >= words && i < words + terms.len()).collect();
    let row = |(circumstance, scores): (usize, &Vec<Score>)| {
        let mut cells: Vec<String> =
            plan.circumstances[circumstance].iter().map(|(_, value)| value.clone()).collect();
        let Some(best) = scores.first() else { return cells };
        cells.push(setting(&plan.points[best.point]));
        cells.extend(terms.iter().zip(&best.stats).map(|(term, stat)| figure(term, stat.mean, stat.within)));
        cells.push(kept(best));
        cells.push(alike(ranking, scores));
        cells
    };
    Table {
        caption: "The best settings in each circumstance".to_owned(),
        heads,
        numbers,
        rows: scores.iter().enumerate().map(row).collect(),
    }
}

/// A circumstance: the best settings, the front, what each setting is worth.
fn section(session: &Session, circumstance: usize, scores: &[Score], blocks: &mut Vec<Block>) {
    let plan = &session.plan;
    let ranking = session.ranking();
    let name = setting(&plan.circumstances[circumstance]);
    blocks.push(Block::Heading(if name.is_empty() { "Results".to_owned() } else { name.clone() }));
    let Some(best) = scores.first() else {
        return blocks.push(Block::Paragraph("Nothing has run here.".to_owned()));
    };
    if let Some(error) = &best.error {
        return blocks.push(Block::Paragraph(format!("No setting ran: {error}.")));
    }
    if best.missed > 0.0 {
        blocks.push(Block::Paragraph(
            "No setting keeps all limits; the one that misses them least comes first.".to_owned(),
        ));
    }
    let front = ranking.front(scores);
    blocks.push(Block::Table(listed(&ranking, scores, &front)));
    blocks.push(Block::Paragraph("The best of them, to paste:".to_owned()));
    let rung = best.rung;
    let row = plan.row(plan.number(rung, circumstance, best.point, 0));
    blocks.push(Block::Code(command(&plan.words(&row))));
    let [first, second] = [0, 1].map(|term| plan.sweep.goal.terms.get(term));
    if let (Some(x), Some(y)) = (first, second) {
        blocks.push(Block::Figure(drawing(plan, scores, &front, [x, y], circumstance, &name)));
    }
    let effects = ranking.effects(circumstance);
    if !effects.is_empty() {
        blocks.push(Block::Table(sensitivities(plan.sweep.goal.figures().next(), &effects)));
    }
}

fn listed(ranking: &Ranking<'_>, scores: &[Score], front: &[bool]) -> Table {
    let plan = ranking.plan;
    let terms = &plan.sweep.goal.terms;
    let heads = ["setting".to_owned()].into_iter().chain(terms.iter().map(head));
    let heads: Vec<String> =
        heads.chain(["limits", "told from the best", "Pareto front"].map(str::to_owned)).collect();
    let numbers = (0..heads.len()).map(|i| i > 0 && i <= terms.len()).collect();
    // The best ones, and whatever else lies on the front.
    let shown = scores
        .iter()
        .zip(front)
        .enumerate()
        .filter(|(place, (score, front))| (*place < LISTED || **front) && score.error.is_none());
    let row = |(place, (score, front)): (usize, (&Score, &bool))| {
        let mut cells = vec![setting(&plan.points[score.point])];
        cells.extend(terms.iter().zip(&score.stats).map(|(term, stat)| figure(term, stat.mean, stat.within)));
        cells.push(kept(score));
        cells.push(match (place, ranking.is_told_from(&scores[0], score)) {
            (0, _) => "best".to_owned(),
            (_, Some(true)) => "yes".to_owned(),
            (_, Some(false)) => "no".to_owned(),
            (_, None) => "one seed".to_owned(),
        });
        cells.push(if *front { "yes" } else { "" }.to_owned());
        cells
    };
    Table {
        caption: "The best settings, and the Pareto front".to_owned(),
        heads,
        numbers,
        rows: shown.take(4 * LISTED).map(row).collect(),
    }
}

fn drawing(
    plan: &super::plan::Plan,
    scores: &[Score],
    front: &[bool],
    terms: [&Term; 2],
    circumstance: usize,
    name: &str,
) -> Drawing {
    let whole = scores.iter().zip(front).filter(|(score, _)| score.error.is_none());
    let dot = |(score, front): (&Score, &bool)| Dot {
        x: score.stats[0].mean / unit(terms[0]).1,
        y: score.stats[1].mean / unit(terms[1]).1,
        label: setting(&plan.points[score.point]),
        front: *front,
    };
    let scatter = Scatter { x: head(terms[0]), y: head(terms[1]), dots: whole.map(dot).collect() };
    let better = |term: &Term| if term.higher { "More" } else { "Less" };
    let title = if name.is_empty() { "Pareto front".to_owned() } else { format!("Pareto front: {name}") };
    let caption = format!(
        "Each point is a setting; those that no other beats in every figure of the goal are large and joined. {} of {} and {} of {} is better.",
        better(terms[0]),
        terms[0].text.split(['<', '>']).next().unwrap_or_default().trim(),
        better(terms[1]).to_lowercase(),
        terms[1].text.split(['<', '>']).next().unwrap_or_default().trim(),
    );
    scatter.drawing(format!("front-{circumstance}"), title, caption)
}

fn sensitivities(figure_of: Option<&Term>, effects: &[Effect]) -> Table {
    let mean = |value: f64| figure_of.map_or_else(|| short(value), |term| figure(term, value, None));
    let row = |effect: &Effect| {
        let values =
            effect.values.iter().map(|(name, value, points)| format!("{name}: {} ({points})", mean(*value)));
        let share =
            if effect.share.is_nan() { "-".to_owned() } else { format!("{:.0} %", effect.share * 100.0) };
        vec![effect.key.clone(), share, values.collect::<Vec<_>>().join(" · ")]
    };
    Table {
        caption: format!(
            "What each setting is worth: its part of the variance of {}, and the mean by value (over how many settings)",
            figure_of.map_or("the figure", |term| term.text.as_str())
        ),
        heads: ["setting", "part of the variance", "mean by value"].map(str::to_owned).to_vec(),
        numbers: vec![false, true, false],
        rows: effects.iter().map(row).collect(),
    }
}

/// Which settings cannot be told from the best, by how many.
pub fn alike(ranking: &Ranking<'_>, scores: &[Score]) -> String {
    let Some((best, rest)) = scores.split_first() else { return String::new() };
    let equal = |other: &&Score| {
        other.error.is_none() && (other.missed > 0.0) == (best.missed > 0.0) && other.rung == best.rung
    };
    let known: Vec<Option<bool>> =
        rest.iter().filter(equal).map(|other| ranking.is_told_from(best, other)).collect();
    if known.contains(&None) {
        return "one seed".to_owned();
    }
    match known.iter().filter(|told| **told == Some(false)).count() {
        0 => "none".to_owned(),
        count => format!("{count} more"),
    }
}

/// Does it keep the limits?
pub fn kept(score: &Score) -> String {
    match score.missed {
        0.0 => "kept".to_owned(),
        missed => format!("missed by {:.0} %", missed * 100.0),
    }
}

/// Settings in a line; their names where they are not clear by themselves.
pub fn setting(settings: &Settings) -> String {
    let words = settings.iter().map(|(key, value)| match key.as_str() {
        "device" | "scheduler" | "scenario" | "jobs" | "trace" | "case" => value.clone(),
        key => format!("{key}={value}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A column's head: the figure with its unit.
pub fn head(term: &Term) -> String {
    let text = term.text.split(['<', '>']).next().unwrap_or_default().trim();
    let text = text.strip_prefix("lowest ").or(text.strip_prefix("highest ")).unwrap_or(text);
    match unit(term).0 {
        "" => text.to_owned(),
        unit => format!("{text}, {unit}"),
    }
}

/// A figure in its head's unit.
pub fn figure(term: &Term, mean: f64, within: Option<f64>) -> String {
    let scaled = |value: f64| short(value / unit(term).1);
    match within {
        Some(within) => format!("{} ± {}", scaled(mean), scaled(within)),
        None => scaled(mean),
    }
}

/// The unit people read, and how many of the column's it is.
fn unit(term: &Term) -> (&'static str, f64) {
    let column = term.column.as_str();
    let by_end = [
        ("_ns", "ms", 1e6),
        ("bytes_per_s", "MiB/s", 1_048_576.0),
        ("_share", "%", 0.01),
        ("_s", "s", 1.0),
        ("_ms", "ms", 1.0),
    ];
    match by_end.iter().find(|(end, ..)| column.ends_with(end)) {
        Some((_, unit, factor)) if !column.ends_with("iops_per_s") => (unit, *factor),
        _ => ("", 1.0),
    }
}
