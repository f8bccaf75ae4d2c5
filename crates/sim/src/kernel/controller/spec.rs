//! A controller as a column names it: `dm-ioband:policy=weight-iosize:io_limit=128`.

use std::fmt;

use super::blk_throttle::BlkThrottle;
use super::io_throttle::{IoThrottle, Strategy};
use super::ioband::{Ioband, PolicyKind, Settings};
use super::{Controller, Place};
use crate::scheduler::{SchedulerError, nearest};

/// A controller with what can be set.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Settings: name, values it takes.
    pub settings: &'static [(&'static str, &'static str)],
}

/// The controllers there are.
pub const KINDS: [Kind; 3] = [
    Kind {
        name: "dm-ioband",
        about: "bios wait for tokens by weight, or for their share between two bandwidths (2009)",
        settings: &[
            ("policy", "weight | weight-iosize | range-bw"),
            ("io_throttle", "1-32767"),
            ("io_limit", "0-32767 (0: 3/2 nr_requests)"),
            ("token", "0-2147483647 (0: 4 x io_limit)"),
        ],
    },
    Kind {
        name: "io-throttle",
        about: "absolute limits: the task that submits sleeps (2008-2009)",
        settings: &[("strategy", "0 (leaky bucket) | 1 (token bucket)")],
    },
    Kind {
        name: "blk-throttle",
        about: "io.max: bios over a limit are held, in slices of 100 ms (6.12)",
        settings: &[],
    },
];

/// A controller with its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerSpec {
    text: String,
    choice: Choice,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    Ioband(Settings),
    IoThrottle(Strategy),
    BlkThrottle,
}

impl ControllerSpec {
    /// Read `NAME[:SETTING=VALUE]...`.
    ///
    /// # Errors
    /// Unknown name or setting, or a value it does not take.
    pub fn parse(text: &str) -> Result<ControllerSpec, SchedulerError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().trim();
        let mut choice = match name {
            "dm-ioband" => Choice::Ioband(Settings::default()),
            "io-throttle" => Choice::IoThrottle(Strategy::default()),
            "blk-throttle" => Choice::BlkThrottle,
            _ => return Err(unknown(name, "unknown controller", KINDS.iter().map(|kind| kind.name))),
        };
        for part in parts {
            let (setting, value) = part.split_once('=').unwrap_or((part, ""));
            choice.set(name, setting.trim(), value.trim())?;
        }
        Ok(ControllerSpec { text: text.trim().to_owned(), choice })
    }

    /// Does it keep the groups' `max`, so that the queue does not?
    pub fn keeps_max(&self) -> bool {
        self.choice == Choice::BlkThrottle
    }

    /// Build it.
    pub fn build(&self, place: &Place<'_>) -> Box<dyn Controller> {
        match self.choice {
            Choice::Ioband(settings) => Box::new(Ioband::new(settings, place)),
            Choice::IoThrottle(strategy) => Box::new(IoThrottle::new(strategy, place)),
            Choice::BlkThrottle => Box::new(BlkThrottle::new(place)),
        }
    }
}

impl Choice {
    fn set(&mut self, name: &str, setting: &str, value: &str) -> Result<(), SchedulerError> {
        let done = match (&mut *self, setting) {
            (Choice::Ioband(s), "policy") => match value {
                "weight" => put(&mut s.policy, Some(PolicyKind::Weight)),
                "weight-iosize" => put(&mut s.policy, Some(PolicyKind::WeightIosize)),
                "range-bw" => put(&mut s.policy, Some(PolicyKind::RangeBw)),
                _ => None,
            },
            (Choice::Ioband(s), "io_throttle") => put(&mut s.io_throttle, number(value, 1, 32_767)),
            (Choice::Ioband(s), "io_limit") => put(&mut s.io_limit, number(value, 0, 32_767)),
            (Choice::Ioband(s), "token") => put(&mut s.token, number(value, 0, i32::MAX as u32)),
            (Choice::IoThrottle(s), "strategy") => match value {
                "0" => put(s, Some(Strategy::LeakyBucket)),
                "1" => put(s, Some(Strategy::TokenBucket)),
                _ => None,
            },
            _ => return Err(unknown(setting, &format!("{name} has no setting"), settings_of(name))),
        };
        done.ok_or_else(|| SchedulerError {
            word: value.to_owned(),
            message: format!("{name}: {setting}={value} is not a value it takes"),
            allowed: values_of(name, setting).to_owned(),
            nearest: None,
        })
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn number(text: &str, min: u32, max: u32) -> Option<u32> {
    text.parse().ok().filter(|value| (min..=max).contains(value))
}

fn settings_of(name: &str) -> impl Iterator<Item = &'static str> + Clone {
    KINDS
        .iter()
        .filter(move |k| k.name == name)
        .flat_map(|k| k.settings)
        .map(|(s, _)| *s)
        .collect::<Vec<_>>()
        .into_iter()
}

fn values_of(name: &str, setting: &str) -> &'static str {
    let all = KINDS.iter().find(|kind| kind.name == name).map_or(&[][..], |kind| kind.settings);
    all.iter().find(|(s, _)| *s == setting).map_or("", |(_, values)| values)
}

fn unknown(word: &str, what: &str, allowed: impl Iterator<Item = &'static str> + Clone) -> SchedulerError {
    let names: Vec<_> = allowed.clone().collect();
    SchedulerError {
        word: word.to_owned(),
        message: format!("{what} '{word}'"),
        allowed: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        nearest: nearest(word, allowed),
    }
}

/// As it was written.
impl fmt::Display for ControllerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_word_and_the_nearest() {
        let error = ControllerSpec::parse("dm-ioban").unwrap_err();
        assert_eq!((error.word.as_str(), error.nearest.as_deref()), ("dm-ioban", Some("dm-ioband")));
        let error = ControllerSpec::parse("dm-ioband:polcy=weight").unwrap_err();
        assert_eq!((error.word.as_str(), error.nearest.as_deref()), ("polcy", Some("policy")));
        let error = ControllerSpec::parse("dm-ioband:policy=wait").unwrap_err();
        assert_eq!(error.allowed, "weight | weight-iosize | range-bw");
        assert!(ControllerSpec::parse("dm-ioband:policy=range-bw:io_limit=256").is_ok());
        assert!(ControllerSpec::parse("io-throttle:strategy=1").is_ok());
    }
}
