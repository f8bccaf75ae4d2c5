//! The lines that make an answer so on a real machine: sysfs, a udev rule, cgroup files.
//!
//! Sources: Linux `Documentation/ABI/stable/sysfs-block` (`queue/scheduler`, `queue/iosched/`, `queue/nr_requests` and others; writing
//! the scheduler resets `nr_requests`, so it comes first), `Documentation/admin-guide/cgroup-v2.rst` (`io.max`, `cgroup.subtree_control`),
//! `Documentation/block/bfq-iosched.rst` (`io.bfq.weight`, 1 to 1000), `udev(7)` (`ATTR{}` assigns what a file in sysfs gets).

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::group::{GroupSpec, GroupTree};
use fairlift_sim::kernel::Rules;
use fairlift_sim::scheduler::SchedulerSpec;
use fairlift_sim::scheduler::names::Era;

use crate::view::quoted;

/// Where a udev rule goes: after the distribution's own (60-…), whose scheduler it replaces.
const RULE_FILE: &str = "/etc/udev/rules.d/61-scheduler.rules";
/// Files of `queue/` that are settings here, by the same names.
const QUEUE_FILES: [&str; 5] = ["nr_requests", "read_ahead_kb", "nomerges", "max_sectors_kb", "wbt_lat_usec"];
/// Largest `io.bfq.weight`.
const BFQ_WEIGHT_MAX: u32 = 1000;

/// Lines to paste, with what to say about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// For now, as root.
    pub sysfs: Vec<String>,
    /// To keep: the file's name, and its lines.
    pub udev: Option<(&'static str, Vec<String>)>,
    /// Control groups.
    pub cgroup: Vec<String>,
    /// What no line can do.
    pub notes: Vec<String>,
}

/// A kind of disk: its name here, and how udev finds all of its kind.
struct Disk {
    name: &'static str,
    kernel: &'static str,
    rotational: Option<bool>,
}

impl Disk {
    fn of(device: &DeviceSpec) -> Disk {
        let limits = device.limits();
        let rotational = (device.model() != "cloud").then_some(limits.rotational);
        let (name, kernel) = match (device.model(), limits.rotational) {
            ("null", _) => ("nullb0", "nullb[0-9]*"),
            ("cloud", true) => ("vda", "vd[a-z]*"),
            // More than SATA can queue.
            ("cloud", _) => ("nvme0n1", "nvme[0-9]*n[0-9]*"),
            ("flash", _) if limits.queue_depth > 32 => ("nvme0n1", "nvme[0-9]*n[0-9]*"),
            _ => ("sda", "sd[a-z]*"),
        };
        Disk { name, kernel, rotational }
    }
}

/// What `spec` is called in a kernel that has it. The lab's own have one name under all of its kernels.
fn in_kernels(spec: &SchedulerSpec) -> String {
    match spec.era() {
        Some(Era::Ours) => format!("fl-{}", spec.name()),
        _ => spec.name().to_owned(),
    }
}

/// What makes `spec` so on a machine with such a device and these groups; `None`: there is no kernel with it.
pub fn lines(spec: &SchedulerSpec, rules: &Rules, device: &DeviceSpec, groups: &GroupTree) -> Lines {
    let mut lines = Lines::default();
    let name = in_kernels(spec);
    if name.starts_with("fl-") {
        lines.notes.push(format!("{name} comes with fairlift's kernel module (docs/kernel.md)"));
    }
    if spec.era() == Some(Era::Ours) && !rules.blk_mq {
        lines.notes.push(format!("{name} is for kernels with blk-mq; the lab runs it under any"));
        return lines;
    }
    if spec.asked_profile().is_some() {
        lines.notes.push(format!("{spec} has another kernel's rules, and no command selects a profile"));
        return lines;
    }
    let disk = Disk::of(device);
    let files = files(spec, &mut lines.notes);
    lines.sysfs = files
        .iter()
        .map(|(file, value)| format!("echo {value} >/sys/block/{}/queue/{file}", disk.name))
        .collect();
    if rules.blk_mq {
        lines.udev = Some((RULE_FILE, rule(&disk, &files)));
        lines.cgroup = cgroup(spec, &disk, groups, &mut lines.notes);
    } else if !groups.is_empty() {
        lines.notes.push(
            "in a kernel this old, blkio.weight in its own cgroup hierarchy sets the weight of a group"
                .to_owned(),
        );
    }
    lines
}

/// Files below `queue/` and what is written to them, the scheduler first.
fn files(spec: &SchedulerSpec, notes: &mut Vec<String>) -> Vec<(String, String)> {
    let mut files = vec![("scheduler".to_owned(), in_kernels(spec))];
    files.extend(spec.settings().map(|(name, value)| (format!("iosched/{name}"), value.to_owned())));
    for (name, value) in spec.host().iter() {
        if QUEUE_FILES.contains(&name) {
            files.push((name.to_owned(), value.to_owned()));
        } else if spec.knows_groups() && fairlift_core::group::TUNABLES.iter().any(|t| t.name == name) {
            files.push((format!("iosched/{name}"), value.to_owned()));
        } else {
            notes.push(format!("{name}={value} is a setting of the lab, which no file of a kernel has"));
        }
    }
    files
}

/// One rule, a line for each file, for all disks of the kind.
fn rule(disk: &Disk, files: &[(String, String)]) -> Vec<String> {
    let rotational = disk
        .rotational
        .map_or_else(String::new, |yes| format!(", ATTR{{queue/rotational}}==\"{}\"", u8::from(yes)));
    let which = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", KERNEL==\"{}\"{rotational}",
        disk.kernel
    );
    files.iter().map(|(file, value)| format!("{which}, ATTR{{queue/{file}}}=\"{value}\"")).collect()
}

/// Weights and limits of the groups, as far as the scheduler knows such.
fn cgroup(spec: &SchedulerSpec, disk: &Disk, groups: &GroupTree, notes: &mut Vec<String>) -> Vec<String> {
    let ours = in_kernels(spec).starts_with("fl-");
    let weight_file = match spec.name() {
        "bfq" => Some("io.bfq.weight"),
        _ if ours => Some("io.fairlift.weight"),
        _ => None,
    };
    let max_file = if ours { "io.fairlift.max" } else { "io.max" };
    let mut lines = Vec::new();
    let mut ignored = false;
    for group in groups.iter() {
        let file = |name: &str| quoted(&format!("/sys/fs/cgroup/{}/{name}", group.path));
        if group.weight != GroupSpec::new("").weight {
            match weight_file {
                Some("io.bfq.weight") if group.weight > BFQ_WEIGHT_MAX => {
                    notes.push(format!(
                        "{}: bfq's largest weight is {BFQ_WEIGHT_MAX}; scale all weights",
                        group.path
                    ));
                }
                Some(name) => lines.push(format!("echo {} >{}", group.weight, file(name))),
                None => ignored = true,
            }
        }
        let max = group.limits.max;
        let parts = [
            ("rbps", max.read_bps),
            ("wbps", max.write_bps),
            ("riops", max.read_iops),
            ("wiops", max.write_iops),
        ];
        let parts: String = parts
            .iter()
            .filter(|(_, value)| *value > 0)
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        if !parts.is_empty() {
            lines.push(format!("echo \"$(cat /sys/block/{}/dev){parts}\" >{}", disk.name, file(max_file)));
        }
    }
    if ignored {
        notes.push(format!("{} ignores the groups' weights", spec.name()));
    }
    if !lines.is_empty() {
        lines.splice(0..0, controllers(groups));
    }
    lines
}

/// Every cgroup above one that is used has to hand the controller on.
fn controllers(groups: &GroupTree) -> Vec<String> {
    let mut above = vec![String::new()];
    for group in groups.iter() {
        if let Some((parent, _)) = group.path.rsplit_once('/') {
            let parent = format!("{parent}/");
            if !above.contains(&parent) {
                above.push(parent);
            }
        }
    }
    let file = |path: &String| quoted(&format!("/sys/fs/cgroup/{path}cgroup.subtree_control"));
    above.iter().map(|path| format!("echo +io >{}", file(path))).collect()
}
