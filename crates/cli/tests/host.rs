//! `fairlift host` on a machine that is a folder.

mod common;

use std::fs;
use std::path::Path;

use common::Folder;

/// Files of a machine: a SATA SSD under mq-deadline, a disk under bfq, a drive without a scheduler, and some groups.
fn machine(folder: &Folder) {
    let write = |path: &str, text: &str| {
        let path = folder.path().join("m").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/osrelease", "6.18.44-generic\n");
    write("sys/block/loop0/queue/rotational", "0\n");
    for (disk, numbers, rotational, model) in [
        ("sda", "8:0", "0", "Samsung SSD 870 QVO 1TB"),
        ("sdb", "8:16", "1", "WDC WD40EFRX"),
        ("nvme0n1", "259:0", "0", "X"),
    ] {
        write(&format!("sys/block/{disk}/dev"), &format!("{numbers}\n"));
        write(&format!("sys/block/{disk}/device/model"), &format!("{model}\n"));
        write(&format!("sys/block/{disk}/mq/0/cpu_list"), "0\n");
        for (file, value) in [
            ("rotational", rotational),
            ("nr_requests", "64"),
            ("read_ahead_kb", "512"),
            ("nomerges", "0"),
            ("max_sectors_kb", "512"),
            ("write_cache", "write back"),
            ("fua", "1"),
        ] {
            write(&format!("sys/block/{disk}/queue/{file}"), &format!("{value}\n"));
        }
    }
    write("sys/block/sda/sda1/partition", "1\n");
    write("sys/block/sda/queue/scheduler", "none [mq-deadline] kyber bfq\n");
    write("sys/block/sda/queue/wbt_lat_usec", "2000\n");
    for (file, value) in
        [("fifo_batch", "1"), ("read_expire", "500"), ("async_depth", "64"), ("strange", "5")]
    {
        write(&format!("sys/block/sda/queue/iosched/{file}"), &format!("{value}\n"));
    }
    write("sys/block/sdb/queue/scheduler", "none mq-deadline [bfq]\n");
    write("sys/block/sdb/queue/wbt_lat_usec", "0\n");
    write("sys/block/sdb/queue/iosched/low_latency", "0\n");
    write("sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n");
    write("sys/block/nvme0n1/queue/wbt_lat_usec", "0\n");
    let cgroup = |path: &str, text: &str| write(&format!("sys/fs/cgroup/{path}"), text);
    cgroup("cgroup.controllers", "cpu io memory\n");
    cgroup(
        "io.cost.qos",
        "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=95.00 wlat=5000 min=50.00 max=150.00\n",
    );
    cgroup(
        "io.cost.model",
        "8:0 ctrl=user model=linear rbps=571729370 rseqiops=98145 rrandiops=98441 wbps=539657135 wseqiops=93090 wrandiops=90935\n",
    );
    cgroup("system.slice/io.weight", "default 100\n");
    cgroup("system.slice/db.service/io.weight", "default 300\n8:16 500\n");
    cgroup("system.slice/db.service/io.bfq.weight", "default 118\n");
    cgroup("system.slice/db.service/io.latency", "8:0 target=2000\n");
    cgroup("system.slice/db.service/io.prio.class", "restrict-to-be\n");
    cgroup("user.slice/io.max", "8:16 rbps=max wbps=1048576 riops=max wiops=120\n");
    cgroup("user.slice/io.weight", "default 20000\n");
}

fn host(disk: &str) -> (Folder, String) {
    let folder = Folder::new();
    machine(&folder);
    let text = folder.run(&format!("host {disk} --root m")).ok();
    (folder, text)
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|l| l.starts_with(line)), "'{line}' is missing:\n{text}");
    }
}

#[test]
fn a_disk_with_its_scheduler_tunables_and_groups() {
    let (_, text) = host("/dev/sda");
    has(
        &text,
        &[
            "kernel = \"6.18\"   # runs 6.18.44-generic",
            "device = \"sata-ssd\"   # not rotational",
            "# The drive: Samsung SSD 870 QVO 1TB",
            "# Measured on such a drive: io.cost.model = \"Samsung_SSD_870\"",
            "schedulers = [\"mq-deadline:fifo_batch=1:nr_requests=64:",
            "# queue/iosched/strange = 5: not set, the lab has no such tunable",
            "# queue/iosched/async_depth = 64",
            "# queue/wbt_lat_usec = 2000",
            "# queue/write_cache = write back",
            "# queue/logical_block_size cannot be read.",
            "# mq: 1 hardware queues",
            "path = \"/system.slice/db.service\"",
            "io.weight = \"default 300\"",
            "io.latency = \"8:0 target=2000\"",
            "io.prio.class = \"restrict-to-be\"",
            "io.cost.qos = \"8:0 enable=1",
            "io.cost.model = \"8:0 ctrl=user",
            "# io.weight = default 20000: not taken over, ",
        ],
    );
    assert!(
        !text.contains("wbt_lat_usec=2000:") && !text.contains("async_depth=64:"),
        "defaults are not set:\n{text}"
    );
    assert!(!text.contains("io.max"), "those are another disk's limits:\n{text}");
}

#[test]
fn each_disk_has_its_own_lines() {
    let (_, text) = host("sdb");
    has(
        &text,
        &[
            "device = \"hdd\"   # rotational",
            "schedulers = [\"bfq:low_latency=0:",
            "io.weight = \"default 118\"",
            "io.max = \"8:16 rbps=max wbps=1048576 riops=max wiops=120\"",
        ],
    );
    assert!(!text.contains("io.cost") && !text.contains("io.latency"), "{text}");
    let (_, text) = host("nvme0n1");
    has(&text, &["device = \"nvme\"", "schedulers = [\"none:"]);
    assert!(text.contains("wbt_lat_usec=0"), "{text}");
    assert!(text.contains("# queue/nr_requests = 64: not set, without a scheduler"), "{text}");
}

#[test]
fn what_it_prints_runs_alone_and_as_a_column() {
    let (folder, _) = host("sda");
    fs::write(folder.path().join("job.fio"), common::SMALL).unwrap();
    for disk in ["sda1", "sdb", "nvme0n1"] {
        folder.run(&format!("host {disk} --root m --output mine.toml")).ok();
        folder.run("compare mine.toml --runtime 100ms --output-format csv").ok();
        let csv = folder.run("compare job.fio --host mine.toml --scheduler kyber --output-format csv").ok();
        let schedulers: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
        assert!(schedulers.contains(&"kyber"), "{csv}");
        assert!(
            schedulers.iter().any(|s| ["mq-deadline:", "bfq:", "none:"].iter().any(|p| s.starts_with(p))),
            "{csv}"
        );
    }
}

#[test]
fn what_is_missing_is_said() {
    let (folder, _) = host("sda");
    let complaint = |arguments: &str| folder.run(arguments).complaint();
    assert!(complaint("host --root m").contains("there are several disks"));
    let wrong = complaint("host /dev/sdaa --root m");
    assert!(
        wrong.contains("there is no disk '/dev/sdaa'") && wrong.contains("did you mean 'sda'?"),
        "{wrong}"
    );
    assert!(complaint("host --root nowhere").contains("sys/block cannot be read"));
    assert!(complaint("compare --host none.toml -- --name=x --size=1m").contains("cannot read 'none.toml'"));
    fs::remove_dir_all(folder.path().join("m/sys/fs")).unwrap();
    fs::remove_dir_all(folder.path().join("m/proc")).unwrap();
    fs::remove_file(folder.path().join("m/sys/block/sda/queue/scheduler")).unwrap();
    let text = folder.run("host sda --root m").ok();
    has(
        &text,
        &[
            "# sys/fs/cgroup has no cgroup v2",
            "# queue/scheduler cannot be read: none is a guess.",
            "kernel = \"6.12\"   # proc/sys/kernel/osrelease cannot be read",
        ],
    );
}

/// Folders may be called anything, and a link may lead round in a circle.
#[cfg(unix)]
#[test]
fn strange_names_and_circles_do_no_harm() {
    let (folder, _) = host("sda");
    let group = |name: &str| folder.path().join("m/sys/fs/cgroup").join(name);
    fs::create_dir(group("a \"b\\\u{1b}[31m")).unwrap();
    fs::write(group("a \"b\\\u{1b}[31m").join("io.weight"), "default 7").unwrap();
    std::os::unix::fs::symlink(Path::new(".."), group("system.slice/up")).unwrap();
    folder.run("host sda --root m --output mine.toml").ok();
    let text = fs::read_to_string(folder.path().join("mine.toml")).unwrap();
    assert!(!text.contains('\u{1b}'), "{text:?}");
    folder.run("compare mine.toml --runtime 100ms --output-format csv").ok();
}
