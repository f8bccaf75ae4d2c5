//! The options in force for one job, and typed access to them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::sections::shorten;
use crate::table::{self, OptionInfo};
use crate::values::{self, Amount, Wrong};

/// One option as set last.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) info: &'static OptionInfo,
    pub(crate) value: Option<String>,
    pub(crate) place: Place,
    /// Position among all options of the job: of two contradicting options the later one wins.
    order: usize,
}

impl Setting {
    /// Set to what switches it off.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.value.as_deref(), Some("0" | "none" | "null" | "false" | "no" | ""))
    }
}

/// The options in force for one job, by canonical name. Later ones replace earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    by_name: BTreeMap<&'static str, Setting>,
    next_order: usize,
}

impl Settings {
    pub(crate) fn set(&mut self, info: &'static OptionInfo, value: Option<String>, place: Place) {
        let order = self.next_order;
        self.next_order += 1;
        self.by_name.insert(info.name, Setting { info, value, place, order });
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Setting> {
        debug_assert!(
            table::option(name).is_some_and(|info| info.name == name),
            "{name} is no canonical name"
        );
        self.by_name.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.by_name.values()
    }

    /// True if `first` was set after `second`.
    pub(crate) fn later(&self, first: &str, second: &str) -> bool {
        self.get(first).map(|setting| setting.order) > self.get(second).map(|setting| setting.order)
    }
}

/// Reads settings as types and collects what is wrong. A wrong value reads as the default.
pub(crate) struct Reader<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) found: Vec<Diagnostic>,
    pub(crate) kb_base: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        let mut reader = Self { settings, found: Vec::new(), kb_base: 1024 };
        reader.kb_base = reader.number("kb_base", 1024, 1000..=1024);
        if ![1000, 1024].contains(&reader.kb_base) {
            reader.complain("kb_base", Wrong::new("kb_base is neither 1000 nor 1024", "1000, 1024"));
            reader.kb_base = 1024;
        }
        reader
    }

    pub(crate) fn place(&self, name: &str) -> Place {
        self.settings.get(name).map(|setting| setting.place.clone()).unwrap_or_default()
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.settings.get(name).is_some()
    }

    /// Records a wrong value.
    pub(crate) fn complain(&mut self, name: &str, wrong: Wrong) {
        let word = self.settings.get(name).and_then(|setting| setting.value.clone()).unwrap_or_default();
        let message = format!("{name}: {}", shorten_message(&wrong.message));
        self.found.push(
            Diagnostic::error(self.place(name), message)
                .with_word(shorten(&word))
                .with_allowed(wrong.allowed),
        );
    }

    /// Records that the job runs otherwise than under fio.
    pub(crate) fn warn(&mut self, name: &str, message: impl Into<String>) {
        self.found.push(Diagnostic::new(Severity::Warning, self.place(name), message).with_word(name));
    }

    /// The value; an option that needs one and has none is an error.
    pub(crate) fn text(&mut self, name: &str) -> Option<&'a str> {
        let setting = self.settings.get(name)?;
        if setting.value.is_none() {
            self.complain(name, Wrong::new("needs a value", "name=value"));
        }
        setting.value.as_deref()
    }

    fn read<T>(&mut self, name: &str, default: T, read: impl FnOnce(&str, u64) -> Result<T, Wrong>) -> T {
        let Some(text) = self.text(name) else { return default };
        match read(text, self.kb_base) {
            Ok(value) => value,
            Err(wrong) => {
                self.complain(name, wrong);
                default
            }
        }
    }

    /// A switch: nothing, 0 or 1.
    pub(crate) fn flag(&mut self, name: &str, default: bool) -> bool {
        match self.settings.get(name) {
            None => default,
            Some(Setting { value: None, info, .. }) if info.kind == table::Kind::Flag => true,
            Some(_) => self.number(name, u64::from(default), 0..=1) == 1,
        }
    }

    /// A number within limits.
    pub(crate) fn number(&mut self, name: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        self.read(name, default, |text, kb| {
            let value = values::bytes(text, kb)?;
            if range.contains(&value) {
                return Ok(value);
            }
            let (low, high) = range.into_inner();
            Err(Wrong::new(format!("{value} is out of range {low}…{high}"), ""))
        })
    }

    /// A number within limits that fits in 32 bits.
    pub(crate) fn number32(&mut self, name: &str, default: u32, range: RangeInclusive<u32>) -> u32 {
        let (low, high) = range.into_inner();
        self.number(name, u64::from(default), u64::from(low)..=u64::from(high)) as u32
    }

    pub(crate) fn amount(&mut self, name: &str) -> Option<Amount> {
        self.read(name, None, |text, kb| values::size(text, kb).map(Some))
    }

    pub(crate) fn time_us(&mut self, name: &str, default: u64) -> u64 {
        let seconds = self.settings.get(name).is_some_and(|setting| setting.info.kind == table::Kind::TimeS);
        self.read(name, default, |text, _| values::time_us(text, if seconds { 1_000_000 } else { 1 }))
    }

    /// One of several words; the text after a `:` comes second.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &str,
        default: T,
        words: &[(&str, T)],
    ) -> (T, Option<&'a str>) {
        let Some(text) = self.text(name) else { return (default, None) };
        let text = text.trim();
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == word) {
            return (*value, rest);
        }
        let list: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("{name}: '{}' is not known", shorten(word));
        let remark = Diagnostic::error(self.place(name), message).with_word(shorten(word));
        self.found.push(remark.with_allowed(list.join(", ")).with_nearest(list.into_iter()));
        (default, None)
    }

    /// Values for read, write and trim: `8k`, `8k,32k`, `8k,`.
    ///
    /// The last value also stands for the directions after it, unless a comma follows it. Empty: not set.
    pub(crate) fn per_direction<T: Clone>(
        &mut self,
        name: &str,
        read: impl Fn(&str, u64) -> Result<T, Wrong>,
    ) -> [Option<T>; 3] {
        self.read(name, [const { None }; 3], |text, kb| {
            let parts: Vec<_> = text.split(',').collect();
            if parts.len() > 4 || parts.len() == 4 && !parts[3].is_empty() {
                return Err(Wrong::new("more than three values", "read[,write[,trim]]"));
            }
            let mut values = [const { None }; 3];
            for (value, part) in values.iter_mut().zip(&parts) {
                if !part.trim().is_empty() {
                    *value = Some(read(part.trim(), kb)?);
                }
            }
            let last = parts.len().min(3) - 1;
            if let Some(value) = values[last].clone() {
                values[last + 1..].fill(Some(value));
            }
            Ok(values)
        })
    }
}

fn shorten_message(message: &str) -> String {
    match message.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
