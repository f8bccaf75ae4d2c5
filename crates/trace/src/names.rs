//! Names seen in a trace, each kept once.

use rustc_hash::FxHashMap;

/// A name in a [`Names`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(u32);

/// How many names a table keeps. Past it, new ones become [`Names::OTHER`]: worse labels, bounded memory.
const NAMES_MAX: usize = 1 << 20;
/// And how many bytes of them.
const BYTES_MAX: usize = 32 << 20;

/// Process and volume names of one trace. Bytes that are no UTF-8 are replaced.
#[derive(Clone, Debug)]
pub struct Names {
    numbers: FxHashMap<Box<str>, Text>,
    names: Vec<Box<str>>,
    bytes: usize,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { numbers: FxHashMap::default(), names: Vec::new(), bytes: 0 };
        names.intern("(other)");
        names
    }
}

impl Names {
    /// What names become when the table is full.
    pub const OTHER: Text = Text(0);

    /// The number of `name`, old or new.
    pub fn intern(&mut self, name: &str) -> Text {
        if let Some(&text) = self.numbers.get(name) {
            return text;
        }
        if self.names.len() >= NAMES_MAX || self.bytes + name.len() > BYTES_MAX {
            return Self::OTHER;
        }
        let text = Text(self.names.len() as u32); // Below NAMES_MAX, so it fits.
        self.bytes += name.len();
        self.names.push(name.into());
        self.numbers.insert(name.into(), text);
        text
    }

    /// The same from bytes.
    pub fn intern_bytes(&mut self, name: &[u8]) -> Text {
        match std::str::from_utf8(name) {
            Ok(name) => self.intern(name),
            Err(_) => self.intern(&String::from_utf8_lossy(name)),
        }
    }

    /// The name. `(other)` for a number of another table.
    pub fn get(&self, text: Text) -> &str {
        self.names.get(text.0 as usize).map_or("(other)", |name| name)
    }
}

/// What an [`crate::Event`] refers to: the names, and the bytes that came with the event.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// Process and volume names.
    pub names: &'a Names,
    /// Text of a message, bytes of a driver, SCSI command. Empty for most events.
    pub payload: &'a [u8],
}
