//! Rough edges that were found by using it.

mod common;

use std::time::{Duration, Instant};

use common::Folder;

const ONE: &str = "[one]\nrw=randread\ndirect=1\nbs=4k\nsize=1g\n";

fn complaint(job: &str, options: &str) -> String {
    Folder::new().with("job.fio", job).run(&format!("compare job.fio {options}")).complaint()
}

#[test]
fn yield_on_the_command_line_is_obeyed() {
    let folder = Folder::new();
    let figures = |scheduler: &str| {
        let csv = folder
            .run(&format!(
                "compare --device san-nvram --kernel 2.6.34 --scheduler {scheduler} --output-format csv -- fs_mark -S 1 -D 10 -N 100 -n 100 -s 65536 -t 1 -w 4096"
            ))
            .ok();
        let line = csv.lines().find(|line| line.contains("files_per_s")).expect("a figure").to_owned();
        line.rsplit(',').nth(1).expect("a value").parse::<f64>().expect("a number")
    };
    let (without, with) = (figures("cfq"), figures("cfq:yield=1"));
    assert!(with > 1.5 * without, "fsyncs do not wait for idling: {without} and {with} files a second");
    let raw = Folder::new().with("job.fio", ONE);
    let output = raw
        .command("compare job.fio --kernel 2.6.34 --scheduler cfq,cfq:yield=1 --runtime 1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.contains("yield=1 changes nothing on a raw device"),
        "{stderr}"
    );
}

#[test]
fn what_cannot_end_is_refused_before_the_work() {
    let started = Instant::now();
    let of = |more: &str| complaint(&format!("{ONE}{more}"), "--device nvme");
    assert!(of("runtime=1000000000\ntime_based\n").contains("its runtime is 11574 days"));
    assert!(of("ramp_time=1000000000\n").contains("its ramp_time is 11574 days"));
    assert!(of("startdelay=2d\n").contains("its startdelay is 2.0 days"));
    assert!(of("ramp_time=23h\nruntime=2h\ntime_based\n").contains("are 1.0 days together"));
    assert!(of("loops=1000000\n").contains("I/Os need 6.1 days of processor time at least"));
    let dd = Folder::new().run_words(
        "compare --device hdd --",
        &["dd", "if=/dev/zero", "of=f", "bs=8M", "count=1000000000000"],
    );
    assert!(dd.complaint().contains("days of processor time at least"));
    assert!(started.elapsed() < Duration::from_secs(20), "before the work");
    // These end: a runtime bounds the amount, and an end bounds the loops.
    let folder = Folder::new().with("job.fio", format!("{ONE}loops=1000000\nruntime=1\n"));
    folder.run("run job.fio --device hdd").ok();
}

#[test]
fn a_setting_is_given_once() {
    let twice = complaint(ONE, "--device nvme --set kyber.nr_requests=8 --set kyber.nr_requests=16");
    assert!(twice.contains("'kyber.nr_requests' is set twice"), "{twice}");
    let column = complaint(ONE, "--device nvme --scheduler none,bfq:slice_idle=0:slice_idle=8");
    assert!(column.contains("bfq.slice_idle is set twice"), "{column}");
    // A column's own setting is overridden, which the column's name shows.
    let folder = Folder::new().with("job.fio", ONE);
    let table = folder
        .run("compare job.fio --device nvme --scheduler none,bfq:slice_idle=4 --set bfq.slice_idle=0 --runtime 10ms")
        .ok();
    assert!(table.contains("bfq:slice_idle=0"), "{table}");
}

#[test]
fn wrong_numbers_are_called_what_they_are() {
    let of = |setting: &str| complaint(ONE, &format!("--device nvme --scheduler none,bfq:{setting}"));
    assert!(of("slice_idle=-1").contains("bfq.slice_idle=-1 is negative"));
    assert!(of("slice_idle=99999999999999999999").contains("is too large"));
    assert!(of("slice_idle=many").contains("is not a value it takes"));
    let job = |line: &str| complaint(&format!("[one]\nrw=read\n{line}\n"), "--device nvme");
    assert!(job("size=-4k").contains("'-4k' is negative"));
    assert!(job("size=99999999999999999999").contains("is too large"));
}

#[test]
fn escapes_in_names_are_shown_not_sent() {
    let job = ONE.replace("[one]", "[a\u{1b}[2Jb\u{7}]");
    let folder = Folder::new().with("job.fio", job);
    for command in
        ["compare job.fio --device nvme --runtime 10ms --explain", "run job.fio --device nvme --runtime 10ms"]
    {
        let text = folder.run(command).ok();
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert!(text.contains("a\\x1b[2Jb\\x07"), "{text}");
    }
}

#[test]
fn a_byte_order_mark_is_named() {
    let bom = |text: &str| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    let folder = Folder::new()
        .with("job.fio", bom(ONE))
        .with("case.toml", bom("title = \"x\"\n"))
        .with("mine.toml", bom("based_on = \"null\"\n"))
        .with("plain.fio", ONE);
    for command in
        ["compare job.fio --device nvme", "compare case.toml", "compare plain.fio --device mine.toml"]
    {
        let complaint = folder.run(command).complaint();
        assert!(complaint.contains("byte order mark (BOM)"), "{command}: {complaint}");
    }
}

#[test]
fn one_kernel_can_be_shown() {
    let folder = Folder::new();
    let one = folder.run("kernels 6.12").ok();
    assert!(one.starts_with("6.12: ") && one.contains("schedulers: none, mq-deadline"), "{one}");
    assert!(!one.contains("2.6.31:"), "{one}");
    assert!(folder.run("kernels 6.13").complaint().contains("did you mean '6.12'?"));
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_nothing_behind() {
    let job = format!("{ONE}runtime=10h\ntime_based\n");
    let folder = Folder::new().with("job.fio", job);
    let mut child = folder
        .command("compare job.fio --device null --output out.txt --report page.html --plots plots")
        .spawn()
        .unwrap();
    let started = Instant::now();
    while folder.names().len() < 4 && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let during = folder.names();
    assert!(during.iter().any(|name| name.contains(".tmp")), "it has begun to write: {during:?}");
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "as a shell has it");
    assert_eq!(folder.names(), ["job.fio"]);
}

/// A figure that cannot get its name: none of the others stays half written.
#[cfg(unix)]
#[test]
fn figures_come_all_or_not_at_all() {
    let folder = Folder::new().with("job.fio", ONE);
    let command = "compare job.fio --device null --runtime 10ms --plots plots";
    folder.run(command).ok();
    let plots = folder.path().join("plots");
    let mut names: Vec<_> = std::fs::read_dir(&plots).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 2 && names.iter().all(|path| !path.to_string_lossy().contains("/.")), "{names:?}");
    let first = &names[0];
    std::fs::remove_file(first).unwrap();
    std::fs::create_dir(first).unwrap();
    std::fs::write(first.join("in-the-way"), "").unwrap();
    assert!(folder.run(command).complaint().contains("cannot write"));
    let left = std::fs::read_dir(&plots).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let hidden: Vec<String> = left.filter(|name| name.starts_with('.')).collect();
    assert_eq!(hidden, Vec::<String>::new());
}
