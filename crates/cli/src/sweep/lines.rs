//! Results as lines of text: what the results file holds, and what travels between processes.
//!
//! `L` names the columns of rows to come, once for all rows that have the same; `R` is a run's figures, `E` a run that failed. Numbers
//! are written so that reading gives the same bits.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::row::Done;

/// Writes lines, naming columns when they are new.
#[derive(Debug, Default)]
pub struct Writer {
    layouts: HashMap<Vec<String>, usize>,
}

/// Reads lines.
#[derive(Debug, Default)]
pub struct Reader {
    layouts: Vec<Vec<String>>,
}

/// A run as its line has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<'a> {
    /// Its number.
    pub number: u64,
    /// Time it took, microseconds.
    pub cost_us: u64,
    /// Which of [`Reader::layouts`] its columns are and its figures, or why there are none.
    pub figures: Result<(usize, Vec<f64>), &'a str>,
}

impl Writer {
    /// The lines of a run.
    pub fn lines(&mut self, done: &Done) -> String {
        let mut text = String::new();
        let (number, cost_us) = (done.number, done.cost_us);
        match &done.figures {
            Err(message) => {
                let _ = writeln!(text, "E\t{number}\t{cost_us}\t{message}");
            }
            Ok(figures) => {
                let names: Vec<String> = figures.iter().map(|(name, _)| name.clone()).collect();
                let next = self.layouts.len();
                let layout = *self.layouts.entry(names).or_insert_with_key(|names| {
                    let _ = writeln!(text, "L\t{}", names.join("\t"));
                    next
                });
                let _ = write!(text, "R\t{number}\t{cost_us}\t{layout}");
                figures.iter().for_each(|(_, value)| {
                    let _ = write!(text, "\t{value:?}");
                });
                text.push('\n');
            }
        }
        text
    }

    /// Go on after the lines that `reader` has read.
    pub fn after(reader: &Reader) -> Writer {
        Writer {
            layouts: reader.layouts.iter().cloned().enumerate().map(|(at, names)| (names, at)).collect(),
        }
    }
}

impl Reader {
    /// A run, if the line is one's; columns are remembered. The error: the line is none of ours.
    pub fn line<'a>(&mut self, line: &'a str) -> Result<Option<Run<'a>>, ()> {
        if let Some(names) = line.strip_prefix("L\t") {
            self.layouts.push(names.split('\t').map(str::to_owned).collect());
            return Ok(None);
        }
        self.run(line).map(Some)
    }

    /// The run of a line whose columns are known. The error: the line is no run.
    pub fn run<'a>(&self, line: &'a str) -> Result<Run<'a>, ()> {
        self.parsed(line).ok_or(())
    }

    /// Columns of rows, in their order, by layout.
    pub fn layouts(&self) -> &[Vec<String>] {
        &self.layouts
    }

    /// The run with its columns' names.
    pub fn done(&self, run: &Run<'_>) -> Done {
        let figures = match &run.figures {
            Ok((layout, values)) => {
                Ok(self.layouts[*layout].iter().cloned().zip(values.iter().copied()).collect())
            }
            Err(message) => Err((*message).to_owned()),
        };
        Done { number: run.number, cost_us: run.cost_us, figures }
    }

    fn parsed<'a>(&self, line: &'a str) -> Option<Run<'a>> {
        let mut words = line.split('\t');
        let has_figures = match words.next()? {
            "R" => true,
            "E" => false,
            _ => return None,
        };
        let (number, cost_us) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        if !has_figures {
            return Some(Run { number, cost_us, figures: Err(words.next()?) });
        }
        let layout: usize = words.next()?.parse().ok()?;
        let values: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let names = self.layouts.get(layout)?;
        (values.len() == names.len()).then_some(Run { number, cost_us, figures: Ok((layout, values)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_to_the_last_bit() {
        let figures =
            |values: [f64; 3]| ["a", "b of c", "d"].map(str::to_owned).into_iter().zip(values).collect();
        let rows = [
            Done { number: 7, cost_us: 1, figures: Ok(figures([0.1 + 0.2, f64::MIN_POSITIVE, 1e300])) },
            Done { number: 8, cost_us: 2, figures: Err("no space".into()) },
            Done { number: 9, cost_us: 3, figures: Ok(figures([f64::INFINITY, -0.0, 1.0 / 3.0])) },
        ];
        let mut writer = Writer::default();
        let text: String = rows.iter().map(|row| writer.lines(row)).collect();
        assert_eq!(text.lines().count(), 4, "columns are named once:\n{text}");
        let mut reader = Reader::default();
        let mut read = Vec::new();
        for line in text.lines() {
            let run = reader.line(line).expect("our line");
            read.extend(run.map(|run| reader.done(&run)));
        }
        assert_eq!(read, rows);
        assert!(reader.line("R\t1\t2\t0\t1.0").is_err(), "figures are missing");
        assert!(Writer::after(&reader).lines(&rows[0]).starts_with("R\t"), "the columns are known");
    }
}
