//! The little of a shell that the letters' command lines need.
//!
//! ```text
//! list    = command { ";" command } [ ";" ]
//! command = [ "time" ] ( simple | "while" (":" | "true") ";" "do" list "done" )
//! simple  = ":" | "true" | program { word }
//! ```
//!
//! Words are separated by blanks; `'…'` and `"…"` keep blanks and `;`, a backslash keeps the next character. There are no
//! variables, pipes, redirections or conditions.

use std::sync::Arc;

use super::options::shorten;
use super::{Failure, Process, Program, ProgramError, ProgramMetric, Run, parse_words};
use crate::kernel::Rules;

const GRAMMAR: &str = "programs, ';', 'while :; do …; done', 'time', 'sh -c \"…\"'";
/// Deepest nesting of loops and `sh -c`.
const DEPTH_MAX: u32 = 8;
/// Longest command line, bytes.
const COMMAND_BYTES_MAX: usize = 1 << 16;
/// An endless loop of nothing takes so long a round, nanoseconds: time has to go on.
const EMPTY_ROUND_NS: u64 = 1000;

const ROUNDS: ProgramMetric = ProgramMetric::amount("rounds", "loop", "rounds");

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    Semicolon,
}

/// A part of a script.
#[derive(Clone, Debug)]
enum Node {
    Nothing,
    Program(Arc<dyn Program>),
    Timed(Box<Node>),
    Forever(Vec<Node>),
}

/// `sh -c '…'`, or a command line that is more than one program.
#[derive(Debug)]
struct Shell {
    script: Vec<Node>,
}

/// Read a command line.
pub(super) fn parse_command(text: &str) -> Result<Box<dyn Program>, ProgramError> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(ProgramError::new("", format!("the command is longer than {COMMAND_BYTES_MAX} bytes")));
    }
    let tokens = tokens(text)?;
    let words: Option<Vec<String>> = tokens
        .iter()
        .map(|t| match t {
            Token::Word(word) => Some(word.clone()),
            Token::Semicolon => None,
        })
        .collect();
    match words {
        Some(words) if !words.first().is_some_and(|w| KEYWORDS.contains(&w.as_str())) => parse_words(&words),
        _ => script(&tokens),
    }
}

const KEYWORDS: [&str; 6] = ["while", "do", "done", "time", ":", "true"];

pub(super) fn parse_sh(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    match words {
        [option, text] if option == "-c" => script(&tokens(text)?),
        _ => Err(ProgramError::new("sh", "only -c and one quoted list of commands are understood")
            .allowing(GRAMMAR)),
    }
}

fn script(tokens: &[Token]) -> Result<Box<dyn Program>, ProgramError> {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let script = parser.list()?;
    if let Some(token) = parser.peek() {
        return Err(parser.unexpected(token));
    }
    Ok(Box::new(Shell { script }))
}

fn tokens(text: &str) -> Result<Vec<Token>, ProgramError> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => word.extend(characters.next()),
                        Some(inner) => word.push(inner),
                        None => return Err(ProgramError::new("", format!("a quote {c} is not closed"))),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            '|' | '&' | '<' | '>' | '$' | '`' | '(' | ')' => {
                let message =
                    format!("'{c}' is more shell than is simulated; quote it if it is part of a word");
                return Err(ProgramError::new("", message).allowing(GRAMMAR));
            }
            ';' | '\n' => {
                tokens.extend(word.take().map(Token::Word));
                if tokens.last() != Some(&Token::Semicolon) {
                    tokens.push(Token::Semicolon);
                }
            }
            c if c.is_whitespace() => tokens.extend(word.take().map(Token::Word)),
            c => word.get_or_insert_default().push(c),
        }
    }
    tokens.extend(word.map(Token::Word));
    Ok(tokens)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let found = self.word() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Commands up to the end or a `done`.
    fn list(&mut self) -> Result<Vec<Node>, ProgramError> {
        let mut nodes = Vec::new();
        while self.peek().is_some() && self.word() != Some("done") {
            if self.peek() == Some(&Token::Semicolon) {
                self.at += 1;
                continue;
            }
            nodes.push(self.command()?);
            match self.peek() {
                None | Some(Token::Semicolon) => {}
                Some(other) => return Err(self.unexpected(other)),
            }
        }
        if nodes.is_empty() {
            return Err(ProgramError::new("sh", "there is no command").allowing(GRAMMAR));
        }
        Ok(nodes)
    }

    fn command(&mut self) -> Result<Node, ProgramError> {
        if self.take_word("time") {
            return Ok(Node::Timed(Box::new(self.simple_or_loop()?)));
        }
        self.simple_or_loop()
    }

    fn simple_or_loop(&mut self) -> Result<Node, ProgramError> {
        if self.take_word("while") {
            return self.endless_loop();
        }
        let start = self.at;
        while self.word().is_some() {
            self.at += 1;
        }
        let words: Vec<String> = self.tokens[start..self.at]
            .iter()
            .filter_map(|t| if let Token::Word(word) = t { Some(word.clone()) } else { None })
            .collect();
        match words.first().map(String::as_str) {
            Some(":" | "true") if words.len() == 1 => Ok(Node::Nothing),
            Some(word @ ("do" | "done" | "time")) => Err(self.unexpected(&Token::Word(word.to_owned()))),
            _ => Ok(Node::Program(Arc::from(parse_words(&words)?))),
        }
    }

    fn endless_loop(&mut self) -> Result<Node, ProgramError> {
        self.depth += 1;
        let condition = self.take_word(":") || self.take_word("true");
        let separated = self.peek() == Some(&Token::Semicolon);
        self.at += usize::from(separated);
        if !condition || !separated || !self.take_word("do") || self.depth > DEPTH_MAX {
            return Err(ProgramError::new("sh", "a loop is written 'while :; do …; done'").allowing(GRAMMAR));
        }
        let body = self.list()?;
        if !self.take_word("done") {
            return Err(ProgramError::new("sh", "'while' without its 'done'"));
        }
        self.depth -= 1;
        Ok(Node::Forever(body))
    }

    fn unexpected(&self, token: &Token) -> ProgramError {
        let shown = match token {
            Token::Word(word) => shorten(word),
            Token::Semicolon => ";".to_owned(),
        };
        ProgramError::new("sh", format!("unexpected '{shown}'")).allowing(GRAMMAR)
    }
}

impl Node {
    fn is_endless(&self) -> bool {
        match self {
            Node::Nothing => false,
            Node::Program(program) => program.is_endless(),
            Node::Timed(node) => node.is_endless(),
            Node::Forever(_) => true,
        }
    }

    fn visit<'a>(&'a self, programs: &mut Vec<&'a dyn Program>) {
        match self {
            Node::Nothing => {}
            Node::Program(program) => programs.push(program.as_ref()),
            Node::Timed(node) => node.visit(programs),
            Node::Forever(nodes) => nodes.iter().for_each(|n| n.visit(programs)),
        }
    }

    fn run<'a>(&'a self, p: &'a Process) -> Run<'a> {
        Box::pin(async move {
            match self {
                Node::Nothing => Ok(()),
                Node::Program(program) => {
                    run_child(p, program).await;
                    Ok(())
                }
                Node::Timed(node) => {
                    let start = p.sys.now();
                    node.run(p).await?;
                    p.out.print(&timing(p.sys.now() - start));
                    Ok(())
                }
                Node::Forever(nodes) => loop_forever(p, nodes).await,
            }
        })
    }
}

/// A program of its own: another process, with an io context of its own. That it failed does not end the shell.
async fn run_child(p: &Process, program: &Arc<dyn Program>) {
    let (child, report) = (Arc::clone(program), Process::clone(p));
    let task = p.fork(p.sys.now(), move |process| async move {
        if let Err(failure) = child.run(process).await {
            report.out.print(&format!("{}: {failure}\n", child.name()));
        }
        Ok(())
    });
    p.wait(&[task]).await;
}

async fn loop_forever(p: &Process, nodes: &[Node]) -> Result<(), Failure> {
    for round in 1u64.. {
        let start = p.sys.now();
        for node in nodes {
            node.run(p).await?;
        }
        p.out.set(ROUNDS, round as f64);
        if p.sys.now() == start {
            p.sys.sleep(EMPTY_ROUND_NS).await;
        }
    }
    Ok(())
}

/// What a shell's `time` prints; processor time is not counted.
fn timing(ns: u64) -> String {
    let (minutes, seconds) = (ns / 60_000_000_000, (ns % 60_000_000_000) as f64 / 1e9);
    format!("\nreal\t{minutes}m{seconds:.3}s\nuser\t0m0.000s\nsys\t0m0.000s\n")
}

impl Shell {
    fn programs(&self) -> Vec<&dyn Program> {
        let mut programs = Vec::new();
        self.script.iter().for_each(|n| n.visit(&mut programs));
        programs
    }
}

impl Program for Shell {
    fn name(&self) -> &'static str {
        "sh"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        let mut all: Vec<ProgramMetric> = self.programs().iter().flat_map(|p| p.metrics()).collect();
        if self.is_endless() {
            all.push(ROUNDS);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn tasks(&self) -> usize {
        1 + self.programs().iter().map(|p| p.tasks()).max().unwrap_or(0)
    }

    fn is_endless(&self) -> bool {
        self.script.iter().any(Node::is_endless)
    }

    fn needs_files(&self) -> bool {
        self.programs().iter().any(|p| p.needs_files())
    }

    fn least_ns(&self, rules: &Rules) -> u64 {
        self.programs().iter().map(|p| p.least_ns(rules)).fold(0, u64::saturating_add)
    }

    fn devices(&self) -> Vec<String> {
        self.programs().iter().flat_map(|p| p.devices()).collect()
    }

    fn run(&self, process: Process) -> Run<'_> {
        Box::pin(async move {
            for node in &self.script {
                node.run(&process).await?;
            }
            Ok(())
        })
    }
}
