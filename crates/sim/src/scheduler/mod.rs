//! Which elevator, in which profile, with which settings: `cfq@2.6.34:slice_idle=0:quantum=8`. Some settings are not the
//! elevator's but the host's and go with all of them ([`host`]). A controller above the queue ([`crate::kernel::controller`])
//! follows a plus: `cfq:groups=0+dm-ioband:policy=weight-iosize`.

pub mod host;
pub mod names;

use std::fmt;

use fairlift_core::elevator::{self, AnyElevator, Config, Descriptor, Grouping};
use fairlift_core::tunable::{self, SetError, Tunable, Unit};

use crate::kernel::Rules;
use crate::kernel::controller::ControllerSpec;
use host::HostSettings;
use names::{Cost, Name};

/// An elevator as the user asked for it.
#[derive(Clone)]
pub struct SchedulerSpec {
    descriptor: &'static Descriptor,
    /// The name it was chosen by, if that is not the elevator's own.
    name: Option<&'static Name>,
    /// `None`: what the name or the kernel version implies.
    profile: Option<&'static str>,
    settings: Vec<(&'static str, String)>,
    host: HostSettings,
    controller: Option<ControllerSpec>,
}

impl PartialEq for SchedulerSpec {
    fn eq(&self, other: &SchedulerSpec) -> bool {
        let parts = |spec: &SchedulerSpec| (spec.name(), spec.profile);
        parts(self) == parts(other)
            && self.settings == other.settings
            && self.host == other.host
            && self.controller == other.controller
    }
}

impl Eq for SchedulerSpec {}

impl fmt::Debug for SchedulerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchedulerSpec({self})")
    }
}

/// What is wrong with the name of a scheduler or a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerError {
    /// The wrong word.
    pub word: String,
    /// What is wrong with it.
    pub message: String,
    /// What is allowed.
    pub allowed: String,
    /// The nearest right word.
    pub nearest: Option<String>,
}

impl fmt::Display for SchedulerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean '{nearest}'?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed)?;
        }
        Ok(())
    }
}

impl std::error::Error for SchedulerError {}

impl SchedulerSpec {
    /// An elevator with its default settings: a built-in one, or one of your own that the lab has never heard of.
    pub const fn of(descriptor: &'static Descriptor) -> SchedulerSpec {
        SchedulerSpec {
            descriptor,
            name: None,
            profile: None,
            settings: Vec::new(),
            host: HostSettings::new(),
            controller: None,
        }
    }

    /// Read what [`SchedulerSpec::parse`] reads, for a kernel that has to have it.
    ///
    /// # Errors
    /// As [`SchedulerSpec::parse`], or a name of another era.
    pub fn parse_for(text: &str, rules: &Rules) -> Result<SchedulerSpec, SchedulerError> {
        // Whose name belongs elsewhere has that to hear first, not that a setting is unknown.
        let name = text.split([':', '@', '+']).next().unwrap_or_default().trim();
        names::check(&SchedulerSpec::parse(name, rules.profile)?, rules)?;
        SchedulerSpec::parse(text, rules.profile)
    }

    /// Read `NAME[@PROFILE][:TUNABLE=VALUE]...[+CONTROLLER[:SETTING=VALUE]...]` for a kernel whose elevators default to the profile `implied`.
    ///
    /// # Errors
    /// Unknown elevator, profile or tunable, or a value it does not take.
    pub fn parse(text: &str, implied: &str) -> Result<SchedulerSpec, SchedulerError> {
        let (text, controller) = text.split_once('+').map_or((text, None), |(text, c)| (text, Some(c)));
        let mut parts = text.split(':');
        let head = parts.next().unwrap_or_default().trim();
        let (name, profile) = head.split_once('@').map_or((head, None), |(n, p)| (n, Some(p)));
        let (descriptor, found) = find_scheduler(name)?;
        let profile = profile.map(|p| find_profile(descriptor, p)).transpose()?;
        let controller = controller.map(ControllerSpec::parse).transpose()?;
        let mut spec =
            SchedulerSpec { name: Some(found), profile, controller, ..SchedulerSpec::of(descriptor) };
        for setting in parts {
            let (tunable, value) = setting.split_once('=').ok_or_else(|| SchedulerError {
                word: setting.to_owned(),
                message: format!("'{setting}' is not a setting of {name}"),
                allowed: format!("{name}:TUNABLE=VALUE"),
                nearest: None,
            })?;
            if spec.sets(tunable.trim()) {
                return Err(SchedulerError {
                    word: setting.to_owned(),
                    message: format!("{name}.{} is set twice", tunable.trim()),
                    allowed: String::new(),
                    nearest: None,
                });
            }
            spec.set(tunable.trim(), value.trim(), implied)?;
        }
        Ok(spec)
    }

    /// Change a setting, as `--set cfq.slice_idle=0` does; `implied` as in [`SchedulerSpec::parse`].
    ///
    /// # Errors
    /// Unknown tunable, or a value it does not take.
    pub fn set(&mut self, tunable: &str, value: &str, implied: &str) -> Result<(), SchedulerError> {
        let list = (self.descriptor.tunables)(self.profile(implied));
        let Some(found) = tunable::find(list, tunable) else {
            return self.set_host(list, tunable, value);
        };
        found.parse(value).map_err(|e| refused(self.name(), found, value, e))?;
        self.settings.retain(|(name, _)| *name != found.name);
        self.settings.push((found.name, value.to_owned()));
        Ok(())
    }

    /// Was this tunable set, of the elevator or of the host?
    fn sets(&self, tunable: &str) -> bool {
        self.settings().chain(self.host.iter()).any(|(name, _)| name == tunable)
    }

    /// Change a setting of the host around the elevator, whose own are `list`.
    fn set_host(&mut self, list: &'static [Tunable], name: &str, value: &str) -> Result<(), SchedulerError> {
        let Some(found) = host::tunables().find(|t| t.name == name) else {
            let all = || list.iter().chain(host::tunables()).map(|t| t.name);
            return Err(SchedulerError {
                word: name.to_owned(),
                message: format!("{} has no tunable '{name}'", self.name()),
                allowed: listed(all()),
                nearest: nearest(name, all()),
            });
        };
        self.host.set(found, value).map_err(|e| refused(self.name(), found, value, e))
    }

    /// The controller above the queue, if there is one.
    pub fn controller(&self) -> Option<&ControllerSpec> {
        self.controller.as_ref()
    }

    /// What it is called: by its elevator's name, or another one of [`names`].
    pub fn name(&self) -> &'static str {
        self.name.map_or(self.descriptor.name, |name| name.word)
    }

    /// The elevator's profile where the kernel implies `implied`.
    fn profile<'a>(&self, implied: &'a str) -> &'a str {
        self.profile.or(self.name.and_then(Name::profile)).unwrap_or(implied)
    }

    /// The smallest of its kind, to ask what it is.
    fn specimen(&self) -> AnyElevator {
        (self.descriptor.build)(&Config::for_queue(1, 1, 0, 0), "")
    }

    /// Does its elevator know groups?
    pub fn knows_groups(&self) -> bool {
        self.specimen().grouping() != Grouping::Blind
    }

    /// Is it no scheduler at all, so that requests go straight to the device?
    pub fn is_direct(&self) -> bool {
        matches!(self.specimen(), AnyElevator::Direct(_))
    }

    /// What it costs the processor.
    pub fn cost(&self) -> Cost {
        let measured = self.name.map_or(Cost::default(), Name::cost);
        let set = self.host.scheduler_cpu_ns();
        Cost { per_bio_ns: set.unwrap_or(measured.per_bio_ns), ..measured }
    }

    /// Does it switch writeback throttling off, unless the user sets `wbt_lat_usec`?
    pub fn is_without_wbt(&self) -> bool {
        self.name.is_some_and(Name::is_without_wbt)
    }

    /// Under blk-mq, does it come with this project's module around it, which shares out tags?
    pub fn is_in_module(&self) -> bool {
        self.name.is_some_and(Name::is_in_module)
    }

    /// Its description.
    pub fn descriptor(&self) -> &'static Descriptor {
        self.descriptor
    }

    /// Whose kernels know its name; `None`: it is no built-in.
    pub fn era(&self) -> Option<names::Era> {
        self.name.map(|name| name.era)
    }

    /// The profile that was asked for, if one was.
    pub fn asked_profile(&self) -> Option<&'static str> {
        self.profile
    }

    /// The elevator's own settings as they were asked for.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.settings.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Does it obey yields (`yield=1`)?
    pub fn yields(&self) -> bool {
        self.settings().any(|(name, value)| name == "yield" && value != "0")
    }

    /// Settings of the host around it.
    pub fn host(&self) -> &HostSettings {
        &self.host
    }

    /// Build it for a kernel whose elevators default to `profile`.
    pub fn build(&self, config: &Config, profile: &str) -> AnyElevator {
        let mut built = (self.descriptor.build)(config, self.profile(profile));
        // A profile that is asked for comes as it is.
        let preset = self.name.filter(|_| self.profile.is_none()).map_or(&[][..], Name::preset);
        for (name, value) in preset {
            let _ = elevator::set(&mut *built, name, value);
        }
        for (name, value) in &self.settings {
            // Checked when it was set.
            let _ = elevator::set(&mut *built, name, value);
        }
        built
    }
}

impl fmt::Display for SchedulerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        if let Some(profile) = self.profile {
            write!(f, "@{profile}")?;
        }
        let own = self.settings.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in own.chain(self.host.iter()) {
            write!(f, ":{name}={value}")?;
        }
        match &self.controller {
            Some(controller) => write!(f, "+{controller}"),
            None => Ok(()),
        }
    }
}

/// The scheduler called `name`: its elevator, and the name.
///
/// # Errors
/// With the names there are.
pub fn find_scheduler(name: &str) -> Result<(&'static Descriptor, &'static Name), SchedulerError> {
    let found = names::find(name)?;
    found.descriptor().map(|descriptor| (descriptor, found)).ok_or_else(|| SchedulerError {
        word: name.to_owned(),
        message: format!("there is no scheduler '{name}'"),
        allowed: String::new(),
        nearest: None,
    })
}

fn find_profile(descriptor: &'static Descriptor, profile: &str) -> Result<&'static str, SchedulerError> {
    descriptor.profiles.iter().find(|p| **p == profile).copied().ok_or_else(|| SchedulerError {
        word: profile.to_owned(),
        message: format!("{} has no profile '{profile}'", descriptor.name),
        allowed: if descriptor.profiles.is_empty() {
            "none".to_owned()
        } else {
            descriptor.profiles.join(", ")
        },
        nearest: nearest(profile, descriptor.profiles.iter().copied()),
    })
}

fn refused(elevator: &str, tunable: &Tunable, value: &str, error: SetError) -> SchedulerError {
    let name = tunable.name;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let message = match error {
        SetError::OutOfRange(_) if value.parse::<u64>().is_ok_and(|value| value < tunable.min) => {
            format!("{elevator}.{name}={value} is too small")
        }
        SetError::OutOfRange(_) => format!("{elevator}.{name}={value} is too large"),
        _ if value.strip_prefix('-').is_some_and(digits) => {
            format!("{elevator}.{name}={value} is negative")
        }
        _ => format!("{elevator}.{name}={value} is not a value it takes"),
    };
    SchedulerError { word: value.to_owned(), message, allowed: range_of(tunable), nearest: None }
}

/// The values a tunable takes, for people.
pub fn range_of(tunable: &Tunable) -> String {
    match tunable.unit {
        Unit::Choice(words) => words.join(" | "),
        Unit::Switch => "0 | 1".to_owned(),
        unit => format!("{}-{} {}", tunable.min, tunable.max, unit.label()).trim_end().to_owned(),
    }
}

/// A tunable's default, for people.
pub fn default_of(tunable: &Tunable) -> String {
    match tunable.unit {
        Unit::Choice(words) => words.get(tunable.default as usize).copied().unwrap_or_default().to_owned(),
        unit => format!("{} {}", tunable.default, unit.label()).trim_end().to_owned(),
    }
}

fn listed<'a>(list: impl Iterator<Item = &'a str>) -> String {
    list.collect::<Vec<_>>().join(", ")
}

/// The word of `list` nearest to `word`, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, list: impl Iterator<Item = &'a str>) -> Option<String> {
    list.map(|w| (strsim::damerau_levenshtein(word, w), w))
        .min()
        .filter(|(distance, w)| *distance <= 1 + w.len().min(word.len()) / 3)
        .map(|(_, w)| w.to_owned())
}
