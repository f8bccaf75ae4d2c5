//! Groups of tasks, as a scenario, fio's `cgroup=` or the command line asks for them: a tree with weights, and who is in which.
//!
//! The lab numbers them by itself ([`Cgroup`]), so that results can be added up by group also under a scheduler that is not told
//! of groups (`groups=0`); with `groups=1` each is a group of the request queue's too.

use fairlift_core::IoClass;
use fairlift_core::group::{GroupId, GroupParams, Groups, WEIGHT_DEFAULT, WEIGHT_RANGE};
use serde::Deserialize;

/// Most groups of a run beside the root.
pub const GROUPS_MAX: usize = 10_000;

/// A group's number in a run: its place in the [`GroupTree`] plus one; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cgroup(pub(crate) u16);

impl Cgroup {
    /// Everybody who is in no other.
    pub const ROOT: Cgroup = Cgroup(0);

    /// As an index.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A group as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Path below the root, such as `vm1/db`; leading and double slashes do not count.
    pub path: String,
    /// Weight beside its siblings.
    #[serde(default = "default_weight")]
    pub weight: u32,
    /// Weight of its own tasks beside its child groups.
    #[serde(default = "default_weight")]
    pub leaf_weight: u32,
    /// `rt`, `be` or `idle`: strict among siblings.
    #[serde(default)]
    pub class: GroupClass,
}

/// A group's class, as files name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupClass {
    /// Real time.
    Rt,
    /// Best effort.
    #[default]
    Be,
    /// Idle.
    Idle,
}

const fn default_weight() -> u32 {
    WEIGHT_DEFAULT
}

impl GroupSpec {
    /// A group with weights and class as they come.
    pub fn new(path: &str) -> GroupSpec {
        GroupSpec {
            path: clean(path),
            weight: WEIGHT_DEFAULT,
            leaf_weight: WEIGHT_DEFAULT,
            class: GroupClass::Be,
        }
    }

    /// What the request queue is told.
    pub fn params(&self) -> GroupParams {
        let class = match self.class {
            GroupClass::Rt => IoClass::RealTime,
            GroupClass::Be => IoClass::BestEffort,
            GroupClass::Idle => IoClass::Idle,
        };
        GroupParams { weight: self.weight, leaf_weight: self.leaf_weight, class }
    }
}

/// A path without the slashes that mean nothing.
fn clean(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// The groups of a run, parents before their children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTree {
    groups: Vec<GroupSpec>,
    /// The root's own tasks beside its children; `None`: as they come.
    root_leaf_weight: Option<u32>,
}

/// Why a group cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTreeError(pub String);

impl GroupTree {
    /// Enter a group, and its parents if they are missing.
    ///
    /// # Errors
    /// A weight out of range, or the same path twice with different settings.
    pub fn add(&mut self, group: &GroupSpec) -> Result<(), GroupTreeError> {
        let path = clean(&group.path);
        let allowed = WEIGHT_RANGE.0..=WEIGHT_RANGE.1;
        if let Some(weight) = [group.weight, group.leaf_weight].into_iter().find(|w| !allowed.contains(w)) {
            let (low, high) = WEIGHT_RANGE;
            return Err(GroupTreeError(format!(
                "group '{path}': weight {weight} is not within {low} to {high}"
            )));
        }
        if path.is_empty() {
            self.root_leaf_weight = Some(group.leaf_weight);
            return Ok(());
        }
        if self.groups.iter().any(|g| g.path == path) {
            return Err(GroupTreeError(format!("group '{path}' is described twice")));
        }
        self.enter(&path)?;
        if let Some(entered) = self.groups.iter_mut().find(|g| g.path == path) {
            *entered = GroupSpec { path, ..group.clone() };
        }
        Ok(())
    }

    /// The group of this path, made with its parents as they come if it is missing.
    ///
    /// # Errors
    /// Too many groups.
    pub fn enter(&mut self, path: &str) -> Result<Cgroup, GroupTreeError> {
        let path = clean(path);
        let mut at = 0;
        while at < path.len() {
            at = path[at + 1..].find('/').map_or(path.len(), |slash| at + 1 + slash);
            if self.find(&path[..at]).is_none() {
                if self.groups.len() == GROUPS_MAX {
                    return Err(GroupTreeError(format!("more than {GROUPS_MAX} groups are too many")));
                }
                self.groups.push(GroupSpec::new(&path[..at]));
            }
        }
        Ok(self.find(&path).unwrap_or_default())
    }

    /// The group of this path.
    pub fn find(&self, path: &str) -> Option<Cgroup> {
        let path = clean(path);
        if path.is_empty() {
            return Some(Cgroup::ROOT);
        }
        self.groups.iter().position(|g| g.path == path).map(|place| Cgroup(place as u16 + 1))
    }

    /// The group to change.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut GroupSpec> {
        let path = clean(path);
        self.groups.iter_mut().find(|g| g.path == path)
    }

    /// All of them, parents before their children; the first is [`Cgroup`] 1.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &GroupSpec> {
        self.groups.iter()
    }

    /// Is there no group but the root?
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How it is shown: `/`, `/vm1/db`.
    pub fn shown(&self, group: Cgroup) -> String {
        match group.index().checked_sub(1) {
            None => "/".to_owned(),
            Some(place) => format!("/{}", self.groups[place].path),
        }
    }

    /// Make them groups of a request queue, whose root has no other child yet: by [`Cgroup`].
    pub(crate) fn create(&self, groups: &mut Groups) -> Vec<GroupId> {
        let mut ids = vec![GroupId::ROOT];
        if let Some(leaf_weight) = self.root_leaf_weight {
            let _ = groups.set_params(GroupId::ROOT, GroupParams { leaf_weight, ..GroupParams::default() });
        }
        for group in &self.groups {
            let parent = group.path.rfind('/').and_then(|slash| self.find(&group.path[..slash]));
            let parent = ids[parent.unwrap_or_default().index()];
            // The table was made for as many as there are, with weights that were checked.
            ids.push(groups.create(parent, group.params()).unwrap_or(GroupId::ROOT));
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_and_slashes_do_not_count() {
        let mut tree = GroupTree::default();
        tree.add(&GroupSpec { weight: 500, ..GroupSpec::new("/a//b/") }).unwrap();
        assert_eq!(tree.iter().map(|g| g.path.as_str()).collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(
            (tree.find("a/b"), tree.find("/"), tree.find("c")),
            (Some(Cgroup(2)), Some(Cgroup::ROOT), None)
        );
        assert_eq!(tree.enter("a/b"), Ok(Cgroup(2)));
        assert_eq!(tree.shown(Cgroup(2)), "/a/b");
        assert_eq!(tree.get_mut("a/b").unwrap().weight, 500);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut tree = GroupTree::default();
        let heavy = GroupSpec { weight: 0, ..GroupSpec::new("a") };
        assert_eq!(tree.add(&heavy).unwrap_err().0, "group 'a': weight 0 is not within 1 to 10000");
        tree.add(&GroupSpec::new("a")).unwrap();
        assert_eq!(tree.add(&GroupSpec::new("/a")).unwrap_err().0, "group 'a' is described twice");
    }
}
