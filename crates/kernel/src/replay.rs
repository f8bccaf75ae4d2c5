//! Does the core decide in the lab as it did in the kernel? Feeds a record, as text, to a fresh queue and compares every
//! answer.

use core::fmt;

use fairlift_core::elevator;

use crate::host::{Host, Setup};
use crate::record::{Answer, Call, Entry, parse_entry};

/// The first word of a record, with the version of its format.
const MAGIC: &str = "fairlift-record-5";
/// The one before it, which is read as well unless there are limits in it: these held requests back, inside the core.
const MAGIC_4: &str = "fairlift-record-4";
/// Before that `fairness` was off by default, and what goes to the head was inserted like any
/// other where there could be groups.
const MAGIC_3: &str = "fairlift-record-3";
/// Before that no call said in which group a task begins, and what goes to the head went before all.
const MAGIC_2: &str = "fairlift-record-2";

/// The line about a queue with which its record begins.
pub struct Header<'a>(pub &'a Setup);

impl fmt::Display for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { elevator, profile, requests_max, contexts_max, groups_max, rotational, .. } = self.0;
        let profile = if profile.is_empty() { "-" } else { profile };
        let rotational = u8::from(*rotational);
        write!(
            f,
            "{MAGIC} elevator={elevator} profile={profile} requests={requests_max} contexts={contexts_max} \
             groups={groups_max} rotational={rotational}"
        )
    }
}

/// The version of a record, and what its queue was built from.
fn parse_header(line: &str) -> Option<(u32, Setup)> {
    let mut words = line.split_whitespace();
    let version = match words.next()? {
        MAGIC => 5,
        MAGIC_4 => 4,
        MAGIC_3 => 3,
        MAGIC_2 => 2,
        _ => return None,
    };
    let mut value = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=');
    let descriptor = elevator::find(value("elevator")?)?;
    let profile = value("profile")?;
    let setup = Setup {
        elevator: descriptor.name,
        profile: descriptor.profiles.iter().find(|p| **p == profile).copied().unwrap_or(""),
        requests_max: value("requests")?.parse().ok()?,
        contexts_max: value("contexts")?.parse().ok()?,
        groups_max: value("groups")?.parse().ok()?,
        records_max: 0,
        rotational: value("rotational")? == "1",
    };
    Some((version, setup))
}

/// What a replay went through without a difference.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// Calls.
    pub calls: u64,
    /// Of these, questions for the next request.
    pub decisions: u64,
    /// Of these, requests given to the device.
    pub issued: u64,
    /// Of these, times it waited although something was queued.
    pub idled: u64,
}

/// Why a record was not replayed to its end. Lines count from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disagreement {
    /// The first line is not a record's.
    NoRecord,
    /// This line is no call.
    NoCall(usize),
    /// This line sets a limit, in a record of a format in which limits meant something else.
    OldLimits(usize),
    /// The core answered differently.
    Differs {
        /// The line.
        line: usize,
        /// What was recorded.
        recorded: Entry,
        /// The answer now.
        now: Answer,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::NoRecord => write!(f, "line 1: a record starts with '{MAGIC} elevator=...'"),
            Disagreement::NoCall(line) => write!(f, "line {line}: not a call of the core"),
            Disagreement::OldLimits(line) => {
                write!(f, "line {line}: limits are replayed from records that start with '{MAGIC}' only")
            }
            Disagreement::Differs { line, recorded, now } => {
                write!(f, "line {line}: the kernel recorded '{recorded}', the core now answers '{now}'")
            }
        }
    }
}

/// Feed a record to a fresh queue.
///
/// # Errors
/// The first line that is none, or where the core answers differently.
pub fn replay(text: &str) -> Result<Agreement, Disagreement> {
    let mut lines = text.lines();
    let (version, setup) = lines.next().and_then(parse_header).ok_or(Disagreement::NoRecord)?;
    let mut host = Host::new(setup).ok_or(Disagreement::NoRecord)?;
    if version < 4 {
        host = host.with_former_defaults();
    }
    let mut seen = Agreement::default();
    for (index, line) in lines.enumerate() {
        let recorded = parse_entry(line).ok_or(Disagreement::NoCall(index + 2))?;
        if version < 5 && matches!(recorded.call, Call::GroupLimit { .. }) {
            return Err(Disagreement::OldLimits(index + 2));
        }
        let call = match recorded.call {
            Call::InsertHead(arrival) if version == 3 && setup.groups_max > 0 => Call::Insert(arrival),
            call => call,
        };
        let now = answer(&mut host, recorded.now, call);
        if now != recorded.answer {
            return Err(Disagreement::Differs { line: index + 2, recorded, now });
        }
        seen.calls += 1;
        if recorded.call == Call::Dispatch {
            seen.decisions += 1;
            seen.issued += u64::from(matches!(now, Answer::Number(_)));
            seen.idled += u64::from(matches!(now, Answer::Idle(_)));
        }
    }
    Ok(seen)
}

/// Make one call.
fn answer(host: &mut Host, now: u64, call: Call) -> Answer {
    match call {
        Call::Insert(arrival) => return Answer::number(host.insert(&arrival, now)),
        Call::InsertHead(arrival) => return Answer::number(host.insert_head(&arrival, now)),
        Call::IssueAround(arrival) => return Answer::number(host.issue_around(&arrival, now)),
        Call::Dispatch => return host.dispatch(now).into(),
        Call::AllowMerge(slot, bio) => return Answer::Flag(host.allow_merge(slot, &bio, now)),
        Call::FindFront(bio) => return Answer::number(host.find_front(&bio, now)),
        Call::Former(slot) => return Answer::number(host.former(slot, now)),
        Call::Latter(slot) => return Answer::number(host.latter(slot, now)),
        Call::ContextNew { group, ioprio } => return Answer::Number(host.context_new(group, ioprio).into()),
        Call::GroupNew { parent, weight, class } => {
            return Answer::number(host.group_new(parent, weight, class));
        }
        Call::GroupSet { group, weight, class } => host.group_set(group, weight, class),
        Call::GroupLeaf { group, weight } => host.group_leaf(group, weight),
        Call::GroupRemove(group) => host.group_remove(group, now),
        Call::Fill { slot, sector, sectors } => host.fill(slot, sector, sectors, now),
        Call::Complete(slot) => host.complete(slot, now),
        Call::TakeBack(slot) => host.take_back(slot, now),
        Call::InsertAgain(slot) => host.insert_again(slot),
        Call::Grew { slot, front, sector, sectors } => host.grew(slot, front, sector, sectors, now),
        Call::Absorbed { slot, gone, sectors } => host.absorbed(slot, gone, sectors, now),
        Call::ContextExit(context) => host.context_exit(context, now),
        Call::YieldTo(from, to) => host.yield_to(from, to, now),
        Call::GroupLimit { group, direction, rates } => {
            return Answer::number(host.group_limit(group, direction, rates, now));
        }
        Call::Ask { group, direction, bytes } => {
            return Answer::number(host.ask(group, direction, bytes, now));
        }
        Call::Refund { group, direction, bytes } => host.refund(group, direction, bytes, now),
        Call::LetIn => return host.let_in(now).into(),
        Call::Charge { group, direction, bytes, whole } => {
            host.charge(group, direction, bytes, whole, now);
        }
        Call::Flushing(flushing) => host.flushing(flushing, now),
        Call::RequestSlots { all, for_async } => host.request_slots(all, for_async, now),
        Call::Set(index, value) => host.set(index as usize, value),
    }
    Answer::None
}
