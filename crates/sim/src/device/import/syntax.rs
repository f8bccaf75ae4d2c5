//! DiskSim's parameter files: blocks of `name = value`, lists, `source FILE`, instances and topology.
//!
//! ```text
//! disksim_disk MY_DISK {            # a comment
//!   Model = source my_disk.model,   # the block in that file
//!   Max queue length = 1,
//!   Zones = [ dm_layout_g1_zone { First cylinder number = 0 } ]
//! }
//! source other.diskspecs
//! instantiate [ disk0 ] as MY_DISK
//! topology disksim_bus bus0 [ disksim_disk disk0 [] ]
//! ```

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::super::spec::{SpecError, did_you_mean, shown};

/// Deepest nesting of blocks and lists; DiskSim's own files use five levels.
const DEPTH_MAX: usize = 32;
/// Deepest nesting of `source`.
const SOURCES_MAX: usize = 8;
/// Largest file read, bytes; measured drives have some hundred KiB.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A line of a file.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

impl Place {
    pub(super) fn error(&self, message: impl Into<String>) -> SpecError {
        SpecError { origin: self.file.to_string(), line: Some(self.line), message: message.into() }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(f64),
    Word(String),
    List(Vec<Item>),
    Block(Block),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// `kind name { parameters }`.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) place: Place,
    parameters: Vec<(String, Item)>,
}

/// A component in the topology.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) children: Vec<Node>,
}

/// All a file and those it sources say.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) blocks: Vec<Block>,
    /// Instance and the block it is one of.
    pub(super) instances: Vec<(String, String)>,
    pub(super) topology: Vec<Node>,
}

impl Block {
    /// The parameter of that name, if it is there.
    pub(super) fn find(&self, name: &str) -> Option<&Item> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, item)| item)
    }

    /// The parameter of that name.
    pub(super) fn get(&self, name: &str) -> Result<&Item, SpecError> {
        self.find(name).ok_or_else(|| {
            let near = did_you_mean(name, self.parameters.iter().map(|(key, _)| key.as_str()));
            self.place.error(format!("{} has no parameter \"{name}\"{near}", self.title()))
        })
    }

    /// A number in `min..=max`.
    pub(super) fn number(&self, name: &str, min: f64, max: f64) -> Result<f64, SpecError> {
        number(self.get(name)?, name, min, max)
    }

    /// A number in `min..=max`, or `default` when it is not there.
    pub(super) fn number_or(&self, name: &str, default: f64, min: f64, max: f64) -> Result<f64, SpecError> {
        self.find(name).map_or(Ok(default), |item| number(item, name, min, max))
    }

    /// A whole number in `min..=max`.
    pub(super) fn whole(&self, name: &str, min: u64, max: u64) -> Result<u64, SpecError> {
        let value = self.number(name, min as f64, max as f64)?;
        if value.fract() == 0.0 {
            return Ok(value as u64);
        }
        Err(self.get(name)?.place.error(format!("\"{name}\" is {value}, but must be a whole number")))
    }

    /// 0 or 1.
    pub(super) fn switch(&self, name: &str) -> Result<bool, SpecError> {
        Ok(self.whole(name, 0, 1)? == 1)
    }

    /// A word.
    pub(super) fn word(&self, name: &str) -> Result<&str, SpecError> {
        let item = self.get(name)?;
        match &item.value {
            Value::Word(word) => Ok(word),
            other => Err(item.place.error(format!("\"{name}\" is {}, but must be a word", other.shown()))),
        }
    }

    /// A block.
    pub(super) fn block(&self, name: &str) -> Result<&Block, SpecError> {
        let item = self.get(name)?;
        match &item.value {
            Value::Block(block) => Ok(block),
            other => Err(item.place.error(format!("\"{name}\" is {}, but must be a block", other.shown()))),
        }
    }

    /// A list; an absent one is empty.
    pub(super) fn list(&self, name: &str) -> Result<&[Item], SpecError> {
        let Some(item) = self.find(name) else { return Ok(&[]) };
        match &item.value {
            Value::List(list) => Ok(list),
            other => Err(item.place.error(format!("\"{name}\" is {}, but must be a list", other.shown()))),
        }
    }

    /// What errors call it.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() { self.kind.clone() } else { format!("{} {}", self.kind, self.name) }
    }
}

/// The number an item holds, in `min..=max`.
pub(super) fn number(item: &Item, name: &str, min: f64, max: f64) -> Result<f64, SpecError> {
    match &item.value {
        Value::Number(number) if *number >= min && *number <= max => Ok(*number),
        other => {
            let message =
                format!("\"{name}\" is {}, but must be a number from {min} to {max}", other.shown());
            Err(item.place.error(message))
        }
    }
}

impl Value {
    fn shown(&self) -> String {
        match self {
            Value::Number(number) => number.to_string(),
            Value::Word(word) => format!("\"{}\"", shown(word)),
            Value::List(list) => format!("a list of {}", list.len()),
            Value::Block(block) => format!("a block {}", shown(&block.kind)),
        }
    }
}

/// Read a file and all it sources.
pub(super) fn read(path: &Path) -> Result<Tree, SpecError> {
    let mut tree = Tree::default();
    Reader::open(path, 0)?.file(&mut tree)?;
    Ok(tree)
}

/// Text of a file, or why not.
pub(super) fn text_of(path: &Path) -> Result<String, SpecError> {
    let origin = path.to_string_lossy().into_owned();
    let whole = |message: String| SpecError { origin: origin.clone(), line: None, message };
    let data = std::fs::metadata(path).map_err(|error| whole(format!("cannot read: {error}")))?;
    if !data.is_file() {
        return Err(whole("not a file".to_string()));
    }
    if data.len() > FILE_BYTES_MAX {
        return Err(whole(format!("{} bytes are too many (at most {FILE_BYTES_MAX})", data.len())));
    }
    let bytes = std::fs::read(path).map_err(|error| whole(format!("cannot read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| whole("not a text file (not UTF-8)".to_string()))
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    Sign(char),
    End,
}

struct Reader {
    path: PathBuf,
    file: Rc<str>,
    tokens: Vec<(Token, usize)>,
    at: usize,
    sources: usize,
}

impl Reader {
    fn open(path: &Path, sources: usize) -> Result<Reader, SpecError> {
        let text = text_of(path)?;
        let file: Rc<str> = path.to_string_lossy().into();
        Ok(Reader { path: path.to_path_buf(), file, tokens: tokens(&text), at: 0, sources })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn place(&self) -> Place {
        Place { file: self.file.clone(), line: self.tokens[self.at].1 }
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].0.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, SpecError> {
        let found = match self.peek() {
            Token::Word(word) => format!("\"{}\"", shown(word)),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::End => "the end of the file".to_string(),
        };
        Err(self.place().error(format!("{found} is out of place; expected {expected}")))
    }

    fn sign(&mut self, sign: char) -> Result<(), SpecError> {
        if *self.peek() != Token::Sign(sign) {
            return self.wrong(&format!("'{sign}'"));
        }
        self.next();
        Ok(())
    }

    fn skip(&mut self, sign: char) -> bool {
        let is = *self.peek() == Token::Sign(sign);
        if is {
            self.next();
        }
        is
    }

    fn word(&mut self, what: &str) -> Result<String, SpecError> {
        match self.peek().clone() {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => self.wrong(what),
        }
    }

    fn file(&mut self, tree: &mut Tree) -> Result<(), SpecError> {
        while *self.peek() != Token::End {
            let place = self.place();
            let word = self.word("a block, source, instantiate or topology")?;
            match word.as_str() {
                "source" => self.sourced(&place)?.file(tree)?,
                "instantiate" => self.instances(tree)?,
                "topology" => tree.topology.push(self.node(0)?),
                _ => {
                    let name = self.word("the block's name")?;
                    tree.blocks.push(self.block(word, name, place, 0)?);
                }
            }
            self.skip(',');
        }
        Ok(())
    }

    /// The file that is named next.
    fn sourced(&mut self, place: &Place) -> Result<Reader, SpecError> {
        let name = self.word("the name of a file")?;
        if self.sources >= SOURCES_MAX {
            return Err(place.error(format!("more than {SOURCES_MAX} files source one another")));
        }
        let path = self.path.parent().map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name));
        Reader::open(&path, self.sources + 1)
            .map_err(|error| place.error(format!("source {}: {}", shown(&name), error.message)))
    }

    fn instances(&mut self, tree: &mut Tree) -> Result<(), SpecError> {
        self.sign('[')?;
        let mut names = Vec::new();
        while !self.skip(']') {
            names.push(self.word("an instance's name or ']'")?);
            self.skip(',');
        }
        if self.word("\"as\"")? != "as" {
            return self.wrong("\"as\"");
        }
        let block = self.word("a block's name")?;
        tree.instances.extend(names.into_iter().map(|name| (name, block.clone())));
        Ok(())
    }

    /// `kind name [ children ]`.
    fn node(&mut self, depth: usize) -> Result<Node, SpecError> {
        if depth >= DEPTH_MAX {
            return Err(self.place().error("the topology is nested too deeply"));
        }
        self.word("a component's kind")?;
        let name = self.word("a component's name")?;
        let mut children = Vec::new();
        if self.skip('[') {
            while !self.skip(']') {
                children.push(self.node(depth + 1)?);
                self.skip(',');
            }
        }
        Ok(Node { name, children })
    }

    fn block(&mut self, kind: String, name: String, place: Place, depth: usize) -> Result<Block, SpecError> {
        if depth >= DEPTH_MAX {
            return Err(place.error("blocks are nested too deeply"));
        }
        self.sign('{')?;
        let mut parameters: Vec<(String, Item)> = Vec::new();
        while !self.skip('}') {
            let place = self.place();
            let key = self.words("a parameter's name or '}'")?;
            if *self.peek() != Token::Sign('=') {
                return self.wrong(&format!("'=' after \"{}\"", shown(&key)));
            }
            self.next();
            if parameters.iter().any(|(other, _)| *other == key) {
                return Err(place.error(format!("\"{}\" is given twice", shown(&key))));
            }
            let item = self.value(depth + 1)?;
            parameters.push((key, item));
            if !self.skip(',') && *self.peek() != Token::Sign('}') {
                return self.wrong("',' or '}'");
            }
        }
        Ok(Block { kind, name, place, parameters })
    }

    /// Words up to the next sign, joined by blanks.
    fn words(&mut self, what: &str) -> Result<String, SpecError> {
        let mut all = self.word(what)?;
        while let Token::Word(word) = self.peek().clone() {
            all.push(' ');
            all.push_str(&word);
            self.next();
        }
        Ok(all)
    }

    fn value(&mut self, depth: usize) -> Result<Item, SpecError> {
        let place = self.place();
        if depth >= DEPTH_MAX {
            return Err(place.error("lists are nested too deeply"));
        }
        if self.skip('[') {
            let mut list = Vec::new();
            while !self.skip(']') {
                list.push(self.value(depth + 1)?);
                if !self.skip(',') && *self.peek() != Token::Sign(']') {
                    return self.wrong("',' or ']'");
                }
            }
            return Ok(Item { place, value: Value::List(list) });
        }
        let word = self.word("a value")?;
        if word == "source" {
            return self.sourced_value(&place);
        }
        if *self.peek() == Token::Sign('{') {
            let block = self.block(word, String::new(), place.clone(), depth)?;
            return Ok(Item { place, value: Value::Block(block) });
        }
        let value = match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => Value::Word(word),
        };
        Ok(Item { place, value })
    }

    /// The one block of the file named next.
    fn sourced_value(&mut self, place: &Place) -> Result<Item, SpecError> {
        let mut tree = Tree::default();
        let mut reader = self.sourced(place)?;
        reader.file(&mut tree)?;
        let count = tree.blocks.len();
        match <[Block; 1]>::try_from(tree.blocks) {
            Ok([block]) => Ok(Item { place: place.clone(), value: Value::Block(block) }),
            Err(_) => {
                Err(place
                    .error(format!("{} has {count} blocks, but must have one here", shown(&reader.file))))
            }
        }
    }
}

fn tokens(text: &str) -> Vec<(Token, usize)> {
    let mut tokens = Vec::new();
    let mut last = 1;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        last = index + 1;
        let mut word = String::new();
        for sign in line.chars().chain([' ']) {
            let is_sign = matches!(sign, '{' | '}' | '[' | ']' | ',' | '=');
            if !is_sign && !sign.is_whitespace() {
                word.push(sign);
                continue;
            }
            if !word.is_empty() {
                tokens.push((Token::Word(std::mem::take(&mut word)), last));
            }
            if is_sign {
                tokens.push((Token::Sign(sign), last));
            }
        }
    }
    tokens.push((Token::End, last));
    tokens
}
