//! The record of a queue: every call with its time and answer, in memory taken at construction.
//!
//! As text a record is a line about the queue and one line per call, written by [`Display`](core::fmt::Display) and read
//! by [`parse_call`]: `1042300 insert read sync 2048+8 ctx=1 grp=0 be4 -> 3`.

use core::fmt;

use fairlift_core::collections::{Id, Stack};
use fairlift_core::context::IoClass;
use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::{Dispatch, Flags, IoPrio, Op};

use crate::host::{Arrival, Slot};
use crate::limits::LetIn;

/// A call of [`crate::host::Host`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // each is the method of the same name
pub enum Call {
    Insert(Arrival),
    InsertHead(Arrival),
    IssueAround(Arrival),
    Dispatch,
    Fill { slot: Slot, sector: u64, sectors: u32 },
    Complete(Slot),
    TakeBack(Slot),
    InsertAgain(Slot),
    AllowMerge(Slot, Arrival),
    FindFront(Arrival),
    Grew { slot: Slot, front: bool, sector: u64, sectors: u32 },
    Absorbed { slot: Slot, gone: Slot, sectors: u32 },
    Former(Slot),
    Latter(Slot),
    ContextNew { group: u32, ioprio: IoPrio },
    ContextExit(u32),
    YieldTo(u32, Option<u32>),
    GroupNew { parent: u32, weight: u32, class: IoClass },
    GroupSet { group: u32, weight: u32, class: IoClass },
    GroupLeaf { group: u32, weight: u32 },
    GroupRemove(u32),
    GroupLimit { group: u32, direction: Direction, rates: Rates },
    Ask { group: u32, direction: Direction, bytes: u64 },
    LetIn,
    Refund { group: u32, direction: Direction, bytes: u64 },
    Charge { group: u32, direction: Direction, bytes: u64, whole: bool },
    Set(u32, u64),
    Flushing(bool),
    RequestSlots { all: u32, for_async: u32 },
}

/// What a call returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Nothing: the call has no result, or there was none.
    None,
    /// A slot or another number.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// Dispatch, and who waits for a limit: nothing to give away until this time.
    Idle(u64),
}

impl Answer {
    /// A slot or another number, or that there is none.
    pub fn number(number: Option<u32>) -> Answer {
        number.map_or(Answer::None, |number| Answer::Number(number.into()))
    }
}

impl From<Dispatch> for Answer {
    fn from(dispatch: Dispatch) -> Answer {
        match dispatch {
            Dispatch::Issue(rq) => Answer::Number(rq.index() as u64),
            Dispatch::Idle { until } => Answer::Idle(until),
            Dispatch::Empty | Dispatch::Busy => Answer::None,
        }
    }
}

impl From<LetIn> for Answer {
    fn from(answer: LetIn) -> Answer {
        match answer {
            LetIn::Go(line) => Answer::Number(line.into()),
            LetIn::Idle(until) => Answer::Idle(until),
            LetIn::Nobody => Answer::None,
        }
    }
}

/// A call, when it was made, and what it returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When, nanoseconds.
    pub now: u64,
    /// What.
    pub call: Call,
    /// The result.
    pub answer: Answer,
}

/// Entries up to a number fixed at construction; what comes later is counted.
pub struct Recorder {
    entries: Stack<Entry>,
    entries_max: usize,
    lost: u64,
}

impl Recorder {
    /// A recorder for `entries_max` entries; with 0 it is off.
    pub fn new(entries_max: usize) -> Recorder {
        let none = Entry { now: 0, call: Call::Dispatch, answer: Answer::None };
        Recorder { entries: Stack::new(none, entries_max), entries_max, lost: 0 }
    }

    /// Does it record?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.entries_max > 0
    }

    /// Keep an entry, or count it when there is no room: a record has no holes, it ends.
    pub fn push(&mut self, now: u64, call: Call, answer: Answer) {
        if self.entries.len() < self.entries_max {
            self.entries.push(Entry { now, call, answer });
        } else {
            self.lost += 1;
        }
    }

    /// The entries, first to last.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Calls made after the memory was full.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The names of [`Op`] in a record.
const OPS: &[(&str, Op)] =
    &[("read", Op::Read), ("write", Op::Write), ("discard", Op::Discard), ("flush", Op::Flush)];

/// The names of [`Flags`] in a record.
pub(crate) const FLAGS: &[(&str, Flags)] = &[
    ("sync", Flags::SYNC),
    ("meta", Flags::META),
    ("noidle", Flags::NOIDLE),
    ("fua", Flags::FUA),
    ("preflush", Flags::PREFLUSH),
    ("readahead", Flags::READAHEAD),
    ("nomerge", Flags::NOMERGE),
];

/// The names of classes in a record.
const CLASSES: &[(&str, IoClass)] =
    &[("rt", IoClass::RealTime), ("be", IoClass::BestEffort), ("idle", IoClass::Idle)];

fn class_name(class: IoClass) -> &'static str {
    CLASSES.iter().find(|(_, c)| *c == class).map_or("be", |(name, _)| name)
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}

struct Prio(IoPrio);

impl fmt::Display for Prio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IoPrio::RealTime(level) => write!(f, "rt{level}"),
            IoPrio::BestEffort(level) => write!(f, "be{level}"),
            IoPrio::Idle => f.write_str("idle"),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OPS.iter().find(|(_, op)| *op == self.op).map_or("read", |(name, _)| name))?;
        for (name, flag) in FLAGS {
            if self.flags.contains(*flag) {
                write!(f, " {name}")?;
            }
        }
        let Arrival { sector, sectors, context, group, .. } = self;
        let own = if self.own { " own" } else { "" };
        write!(f, "{own} {sector}+{sectors} ctx={context} grp={group} {}", Prio(self.ioprio))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Insert(arrival) => write!(f, "insert {arrival}"),
            Call::InsertHead(arrival) => write!(f, "insert-head {arrival}"),
            Call::IssueAround(arrival) => write!(f, "issue-around {arrival}"),
            Call::Dispatch => f.write_str("dispatch"),
            Call::Fill { slot, sector, sectors } => write!(f, "fill {slot} {sector}+{sectors}"),
            Call::Complete(slot) => write!(f, "complete {slot}"),
            Call::TakeBack(slot) => write!(f, "take-back {slot}"),
            Call::InsertAgain(slot) => write!(f, "insert-again {slot}"),
            Call::AllowMerge(slot, bio) => write!(f, "allow-merge {slot} {bio}"),
            Call::FindFront(bio) => write!(f, "find-front {bio}"),
            Call::Grew { slot, front, sector, sectors } => {
                write!(f, "grew {slot} {} {sector}+{sectors}", if *front { "front" } else { "back" })
            }
            Call::Absorbed { slot, gone, sectors } => write!(f, "absorbed {slot} {gone} {sectors}"),
            Call::Former(slot) => write!(f, "former {slot}"),
            Call::Latter(slot) => write!(f, "latter {slot}"),
            Call::ContextNew { group, ioprio } => write!(f, "context-new {} grp={group}", Prio(*ioprio)),
            Call::ContextExit(context) => write!(f, "context-exit {context}"),
            Call::YieldTo(from, Some(to)) => write!(f, "yield {from} {to}"),
            Call::YieldTo(from, None) => write!(f, "yield {from} -"),
            Call::GroupNew { parent, weight, class } => {
                write!(f, "group-new {parent} {weight} {}", class_name(*class))
            }
            Call::GroupSet { group, weight, class } => {
                write!(f, "group-set {group} {weight} {}", class_name(*class))
            }
            Call::GroupLeaf { group, weight } => write!(f, "group-leaf {group} {weight}"),
            Call::GroupRemove(group) => write!(f, "group-remove {group}"),
            Call::GroupLimit { group, direction, rates: Rates { bytes_per_s, ios_per_s } } => {
                write!(f, "group-limit {group} {} {bytes_per_s} {ios_per_s}", direction_name(*direction))
            }
            Call::Ask { group, direction, bytes } => {
                write!(f, "ask {group} {} {bytes}", direction_name(*direction))
            }
            Call::Refund { group, direction, bytes } => {
                write!(f, "refund {group} {} {bytes}", direction_name(*direction))
            }
            Call::LetIn => f.write_str("let-in"),
            Call::Charge { group, direction, bytes, whole } => {
                let part = if *whole { "whole" } else { "rest" };
                write!(f, "charge {group} {} {bytes} {part}", direction_name(*direction))
            }
            Call::Set(index, value) => write!(f, "set {index} {value}"),
            Call::Flushing(flushing) => write!(f, "flushing {}", if *flushing { "yes" } else { "no" }),
            Call::RequestSlots { all, for_async } => write!(f, "request-slots {all} {for_async}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::None => f.write_str("-"),
            Answer::Number(number) => write!(f, "{number}"),
            Answer::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            Answer::Idle(until) => write!(f, "idle {until}"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.now, self.call, self.answer)
    }
}

/// An entry from its line; `None` when the line is none.
pub fn parse_entry(line: &str) -> Option<Entry> {
    let (left, answer) = line.split_once(" -> ")?;
    let (now, call) = left.split_once(' ')?;
    Some(Entry { now: now.parse().ok()?, call: parse_call(call)?, answer: parse_answer(answer)? })
}

fn parse_answer(text: &str) -> Option<Answer> {
    match text {
        "-" => Some(Answer::None),
        "yes" => Some(Answer::Flag(true)),
        "no" => Some(Answer::Flag(false)),
        _ => match text.strip_prefix("idle ") {
            Some(until) => Some(Answer::Idle(until.parse().ok()?)),
            None => Some(Answer::Number(text.parse().ok()?)),
        },
    }
}

/// The words of a call, taken one after the other.
struct Words<'a>(core::str::SplitWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    fn number<T: core::str::FromStr>(&mut self) -> Option<T> {
        self.word()?.parse().ok()
    }

    fn extent(&mut self) -> Option<(u64, u32)> {
        extent(self.word()?)
    }

    fn ioprio(&mut self) -> Option<IoPrio> {
        let word = self.word()?;
        match word.split_at_checked(2)? {
            ("rt", level) => Some(IoPrio::RealTime(level.parse().ok()?)),
            ("be", level) => Some(IoPrio::BestEffort(level.parse().ok()?)),
            _ => (word == "idle").then_some(IoPrio::Idle),
        }
    }

    fn class(&mut self) -> Option<IoClass> {
        let name = self.word()?;
        CLASSES.iter().find(|(n, _)| *n == name).map(|(_, class)| *class)
    }

    fn direction(&mut self) -> Option<Direction> {
        let name = self.word()?;
        Direction::ALL.into_iter().find(|direction| direction_name(*direction) == name)
    }

    fn arrival(&mut self) -> Option<Arrival> {
        let name = self.word()?;
        let (_, op) = OPS.iter().find(|(n, _)| *n == name)?;
        let mut flags = Flags::NONE;
        let mut own = false;
        let (sector, sectors) = loop {
            let word = self.word()?;
            match FLAGS.iter().find(|(n, _)| *n == word) {
                Some((_, flag)) => flags.insert(*flag),
                None if word == "own" => own = true,
                None => break extent(word)?,
            }
        };
        let context = self.word()?.strip_prefix("ctx=")?.parse().ok()?;
        let group = self.word()?.strip_prefix("grp=")?.parse().ok()?;
        Some(Arrival { op: *op, flags, sector, sectors, context, group, own, ioprio: self.ioprio()? })
    }
}

fn extent(word: &str) -> Option<(u64, u32)> {
    let (sector, sectors) = word.split_once('+')?;
    Some((sector.parse().ok()?, sectors.parse().ok()?))
}

/// A call from its words; `None` when they name none.
pub fn parse_call(text: &str) -> Option<Call> {
    let mut words = Words(text.split_whitespace());
    Some(match words.word()? {
        "insert" => Call::Insert(words.arrival()?),
        "insert-head" => Call::InsertHead(words.arrival()?),
        "issue-around" => Call::IssueAround(words.arrival()?),
        "dispatch" => Call::Dispatch,
        "fill" => {
            let slot = words.number()?;
            let (sector, sectors) = words.extent()?;
            Call::Fill { slot, sector, sectors }
        }
        "complete" => Call::Complete(words.number()?),
        "take-back" => Call::TakeBack(words.number()?),
        "insert-again" => Call::InsertAgain(words.number()?),
        "allow-merge" => Call::AllowMerge(words.number()?, words.arrival()?),
        "find-front" => Call::FindFront(words.arrival()?),
        "grew" => {
            let slot = words.number()?;
            let front = words.word()? == "front";
            let (sector, sectors) = words.extent()?;
            Call::Grew { slot, front, sector, sectors }
        }
        "absorbed" => {
            Call::Absorbed { slot: words.number()?, gone: words.number()?, sectors: words.number()? }
        }
        "former" => Call::Former(words.number()?),
        "latter" => Call::Latter(words.number()?),
        "context-new" => {
            let ioprio = words.ioprio()?;
            // Up to format 2 a task began in the root.
            let group = words.word().map_or(Some(0), |word| word.strip_prefix("grp=")?.parse().ok())?;
            Call::ContextNew { group, ioprio }
        }
        "context-exit" => Call::ContextExit(words.number()?),
        "yield" => Call::YieldTo(words.number()?, words.number()),
        "group-new" => {
            Call::GroupNew { parent: words.number()?, weight: words.number()?, class: words.class()? }
        }
        "group-set" => {
            Call::GroupSet { group: words.number()?, weight: words.number()?, class: words.class()? }
        }
        "group-leaf" => Call::GroupLeaf { group: words.number()?, weight: words.number()? },
        "group-remove" => Call::GroupRemove(words.number()?),
        "group-limit" => {
            let (group, direction) = (words.number()?, words.direction()?);
            let rates = Rates { bytes_per_s: words.number()?, ios_per_s: words.number()? };
            Call::GroupLimit { group, direction, rates }
        }
        "ask" => Call::Ask { group: words.number()?, direction: words.direction()?, bytes: words.number()? },
        "refund" => {
            Call::Refund { group: words.number()?, direction: words.direction()?, bytes: words.number()? }
        }
        "let-in" => Call::LetIn,
        "flushing" => Call::Flushing(words.word()? == "yes"),
        "request-slots" => Call::RequestSlots { all: words.number()?, for_async: words.number()? },
        "charge" => Call::Charge {
            group: words.number()?,
            direction: words.direction()?,
            bytes: words.number()?,
            whole: words.word()? == "whole",
        },
        "set" => Call::Set(words.number()?, words.number()?),
        _ => return None,
    })
}
