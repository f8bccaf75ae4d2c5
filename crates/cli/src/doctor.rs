//! `fairlift doctor`: what of fairlift this machine can do, and how to get the rest.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::style::Style;

/// One thing that a command needs.
struct Finding {
    /// What a user would do.
    what: &'static str,
    there: bool,
    /// What was found, or what is missing and how to get it.
    how: String,
}

/// The table, and whether everything is there.
pub fn findings(style: Style) -> String {
    let all = all();
    let width = all.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut out = String::new();
    for Finding { what, there, how } in &all {
        let mark = if *there { "yes".to_owned() } else { style.yellow("no ") };
        let _ = writeln!(out, "{mark}  {what:width$}  {how}");
    }
    let missing = all.iter().any(|finding| !finding.there);
    out.push_str(if missing {
        "\nWhat says no is missing. compare, run, replay, reproduce, inspect and convert work on any machine.\n"
    } else {
        "\nAll that fairlift can do works here.\n"
    });
    out
}

fn all() -> Vec<Finding> {
    vec![
        root(),
        fio(),
        tracing(),
        elevators(),
        module(),
        cgroups(),
        io_uring(),
        headers(),
        virtual_machine(),
        browser(),
    ]
}

fn finding(what: &'static str, found: Option<String>, remedy: &str) -> Finding {
    Finding { what, there: found.is_some(), how: found.unwrap_or_else(|| remedy.to_owned()) }
}

/// The first program of these names on the PATH.
fn program(names: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from)).collect();
    let found = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|p| p.is_file())?;
    Some(found.display().to_string())
}

fn readable(path: &str) -> bool {
    fs::read_dir(path).is_ok() || fs::read(path).is_ok()
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
    })
}

fn root() -> Finding {
    let remedy = "run with sudo what needs it: capture, a device in calibrate, the module";
    finding("privileges", is_root().then(|| "root".to_owned()), remedy)
}

fn fio() -> Finding {
    finding("calibrate: measure a disk", program(&["fio"]), "install fio (Debian: apt install fio)")
}

fn tracing() -> Finding {
    let place = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .into_iter()
        .find(|p| readable(&format!("{p}/events/block")) || readable(&format!("{p}/trace_clock")));
    let remedy = if Path::new("/sys/kernel/tracing").exists() {
        "run as root, with tracefs mounted: mount -t tracefs tracefs /sys/kernel/tracing"
    } else {
        "this kernel has no tracefs; record with blktrace on the machine that has the load"
    };
    finding("capture: record block I/O", place.map(str::to_owned), remedy)
}

/// The schedulers of the first disk that has some.
fn elevators() -> Finding {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut lists = disks.filter_map(|disk| fs::read_to_string(disk.path().join("queue/scheduler")).ok());
    let list = lists.find(|list| list.split_whitespace().count() > 1).map(|list| list.trim().to_owned());
    finding("choose this machine's scheduler", list, "no disk here has a choice of schedulers")
}

fn module() -> Finding {
    let loaded = Path::new("/sys/module/fairlift").exists().then(|| "loaded".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let remedy = if kernel.starts_with("6.12.") {
        "make kernel-install, or the package fairlift-dkms; then modprobe fairlift".to_owned()
    } else {
        format!("the module is for Linux 6.12; this is {}", kernel.trim())
    };
    finding("share a disk by weight: the module", loaded, &remedy)
}

fn cgroups() -> Finding {
    let file = "/sys/fs/cgroup/cgroup.controllers";
    let io = fs::read_to_string(file).is_ok_and(|list| list.split_whitespace().any(|name| name == "io"));
    finding(
        "groups: cgroup v2 with the io controller",
        io.then(|| "there".to_owned()),
        "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)",
    )
}

fn io_uring() -> Finding {
    let off = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").map(|value| value.trim() != "0");
    let there = match off {
        Ok(off) => !off,
        // Before 6.6 there is no such file, and no way to forbid it.
        Err(_) => fs::read_to_string("/proc/kallsyms").is_ok_and(|all| {
            all.contains(" io_uring_setup")
                || all.contains("__x64_sys_io_uring_setup")
                || all.contains("__arm64_sys_io_uring_setup")
        }),
    };
    finding(
        "io_uring",
        there.then(|| "allowed".to_owned()),
        "sysctl kernel.io_uring_disabled=0; a thread pool does instead",
    )
}

fn headers() -> Finding {
    let kernels = fs::read_dir("/lib/modules").into_iter().flatten().flatten();
    let found =
        kernels.map(|kernel| kernel.path().join("build")).find(|build| build.join("Makefile").exists());
    finding(
        "build the module: kernel headers",
        found.map(|p| p.display().to_string()),
        "apt install linux-headers-6.12-amd64",
    )
}

fn virtual_machine() -> Finding {
    finding("test the module: QEMU", program(&["qemu-system-x86_64"]), "apt install qemu-system-x86")
}

fn browser() -> Finding {
    let found = program(&["chromium", "chromium-browser", "google-chrome"]);
    finding("test the report page: a headless browser", found, "apt install chromium nodejs")
}
