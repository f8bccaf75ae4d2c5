//! The kernel module's groups: the files `io.fairlift.*` of all cgroups (docs/kernel.md).

use std::fs;
use std::io;
use std::path::Path;

use super::sample::{Sample, Tenant};

/// Cgroups below each other that are looked at: the kernel allows more, and no system is known to have them.
const DEPTH_MAX: usize = 32;

/// Look at all cgroups below `root`.
///
/// # Errors
/// The system's; `NotFound` when no cgroup has the module's file.
pub fn look(root: &Path, at_ns: u64) -> io::Result<Sample> {
    let mut sample = Sample { at_ns, ..Sample::default() };
    let found = walk(root, "/", &mut sample, DEPTH_MAX)?;
    if found {
        Ok(sample)
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, "no cgroup has the file io.fairlift.stat"))
    }
}

/// One cgroup and those below; was there a file?
fn walk(folder: &Path, name: &str, sample: &mut Sample, depth: usize) -> io::Result<bool> {
    let stat = fs::read_to_string(folder.join("io.fairlift.stat"));
    let mut found = stat.is_ok();
    if let Ok(stat) = stat {
        let weight = fs::read_to_string(folder.join("io.fairlift.weight")).unwrap_or_default();
        let max = fs::read_to_string(folder.join("io.fairlift.max")).unwrap_or_default();
        for (device, tenant) in tenants(&stat, &weight, &max) {
            sample.tenants.insert((device, name.to_owned()), tenant);
        }
    }
    if depth == 0 {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let below = format!("{}/{}", name.trim_end_matches('/'), entry.file_name().to_string_lossy());
            // One that is removed meanwhile is not there.
            found |= walk(&entry.path(), &below, sample, depth - 1).unwrap_or(false);
        }
    }
    Ok(found)
}

/// The value of `device`'s line, else of the line `default`.
fn of_device<'a>(text: &'a str, device: &str) -> Option<&'a str> {
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line(device).or_else(|| line("default"))
}

/// A cgroup's counters by device, from the text of its files.
fn tenants(stat: &str, weight: &str, max: &str) -> Vec<(String, Tenant)> {
    let mut tenants = Vec::new();
    for line in stat.lines() {
        let Some((device, counters)) = line.split_once(' ') else { continue };
        if counters.contains("in_parent=1") {
            continue;
        }
        let number = |key: &str| {
            let value = counters.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
            value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
        };
        let tenant = Tenant {
            device: device.to_owned(),
            weight: of_device(weight, device).and_then(|text| text.trim().parse().ok()),
            limits: of_device(max, device).unwrap_or_default().to_owned(),
            waiting: number("queued") + number("held"),
            ios: number("rios") + number("wios") + number("dios"),
            bytes: number("rbytes") + number("wbytes"),
            time_ns: number("time_usec") * 1000,
            wait_ns: number("wait_usec") * 1000,
            service_ns: number("service_usec") * 1000,
            ..Tenant::default()
        };
        tenants.push((device.to_owned(), tenant));
    }
    tenants
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "254:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=512 dios=1 merged=0 queued=3 held=2 time_usec=70 wait_usec=9 service_usec=8 idle_usec=0 dequeued=1\n254:16 in_parent=1\n";

    #[test]
    fn a_folder_of_cgroups_is_read() {
        let root = std::env::temp_dir().join(format!("fairlift-top-{}", std::process::id()));
        let vm = root.join("machines").join("vm1");
        fs::create_dir_all(&vm).expect("folders");
        assert_eq!(look(&root, 0).expect_err("no module").kind(), io::ErrorKind::NotFound);
        fs::write(vm.join("io.fairlift.stat"), STAT).expect("a file");
        fs::write(vm.join("io.fairlift.weight"), "default 100\n254:0 300\n").expect("a file");
        fs::write(vm.join("io.fairlift.max"), "254:0 rbps=max wbps=1048576 riops=max wiops=max\n")
            .expect("a file");
        let sample = look(&root, 5).expect("a file is there");
        fs::remove_dir_all(&root).expect("gone");
        let (key, tenant) = sample.tenants.first_key_value().expect("one");
        assert_eq!(sample.tenants.len(), 1);
        assert_eq!(*key, ("254:0".to_owned(), "/machines/vm1".to_owned()));
        assert_eq!((tenant.weight, tenant.waiting, tenant.ios, tenant.bytes), (Some(300), 5, 4, 12_288));
        assert_eq!((tenant.time_ns, tenant.wait_ns, tenant.service_ns), (70_000, 9_000, 8_000));
        assert!(tenant.limits.contains("wbps=1048576"));
    }
}
