//! Puts the events of one I/O together: queue, get request, insert or merge, issue, complete.
//!
//! The intervals are btt's, so that its figures can be checked against ours. A bio is found again by device and first
//! sector at its allocation, insertion or merge. At issue and completion a request's bios are those that lie end to end
//! from its first sector to its last; failing that, all that lie inside it. Events of zero bytes (flushes, the end of a
//! flush sequence) are left out.
//!
//! Where bios overlap (a read inside a readahead in flight) btt mixes them up: it takes any bio around the sector and
//! all inside the request. And a split cuts the bio in two here, each queued when the whole was, where btt keeps the
//! whole, which then never completes and takes the events of later I/O to the same place. Without overlaps and splits
//! the figures agree to the nanosecond.

use std::collections::{BTreeMap, VecDeque};

use crate::event::{Action, Device, Event, Flags, Op};
use crate::names::Text;

/// A stretch of an I/O's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interval {
    /// Queued until a request was allocated.
    Q2G,
    /// Slept for a free request until it was allocated.
    S2G,
    /// Allocated until inserted into the elevator: plugged.
    G2I,
    /// Queued until merged into an older request.
    Q2M,
    /// Inserted until issued: in the elevator.
    I2D,
    /// Merged until issued.
    M2D,
    /// Issued until complete: in the device.
    D2C,
    /// Queued until complete: all of it.
    Q2C,
}

impl Interval {
    /// All, in the order btt prints them.
    pub const ALL: [Self; 8] =
        [Self::Q2G, Self::S2G, Self::G2I, Self::Q2M, Self::I2D, Self::M2D, Self::D2C, Self::Q2C];

    /// btt's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Q2G => "Q2G",
            Self::S2G => "S2G",
            Self::G2I => "G2I",
            Self::Q2M => "Q2M",
            Self::I2D => "I2D",
            Self::M2D => "M2D",
            Self::D2C => "D2C",
            Self::Q2C => "Q2C",
        }
    }
}

/// A bio on its way.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    /// When it was queued, ns. Without queue events: when it was first seen.
    pub queued_ns: u64,
    /// Its queueing was seen.
    pub has_queued: bool,
    /// When its submitter went to sleep for a request.
    pub slept_ns: Option<u64>,
    /// When a request was allocated for it.
    pub allocated_ns: Option<u64>,
    /// When it was inserted.
    pub inserted_ns: Option<u64>,
    /// When it was merged.
    pub merged_ns: Option<u64>,
    /// When it was issued.
    pub issued_ns: Option<u64>,
    /// On what.
    pub device: Device,
    /// Where.
    pub sector: u64,
    /// How much.
    pub bytes: u64,
    /// Who queued it.
    pub pid: Option<u32>,
    /// Their name.
    pub comm: Option<Text>,
    /// The CPU it was queued on.
    pub cpu: Option<u32>,
    /// What.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// A running number; the parts of a split keep that of the whole.
    pub number: u64,
    /// The second part of a split. Old kernels queue it once more.
    is_remainder: bool,
}

impl Bio {
    /// A bio as its first event tells of it.
    pub(crate) fn of(event: &Event, issued_ns: Option<u64>) -> Self {
        Self {
            queued_ns: event.time_ns,
            has_queued: event.action == Action::Queue,
            slept_ns: None,
            allocated_ns: None,
            inserted_ns: None,
            merged_ns: None,
            issued_ns,
            device: event.device,
            sector: event.sector,
            bytes: event.bytes,
            pid: event.pid,
            comm: event.comm,
            cpu: event.cpu,
            op: event.op,
            flags: event.flags,
            number: 0,
            is_remainder: false,
        }
    }
}

impl Bio {
    fn end_sector(&self) -> u64 {
        self.sector.saturating_add(self.bytes.div_ceil(512))
    }

    /// Ends this bio at sector `to` and gives the rest; `None` when `to` is not inside.
    fn cut(&mut self, to: u64) -> Option<Self> {
        let first_bytes = to.checked_sub(self.sector)?.checked_mul(512).filter(|&bytes| bytes > 0)?;
        let rest_bytes = self.bytes.checked_sub(first_bytes).filter(|&bytes| bytes > 0)?;
        self.bytes = first_bytes;
        Some(Self { sector: to, bytes: rest_bytes, is_remainder: true, ..*self })
    }
}

/// What a tracker has to tell.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A bio arrived: it was queued, or, in a trace without queue events, inserted or issued.
    Arrived(&'a Bio),
    /// An interval ended, of so many ns.
    Interval(Interval, u64, &'a Bio),
    /// One bio became two; this is the second.
    Split(&'a Bio),
    /// The bio is done at this time, ns.
    Done(&'a Bio, u64),
}

/// Follows bios from queue to completion in bounded memory.
#[derive(Debug)]
pub struct Tracker {
    /// By device, first sector, and a running number, since one sector may be queued twice.
    bios: BTreeMap<(Device, u64, u64), Bio>,
    /// Oldest first; names bios that may be gone.
    ages: VecDeque<(Device, u64, u64)>,
    next: u64,
    /// Bios that arrived.
    opened: u64,
    limit: usize,
    forgotten: u64,
    /// Queue events were seen. Traces without them are followed from insertion or issue on.
    has_queue: bool,
    /// Room for [`Self::find`].
    found: Vec<(Device, u64, u64)>,
}

impl Default for Tracker {
    fn default() -> Self {
        Self::new(1 << 18)
    }
}

impl Tracker {
    /// Follows at most `limit` bios; the oldest are forgotten past it.
    pub fn new(limit: usize) -> Self {
        Self {
            bios: BTreeMap::new(),
            ages: VecDeque::new(),
            next: 0,
            opened: 0,
            limit,
            forgotten: 0,
            has_queue: false,
            found: Vec::new(),
        }
    }

    /// Bios that were forgotten because too many were open, or because the recorder lost events while they were.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Bios queued and not complete.
    pub fn open(&self) -> usize {
        self.bios.len()
    }

    /// Takes the next event and tells what it ends.
    pub fn event(&mut self, event: &Event, mut tell: impl FnMut(Step<'_>)) {
        let now = event.time_ns;
        match event.action {
            Action::Queue if event.bytes > 0 => {
                self.has_queue = true;
                match self.at(event).filter(|bio| bio.is_remainder && bio.allocated_ns.is_none()) {
                    Some(bio) => bio.is_remainder = false,
                    None => self.open_bio(event, &mut tell),
                }
            }
            Action::Split { to } => {
                if let Some(second) = self.at(event).and_then(|bio| bio.cut(to)) {
                    tell(Step::Split(&second));
                    self.insert(second);
                }
            }
            Action::GetRequest => {
                if let Some(bio) = self.at(event) {
                    bio.allocated_ns = Some(now);
                    tell(Step::Interval(Interval::Q2G, now.saturating_sub(bio.queued_ns), bio));
                    if let Some(slept_ns) = bio.slept_ns {
                        tell(Step::Interval(Interval::S2G, now.saturating_sub(slept_ns), bio));
                    }
                }
            }
            Action::SleepRequest => {
                if let Some(bio) = self.at(event) {
                    bio.slept_ns = Some(now);
                }
            }
            Action::Insert => {
                if !self.has_queue {
                    self.open_bio(event, &mut tell);
                }
                if let Some(bio) = self.at(event) {
                    bio.inserted_ns = Some(now);
                    if let Some(allocated_ns) = bio.allocated_ns {
                        tell(Step::Interval(Interval::G2I, now.saturating_sub(allocated_ns), bio));
                    }
                }
            }
            Action::BackMerge | Action::FrontMerge => {
                if let Some(bio) = self.at(event) {
                    bio.merged_ns = Some(now);
                    tell(Step::Interval(Interval::Q2M, now.saturating_sub(bio.queued_ns), bio));
                }
            }
            Action::Issue if event.bytes > 0 => {
                self.find(event);
                if self.found.is_empty() && !self.has_queue {
                    self.open_bio(event, &mut tell);
                    self.find(event);
                }
                for key in &self.found {
                    let Some(bio) = self.bios.get_mut(key) else { continue };
                    if let Some(inserted_ns) = bio.inserted_ns {
                        tell(Step::Interval(Interval::I2D, now.saturating_sub(inserted_ns), bio));
                    } else if let Some(merged_ns) = bio.merged_ns {
                        tell(Step::Interval(Interval::M2D, now.saturating_sub(merged_ns), bio));
                    }
                    bio.issued_ns = Some(now);
                }
            }
            Action::Complete if event.bytes > 0 => {
                self.find(event);
                for key in &self.found {
                    let Some(bio) = self.bios.remove(key) else { continue };
                    if bio.has_queued {
                        tell(Step::Interval(Interval::Q2C, now.saturating_sub(bio.queued_ns), &bio));
                    }
                    if let Some(issued_ns) = bio.issued_ns {
                        tell(Step::Interval(Interval::D2C, now.saturating_sub(issued_ns), &bio));
                    }
                    tell(Step::Done(&bio, now));
                }
            }
            // What was under way may be done by now, or merged, or be the same sectors again: nothing is paired across a gap.
            Action::Lost { .. } => {
                self.forgotten += self.bios.len() as u64;
                self.bios.clear();
                self.ages.clear();
            }
            _ => {}
        }
    }

    fn open_bio(&mut self, event: &Event, tell: &mut impl FnMut(Step<'_>)) {
        let bio = Bio { number: self.opened, ..Bio::of(event, None) };
        self.opened += 1;
        tell(Step::Arrived(&bio));
        self.insert(bio);
    }

    fn insert(&mut self, bio: Bio) {
        while self.bios.len() >= self.limit.max(1) {
            let Some(key) = self.ages.pop_front() else { break };
            self.forgotten += u64::from(self.bios.remove(&key).is_some());
        }
        // Forget the names of bios that are gone before there are twice as many as bios.
        if self.ages.len() > 2 * self.limit {
            let bios = &self.bios;
            self.ages.retain(|key| bios.contains_key(key));
        }
        let key = (bio.device, bio.sector, self.next);
        self.next += 1;
        self.ages.push_back(key);
        self.bios.insert(key, bio);
    }

    /// The bio that begins where the event does and has not come this far; else the oldest that begins there.
    fn at(&mut self, event: &Event) -> Option<&mut Bio> {
        let (device, sector) = (event.device, event.sector);
        let range = (device, sector, 0)..=(device, sector, u64::MAX);
        let waits = |bio: &Bio| match event.action {
            Action::Insert => bio.inserted_ns.is_none() && bio.merged_ns.is_none(),
            _ => bio.allocated_ns.is_none() && bio.merged_ns.is_none(),
        };
        let waiting = self.bios.range(range.clone()).find(|(_, bio)| waits(bio));
        let key = *waiting.or_else(|| self.bios.range(range).next())?.0;
        self.bios.get_mut(&key)
    }

    /// The bios of the request that is issued or complete, into `self.found`.
    fn find(&mut self, event: &Event) {
        self.found.clear();
        let (start, end) = (event.sector, event.end_sector());
        let is_complete = event.action == Action::Complete;
        let mut next = start;
        while next < end {
            let here = self.bios.range((event.device, next, 0)..=(event.device, next, u64::MAX));
            let fits = |bio: &Bio| {
                bio.end_sector() <= end && bio.issued_ns.is_some() == is_complete && bio.bytes > 0
            };
            let Some((key, bio)) = here.into_iter().find(|(_, bio)| fits(bio)) else { break };
            self.found.push(*key);
            next = bio.end_sector();
        }
        if next < end {
            self.found.clear();
            let range = (event.device, start, 0)..(event.device, end, 0);
            let inside = self.bios.range(range).filter(|(_, bio)| bio.end_sector() <= end);
            self.found.extend(inside.map(|(key, _)| *key));
        }
    }
}
