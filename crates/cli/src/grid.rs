//! Text in columns: words to the left, numbers with their decimal points below each other.

use crate::style::Style;

/// Widest line printed, characters.
pub const WIDTH: usize = 100;
const GAP: usize = 2;

/// One entry of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    number: bool,
    best: bool,
}

/// A word, or the head of a column.
pub fn word(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), number: false, best: false }
}

/// A number, aligned at its decimal point.
pub fn number(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), number: true, best: false }
}

/// The best number of its kind: marked with a star.
pub fn best(text: impl AsRef<str>) -> Cell {
    Cell { text: format!("*{}", text.as_ref()), number: true, best: true }
}

enum Row {
    Cells(Vec<Cell>),
    /// Words, and one text above the columns from the first to the second number.
    Head(Vec<Cell>, (usize, usize), String),
    Text(String),
}

/// Rows whose first column is a name and whose others are numbers.
#[derive(Default)]
pub struct Grid {
    rows: Vec<Row>,
}

impl Grid {
    /// Add a row of cells.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(Row::Cells(cells));
    }

    /// Add a row of heads, with `text` above the columns `from` to `to`, whose own cells stay empty.
    pub fn head(&mut self, cells: Vec<Cell>, (from, to): (usize, usize), text: impl Into<String>) {
        self.rows.push(Row::Head(cells, (from, to), text.into()));
    }

    /// Add a line of text across all columns.
    pub fn text(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Text(text.into()));
    }

    /// The lines, with the first column at least `first` wide.
    pub fn render(&self, style: Style, first: usize) -> String {
        let numbers = self.number_widths();
        let widths = self.widths(&numbers, first);
        let needed = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        // A name too long for its column stands on a line of its own.
        let first = widths.first().copied().unwrap_or(0);
        let first_max = first.saturating_sub(needed.saturating_sub(WIDTH)).max(4);
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            match row {
                Row::Text(text) => line.push_str(text),
                Row::Cells(cells) | Row::Head(cells, ..) => {
                    for (column, cell) in cells.iter().enumerate() {
                        if let Row::Head(_, (from, to), text) = row
                            && (*from..=*to).contains(&column)
                        {
                            if column == *from {
                                let width = widths[*from..=*to].iter().sum::<usize>() + GAP * (to - from);
                                line.push_str(&" ".repeat(GAP));
                                line.push_str(&bracket(text, width));
                            }
                        } else if column == 0 {
                            if length(&cell.text) > first_max {
                                out.push_str(&cell.text);
                                out.push('\n');
                                line.push_str(&" ".repeat(first_max));
                            } else {
                                line.push_str(&padded(&cell.text, first_max));
                            }
                        } else {
                            line.push_str(&" ".repeat(GAP));
                            line.push_str(&aligned(cell, widths[column], numbers[column].1, style));
                        }
                    }
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) | Row::Head(cells, ..) => Some(cells),
            Row::Text(_) => None,
        })
    }

    /// Characters before the decimal point, and from it on, by column.
    fn number_widths(&self) -> Vec<(usize, usize)> {
        let mut widths = vec![(0, 0); self.cells().map(Vec::len).max().unwrap_or(0)];
        for cells in self.cells() {
            for (width, cell) in widths.iter_mut().zip(cells).filter(|(_, c)| c.number) {
                let (whole, fraction) = split(&cell.text);
                *width = (width.0.max(whole), width.1.max(fraction));
            }
        }
        widths
    }

    fn widths(&self, numbers: &[(usize, usize)], first: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = numbers.iter().map(|(whole, fraction)| whole + fraction).collect();
        if let Some(width) = widths.first_mut() {
            *width = first;
        }
        for cells in self.cells() {
            for (width, cell) in widths.iter_mut().zip(cells).filter(|(_, c)| !c.number) {
                *width = (*width).max(length(&cell.text));
            }
        }
        widths
    }
}

/// `--- text ---`, over columns that belong together.
fn bracket(text: &str, width: usize) -> String {
    let dashes = width.saturating_sub(length(text) + 2);
    format!("{} {text} {}", "-".repeat(dashes / 2), "-".repeat(dashes - dashes / 2))
}

fn aligned(cell: &Cell, width: usize, fraction: usize, style: Style) -> String {
    let behind = if cell.number { fraction - split(&cell.text).1 } else { 0 };
    let before = width.saturating_sub(length(&cell.text) + behind);
    let text = if cell.best { style.bold(&cell.text) } else { cell.text.clone() };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(behind))
}

fn split(number: &str) -> (usize, usize) {
    let whole = number.find('.').unwrap_or(number.len());
    (length(&number[..whole]), length(&number[whole..]))
}

/// Characters.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

/// Filled with blanks to `width` characters.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(length(text))))
}

/// Lines of at most `width` characters, broken at blanks.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if length(line) + 1 + length(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_points_stand_below_each_other() {
        let mut grid = Grid::default();
        grid.row(vec![word(""), word("MiB/s")]);
        grid.row(vec![word("noop"), number("1.25")]);
        grid.row(vec![word("deadline"), best("123")]);
        grid.row(vec![word("cfq"), number("-")]);
        let text = grid.render(Style::Plain, 0);
        assert_eq!(text, "            MiB/s\nnoop         1.25\ndeadline  *123\ncfq          -\n");
    }

    #[test]
    fn a_head_spans_its_columns() {
        let mut grid = Grid::default();
        grid.head(["", "a", "", "", "b"].map(word).into(), (2, 3), "time");
        grid.row(vec![word("x"), number("1"), number("12345"), number("12345"), number("2")]);
        let text = grid.render(Style::Plain, 0);
        assert_eq!(text, "      a  --- time ---  b\nx     1  12345  12345  2\n");
    }

    #[test]
    fn a_long_name_gets_its_own_line() {
        let mut grid = Grid::default();
        let name = "cfq:".repeat(30);
        grid.row(vec![word(&name), number("1")]);
        assert_eq!(grid.render(Style::Plain, 0), format!("{name}\n{}1\n", " ".repeat(99)));
    }

    #[test]
    fn text_is_broken_at_blanks() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
    }
}
