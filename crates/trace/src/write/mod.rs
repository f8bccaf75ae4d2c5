//! Writers: one file a format. Each tells what it could not keep.

mod blkparse;
mod blktrace;
mod chrome;
mod csv;
mod iolog;

use std::collections::HashMap;
use std::io;

use crate::event::{Device, DeviceNumber, Event};
use crate::names::{Text, Texts};

pub use blkparse::BlkparseWriter;
pub use blktrace::{BlktraceWriter, Version};
pub use chrome::ChromeWriter;
pub use csv::CsvWriter;
pub use iolog::{IologVersion, IologWriter};

/// Takes events in order of time.
pub trait EventWriter {
    /// Writes one event. `texts` are those of the reader it comes from.
    fn write(&mut self, event: &Event, texts: Texts<'_>) -> io::Result<()>;

    /// Writes what is left and says what was lost. Nothing may be written after it.
    fn finish(&mut self) -> io::Result<Losses>;
}

/// What a format could not hold, with how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// In the order first met.
    pub entries: Vec<(&'static str, u64)>,
}

impl Losses {
    pub(crate) fn add(&mut self, what: &'static str) {
        match self.entries.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => self.entries.push((what, 1)),
        }
    }

    pub(crate) fn add_if(&mut self, condition: bool, what: &'static str) {
        if condition {
            self.add(what);
        }
    }

    /// Whether everything was kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (what, count)) in self.entries.iter().enumerate() {
            write!(f, "{}{what} ({count})", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// Device numbers for formats that have no names: 259 (Linux's block-extended major) and a running minor.
#[derive(Default)]
struct DeviceNumbers {
    given: HashMap<Option<Text>, DeviceNumber>,
}

impl DeviceNumbers {
    const MAJOR: u32 = 259;

    fn number(&mut self, device: Device, losses: &mut Losses) -> DeviceNumber {
        let name = match device {
            Device::Number(number) => return number,
            Device::Name(name) => Some(name),
            Device::None => None,
        };
        losses.add_if(name.is_some(), "names of devices");
        let minor = self.given.len() as u32 % (1 << 20);
        *self.given.entry(name).or_insert_with(|| DeviceNumber(Self::MAJOR << 20 | minor))
    }
}
