//! Groups as a scenario names them: a tree, with what each controller wants to know of a group.
//!
//! The numbers are those of the core's groups too when a scheduler schedules by group: group 0 is the root, the others come in
//! the order in which they were written, ancestors that nobody wrote before their first child.

/// The weight of a group that names none, as cgroup v2 has it.
pub const WEIGHT: u32 = 100;

/// `io.max`: limits a second, 0 = none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Max {
    /// `rbps`, bytes.
    pub read_bps: u64,
    /// `wbps`, bytes.
    pub write_bps: u64,
    /// `riops`.
    pub read_iops: u64,
    /// `wiops`.
    pub write_iops: u64,
}

/// A group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSpec {
    /// Path without a slash at its ends; empty: the root.
    pub path: String,
    /// Index of its parent; `None`: the root. Filled in by [`GroupTree::new`].
    pub parent: Option<usize>,
    /// Share beside its siblings.
    pub weight: u32,
    /// blk-throttle's limits, and fairlift's own.
    pub max: Max,
    /// dm-ioband's range: minimum and maximum (0: none), KB/s.
    pub range_kb: (u64, u64),
    /// io-throttle's limit, bytes a second; 0 = none.
    pub bandwidth_bps: u64,
    /// io-throttle's limit, requests a second; 0 = none.
    pub iops: u64,
}

impl GroupSpec {
    /// A group without limits.
    pub fn new(path: &str, weight: u32) -> GroupSpec {
        GroupSpec {
            path: path.to_owned(),
            parent: None,
            weight,
            max: Max::default(),
            range_kb: (0, 0),
            bandwidth_bps: 0,
            iops: 0,
        }
    }
}

/// All groups; the first is the root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupTree(Vec<GroupSpec>);

impl Default for GroupTree {
    fn default() -> GroupTree {
        GroupTree(vec![GroupSpec::new("", WEIGHT)])
    }
}

impl GroupTree {
    /// The tree of these groups; ancestors they leave out get the default weight.
    ///
    /// # Errors
    /// The path that is there twice.
    pub fn new(specs: Vec<GroupSpec>) -> Result<GroupTree, String> {
        let mut tree = GroupTree::default();
        let mut written = vec![false];
        for mut spec in specs {
            spec.path = normal(&spec.path);
            let at = tree.ensure(&spec.path);
            written.resize(tree.len(), false);
            if std::mem::replace(&mut written[at], true) {
                return Err(spec.path);
            }
            let parent = tree.0[at].parent;
            tree.0[at] = GroupSpec { parent, ..spec };
        }
        Ok(tree)
    }

    /// The group called `path`, which is made if there is none, with its ancestors.
    pub fn ensure(&mut self, path: &str) -> usize {
        let path = normal(path);
        if let Some(found) = self.find(&path) {
            return found;
        }
        let parent = path.rsplit_once('/').map_or(0, |(above, _)| self.ensure(above));
        self.0.push(GroupSpec { parent: Some(parent), ..GroupSpec::new(&path, WEIGHT) });
        self.0.len() - 1
    }

    /// The group called `path`, with or without slashes around it.
    pub fn find(&self, path: &str) -> Option<usize> {
        let path = normal(path);
        self.0.iter().position(|group| group.path == path)
    }

    /// How many, the root included.
    #[allow(clippy::len_without_is_empty)] // there is always the root
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All, the root first.
    pub fn iter(&self) -> impl Iterator<Item = &GroupSpec> {
        self.0.iter()
    }

    /// Change one.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut GroupSpec> {
        self.0.get_mut(index)
    }
}

impl std::ops::Index<usize> for GroupTree {
    type Output = GroupSpec;
    fn index(&self, index: usize) -> &GroupSpec {
        &self.0[index]
    }
}

/// `/vm1/db/` is `vm1/db`.
fn normal(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_come_first_and_nobody_twice() {
        let tree = GroupTree::new(vec![GroupSpec::new("/a/b/", 300), GroupSpec::new("a", 50)]).unwrap();
        let rows: Vec<_> = tree.iter().map(|g| (g.path.as_str(), g.parent, g.weight)).collect();
        assert_eq!(rows, [("", None, 100), ("a", Some(0), 50), ("a/b", Some(1), 300)]);
        let twice = GroupTree::new(vec![GroupSpec::new("a", 1), GroupSpec::new("/a", 2)]);
        assert_eq!(twice, Err("a".to_owned()));
    }
}
