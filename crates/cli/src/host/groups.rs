//! The cgroup tree with its `io.*` files, as `[[group]]` tables.

use std::fmt::Write as _;

use fairlift_sim::group::{GROUPS_MAX, GroupSpec, GroupTree};

use super::disk::Disk;
use super::files::Files;
use super::{plain, quoted};

/// Where cgroup v2 is mounted, alone or beside v1.
const MOUNTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
/// Deepest group that is read.
const DEPTH_MAX: usize = 32;
/// The files a group may have; those of the root alone last.
const GROUP_FILES: [&str; 4] = ["io.weight", "io.max", "io.latency", "io.prio.class"];
const ROOT_FILES: [&str; 2] = ["io.cost.model", "io.cost.qos"];
/// A file that is as the kernel makes it.
const DEFAULTS: [(&str, &str); 2] = [("io.weight", "default 100"), ("io.prio.class", "no-change")];

/// Groups that have a setting for this disk.
pub fn read(files: &Files, disk: &Disk) -> String {
    let is_mounted = |mount: &&&str| files.text(&format!("{mount}/cgroup.controllers")).is_some();
    let Some(mount) = MOUNTS.iter().find(is_mounted) else {
        return "\n# sys/fs/cgroup has no cgroup v2 (cgroup.controllers): no groups are read.\n".to_owned();
    };
    let mut walk = Walk {
        files,
        disk,
        mount,
        out: String::new(),
        groups: 0,
        plain_groups: 0,
        tree: GroupTree::default(),
    };
    walk.group("", 0);
    let _ = writeln!(
        walk.out,
        "\n# cgroup v2: {} groups, {} of them without a setting for this disk.",
        walk.groups, walk.plain_groups
    );
    if walk.groups > GROUPS_MAX {
        let _ = writeln!(walk.out, "# Only the first {GROUPS_MAX} were read.");
    }
    walk.out
}

struct Walk<'a> {
    files: &'a Files,
    disk: &'a Disk,
    mount: &'a str,
    out: String,
    groups: usize,
    plain_groups: usize,
    /// To see whether the lab takes what is written.
    tree: GroupTree,
}

impl Walk<'_> {
    /// A group and those below it.
    fn group(&mut self, path: &str, depth: usize) {
        self.groups += 1;
        if self.groups > GROUPS_MAX {
            return;
        }
        let settings = self.settings(path);
        match settings.is_empty() {
            true => self.plain_groups += 1,
            false => {
                let _ = write!(self.out, "\n[[group]]\npath = {}\n{settings}", quoted(&format!("/{path}")));
            }
        }
        for name in self.files.folders(&format!("{}/{path}", self.mount)).unwrap_or_default() {
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            if depth < DEPTH_MAX && !self.files.is_link(&format!("{}/{below}", self.mount)) {
                self.group(&below, depth + 1);
            }
        }
    }

    fn settings(&mut self, path: &str) -> String {
        let mut out = String::new();
        let of_root = path.is_empty().then_some(ROOT_FILES).into_iter().flatten();
        for file in GROUP_FILES.into_iter().chain(of_root) {
            let Some(text) = self.text(path, file) else { continue };
            let Some(line) = self.line_for_disk(&text) else { continue };
            if DEFAULTS.contains(&(file, line.as_str())) {
                continue;
            }
            match self.try_out(path, file, &line) {
                Ok(()) => {
                    let _ = writeln!(out, "{file} = {}", quoted(&line));
                }
                Err(why) => {
                    let _ = writeln!(out, "# {file} = {}: not taken over, {}", plain(&line), plain(&why));
                }
            }
        }
        out
    }

    /// A file's text; bfq's weight is its own file's. A model counts only where io.cost is on.
    fn text(&self, path: &str, file: &str) -> Option<String> {
        let read = |file: &str| self.files.text(&format!("{}/{path}/{file}", self.mount));
        match file {
            "io.weight" if self.disk.has_bfq(self.files) => read("io.bfq.weight").or_else(|| read(file)),
            "io.cost.model" => {
                let qos = read("io.cost.qos").and_then(|text| self.line_for_disk(&text));
                qos.filter(|qos| qos.contains("enable=1")).and_then(|_| read(file))
            }
            _ => read(file),
        }
    }

    /// The line that begins with the disk's numbers, else the one that is for all disks.
    fn line_for_disk(&self, text: &str) -> Option<String> {
        let of_disk = |line: &&str| {
            self.disk
                .numbers
                .as_deref()
                .is_some_and(|numbers| line.split_whitespace().next() == Some(numbers))
        };
        let of_all = |line: &&str| !line.split_whitespace().next().is_some_and(|word| word.contains(':'));
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines().find(of_disk).or_else(|| lines().find(of_all)).map(str::to_owned)
    }

    fn try_out(&mut self, path: &str, file: &str, line: &str) -> Result<(), String> {
        if !path.is_empty() && self.tree.find(path).is_none() {
            self.tree.add(&GroupSpec::new(path)).map_err(|e| e.to_string())?;
        }
        self.tree.set(path, file, line).map_err(|e| e.to_string())
    }
}
