//! The tables of options and engines: data files, read once.

use std::collections::HashMap;
use std::sync::OnceLock;

/// What fairlift does with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Honoured.
    Use,
    /// Cannot change block I/O: dropped silently.
    Ignore,
    /// Could change block I/O and is not simulated: a warning.
    Warn,
    /// The job would be another one without it: the job is refused.
    Refuse,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `0` or `1`, always with a value.
    Bool,
    /// Nothing, `0` or `1`.
    Flag,
    /// A number, suffixes of sizes allowed.
    Number,
    /// A number of bytes, `%` allowed where it makes sense.
    Size,
    /// A time; a bare number is in seconds.
    TimeS,
    /// A time; a bare number is in microseconds.
    TimeUs,
    /// A list with a grammar of its own.
    List,
    /// A word or free text.
    Text,
}

/// One row of `data/options.tsv`.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Canonical name.
    pub name: &'static str,
    /// Other name fio accepts, if any.
    pub alias: Option<&'static str>,
    /// How its value is written.
    pub kind: Kind,
    /// What fairlift does with it.
    pub class: Class,
    /// Engines it belongs to, separated by commas; empty: all.
    pub engines: &'static str,
    /// What a warning or refusal says about it.
    pub note: &'static str,
}

/// How an I/O engine submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineFamily {
    /// One I/O at a time, whatever `iodepth` says.
    Sync,
    /// Up to `iodepth` I/Os in flight.
    Async,
    /// One call on the file system at a time, in place of I/O: block I/O comes of it by the file system's journal.
    Call(FileCall),
    /// Not block I/O as a scheduler sees it.
    Unsupported,
}

impl EngineFamily {
    /// It calls the file system once for each file: see [`FileCall::is_by_name`].
    pub fn is_call_by_name(self) -> bool {
        matches!(self, EngineFamily::Call(call) if call.is_by_name())
    }
}

/// The call on the file system that an engine makes in place of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileCall {
    /// `filecreate`: open(2) with `O_CREAT`, once for each file.
    Create,
    /// `filedelete`: unlink(2), once for each file.
    Delete,
    /// `filestat`: stat(2), once for each file.
    Stat,
    /// `ftruncate`: ftruncate(2) to the offset of each write.
    Truncate,
    /// `falloc`: fallocate(2) of each block; a read keeps the size, a trim punches a hole.
    Allocate,
}

impl FileCall {
    /// The call is made once for each file, by its name, and not for each block.
    pub fn is_by_name(self) -> bool {
        matches!(self, FileCall::Create | FileCall::Delete | FileCall::Stat)
    }

    fn of_engine(name: &str) -> Self {
        match name {
            "filecreate" => FileCall::Create,
            "filedelete" => FileCall::Delete,
            "filestat" => FileCall::Stat,
            "ftruncate" => FileCall::Truncate,
            "falloc" => FileCall::Allocate,
            other => unreachable!("engines.tsv: no call of engine {other}"),
        }
    }
}

/// One row of `data/engines.tsv`.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// Name for `ioengine=`.
    pub name: &'static str,
    /// How it submits.
    pub family: EngineFamily,
    /// Why it is refused, if it is.
    pub reason: &'static str,
}

/// Looks an option up by name or alias. Names are case-sensitive, as in fio.
pub fn option(name: &str) -> Option<&'static OptionInfo> {
    static INDEX: OnceLock<HashMap<&'static str, &'static OptionInfo>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let names = options().iter().map(|info| (info.name, info));
        names.chain(options().iter().filter_map(|info| Some((info.alias?, info)))).collect()
    });
    index.get(name).copied()
}

/// All options fio 3.33 knows, by name.
pub fn options() -> &'static [OptionInfo] {
    static TABLE: OnceLock<Vec<OptionInfo>> = OnceLock::new();
    TABLE.get_or_init(|| rows(include_str!("../data/options.tsv")).map(option_row).collect())
}

/// All engines fio 3.33 knows.
pub fn engines() -> &'static [EngineInfo] {
    static TABLE: OnceLock<Vec<EngineInfo>> = OnceLock::new();
    TABLE.get_or_init(|| rows(include_str!("../data/engines.tsv")).map(engine_row).collect())
}

/// Looks an engine up by name.
pub fn engine(name: &str) -> Option<&'static EngineInfo> {
    engines().iter().find(|engine| engine.name == name)
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

fn option_row(row: Vec<&'static str>) -> OptionInfo {
    let [name, alias, kind, class, engines, note] = row[..] else {
        unreachable!("options.tsv has six columns: {row:?}")
    };
    let kind = match kind {
        "bool" => Kind::Bool,
        "flag" => Kind::Flag,
        "number" => Kind::Number,
        "size" => Kind::Size,
        "time_s" => Kind::TimeS,
        "time_us" => Kind::TimeUs,
        "list" => Kind::List,
        "text" => Kind::Text,
        other => unreachable!("options.tsv: kind {other}"),
    };
    let class = match class {
        "use" => Class::Use,
        "ignore" => Class::Ignore,
        "warn" => Class::Warn,
        "refuse" => Class::Refuse,
        other => unreachable!("options.tsv: class {other}"),
    };
    let alias = (alias != "-").then_some(alias);
    OptionInfo { name, alias, kind, class, engines: if engines == "-" { "" } else { engines }, note }
}

fn engine_row(row: Vec<&'static str>) -> EngineInfo {
    let [name, family, reason] = row[..] else { unreachable!("engines.tsv has three columns: {row:?}") };
    let family = match family {
        "sync" => EngineFamily::Sync,
        "async" => EngineFamily::Async,
        "call" => EngineFamily::Call(FileCall::of_engine(name)),
        _ => EngineFamily::Unsupported,
    };
    EngineInfo { name, family, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_reads_and_names_are_unique() {
        let mut names: Vec<_> = options().iter().flat_map(|o| [Some(o.name), o.alias]).flatten().collect();
        assert!(names.len() > 270);
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(all, names.len());
        assert!(engines().len() > 40);
    }

    #[test]
    fn what_is_not_simulated_says_so() {
        for info in options() {
            assert_eq!(matches!(info.class, Class::Warn | Class::Refuse), info.note != "-", "{}", info.name);
        }
    }
}
