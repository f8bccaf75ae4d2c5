//! A device file as a flat list of `section.key` fields, each knowing file and line it came from.
//!
//! Models ask for their fields one by one; the range is checked at that moment. A field that no model asked for is an error
//! in the file that says it. Laying one file over another is laying one list over another.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{SpecError, did_you_mean, shown};

/// A value as written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Value>),
    /// A date, or a table where no table can be.
    Other(&'static str),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Other(kind) => kind,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    fn show(&self, out: &mut String) {
        let _ = match self {
            Value::Text(text) => write!(out, "{text}"),
            Value::Integer(i) => write!(out, "{i}"),
            Value::Float(f) => write!(out, "{f}"),
            Value::Bool(b) => write!(out, "{b}"),
            Value::List(list) => write!(out, "(a list of {})", list.len()),
            Value::Other(kind) => write!(out, "{kind}"),
        };
    }
}

#[derive(Clone, Debug)]
struct Field {
    value: Value,
    origin: String,
    line: usize,
    /// From the file that was asked for, not from one it is based on: must be understood.
    own: bool,
    asked: bool,
}

/// All fields of a device file and of the files it is based on.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    origin: String,
    fields: BTreeMap<String, Field>,
    asked: Vec<String>,
}

/// Deepest nesting of tables; the models use two levels.
const DEPTH_MAX: usize = 4;

impl Fields {
    /// Read TOML text. `origin` is what errors call it.
    pub(super) fn parse(text: &str, origin: &str) -> Result<Fields, SpecError> {
        let table = DeTable::parse(text).map_err(|error| SpecError {
            origin: origin.to_string(),
            line: error.span().map(|span| line_of(text, span.start)),
            message: format!("not TOML: {}", shown(error.message().trim())),
        })?;
        let mut fields = Fields { origin: origin.to_string(), fields: BTreeMap::new(), asked: Vec::new() };
        fields.flatten(text, table.get_ref(), "", 0)?;
        Ok(fields)
    }

    fn flatten(
        &mut self,
        text: &str,
        table: &DeTable<'_>,
        prefix: &str,
        depth: usize,
    ) -> Result<(), SpecError> {
        for (key, value) in table {
            let line = line_of(text, key.span().start);
            let path = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            if let Some(table) = value.get_ref().as_table() {
                if depth + 1 >= DEPTH_MAX {
                    let message = format!("\"{}\" is nested too deeply", shown(&path));
                    return Err(SpecError { origin: self.origin.clone(), line: Some(line), message });
                }
                self.flatten(text, table, &path, depth + 1)?;
                continue;
            }
            let value = convert(value, &self.origin, line)?;
            let origin = self.origin.clone();
            self.fields.insert(path, Field { value, origin, line, own: true, asked: false });
        }
        Ok(())
    }

    /// Put these fields over those of `base`. A choice of another seek curve, layout or model leaves fields of the
    /// base behind that no model asks for; those are no error.
    pub(super) fn over(mut self, base: Fields) -> Fields {
        for (path, mut field) in base.fields {
            field.own = false;
            self.fields.entry(path).or_insert(field);
        }
        self
    }

    /// As they were read: no model has asked for any yet.
    pub(super) fn unasked(mut self) -> Fields {
        self.asked.clear();
        self.fields.values_mut().for_each(|field| field.asked = false);
        self
    }

    /// An error at the place of `path`.
    pub(crate) fn error(&self, path: &str, message: impl Into<String>) -> SpecError {
        let (origin, line) = match self.fields.get(path) {
            Some(field) => (field.origin.clone(), Some(field.line)),
            None => (self.origin.clone(), None),
        };
        SpecError { origin, line, message: message.into() }
    }

    /// Is the field there?
    pub(crate) fn has(&mut self, path: &str) -> bool {
        self.ask(path).is_some()
    }

    /// Does the user's own file say it, rather than one it is based on?
    pub(crate) fn is_own(&self, path: &str) -> bool {
        self.fields.get(path).is_some_and(|field| field.own)
    }

    fn ask(&mut self, path: &str) -> Option<&Value> {
        if !self.asked.iter().any(|asked| asked == path) {
            self.asked.push(path.to_string());
        }
        let field = self.fields.get_mut(path)?;
        field.asked = true;
        Some(&field.value)
    }

    fn need(&mut self, path: &str, what: &str) -> Result<Value, SpecError> {
        match self.ask(path).cloned() {
            Some(value) => Ok(value),
            None => {
                // Perhaps it is there under a name that nobody asks for.
                let likely = self.fields.iter().find(|(other, field)| {
                    field.own && !field.asked && strsim::jaro_winkler(other, path) > 0.9
                });
                let hint = likely.map_or_else(String::new, |(other, field)| {
                    format!("; line {} has \"{}\"", field.line, shown(other))
                });
                Err(self.error(path, format!("\"{path}\" is missing: {what}{hint}")))
            }
        }
    }

    fn wrong(&self, path: &str, value: &Value, what: &str) -> SpecError {
        let mut text = String::new();
        value.show(&mut text);
        self.error(path, format!("{path} is {} ({}), but must be {what}", shown(&text), value.kind()))
    }

    /// A finite number in `min..=max`.
    pub(crate) fn number(&mut self, path: &str, min: f64, max: f64) -> Result<f64, SpecError> {
        let what = format!("a number from {min} to {max}");
        let value = self.need(path, &what)?;
        match value.number() {
            // Written so that NaN fails.
            Some(number) if number >= min && number <= max => Ok(number),
            _ => Err(self.wrong(path, &value, &what)),
        }
    }

    /// A finite number, or `default` when the field is not there.
    pub(crate) fn number_or(
        &mut self,
        path: &str,
        default: f64,
        min: f64,
        max: f64,
    ) -> Result<f64, SpecError> {
        if self.has(path) { self.number(path, min, max) } else { Ok(default) }
    }

    /// An integer in `min..=max`.
    pub(crate) fn integer(&mut self, path: &str, min: u64, max: u64) -> Result<u64, SpecError> {
        let what = format!("an integer from {min} to {max}");
        let value = self.need(path, &what)?;
        match value {
            Value::Integer(i) if u64::try_from(i).is_ok_and(|i| i >= min && i <= max) => Ok(i as u64),
            _ => Err(self.wrong(path, &value, &what)),
        }
    }

    /// An integer, or `default` when the field is not there.
    pub(crate) fn integer_or(
        &mut self,
        path: &str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, SpecError> {
        if self.has(path) { self.integer(path, min, max) } else { Ok(default) }
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, path: &str) -> Result<bool, SpecError> {
        let value = self.need(path, "true or false")?;
        match value {
            Value::Bool(b) => Ok(b),
            _ => Err(self.wrong(path, &value, "true or false")),
        }
    }

    /// A string.
    pub(crate) fn text(&mut self, path: &str) -> Result<String, SpecError> {
        let value = self.need(path, "a string")?;
        match value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(path, &value, "a string")),
        }
    }

    /// One of some words; gives the word's place in the list.
    pub(crate) fn choice(&mut self, path: &str, words: &[&str]) -> Result<usize, SpecError> {
        let allowed = words.join(", ");
        let value = self.need(path, &format!("one of {allowed}"))?;
        let Value::Text(text) = &value else {
            return Err(self.wrong(path, &value, &format!("one of {allowed}")));
        };
        words.iter().position(|word| word == text).ok_or_else(|| {
            let near = did_you_mean(text, words.iter().copied());
            self.error(path, format!("{path} cannot be \"{}\"; allowed: {allowed}{near}", shown(text)))
        })
    }

    /// Likewise, `words[default]` if it is not there.
    pub(crate) fn choice_or(
        &mut self,
        path: &str,
        words: &[&str],
        default: usize,
    ) -> Result<usize, SpecError> {
        if self.has(path) { self.choice(path, words) } else { Ok(default) }
    }

    /// A list of pairs of numbers, each number in `0..=max`.
    pub(crate) fn pairs(
        &mut self,
        path: &str,
        max: f64,
        entries_max: usize,
    ) -> Result<Vec<(f64, f64)>, SpecError> {
        Ok(self.rows::<2>(path, max, entries_max)?.into_iter().map(|[a, b]| (a, b)).collect())
    }

    /// A list of rows of `N` numbers, each number in `0..=max`.
    pub(crate) fn rows<const N: usize>(
        &mut self,
        path: &str,
        max: f64,
        entries_max: usize,
    ) -> Result<Vec<[f64; N]>, SpecError> {
        let row = match N {
            2 => "pairs [a, b]".to_owned(),
            _ => format!("rows [a, b, …] of {N}"),
        };
        let what = format!("a list of 1 to {entries_max} {row} of numbers from 0 to {max}");
        let value = self.need(path, &what)?;
        let Value::List(list) = &value else { return Err(self.wrong(path, &value, &what)) };
        if list.is_empty() || list.len() > entries_max {
            return Err(self.wrong(path, &value, &what));
        }
        let mut rows = Vec::with_capacity(list.len());
        for (index, entry) in list.iter().enumerate() {
            let numbers: Option<Vec<f64>> = match entry {
                Value::List(row) => row.iter().map(Value::number).collect(),
                _ => None,
            };
            let row: Option<[f64; N]> = numbers.and_then(|numbers| numbers.try_into().ok());
            match row {
                Some(row) if row.iter().all(|number| (0.0..=max).contains(number)) => rows.push(row),
                _ => return Err(self.error(path, format!("{path}, entry {}: must be in {what}", index + 1))),
            }
        }
        Ok(rows)
    }

    /// Complain about the first field of the user's own file that no model asked for.
    pub(super) fn finish(&self) -> Result<(), SpecError> {
        let unknown = self.fields.iter().filter(|(_, field)| field.own && !field.asked);
        let Some((path, field)) = unknown.min_by_key(|(_, field)| field.line) else { return Ok(()) };
        let section = path.rsplit_once('.').map_or("", |(section, _)| section);
        let same: Vec<&str> = self
            .asked
            .iter()
            .map(String::as_str)
            .filter(|asked| asked.rsplit_once('.').map_or("", |(section, _)| section) == section)
            .collect();
        let allowed = if same.is_empty() {
            let mut sections: Vec<&str> = self
                .asked
                .iter()
                .filter_map(|asked| asked.split_once('.'))
                .map(|(section, _)| section)
                .collect();
            sections.sort_unstable();
            sections.dedup();
            format!("sections here: {}", sections.join(", "))
        } else {
            format!("allowed here: {}", same.join(", "))
        };
        let near = did_you_mean(path, self.asked.iter().map(String::as_str));
        let message = format!("unknown key \"{}\"{near} ({allowed})", shown(path));
        Err(SpecError { origin: field.origin.clone(), line: Some(field.line), message })
    }

    /// The fields the model has used, a line each, in sections.
    pub(super) fn dump(&self) -> String {
        let mut out = String::new();
        let mut section = "";
        // Top-level keys have no section and must come before the first one.
        let (top, nested): (Vec<_>, Vec<_>) =
            self.fields.iter().filter(|(_, field)| field.asked).partition(|(path, _)| !path.contains('.'));
        for (path, field) in top.into_iter().chain(nested) {
            let (here, key) = path.rsplit_once('.').unwrap_or(("", path));
            if matches!(key, "model" | "description" | "based_on") && here.is_empty() {
                continue;
            }
            if here != section {
                section = here;
                let _ = writeln!(out, "{section}");
            }
            let mut value = String::new();
            field.value.show(&mut value);
            let (name, unit) = unit_of(key);
            let _ = writeln!(out, "  {:<28} {value} {unit}", name.replace('_', " "));
        }
        out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// Split a key into name and unit; units stand last in a name.
fn unit_of(key: &str) -> (&str, &str) {
    const UNITS: [(&str, &str); 10] = [
        ("_mb_per_s", "MB/s"),
        ("_mib_per_s", "MiB/s"),
        ("_per_s", "per second"),
        ("_ns", "ns"),
        ("_us", "us"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_kib", "KiB"),
        ("_mib", "MiB"),
        ("_pages", "pages"),
    ];
    UNITS
        .iter()
        .find_map(|(suffix, unit)| key.strip_suffix(suffix).map(|name| (name, *unit)))
        .unwrap_or((key, ""))
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count()
}

fn convert(value: &Spanned<DeValue<'_>>, origin: &str, line: usize) -> Result<Value, SpecError> {
    let error = |message: String| SpecError { origin: origin.to_string(), line: Some(line), message };
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
            .map(Value::Integer)
            .map_err(|_| error(format!("integer {} is too large", shown(i.as_str()))))?,
        DeValue::Float(f) => f
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| error(format!("{} is not a number", shown(f.as_str()))))?,
        // Lists of pairs are as deep as it gets: convert two levels and no more.
        DeValue::Array(list) => Value::List(
            list.iter().map(|entry| convert_entry(entry, origin, line)).collect::<Result<_, _>>()?,
        ),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Table(_) => Value::Other("a table"),
    })
}

fn convert_entry(value: &Spanned<DeValue<'_>>, origin: &str, line: usize) -> Result<Value, SpecError> {
    match value.get_ref() {
        DeValue::Array(pair) => Ok(Value::List(
            pair.iter()
                .map(|entry| match entry.get_ref() {
                    DeValue::Array(_) => Ok(Value::Other("a list in a list in a list")),
                    _ => convert(entry, origin, line),
                })
                .collect::<Result<_, _>>()?,
        )),
        _ => convert(value, origin, line),
    }
}
