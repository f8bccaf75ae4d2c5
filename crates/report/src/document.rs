//! A page of headings, paragraphs, tables and figures, written as HTML (one file that needs no other) or as Markdown.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::page::shell::{self, Entry};

/// A page.
pub struct Document {
    /// Its heading.
    pub title: String,
    /// What stands on it, in order.
    pub blocks: Vec<Block>,
}

/// A part of a page.
pub enum Block {
    /// A heading of a section.
    Heading(String),
    /// Of a part of a section.
    Part(String),
    /// Words.
    Paragraph(String),
    /// A command, to be copied.
    Code(String),
    /// Numbers.
    Table(Table),
    /// A picture.
    Figure(Drawing),
}

/// Rows of cells under heads.
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Heads of the columns.
    pub heads: Vec<String>,
    /// Which columns are numbers.
    pub numbers: Vec<bool>,
    /// Rows; the first cell names the row.
    pub rows: Vec<Vec<String>>,
}

/// A picture with words for those who do not see it.
pub struct Drawing {
    /// Short name, fit for a file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// SVG, as a file.
    pub svg: String,
    /// The same as part of a page, which has its colours.
    pub inline: String,
}

impl Document {
    /// As HTML, the figures in it.
    pub fn html(&self) -> String {
        let headings = self.blocks.iter().enumerate().filter_map(|(at, block)| match block {
            Block::Heading(text) => Some(Entry { id: id(at), text: text.clone(), below: false }),
            _ => None,
        });
        let contents: Vec<Entry> = headings.collect();
        shell::page(&self.title, &html! {}, &contents, &self.body(), "The same runs give the same page.")
    }

    /// What stands on the page, without the page around it: for notebooks.
    pub fn fragment(&self) -> String {
        self.body().into_string()
    }

    fn body(&self) -> Markup {
        html! { @for (at, block) in self.blocks.iter().enumerate() { (of_block(at, block)) } }
    }

    /// As Markdown; `figure` says how a picture's file is reached from there.
    pub fn markdown(&self, figure: &dyn Fn(&Drawing) -> String) -> String {
        let mut out = format!("# {}\n", self.title);
        for block in &self.blocks {
            out.push('\n');
            let _ = match block {
                Block::Heading(text) => writeln!(out, "## {text}"),
                Block::Part(text) => writeln!(out, "### {text}"),
                Block::Paragraph(text) => writeln!(out, "{text}"),
                Block::Code(text) => writeln!(out, "```sh\n{text}\n```"),
                Block::Figure(drawing) => {
                    writeln!(out, "![{}]({})\n\n*{}*", drawing.title, figure(drawing), drawing.caption)
                }
                Block::Table(table) => write!(out, "{}", table.markdown()),
            };
        }
        out
    }

    /// Its pictures.
    pub fn drawings(&self) -> impl Iterator<Item = &Drawing> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Figure(drawing) => Some(drawing),
            _ => None,
        })
    }
}

impl Table {
    fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rules: Vec<String> =
            self.numbers.iter().map(|is_number| if *is_number { "--:" } else { "---" }.to_owned()).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}\n\n{}|{}|\n{rows}", self.caption, line(&self.heads), rules.join("|"))
    }
}

/// Where a link to a block leads.
fn id(at: usize) -> String {
    format!("part-{at}")
}

fn of_block(at: usize, block: &Block) -> Markup {
    match block {
        Block::Heading(text) => html! { h2 id=(id(at)) { (text) } },
        Block::Part(text) => html! { h3 { (text) } },
        Block::Paragraph(text) => html! { p { (text) } },
        Block::Code(text) => html! { pre tabindex="0" { code { (text) } } },
        Block::Table(table) => of_table(table),
        Block::Figure(drawing) => shell::figure(
            &format!("{}. {}", drawing.title, drawing.caption),
            &drawing.inline,
            &html! { strong { (drawing.title) } " " (drawing.caption) },
        ),
    }
}

fn of_table(table: &Table) -> Markup {
    let class = |column: usize| table.numbers.get(column).copied().unwrap_or(false).then_some("number");
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.caption) {
            table {
                caption { (table.caption) }
                thead { tr { @for (i, head) in table.heads.iter().enumerate() { th scope="col" class=[class(i)] { (head) } } } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th scope="row" class=[class(i)] { (cell) } } @else { td class=[class(i)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let table = Table {
            caption: "Best".into(),
            heads: vec!["scheduler".into(), "p99".into()],
            numbers: vec![false, true],
            rows: vec![vec!["a|b".into(), "<1".into()]],
        };
        Document { title: "A & B".into(), blocks: vec![Block::Heading("H".into()), Block::Table(table)] }
    }

    #[test]
    fn markdown_escapes_what_ends_a_cell() {
        let text = document().markdown(&|drawing| drawing.name.clone());
        assert_eq!(text, "# A & B\n\n## H\n\nBest\n\n| scheduler | p99 |\n|---|--:|\n| a\\|b | <1 |\n");
    }

    #[test]
    fn html_escapes_what_is_markup() {
        let text = document().html();
        assert!(text.contains("<h1>A &amp; B</h1>") && text.contains("&lt;1"), "{text}");
    }
}
