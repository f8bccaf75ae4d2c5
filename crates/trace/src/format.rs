//! The formats, their names, and what each of them can tell.

use std::fmt;
use std::str::FromStr;

use crate::read::blkparse::Blkparse;
use crate::read::blkparse_format::{BlkparseFormat, Formatted};
use crate::read::blkreplay::Blkreplay;
use crate::read::corpora::{Alibaba, Fiu, K5, Msr, Spc, Systor, Tencent};
use crate::read::csv::Csv;
use crate::read::disksim::{DiskSim, MqSim, Validation};
use crate::read::ftrace::Ftrace;
use crate::read::iolog::Iolog;
use crate::read::lines::LineParser;
use crate::read::vscsi::{CloudPhysics, VscsiCsv};

/// A trace format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Binary blktrace, per CPU or merged by `blkparse -d`.
    Blktrace,
    /// blkparse's default text.
    Blkparse,
    /// blkparse's text by a format string: see [`crate::Options::blkparse_format`].
    BlkparseFormat,
    /// ftrace, `trace-cmd report` or `perf script` lines of `block:*`.
    Ftrace,
    /// fio's iolog, versions 2 and 3.
    Iolog,
    /// DiskSim's ASCII trace.
    DiskSim,
    /// DiskSim's validation trace, with measured response times.
    DiskSimValidation,
    /// MQSim's ASCII trace.
    MqSim,
    /// blkreplay's `.load`.
    Blkreplay,
    /// MSR Cambridge.
    Msr,
    /// SYSTOR '17 virtual desktops.
    Systor,
    /// Alibaba block traces 2020.
    Alibaba,
    /// Tencent CBS 2018.
    Tencent,
    /// Fujitsu K5.
    K5,
    /// SPC (UMass Financial and WebSearch).
    Spc,
    /// Florida International University, and others of that shape.
    Fiu,
    /// CloudPhysics vscsi, binary.
    Vscsi,
    /// VMware vscsi, CSV.
    VscsiCsv,
    /// CloudPhysics vscsi, CSV.
    CloudPhysics,
    /// CSV with a header that names the columns.
    Csv,
}

/// Where a format's time begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// At the trace's start, or wherever the recorder began to count.
    SinceStart,
    /// At the machine's boot.
    SinceBoot,
    /// 1 January 1970.
    Unix,
}

/// What a format records, so that a replay can say what a trace lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Where time begins.
    pub clock: Clock,
    /// The step of its clock, ns.
    pub resolution_ns: u64,
    /// Events of every stage, completions among them, may be there.
    pub stages: bool,
    /// The device's latency may stand with the arrival.
    pub responses: bool,
    /// Process numbers and names.
    pub processes: bool,
    /// Which device or volume.
    pub devices: bool,
    /// Sync, metadata, FUA, flush, readahead.
    pub flags: bool,
    /// Its devices are volumes of different users, rather than the disks or files of one program or machine.
    pub volumes: bool,
}

struct Row {
    format: Format,
    name: &'static str,
    facts: Facts,
}

const fn row(
    format: Format,
    name: &'static str,
    clock: Clock,
    resolution_ns: u64,
    [stages, responses, processes, devices, flags, volumes]: [bool; 6],
) -> Row {
    let facts = Facts { clock, resolution_ns, stages, responses, processes, devices, flags, volumes };
    Row { format, name, facts }
}

const T: bool = true;
const F: bool = false;
const ROWS: [Row; 20] = [
    //                                                                          stages responses processes devices flags volumes
    row(Format::Blktrace, "blktrace", Clock::SinceStart, 1, [T, F, T, T, T, F]),
    row(Format::Blkparse, "blkparse", Clock::SinceStart, 1, [T, F, T, T, T, F]),
    row(Format::BlkparseFormat, "blkparse-format", Clock::SinceStart, 1, [T, T, T, T, T, F]),
    row(Format::Ftrace, "ftrace", Clock::SinceBoot, 1_000, [T, F, T, T, T, F]),
    row(Format::Iolog, "iolog", Clock::SinceStart, 1_000, [F, F, F, T, F, F]),
    row(Format::DiskSim, "disksim", Clock::SinceStart, 1, [F, F, F, T, F, F]),
    row(Format::DiskSimValidation, "disksim-validation", Clock::SinceStart, 1, [F, T, F, F, F, F]),
    row(Format::MqSim, "mqsim", Clock::SinceStart, 1, [F, F, F, T, F, F]),
    row(Format::Blkreplay, "blkreplay", Clock::SinceStart, 1, [F, T, F, F, T, F]),
    row(Format::Msr, "msr", Clock::Unix, 100, [F, T, F, T, F, T]),
    row(Format::Systor, "systor17", Clock::Unix, 1_000, [F, T, F, T, F, T]),
    row(Format::Alibaba, "alibaba", Clock::Unix, 1_000, [F, F, F, T, F, T]),
    row(Format::Tencent, "tencent", Clock::Unix, 1_000_000_000, [F, F, F, T, F, T]),
    row(Format::K5, "k5", Clock::Unix, 1_000, [F, F, F, T, F, T]),
    row(Format::Spc, "spc", Clock::SinceStart, 1_000, [F, F, F, T, F, F]),
    row(Format::Fiu, "fiu", Clock::SinceStart, 1, [F, F, T, T, F, F]),
    row(Format::Vscsi, "vscsi", Clock::SinceStart, 1_000, [F, T, F, F, F, F]),
    row(Format::VscsiCsv, "vscsi-csv", Clock::SinceStart, 1_000, [F, F, F, F, F, F]),
    row(Format::CloudPhysics, "cloudphysics-csv", Clock::SinceStart, 1_000_000_000, [F, F, F, F, F, F]),
    row(Format::Csv, "csv", Clock::SinceStart, 1, [T, T, T, T, T, T]),
];

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.format)
    }

    /// The sort window a reader takes by default. The corpora of many volumes put volumes together that were recorded apart, so
    /// their times run backwards in places.
    pub fn sort_window(self) -> usize {
        let facts = self.facts();
        if facts.volumes && !facts.stages { 1 << 16 } else { 0 }
    }

    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.format == self).expect("every format has a row")
    }

    /// Its name for `--format`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it records.
    pub fn facts(self) -> Facts {
        self.row().facts
    }

    /// Where its time begins.
    pub fn clock(self) -> Clock {
        self.facts().clock
    }

    /// Whether it is made of binary records.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Blktrace | Self::Vscsi)
    }

    /// A new parser of its lines; `None` for binary formats.
    pub(crate) fn line_parser(self, blkparse: Option<&BlkparseFormat>) -> Option<Box<dyn LineParser>> {
        Some(match self {
            Self::Blktrace | Self::Vscsi => return None,
            Self::BlkparseFormat => Box::new(Formatted::new(blkparse?.clone())),
            Self::Blkparse => Box::new(Blkparse::default()),
            Self::Ftrace => Box::new(Ftrace::default()),
            Self::Iolog => Box::new(Iolog::default()),
            Self::DiskSim => Box::new(DiskSim),
            Self::DiskSimValidation => Box::new(Validation::default()),
            Self::MqSim => Box::new(MqSim),
            Self::Blkreplay => Box::new(Blkreplay::default()),
            Self::Msr => Box::new(Msr::default()),
            Self::Systor => Box::new(Systor::default()),
            Self::Alibaba => Box::new(Alibaba::default()),
            Self::Tencent => Box::new(Tencent::default()),
            Self::K5 => Box::new(K5::default()),
            Self::Spc => Box::new(Spc::default()),
            Self::Fiu => Box::new(Fiu::default()),
            Self::VscsiCsv => Box::new(VscsiCsv),
            Self::CloudPhysics => Box::new(CloudPhysics),
            Self::Csv => Box::new(Csv::default()),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            format!("'{name}' is no trace format; formats: {}", names.join(" "))
        })
    }
}
