//! Results to look at: `--report` and `--plots`.

use std::path::{Path, PathBuf};

use fairlift_report::{Figure, PERCENTILE, Report, Told, figures, page};
use fairlift_sim::scenario::Scenario;

use crate::answer::goal::Goal;
use crate::answer::{Answer, set};
use crate::args::ViewArguments;
use crate::cleanup::Unfinished;
use crate::error::Failure;
use crate::output::{Output, reason};
use crate::plan::Compared;

/// Where they go; made sure of before anything is computed.
pub struct View {
    page: Option<Output>,
    plots: Option<Plots>,
}

/// The folder of the figures. One that was made for them goes again if none is written.
struct Plots {
    folder: PathBuf,
    made: Option<Unfinished>,
}

impl Plots {
    fn open(folder: &Path) -> Result<Plots, Failure> {
        let made = (!folder.exists()).then(|| Unfinished::new(folder));
        std::fs::create_dir_all(folder).map_err(|e| {
            Failure::new(format!("cannot write into '{}': {}", folder.display(), reason(&e))).at("--plots")
        })?;
        Ok(Plots { folder: folder.to_owned(), made })
    }
}

impl View {
    /// Make sure that the page and the figures can be written.
    pub fn open(arguments: &ViewArguments) -> Result<View, Failure> {
        let page =
            arguments.report.as_deref().map(|path| Output::open_for("--report", Some(path))).transpose()?;
        let plots = arguments.plots.as_deref().map(Plots::open).transpose()?;
        Ok(View { page, plots })
    }

    /// Have recorded what the page and the figures tell.
    pub fn prepare(&self, scenario: &mut Scenario) {
        scenario.explain |= self.page.is_some() || self.plots.is_some();
    }

    /// Write what was asked for. What was recorded for this only (`explain`: for the reader, too) is forgotten afterwards, so that
    /// all other output is the same with and without a page.
    pub fn write(
        self,
        scenario: &Scenario,
        compared: &mut Compared,
        asked: Option<(&Goal, &[Answer])>,
        explain: bool,
    ) -> Result<(), Failure> {
        if self.page.is_some() || self.plots.is_some() {
            self.write_files(&report(scenario, compared, asked, command()))?;
        }
        if !explain {
            compared.forget_explanations();
        }
        Ok(())
    }

    fn write_files(self, report: &Report<'_>) -> Result<(), Failure> {
        if let Some(Plots { folder, made }) = self.plots {
            // All of them or none: a figure of an earlier run is replaced only when this one is whole.
            let mut written = Vec::new();
            for figure in figures(report) {
                written.extend(write_figure(&figure, &folder)?);
            }
            for (unfinished, temporary, path) in written {
                let failed = |e: std::io::Error| cannot_write(&path, &reason(&e));
                std::fs::rename(&temporary, &path).map_err(failed)?;
                unfinished.keep();
            }
            if let Some(made) = made {
                made.keep();
            }
        }
        if let Some(output) = self.page {
            output.write(&page(report)).map_err(|e| e.at("--report"))?;
        }
        Ok(())
    }
}

/// What the page is made of. `asked`: the goal, and what it comes to.
pub fn report<'a>(
    scenario: &'a Scenario,
    compared: &'a Compared,
    asked: Option<(&Goal, &[Answer])>,
    repeat: String,
) -> Report<'a> {
    let case_of = |answer: &Answer| scenario.cases.iter().position(|case| case.name == answer.case);
    let told = |answer: &Answer| {
        Some(Told {
            case: case_of(answer)?,
            chosen: answer.chosen,
            matters: answer.matters,
            sentences: answer.sentences.clone(),
            lines: set(scenario, answer),
        })
    };
    let (question, answers) = asked.map_or((String::new(), Vec::new()), |(goal, answers)| {
        (format!("Goal {}: {}.", goal.name(), goal.meaning()), answers.iter().filter_map(told).collect())
    });
    Report {
        scenario,
        runs: compared.by_case(),
        question,
        percentile: asked.and_then(|(goal, _)| goal.percentile()).unwrap_or(PERCENTILE),
        answers,
        repeat,
    }
}

/// A figure's files under names of their own, each with the name it is to have.
fn write_figure(figure: &Figure, folder: &Path) -> Result<[(Unfinished, PathBuf, PathBuf); 2], Failure> {
    let hidden = format!(".{}.{}", figure.name, std::process::id());
    let paths = ["svg", "png"].map(|ending| {
        let temporary = folder.join(format!("{hidden}.{ending}"));
        (Unfinished::new(&temporary), temporary, folder.join(format!("{}.{ending}", figure.name)))
    });
    figure.write_as(folder, &hidden).map_err(|e| Failure::new(e.to_string()).at("--plots"))?;
    Ok(paths)
}

fn cannot_write(path: &Path, why: &str) -> Failure {
    Failure::new(format!("cannot write '{}': {why}", path.display())).at("--plots")
}

/// The command line, for a shell.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("fairlift".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            [quoted("--bs=4k"), quoted("fs_mark -s 1"), quoted("it's")],
            ["--bs=4k", "'fs_mark -s 1'", "'it'\\''s'"]
        );
    }
}
