//! Reserves and latency goals of groups, as files and the command line give them, and whether all reserves can be kept.

use fairlift_core::group::RESERVE_MAX;
use serde::Deserialize;

use super::{Cgroup, GroupSpec, GroupTree, GroupTreeError};

/// The longest goal, nanoseconds.
const GOAL_MAX_NS: u64 = 3_600_000_000_000;

/// A group's latency goal, nanoseconds; 0: it has none. Text has a unit: `500us`, `5ms`, `1s`, or `0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct GoalTime(pub u64);

impl TryFrom<String> for GoalTime {
    type Error = String;

    fn try_from(text: String) -> Result<GoalTime, String> {
        GoalTime::parse(&text)
    }
}

impl GoalTime {
    fn parse(text: &str) -> Result<GoalTime, String> {
        let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let number = |unit: &str| text.strip_suffix(unit)?.trim_end().parse::<u64>().ok();
        let found = units.into_iter().find_map(|(unit, ns)| number(unit)?.checked_mul(ns));
        match found.or((text == "0").then_some(0)).filter(|ns| *ns <= GOAL_MAX_NS) {
            Some(ns) => Ok(GoalTime(ns)),
            None => Err(format!(
                "latency '{text}' is no time (allowed: up to 3600s, such as 500us, 5ms or 1s; 0 = no goal)"
            )),
        }
    }
}

/// May `group`, of this path, have the reserve and the goal it asks for, as far as it can be told without the others?
pub(super) fn check_entitled(path: &str, group: &GroupSpec) -> Result<(), GroupTreeError> {
    if path.is_empty() && (group.reserve > 0 || group.latency.0 > 0) {
        return Err(GroupTreeError(
            "the root has no reserve and no latency goal: it has the device".to_owned(),
        ));
    }
    check_reserve(path, u64::from(group.reserve)).map(drop)
}

fn check_reserve(path: &str, percent: u64) -> Result<u32, GroupTreeError> {
    let checked = u32::try_from(percent).ok().filter(|percent| *percent <= RESERVE_MAX);
    checked.ok_or_else(|| {
        GroupTreeError(format!(
            "group '{path}': reserve {percent} is not a percentage from 0 to {RESERVE_MAX}"
        ))
    })
}

impl GroupTree {
    /// Set `reserve` or `latency` of a group.
    pub(super) fn set_entitled(
        &mut self,
        group: Cgroup,
        key: &str,
        value: &str,
    ) -> Result<(), GroupTreeError> {
        let shown = self.shown(group);
        let Some(place) = group.index().checked_sub(1) else {
            return Err(GroupTreeError(format!("the root has no {key}")));
        };
        if key == "latency" {
            self.groups[place].latency =
                GoalTime::parse(value).map_err(|e| GroupTreeError(format!("group '{shown}': {e}")))?;
            return Ok(());
        }
        let percent = value.trim_end_matches('%').trim_end().parse().map_err(|_| {
            GroupTreeError(format!(
                "group '{shown}': reserve '{value}' is not a percentage from 0 to {RESERVE_MAX}"
            ))
        })?;
        self.groups[place].reserve = check_reserve(&shown, percent)?;
        self.unkept_reserve().map_or(Ok(()), |(_, why)| Err(GroupTreeError(why)))
    }

    /// The first group whose reserve cannot be kept beside those before it, and why.
    pub fn unkept_reserve(&self) -> Option<(String, String)> {
        let mut taken = vec![0_u32; self.slots()];
        for group in self.numbers().skip(1) {
            let (Some(spec), Some(parent)) = (self.spec(group), self.parent(group)) else { continue };
            let above = self.spec(parent).map_or(RESERVE_MAX, |parent| parent.reserve);
            let before = taken[parent.index()];
            taken[parent.index()] += spec.reserve;
            if taken[parent.index()] > above && spec.reserve > 0 {
                let whose = match self.spec(parent) {
                    None => format!("all groups together can reserve {above} %"),
                    Some(_) => format!("its parent, '{}', reserves {above} %", self.shown(parent)),
                };
                let why = format!(
                    "group '{}': a reserve of {} % cannot be kept: {whose}, and its siblings reserve {before} % of that already ({} % left)",
                    self.shown(group),
                    spec.reserve,
                    above.saturating_sub(before),
                );
                return Some((spec.path.clone(), why));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(groups: &[(&str, u32)]) -> GroupTree {
        let mut tree = GroupTree::default();
        for (path, reserve) in groups {
            tree.add(&GroupSpec { reserve: *reserve, ..GroupSpec::new(path) }).unwrap();
        }
        tree
    }

    #[test]
    fn the_group_whose_reserve_is_too_much_is_named() {
        assert_eq!(tree(&[("a", 60), ("b", 35), ("a/c", 60)]).unkept_reserve(), None);
        let (path, why) = tree(&[("a", 60), ("b", 36)]).unkept_reserve().unwrap();
        assert_eq!(path, "b");
        assert!(why.contains("35 % left"), "{why}");
        let (path, why) = tree(&[("a", 10), ("a/b", 11)]).unkept_reserve().unwrap();
        assert_eq!(path, "a/b");
        assert!(why.contains("'/a', reserves 10 %"), "{why}");
    }

    #[test]
    fn what_is_set_is_checked() {
        let mut tree = tree(&[("a", 60), ("b", 0)]);
        let error = |done: Result<(), GroupTreeError>| done.unwrap_err().to_string();
        tree.set("b", "reserve", "35%").unwrap();
        assert!(error(tree.set("b", "reserve", "96")).contains("from 0 to 95"));
        assert!(error(tree.set("b", "reserve", "half")).contains("'half' is not a percentage"));
        assert!(error(tree.set("", "reserve", "5")).contains("the root has no reserve"));
        tree.set("a", "latency", "500us").unwrap();
        assert_eq!(tree.iter().next().unwrap().latency, GoalTime(500_000));
        assert!(error(tree.set("a", "latency", "5")).contains("such as 500us, 5ms or 1s"));
    }
}
