//! Results to look at: `--report` and `--plots`.

use std::path::PathBuf;

use fairlift_report::{figures, page};
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::Scenario;

use crate::args::ViewArguments;
use crate::error::Failure;
use crate::output::{Output, reason};

/// Where they go; made sure of before anything is computed.
pub struct View {
    page: Option<Output>,
    plots: Option<PathBuf>,
}

impl View {
    /// Make sure that the page and the figures can be written.
    pub fn open(arguments: &ViewArguments) -> Result<View, Failure> {
        let page =
            arguments.report.as_deref().map(|path| Output::open_for("--report", Some(path))).transpose()?;
        if let Some(folder) = &arguments.plots {
            std::fs::create_dir_all(folder).map_err(|e| {
                Failure::new(format!("cannot write into '{}': {}", folder.display(), reason(&e)))
                    .at("--plots")
            })?;
        }
        Ok(View { page, plots: arguments.plots.clone() })
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
        runs: &mut [Vec<RunResult>],
        explain: bool,
    ) -> Result<(), Failure> {
        self.write_files(scenario, runs)?;
        if !explain {
            runs.iter_mut().flatten().for_each(|run| run.explanation = None);
        }
        Ok(())
    }

    fn write_files(self, scenario: &Scenario, runs: &[Vec<RunResult>]) -> Result<(), Failure> {
        if let Some(folder) = &self.plots {
            for figure in figures(scenario, runs) {
                figure.write(folder).map_err(|e| Failure::new(e.to_string()).at("--plots"))?;
            }
        }
        if let Some(output) = self.page {
            let text =
                page(scenario, runs, &command()).map_err(|e| Failure::new(e.to_string()).at("--report"))?;
            output.write(&text).map_err(|e| e.at("--report"))?;
        }
        Ok(())
    }
}

/// The command line, for a shell.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("fairlift".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

pub(crate) fn quoted(word: &str) -> String {
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
