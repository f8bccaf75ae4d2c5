//! A page of headings, paragraphs, tables and figures, written as HTML (one file that needs no other) or as Markdown.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::page::{STYLE, colours};

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
    /// SVG.
    pub svg: String,
}

impl Document {
    /// As HTML, the figures in it.
    pub fn html(&self) -> String {
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content=(concat!("fairlift ", env!("CARGO_PKG_VERSION")));
                    title { (self.title) }
                    style { (PreEscaped(colours::css())) (PreEscaped(STYLE)) }
                }
                body {
                    header { h1 { (self.title) } }
                    main { (self.body()) }
                    footer { p { "Simulated by fairlift " (env!("CARGO_PKG_VERSION")) ". The same sweep gives the same page." } }
                }
            }
        };
        markup.into_string()
    }

    /// What stands on the page, without the page around it: for notebooks.
    pub fn fragment(&self) -> String {
        self.body().into_string()
    }

    fn body(&self) -> Markup {
        html! { @for block in &self.blocks { (of_block(block)) } }
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

fn of_block(block: &Block) -> Markup {
    match block {
        Block::Heading(text) => html! { h2 { (text) } },
        Block::Part(text) => html! { h3 { (text) } },
        Block::Paragraph(text) => html! { p { (text) } },
        Block::Code(text) => html! { pre { code { (text) } } },
        Block::Table(table) => of_table(table),
        Block::Figure(drawing) => html! {
            figure {
                div.plot role="img" aria-label={ (drawing.title) ". " (drawing.caption) } {
                    (PreEscaped(colours::themed(&drawing.svg)))
                }
                figcaption { strong { (drawing.title) } " " (drawing.caption) }
            }
        },
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
