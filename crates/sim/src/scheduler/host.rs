//! Settings that are not the elevator's but the host's around it, and go with every scheduler: the request queue's `nomerges`,
//! what it is told of groups, and how groups take turns ([`fairlift_core::group::TUNABLES`]).

use fairlift_core::group::{self, Groups};
use fairlift_core::queue::NoMerges;
use fairlift_core::tunable::{SetError, Tunable, Unit};

use crate::group::Tracking;
use crate::kernel::Rules;

/// `queue/nomerges`; what the levels mean: [`NoMerges`].
static NOMERGES: Tunable = Tunable::new(
    "nomerges",
    Unit::Number,
    (0, 2),
    0,
    "do not look for merges: 1 beyond the last request, 2 at all",
);
static GROUPS: Tunable =
    Tunable::new("groups", Unit::Switch, (0, 1), 1, "is the queue told of groups? 0: all are the root's");
static TRACKING: Tunable = Tunable::new(
    "tracking",
    Unit::Choice(Tracking::WORDS),
    (0, 2),
    1,
    "whose a buffered write is: its submitter's, its first page's dirtier's, or its file's",
);

static FAIR_WRITEBACK: Tunable = Tunable::new(
    "fair_writeback",
    Unit::Switch,
    (0, 1),
    0,
    "writeback keeps to the groups' weights: who dirties pages is paused, and the flusher writes, by group",
);

/// The settings of the lab's own, in the order to show them; the core's of groups follow.
static OWN: [&Tunable; 4] = [&NOMERGES, &GROUPS, &TRACKING, &FAIR_WRITEBACK];

/// All of them.
pub fn tunables() -> impl Iterator<Item = &'static Tunable> + Clone {
    OWN.into_iter().chain(group::TUNABLES)
}

/// Those that were set, in the order of [`tunables`], as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSettings(Vec<(&'static str, u64, String)>);

impl HostSettings {
    /// As they come.
    pub const fn new() -> HostSettings {
        HostSettings(Vec::new())
    }

    /// Set one.
    ///
    /// # Errors
    /// A value it does not take; the old one stays.
    pub fn set(&mut self, tunable: &'static Tunable, value: &str) -> Result<(), SetError> {
        let stored = tunable.parse(value)?;
        self.0.retain(|(name, ..)| *name != tunable.name);
        self.0.push((tunable.name, stored, value.to_owned()));
        self.0.sort_by_key(|(name, ..)| tunables().position(|t| t.name == *name));
        Ok(())
    }

    fn stored(&self, tunable: &Tunable) -> Option<u64> {
        self.0.iter().find(|(name, ..)| *name == tunable.name).map(|(_, stored, _)| *stored)
    }

    /// How much to look for merges; `rules` may not know level 2.
    pub fn nomerges(&self, rules: &Rules) -> NoMerges {
        match NoMerges::from_sysfs(self.stored(&NOMERGES).unwrap_or(NOMERGES.default)) {
            NoMerges::All if !rules.nomerges_all => NoMerges::Simple,
            level => level,
        }
    }

    /// Is the request queue told of the groups there are?
    pub fn groups(&self) -> bool {
        self.stored(&GROUPS).unwrap_or(GROUPS.default) == 1
    }

    /// Whose a buffered write is.
    pub fn tracking(&self) -> Tracking {
        Tracking::from_stored(self.stored(&TRACKING).unwrap_or(TRACKING.default))
    }

    /// Does writeback keep to the groups' weights?
    pub fn fair_writeback(&self) -> bool {
        self.stored(&FAIR_WRITEBACK) == Some(1)
    }

    /// Hand the core those that are its own.
    pub fn apply(&self, groups: &mut Groups) {
        for (name, _, text) in &self.0 {
            if group::TUNABLES.iter().any(|t| t.name == *name) {
                // Checked when it was set.
                let _ = groups.set(name, text);
            }
        }
    }

    /// Names and values, as they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, _, text)| (*name, text.as_str()))
    }
}
