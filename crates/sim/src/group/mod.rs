//! Groups of tasks, as a scenario, fio's `cgroup=` or the command line asks for them: a tree with weights, and who is in which.
//!
//! The lab numbers them by itself ([`Cgroup`]), so that results can be added up by group also under a scheduler that is not told
//! of groups (`groups=0`); with `groups=1` each is a group of the request queue's too.

mod entitled;
pub mod limits;
mod meter;
mod metric;
mod result;

use fairlift_core::context::IoClass;
use fairlift_core::group::{GroupId, GroupParams, Groups, WEIGHT_DEFAULT, WEIGHT_RANGE};
use serde::{Deserialize, Serialize};

use fairlift_fio::Job;

use crate::kernel::controller::Entitled;
use crate::kernel::rq_qos::iocost::model::{CostModel, CostQos, words};
use crate::scheduler::nearest;
pub use entitled::GoalTime;
use entitled::check_entitled;
use limits::{GroupLimits, Latency, Max, MemoryMax, PrioClass, Range, Rate};
pub(crate) use meter::Meter;
pub use metric::GroupMetric;
pub(crate) use result::results;
pub use result::{GoalFigures, GroupFigures, GroupOverTime, GroupResult};

/// Most groups of a run beside the root.
pub const GROUPS_MAX: usize = 10_000;

/// A group's number in a run: its place in the [`GroupTree`] plus one; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cgroup(pub(crate) u16);

impl Cgroup {
    /// The group of all tasks that are in no other.
    pub const ROOT: Cgroup = Cgroup(0);

    /// As an index.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A group as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "FileGroup")]
pub struct GroupSpec {
    /// Path below the root, such as `vm1/db`; leading and double slashes do not count.
    pub path: String,
    /// Weight beside its siblings.
    pub weight: u32,
    /// Weight of its own tasks beside its child groups.
    pub leaf_weight: u32,
    /// `rt`, `be` or `idle`: strict among siblings.
    pub class: GroupClass,
    /// Percent of the device's service that it gets before weights share out the rest.
    pub reserve: u32,
    /// How soon a sync request of its own tasks is to be done.
    pub latency: GoalTime,
    /// `max`, `range_kb`, `bandwidth_max`, `iops_max`: the most it may have; `io.latency`, `io.prio.class`, `io.cost.*`.
    pub limits: GroupLimits,
}

/// A group as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGroup {
    path: String,
    weight: Option<u32>,
    #[serde(default = "default_weight")]
    leaf_weight: u32,
    #[serde(default)]
    class: GroupClass,
    #[serde(default)]
    reserve: u32,
    #[serde(default)]
    latency: GoalTime,
    max: Option<Max>,
    #[serde(default)]
    io: FileIo,
    #[serde(default)]
    memory: FileMemory,
    #[serde(default)]
    range_kb: Range,
    #[serde(default)]
    bandwidth_max: Rate,
    #[serde(default)]
    iops_max: Rate,
}

/// The files of cgroup v2, by their names there: `io.weight`, `io.cost.qos`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct FileIo {
    weight: Option<FileWeight>,
    max: Option<Max>,
    #[serde(default)]
    latency: Latency,
    #[serde(default)]
    prio: FilePrio,
    #[serde(default)]
    cost: FileCost,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct FileMemory {
    #[serde(default)]
    max: MemoryMax,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct FilePrio {
    #[serde(default)]
    class: PrioClass,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct FileCost {
    model: Option<CostModel>,
    qos: Option<CostQos>,
}

/// `io.weight = 300`, or as the kernel's file is written, `"default 300"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum FileWeight {
    Number(u32),
    Text(String),
}

impl FileWeight {
    fn number(self) -> Result<u32, String> {
        match self {
            FileWeight::Number(number) => Ok(number),
            FileWeight::Text(text) => parse_io_weight(&text),
        }
    }
}

/// `300`, `default 300` or `8:16 300`.
fn parse_io_weight(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("default").unwrap_or(text);
    let mut words = words(number);
    match (words.next(), words.next()) {
        (Some((number, None)), None) => number.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| format!("io.weight '{text}' is not a weight, 1 to 10000: 300, or 'default 300'"))
}

impl TryFrom<FileGroup> for GroupSpec {
    type Error = String;

    fn try_from(file: FileGroup) -> Result<GroupSpec, String> {
        let FileGroup {
            path,
            weight,
            leaf_weight,
            class,
            reserve,
            latency,
            max,
            io,
            memory,
            range_kb,
            bandwidth_max,
            iops_max,
        } = file;
        let io_weight = io.weight.map(FileWeight::number).transpose()?;
        let weight = one_of("weight", weight, io_weight)?.unwrap_or(WEIGHT_DEFAULT);
        let limits = GroupLimits {
            max: one_of("max", max, io.max)?.unwrap_or_default(),
            range_kb,
            bandwidth_max,
            iops_max,
            latency: io.latency,
            prio_class: io.prio.class,
            memory_max: memory.max,
            cost_model: io.cost.model,
            cost_qos: io.cost.qos,
        };
        Ok(GroupSpec { path, weight, leaf_weight, class, reserve, latency, limits })
    }
}

/// `name` and `io.name` are one.
fn one_of<T>(name: &str, short: Option<T>, file: Option<T>) -> Result<Option<T>, String> {
    match (short, file) {
        (Some(_), Some(_)) => Err(format!("{name} and io.{name} are one: give one of them")),
        (short, file) => Ok(short.or(file)),
    }
}

/// A group's class, as files name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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

/// Whose a buffered write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// The submitter's: of pages that the flusher writes, the root's. What there was until 4.2, but for patches.
    Off,
    /// The group's that made its first page dirty (`blkio_cgroup`, as the founding posts' controller and dm-ioband had it).
    Page,
    /// The group's that the file belongs to: who wrote most of it of late (cgroup writeback, since 4.2).
    Inode,
}

impl Tracking {
    /// As settings name them, in the order of their numbers.
    pub(crate) const WORDS: &'static [&'static str] = &["off", "page", "inode"];

    pub(crate) const fn from_stored(stored: u64) -> Tracking {
        match stored {
            0 => Tracking::Off,
            2 => Tracking::Inode,
            _ => Tracking::Page,
        }
    }
}

impl GroupSpec {
    /// A group with weights and class as they come.
    pub fn new(path: &str) -> GroupSpec {
        GroupSpec {
            path: clean(path),
            weight: WEIGHT_DEFAULT,
            leaf_weight: WEIGHT_DEFAULT,
            class: GroupClass::Be,
            reserve: 0,
            latency: GoalTime::default(),
            limits: GroupLimits::default(),
        }
    }

    /// The parameters for the request queue.
    pub fn params(&self) -> GroupParams {
        let class = match self.class {
            GroupClass::Rt => IoClass::RealTime,
            GroupClass::Be => IoClass::BestEffort,
            GroupClass::Idle => IoClass::Idle,
        };
        GroupParams {
            weight: self.weight,
            leaf_weight: self.leaf_weight,
            class,
            reserve: self.reserve,
            latency_ns: self.latency.0,
        }
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
    /// Paths of those that were described, not just named.
    described: Vec<String>,
    /// The root's own tasks beside its children; `None`: as they come.
    root_leaf_weight: Option<u32>,
    root_limits: GroupLimits,
}

/// Why a group cannot be had or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTreeError(pub String);

impl std::fmt::Display for GroupTreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GroupTreeError {}

/// What can be set of a group.
pub const KEYS: [&str; 16] = [
    "weight",
    "leaf_weight",
    "class",
    "reserve",
    "latency",
    "max",
    "range_kb",
    "bandwidth_max",
    "iops_max",
    "io.weight",
    "io.max",
    "io.latency",
    "io.prio.class",
    "io.cost.model",
    "io.cost.qos",
    "memory.max",
];

impl GroupTree {
    /// Enter a group, and its parents if they are missing.
    ///
    /// # Errors
    /// A weight out of range, a reserve or a goal for the root, or the same path twice.
    pub fn add(&mut self, group: &GroupSpec) -> Result<(), GroupTreeError> {
        let path = clean(&group.path);
        group.limits.check(path.is_empty()).map_err(|e| GroupTreeError(format!("group '/{path}': {e}")))?;
        for weight in [group.weight, group.leaf_weight] {
            check_weight(&path, u64::from(weight))?;
        }
        check_entitled(&path, group)?;
        if path.is_empty() {
            self.root_leaf_weight = Some(group.leaf_weight);
            self.root_limits = group.limits;
            return Ok(());
        }
        if self.described.contains(&path) {
            return Err(GroupTreeError(format!("group '{path}' is described twice")));
        }
        let place = self.enter(&path)?.index() - 1;
        self.groups[place] = GroupSpec { path: path.clone(), ..group.clone() };
        self.described.push(path);
        Ok(())
    }

    /// The group a task is put into: one of those described, if any are; else it is made if it is missing.
    ///
    /// # Errors
    /// No such group among those described, or too many groups.
    pub fn join(&mut self, path: &str) -> Result<Cgroup, GroupTreeError> {
        if self.described.is_empty() {
            return self.enter(path);
        }
        self.known(path)
    }

    fn unknown(&self, path: &str) -> GroupTreeError {
        let shown = format!("/{}", clean(path));
        let all: Vec<String> = (0..=self.groups.len()).map(|g| self.shown(Cgroup(g as u16))).collect();
        let near = nearest(&shown, all.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        GroupTreeError(format!("there is no group '{shown}'{near} (groups: {})", all.join(", ")))
    }

    /// Change a group's `weight`, `leaf_weight` or `class`.
    ///
    /// # Errors
    /// No such group, no such key, or a value it does not take.
    pub fn set(&mut self, path: &str, key: &str, value: &str) -> Result<(), GroupTreeError> {
        let group = self.known(path)?;
        if !KEYS.contains(&key) {
            let near = nearest(key, KEYS.into_iter());
            let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
            return Err(GroupTreeError(format!(
                "a group has no '{key}'{near} (allowed: {})",
                KEYS.join(", ")
            )));
        }
        let shown = self.shown(group);
        let mut limits = *self.limits(group);
        if limits.set(key, value).map_err(GroupTreeError)? {
            let is_root = group == Cgroup::ROOT;
            limits.check(is_root).map_err(|e| GroupTreeError(format!("group '{shown}': {e}")))?;
            *self.limits_mut(group) = limits;
            return Ok(());
        }
        if key == "class" {
            return self.set_class(group, value);
        }
        if let "reserve" | "latency" = key {
            return self.set_entitled(group, key, value);
        }
        if key == "io.weight" {
            let weight = parse_io_weight(value).map_err(GroupTreeError)?;
            return self.set(path, "weight", &weight.to_string());
        }
        let number = value.parse().map_err(|_| {
            GroupTreeError(format!(
                "group '{shown}': {key} '{value}' is not a number from {} to {}",
                WEIGHT_RANGE.0, WEIGHT_RANGE.1
            ))
        })?;
        let weight = check_weight(&shown, number)?;
        match (group.index().checked_sub(1), key) {
            (None, "leaf_weight") => self.root_leaf_weight = Some(weight),
            (None, _) => return Err(GroupTreeError("the root has no weight, but a leaf_weight".to_owned())),
            (Some(place), "weight") => self.groups[place].weight = weight,
            (Some(place), _) => self.groups[place].leaf_weight = weight,
        }
        Ok(())
    }

    fn limits_mut(&mut self, group: Cgroup) -> &mut GroupLimits {
        match group.index().checked_sub(1) {
            None => &mut self.root_limits,
            Some(place) => &mut self.groups[place].limits,
        }
    }

    /// What a group may have at most.
    pub(crate) fn limits(&self, group: Cgroup) -> &GroupLimits {
        self.spec(group).map_or(&self.root_limits, |spec| &spec.limits)
    }

    /// Have the groups of `other`, with what they are set to.
    ///
    /// # Errors
    /// Too many groups.
    pub fn take_over(&mut self, other: &GroupTree) -> Result<(), GroupTreeError> {
        for spec in other.iter() {
            let place = self.enter(&spec.path)?.index() - 1;
            self.groups[place] = spec.clone();
        }
        self.root_leaf_weight = other.root_leaf_weight.or(self.root_leaf_weight);
        self.root_limits = other.root_limits;
        Ok(())
    }

    /// `io.cost.model` and `io.cost.qos`, if they are given.
    pub(crate) fn cost(&self) -> (Option<CostModel>, Option<CostQos>) {
        (self.root_limits.cost_model, self.root_limits.cost_qos)
    }

    /// Parent and weight of each, the root first.
    pub(crate) fn weights(&self) -> Vec<(Option<usize>, u32)> {
        let weight = |group| self.spec(group).map_or(WEIGHT_DEFAULT, |spec| spec.weight);
        self.numbers().map(|group| (self.parent(group).map(Cgroup::index), weight(group))).collect()
    }

    /// `io.prio.class` of each, the root first; empty: no group has one.
    pub(crate) fn classes(&self) -> Vec<PrioClass> {
        let classes: Vec<_> = self.numbers().map(|group| self.limits(group).prio_class).collect();
        if classes.iter().all(|class| *class == PrioClass::NoChange) { Vec::new() } else { classes }
    }

    /// The first file of a group's that only kernels with blk-mq have, and the group.
    pub(crate) fn file_of_today(&self) -> Option<(&'static str, String)> {
        let of = |group| self.limits(group).of_today().next().map(|file| (file, self.shown(group)));
        self.numbers().find_map(of)
    }

    /// Has any group a `max`?
    pub(crate) fn has_max(&self) -> bool {
        self.numbers().any(|group| !self.limits(group).max.is_none())
    }

    /// What a controller above the queue needs, by [`Cgroup`].
    pub(crate) fn entitled(&self) -> Vec<Entitled> {
        let of = |group| {
            let limits = self.limits(group);
            Entitled {
                parent: self.parent(group).map(Cgroup::index),
                weight: self.spec(group).map_or(WEIGHT_DEFAULT, |spec| spec.weight),
                max: limits.max,
                range_kb: (limits.range_kb.min_kb, limits.range_kb.max_kb),
                bandwidth_bps: limits.bandwidth_max.0,
                iops: limits.iops_max.0,
            }
        };
        self.numbers().map(of).collect()
    }

    fn set_class(&mut self, group: Cgroup, value: &str) -> Result<(), GroupTreeError> {
        let Some(place) = group.index().checked_sub(1) else {
            return Err(GroupTreeError("the root has no class".to_owned()));
        };
        self.groups[place].class = match value {
            "rt" => GroupClass::Rt,
            "be" => GroupClass::Be,
            "idle" => GroupClass::Idle,
            _ => return Err(GroupTreeError(format!("unknown class '{value}' (allowed: rt, be, idle)"))),
        };
        Ok(())
    }

    /// The groups of these jobs, made as they ask for them. A job's `cgroup_weight` counts, of several for the same group the
    /// last: fio writes it when the job starts.
    ///
    /// # Errors
    /// As [`GroupTree::join`].
    pub fn join_jobs(&mut self, jobs: &[Job]) -> Result<(), GroupTreeError> {
        for job in jobs {
            let Some(path) = &job.cgroup else { continue };
            let group = self.join(path)?;
            if let (Some(weight), Some(place)) = (job.cgroup_weight, group.index().checked_sub(1)) {
                self.groups[place].weight = weight;
            }
        }
        Ok(())
    }

    /// The group of this path, made with its parents as they come if it is missing.
    ///
    /// # Errors
    /// Too many groups.
    pub fn enter(&mut self, path: &str) -> Result<Cgroup, GroupTreeError> {
        let path = clean(path);
        let ends = path.match_indices('/').map(|(slash, _)| slash).chain([path.len()]);
        for end in ends {
            if self.find(&path[..end]).is_none() {
                if self.groups.len() == GROUPS_MAX {
                    return Err(GroupTreeError(format!("more than {GROUPS_MAX} groups are too many")));
                }
                self.groups.push(GroupSpec::new(&path[..end]));
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

    /// Where a task goes that names this group; the root's are those that name none.
    pub(crate) fn cgroup_of(&self, path: Option<&str>) -> Cgroup {
        path.and_then(|path| self.find(path)).unwrap_or_default()
    }

    /// The group of this path.
    ///
    /// # Errors
    /// There is none: with the nearest, and all there are.
    pub fn known(&self, path: &str) -> Result<Cgroup, GroupTreeError> {
        self.find(path).ok_or_else(|| self.unknown(path))
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

    /// Number of groups with the root.
    pub(crate) fn slots(&self) -> usize {
        self.groups.len() + 1
    }

    /// Whose child it is; `None` for the root.
    pub(crate) fn parent(&self, group: Cgroup) -> Option<Cgroup> {
        let path = &self.groups[group.index().checked_sub(1)?].path;
        self.find(path.rfind('/').map_or("", |slash| &path[..slash]))
    }

    /// Share of its own tasks beside its child groups.
    pub(crate) fn leaf_weight(&self, group: Cgroup) -> u32 {
        let of_root = self.root_leaf_weight.unwrap_or(WEIGHT_DEFAULT);
        self.spec(group).map_or(of_root, |spec| spec.leaf_weight)
    }

    /// Its settings; `None` for the root.
    pub(crate) fn spec(&self, group: Cgroup) -> Option<&GroupSpec> {
        self.groups.get(group.index().checked_sub(1)?)
    }

    /// All of them by their numbers, the root first.
    pub(crate) fn numbers(&self) -> impl DoubleEndedIterator<Item = Cgroup> + use<> {
        (0..self.slots()).map(|number| Cgroup(number as u16))
    }

    /// Make them groups of a request queue, whose root has no other child yet: by [`Cgroup`].
    pub(crate) fn create(&self, groups: &mut Groups) -> Vec<GroupId> {
        let mut ids = vec![GroupId::ROOT];
        if let Some(leaf_weight) = self.root_leaf_weight {
            let _ = groups.set_params(GroupId::ROOT, GroupParams { leaf_weight, ..GroupParams::default() });
        }
        for number in self.numbers().skip(1) {
            let Some(spec) = self.spec(number) else { continue };
            let parent = ids[self.parent(number).unwrap_or_default().index()];
            // The table was made for as many as there are, with weights and reserves that were checked.
            ids.push(groups.create(parent, spec.params()).unwrap_or(GroupId::ROOT));
        }
        ids
    }
}

fn check_weight(shown: &str, weight: u64) -> Result<u32, GroupTreeError> {
    let (low, high) = WEIGHT_RANGE;
    let checked = u32::try_from(weight).ok().filter(|weight| (low..=high).contains(weight));
    checked.ok_or_else(|| {
        GroupTreeError(format!("group '{shown}': weight {weight} is not within {low} to {high}"))
    })
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
        assert_eq!(tree.spec(Cgroup(2)).unwrap().weight, 500);
        assert_eq!((tree.parent(Cgroup(2)), tree.parent(Cgroup(1))), (Some(Cgroup(1)), Some(Cgroup::ROOT)));
    }

    #[test]
    fn a_name_may_begin_with_any_letter() {
        let mut tree = GroupTree::default();
        assert_eq!(tree.enter("/é/ü"), Ok(Cgroup(2)));
        assert_eq!([tree.shown(Cgroup(1)), tree.shown(Cgroup(2))], ["/é", "/é/ü"]);
        assert_eq!(tree.enter("//"), Ok(Cgroup::ROOT));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut tree = GroupTree::default();
        let heavy = GroupSpec { weight: 0, ..GroupSpec::new("a") };
        assert_eq!(tree.add(&heavy).unwrap_err().0, "group 'a': weight 0 is not within 1 to 10000");
        tree.add(&GroupSpec::new("a")).unwrap();
        assert_eq!(tree.add(&GroupSpec::new("/a")).unwrap_err().0, "group 'a' is described twice");
    }

    #[test]
    fn a_group_that_was_only_named_may_be_described_later() {
        let mut tree = GroupTree::default();
        tree.add(&GroupSpec::new("a/b")).unwrap();
        tree.add(&GroupSpec { weight: 7, ..GroupSpec::new("a") }).unwrap();
        assert_eq!((tree.slots(), tree.spec(Cgroup(1)).unwrap().weight), (3, 7));
    }

    #[test]
    fn among_described_groups_a_wrong_word_is_answered_with_the_right_one() {
        let mut tree = GroupTree::default();
        assert_eq!(tree.join("anything"), Ok(Cgroup(1)), "as fio does it");
        let mut tree = GroupTree::default();
        tree.add(&GroupSpec::new("vm1")).unwrap();
        let unknown = "there is no group '/vn1'; did you mean '/vm1'? (groups: /, /vm1)";
        assert_eq!(tree.join("vn1").unwrap_err().0, unknown);
        assert_eq!(tree.set("/vn1", "weight", "5").unwrap_err().0, unknown);
        let key = "a group has no 'wieght'; did you mean 'weight'? (allowed: weight, leaf_weight, class, ";
        assert!(tree.set("/vm1", "wieght", "5").unwrap_err().0.starts_with(key));
        let range = "group '/vm1': weight 10001 is not within 1 to 10000";
        assert_eq!(tree.set("/vm1", "weight", "10001").unwrap_err().0, range);
        tree.set("/vm1", "class", "idle").unwrap();
        assert_eq!(tree.spec(Cgroup(1)).unwrap().class, GroupClass::Idle);
    }
}
