//! Limits of groups in the module: bios wait before they are requests, in lines that the module keeps, one for each group and
//! direction. The core knows of each line whether it is empty, and how much its first bio carries; it says when that one
//! may go. So a limit holds neither slots nor tags, however many wait, and no table bounds how many do.
//!
//! A host asks for a bio ([`Host::ask`]), puts it at the end of the line that the answer names, asks for the first of the line again when
//! one has left it, and releases the one that [`Host::let_in`] names.

use fairlift_core::GroupId;
use fairlift_core::collections::{Id, Table};
use fairlift_core::group::Groups;
use fairlift_core::group::limit::{Answer as Asked, Direction, Entered, Limiter, Rates};

use crate::host::Host;
use crate::record::{Answer, Call};

/// A line: `2 x group + direction`, reads first.
pub type Line = u32;

/// What [`Host::let_in`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetIn {
    /// The first of this line goes, and is charged.
    Go(Line),
    /// No line before this time.
    Idle(u64),
    /// No line waits, or another call will say what they wait for.
    Nobody,
}

/// The core's part of the lines.
pub(crate) struct Lines {
    limiter: Limiter<Line>,
    /// By line: does the limiter know its first?
    known: Table<bool>,
}

fn line(group: GroupId, direction: Direction) -> Line {
    (2 * group.index() + direction as usize) as Line
}

fn group_of(line: Line) -> GroupId {
    GroupId::from_index(line as usize / 2)
}

impl Lines {
    pub(crate) fn new(groups: &Groups) -> Lines {
        let lines = 2 * groups.slots();
        Lines { limiter: Limiter::sharing(groups.slots(), lines), known: Table::new(false, lines) }
    }

    /// The first of any line goes: there are no limits any more.
    fn any(&mut self) -> LetIn {
        let Some(line) = self.known.iter().position(|known| *known) else { return LetIn::Nobody };
        self.known[line] = false;
        LetIn::Go(line as Line)
    }

    pub(crate) fn removed(&mut self, groups: &Groups, group: GroupId, now: u64) {
        self.limiter.removed(groups, group, now);
    }
}

impl Host {
    /// How many lines there can be.
    pub fn lines(&self) -> usize {
        self.lines.known.len()
    }

    /// Has any group a limit, or waits for one that was?
    pub fn limits_are_used(&self) -> bool {
        !self.has_given_up() && self.lines.limiter.is_used()
    }

    /// Has the group, or one above it, a limit?
    pub fn is_limited(&self, number: u32, direction: Direction) -> bool {
        if self.has_given_up() {
            return false;
        }
        let groups = self.queue.groups();
        let group = groups.known(GroupId::from_index(number as usize));
        groups.path(group).any(|at| self.lines.limiter.rates(groups, at, direction) != Rates::NONE)
    }

    /// Limit what a group and those below it send; `None` when there is no such group. Call [`Host::let_in`].
    pub fn group_limit(&mut self, number: u32, direction: Direction, rates: Rates, now: u64) -> Option<u32> {
        let now = self.enter(now);
        if self.has_given_up() {
            return None;
        }
        let group = GroupId::from_index(number as usize);
        let known = self.queue.groups().known(group) == group;
        let answer = known.then_some(number);
        if known {
            self.lines.limiter.set(self.queue.groups(), group, direction, rates, now);
        }
        self.note(Call::GroupLimit { group: number, direction, rates }, Answer::number(answer));
        answer
    }

    /// May a bio with so many bytes go? `None`: it goes, and is charged. Else the line at whose end it waits; if the line was
    /// empty before, the core knows of it now.
    pub fn ask(&mut self, number: u32, direction: Direction, bytes: u64, now: u64) -> Option<Line> {
        let now = self.enter(now);
        if self.has_given_up() {
            return None;
        }
        let group = self.queue.groups().known(GroupId::from_index(number as usize));
        let place = line(group, direction);
        let Lines { limiter, known } = &mut self.lines;
        let waits = known[place as usize]
            || limiter.ask(self.queue.groups(), group, direction, bytes, place, now) != Asked::Go;
        if waits && !known[place as usize] {
            known[place as usize] = true;
            self.queue.hold_group(group);
        }
        let answer = waits.then_some(place);
        self.note(Call::Ask { group: number, direction, bytes }, Answer::number(answer));
        answer
    }

    /// The line that may send now: one at each call. Then [`Host::ask`] for the first of that line now.
    pub fn let_in(&mut self, now: u64) -> LetIn {
        let now = self.enter(now);
        if self.has_given_up() {
            return self.lines.any();
        }
        let limiter = &mut self.lines.limiter;
        let mut round = limiter.begin(self.queue.groups(), now);
        let next = limiter.next(self.queue.groups(), &mut round);
        let answer = if let Some(line) = next {
            limiter.settle(self.queue.groups(), &mut round, Entered::Yes);
            self.lines.known[line as usize] = false;
            self.queue.drop_group(group_of(line));
            LetIn::Go(line)
        } else {
            limiter.end(round).map_or(LetIn::Nobody, LetIn::Idle)
        };
        self.note(Call::LetIn, answer.into());
        answer
    }

    /// A bio that may not be held up goes, and is charged. If not `whole` it is the rest of one of which a part went before
    /// ([`Limiter::charge_rest`]).
    pub fn charge(&mut self, number: u32, direction: Direction, bytes: u64, whole: bool, now: u64) {
        let now = self.enter(now);
        if self.has_given_up() {
            return;
        }
        let groups = self.queue.groups();
        let group = groups.known(GroupId::from_index(number as usize));
        if whole {
            self.lines.limiter.charge(groups, group, direction, bytes, now);
        } else {
            self.lines.limiter.charge_rest(groups, group, direction, bytes, now);
        }
        self.note(Call::Charge { group: number, direction, bytes, whole }, Answer::None);
    }

    /// What [`Host::ask`] let go with so many bytes turned out to be nothing: it is not charged. Call [`Host::let_in`].
    pub fn refund(&mut self, number: u32, direction: Direction, bytes: u64, now: u64) {
        let now = self.enter(now);
        if self.has_given_up() {
            return;
        }
        let groups = self.queue.groups();
        let group = groups.known(GroupId::from_index(number as usize));
        self.lines.limiter.refund(groups, group, direction, bytes, now);
        self.note(Call::Refund { group: number, direction, bytes }, Answer::None);
    }
}
