//! Groups of a trace: one for each cgroup it names; where it names neither these nor processes, one for each volume if
//! there are several.

use super::Replay;
use crate::group::GroupTree;

/// Longest name of a volume that becomes a path, bytes; others are numbered.
const NAME_BYTES_MAX: usize = 255;
/// Most parts of such a path.
const DEPTH_MAX: usize = 8;

/// The path of a cgroup; `None`: the root's. Traces tell its number, which is that of its folder's inode; the root of every
/// hierarchy has number 1, in the low half where the upper one is a generation (Linux 4.14 to 5.4).
pub(super) fn of_cgroup(id: u64) -> Option<String> {
    let is_root = id as u32 <= 1;
    (!is_root).then(|| format!("/cgroup-{id}"))
}

/// The path of a volume, which is the trace's device `number`.
pub(super) fn of_volume(name: &str, number: usize) -> String {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    let is_path = !parts.is_empty() && parts.len() <= DEPTH_MAX && name.len() <= NAME_BYTES_MAX;
    if is_path { format!("/{}", parts.join("/")) } else { format!("/volume-{number}") }
}

impl Replay {
    /// The groups of its processes, with weights as they come. Past [`crate::group::GROUPS_MAX`] groups their processes are the
    /// root's.
    pub fn groups(&self) -> GroupTree {
        let mut tree = GroupTree::default();
        for path in self.processes.iter().filter_map(|process| process.group.as_deref()) {
            // Too many: whoever names a group that is not there is in the root.
            let _ = tree.enter(path);
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_hierarchy_is_the_root() {
        assert_eq!([of_cgroup(1), of_cgroup(0x1_0000_0001)], [None, None]);
        assert_eq!(of_cgroup(4711).as_deref(), Some("/cgroup-4711"));
    }

    #[test]
    fn a_volumes_name_is_its_path_if_it_can_be_one() {
        assert_eq!(of_volume("usr.0", 3), "/usr.0");
        assert_eq!(of_volume("/dev//sda", 3), "/dev/sda");
        assert_eq!([of_volume("", 3), of_volume("//", 4)], ["/volume-3", "/volume-4"]);
        assert_eq!(of_volume(&"a/".repeat(9), 5), "/volume-5");
        assert_eq!(of_volume(&"a".repeat(256), 6), "/volume-6");
    }
}
