//! What schedulers are called, and by which kernels.
//!
//! 2.6 had noop, deadline, anticipatory and cfq. Linux 6.12 and 6.18 have none, mq-deadline, kyber and bfq; there this project's
//! elevators, which know groups, come from its module, under the names and with the profile that the module has.

use fairlift_core::elevator::{self, Descriptor};

use super::{SchedulerError, SchedulerSpec, listed, nearest};
use crate::kernel::Rules;

/// Whose kernels know a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// Linux 2.6.
    TwoSix,
    /// blk-mq: Linux 6.12 and 6.18.
    BlkMq,
    /// None: it is this project's own, and the lab runs it under any.
    Ours,
}

impl Era {
    /// Of a kernel.
    pub fn of(rules: &Rules) -> Era {
        if rules.blk_mq { Era::BlkMq } else { Era::TwoSix }
    }

    const fn label(self) -> &'static str {
        match self {
            Era::TwoSix => "the 2.6 kernels",
            Era::BlkMq => "6.12 and 6.18",
            Era::Ours => "fairlift",
        }
    }
}

/// Processor time of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// For each bio, nanoseconds.
    pub per_bio_ns: u64,
    /// Is it taken under one lock, so that only one processor can be at it?
    pub locked: bool,
}

impl Cost {
    const fn locked(per_bio_ns: u64) -> Cost {
        Cost { per_bio_ns, locked: true }
    }
}

/// A scheduler by its name.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// What it is called.
    pub word: &'static str,
    /// Whose kernels know it.
    pub era: Era,
    /// The elevator that decides.
    elevator: &'static str,
    /// The elevator's profile, if it does not follow the kernel, and settings that differ from the profile's.
    profile: Option<&'static str>,
    preset: &'static [(&'static str, &'static str)],
    /// What it costs the processor.
    cost: Cost,
    /// Does it switch writeback throttling off, unless the user sets `wbt_lat_usec`?
    without_wbt: bool,
    /// Under blk-mq, does it come with this project's module around it?
    in_module: bool,
    /// What is nearest in the other era, and why.
    nearest: &'static str,
    why: &'static str,
}

impl Name {
    const fn new(word: &'static str, era: Era, nearest: &'static str, why: &'static str) -> Name {
        Name {
            word,
            era,
            elevator: word,
            profile: None,
            preset: &[],
            cost: Cost { per_bio_ns: 0, locked: false },
            without_wbt: false,
            in_module: false,
            nearest,
            why,
        }
    }

    const fn ours(word: &'static str, elevator: &'static str, per_bio_ns: u64) -> Name {
        let why = "the module's elevators run in kernels with blk-mq";
        Name { elevator, in_module: true, ..Name::new(word, Era::BlkMq, elevator, why) }
            .costs(Cost::locked(per_bio_ns))
    }

    const fn costs(self, cost: Cost) -> Name {
        Name { cost, ..self }
    }

    const fn without_wbt(self) -> Name {
        Name { without_wbt: true, ..self }
    }

    /// Does it switch writeback throttling off, unless the user sets `wbt_lat_usec`?
    pub fn is_without_wbt(&self) -> bool {
        self.without_wbt || self.in_module
    }

    /// Under blk-mq, does it come with this project's module around it, which shares out tags?
    pub fn is_in_module(&self) -> bool {
        self.in_module
    }

    /// The elevator's profile, if it does not follow the kernel.
    pub fn profile(&self) -> Option<&'static str> {
        self.profile
    }

    /// Settings that differ from the profile's, by name.
    pub fn preset(&self) -> &'static [(&'static str, &'static str)] {
        self.preset
    }

    /// What it costs the processor.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The elevator that decides.
    pub fn descriptor(&self) -> Option<&'static Descriptor> {
        elevator::find(self.elevator)
    }
}

/// All names, in the order to show them. One whose elevator there is not is not shown.
///
/// Costs of the kernel's schedulers: processor time of a request beyond none's, measured on one machine (mq-deadline 0.49, kyber
/// 0.64, bfq 1.76 us). Of ours, derived: docs/kernel.md tells by how much a request takes longer than with none under each of
/// them and under mq-deadline, on a machine that is emulated; mq-deadline's cost is scaled by the ratio. 2.6's are part of that
/// kernel's time for an I/O. All but kyber's is spent under one lock for the whole queue.
const NAMES: [Name; 13] = [
    Name::new(
        "noop",
        Era::TwoSix,
        "none",
        "none is what came of it; fl-noop is noop with groups, by fairlift's module",
    ),
    Name::new(
        "deadline",
        Era::TwoSix,
        "mq-deadline",
        "mq-deadline is what came of it and knows no groups; fl-deadline is deadline with groups, by fairlift's module",
    ),
    Name::new(
        "anticipatory",
        Era::TwoSix,
        "fl-as",
        "it left Linux in 2.6.33; fl-as is the one of fairlift's module",
    ),
    Name::new(
        "cfq",
        Era::TwoSix,
        "fl-cfq",
        "it left Linux in 5.0, which has bfq for shares by weight; fl-cfq is the one of fairlift's module",
    ),
    Name::new("none", Era::BlkMq, "noop", "2.6 has no queue without a scheduler, noop does least"),
    Name::new("mq-deadline", Era::BlkMq, "deadline", "it came with blk-mq, in 4.11").costs(Cost::locked(490)),
    Name::new("kyber", Era::BlkMq, "deadline", "it came with blk-mq, in 4.12, and has no forerunner")
        .costs(Cost { per_bio_ns: 640, locked: false }),
    Name::new("bfq", Era::BlkMq, "cfq", "it came with blk-mq, in 4.12")
        .costs(Cost::locked(1760))
        .without_wbt(),
    Name::ours("fl-noop", "noop", 610),
    Name::ours("fl-deadline", "deadline", 600),
    Name::ours("fl-as", "anticipatory", 1280),
    // docs/kernel.md: cfq_version 2.6.37, group_isolation on.
    Name { profile: Some("2.6.37"), preset: &[("group_isolation", "1")], ..Name::ours("fl-cfq", "cfq", 970) },
    // One name under all kernels; in the module it is fl-fair. What it costs the processor stands in docs/kernel.md.
    Name { in_module: true, ..Name::new("fair", Era::Ours, "fl-cfq", "it is this project's own") },
];

/// The names there are.
pub fn all() -> impl Iterator<Item = &'static Name> + Clone {
    NAMES.iter().filter(|name| name.descriptor().is_some())
}

/// Those that kernels of `era` know; the lab's own are not among them.
pub fn of_era(era: Era) -> impl Iterator<Item = &'static Name> + Clone {
    all().filter(move |name| name.era == era)
}

/// The scheduler called `word`.
///
/// # Errors
/// With the names there are.
pub fn find(word: &str) -> Result<&'static Name, SchedulerError> {
    all().find(|name| name.word == word).ok_or_else(|| SchedulerError {
        word: word.to_owned(),
        message: format!("unknown scheduler '{word}'"),
        allowed: listed(all().map(|name| name.word)),
        nearest: nearest(word, all().map(|name| name.word)),
    })
}

/// Does the kernel of `rules` have a scheduler of this name? One that is no built-in suits every kernel.
///
/// # Errors
/// With what is nearest there, and why.
pub fn check(spec: &SchedulerSpec, rules: &Rules) -> Result<(), SchedulerError> {
    let era = Era::of(rules);
    let Some(name) =
        all().find(|name| name.word == spec.name()).filter(|name| name.era != era && name.era != Era::Ours)
    else {
        return Ok(());
    };
    Err(SchedulerError {
        word: name.word.to_owned(),
        message: format!(
            "Linux {} has no scheduler '{}', which belongs to {}: {}",
            rules.version,
            name.word,
            name.era.label(),
            name.why
        ),
        allowed: listed(of_era(era).chain(of_era(Era::Ours)).map(|name| name.word)),
        nearest: Some(name.nearest.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::version;

    #[test]
    fn what_is_nearest_is_a_name_of_the_other_era() {
        for name in NAMES.iter().filter(|name| name.era != Era::Ours) {
            let near = NAMES.iter().find(|near| near.word == name.nearest).expect("a name");
            assert_ne!(near.era, name.era, "{}", name.word);
        }
    }

    #[test]
    fn a_name_of_another_era_is_refused_with_the_nearest() {
        let check = |word: &str, kernel: &str| {
            let spec = SchedulerSpec::parse(word, "").expect("a scheduler");
            check(&spec, version::find(kernel).expect("a kernel")).err().and_then(|e| e.nearest)
        };
        assert_eq!(check("deadline", "6.12").as_deref(), Some("mq-deadline"));
        assert_eq!(check("noop:groups=0", "6.12").as_deref(), Some("none"));
        assert_eq!(check("cfq", "6.18").as_deref(), Some("fl-cfq"));
        assert_eq!([check("bfq", "6.18"), check("fl-deadline", "6.18")], [None, None]);
        assert_eq!(check("fl-cfq", "2.6.34").as_deref(), Some("cfq"));
        assert_eq!(check("kyber", "2.6.31").as_deref(), Some("deadline"));
        assert_eq!(check("mq-deadline", "6.12"), None);
        assert_eq!(check("cfq", "2.6.31"), None);
        assert_eq!([check("fair", "2.6.31"), check("fair", "6.12")], [None, None]);
    }

    /// The module's cfq is 2.6.37's, with group_isolation on, whatever kernel the lab plays.
    #[test]
    fn fl_cfq_is_the_modules() {
        let spec = SchedulerSpec::parse("fl-cfq:slice_idle=4", "2.6.31").expect("a scheduler");
        let config = elevator::Config::for_queue(8, 1, 0, 0);
        let mut built = spec.build(&config, "2.6.31");
        assert_eq!(built.setting("group_isolation").copied(), Some(1));
        assert_eq!(built.setting("slice_idle").copied(), Some(4_000_000));
        assert_eq!((spec.name(), spec.to_string().as_str()), ("fl-cfq", "fl-cfq:slice_idle=4"));
        assert_eq!(spec.descriptor().name, "cfq");
    }
}
