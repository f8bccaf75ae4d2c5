//! Traces in and out by command: what other tools make of them, what is said of bad ones, what a replay does.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Folder, SMALL};

/// An excerpt of a recorded blktrace: bfq, ext4, two CPUs.
fn recorded() -> Folder {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data");
    ["head.blktrace.0.xz", "head.blktrace.1.xz", "mysql-first-rows.load"].into_iter().fold(
        Folder::new(),
        |folder, name| {
            let bytes = std::fs::read(data.join(name)).unwrap();
            folder.with(name, bytes)
        },
    )
}

/// What another tool prints; `None`, aloud, where it is not installed.
fn tool(folder: &Folder, program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).current_dir(folder.path()).output() {
        Err(_) => {
            eprintln!("SKIPPED: {program} is not installed");
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
    }
}

/// How often each letter stands in blkparse's sixth column.
fn letters(text: &str) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for letter in text.lines().filter_map(|line| line.split_whitespace().nth(5)) {
        *counts.entry(letter.to_owned()).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

#[test]
fn inspect_counts_what_blkparse_counts_and_shows_bfqs_notes() {
    let folder = recorded();
    let json: serde_json::Value =
        serde_json::from_str(&folder.run("inspect head --output-format json").ok()).unwrap();
    assert_eq!(json["messages"]["count"], 17_451);
    assert!(json["messages"]["kinds"][0]["text"].as_str().unwrap().starts_with("bfq"));
    folder.run("convert head again.blktrace").ok();
    let Some(text) = tool(&folder, "blkparse", &["-q", "-i", "again"]) else { return };
    for (letter, count) in letters(&text).into_iter().filter(|(letter, _)| letter != "m") {
        assert_eq!(json["events"][&letter], count, "{letter}");
    }
}

#[test]
fn every_target_reads_back_with_the_same_arrivals() {
    let folder = recorded();
    let ios = |name: &str| {
        let json = folder.run(&format!("inspect {name} --output-format json")).ok();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        (json["all"]["ios"].clone(), json["all"]["bytes"].clone())
    };
    let wanted = ios("head");
    for target in ["a.bin", "b.blktrace", "c.blkparse", "d.csv", "e.iolog"] {
        folder.run(&format!("convert head {target}")).ok();
        assert_eq!(ios(target), wanted, "{target}");
        for second in ["2.bin", "2.blkparse", "2.csv", "2.iolog"] {
            folder.run(&format!("convert {target} {second}")).ok();
            assert_eq!(ios(second), wanted, "{target} to {second}");
        }
    }
}

#[test]
fn a_target_says_what_it_cannot_hold() {
    let answer = recorded().run("convert head out.iolog");
    assert!(
        answer.stderr.contains("out.iolog cannot hold") && answer.stderr.contains("flags"),
        "{}",
        answer.stderr
    );
}

#[test]
fn a_simulated_run_is_a_trace_for_blkparse_btt_and_fio() {
    let folder = Folder::new().with("small.fio", SMALL);
    folder.run("compare --kernel 2.6.31 small.fio --device null --scheduler noop,cfq:quantum=8 --trace sim.blktrace").ok();
    let wanted = ["sim-cfq_quantum=8.blktrace.0", "sim-noop.blktrace.0", "small.fio"];
    assert_eq!(folder.names(), wanted);
    if let Some(text) = tool(&folder, "blkparse", &["-q", "-i", "sim-noop"]) {
        let counts = letters(&text);
        let of = |letter: &str| counts.iter().find(|(l, _)| l == letter).map_or(0, |(_, n)| *n);
        assert!(of("Q") > 500 && of("Q") == of("G") + of("M"), "{counts:?}");
        assert_eq!(of("D"), of("C"));
    }
    if let Some(text) = tool(&folder, "btt", &["-i", "sim-noop.blktrace.0"]) {
        assert!(text.lines().any(|line| line.starts_with("Q2C")), "{text}");
    }
    let log = ["--name=r", "--ioengine=null", "--replay_no_stall=1", "--read_iolog=sim-noop.blktrace.0"];
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(1 << 30).unwrap();
    let arguments: Vec<&str> = log.into_iter().chain(["--replay_redirect=disk"]).collect();
    if let Some(text) = tool(&folder, "fio", &arguments) {
        assert!(text.contains("err= 0"), "{text}");
    }
}

#[test]
fn a_replay_of_a_simulation_does_the_same_io() {
    let folder = Folder::new().with("small.fio", SMALL);
    folder.run("run --kernel 2.6.31 small.fio --scheduler noop --trace sim.bin").ok();
    for timing in ["open", "closed", "asap", "scaled=2"] {
        let json = folder
            .run(&format!("replay --kernel 2.6.31 sim.bin --timing {timing} --output-format json"))
            .ok();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let ios = json["replay"]["ios"].as_u64().unwrap();
        for run in json["runs"].as_array().unwrap() {
            assert_eq!(run["block"]["bios"].as_u64(), Some(ios), "{timing}");
            assert_eq!(run["finished"], true);
        }
    }
}

#[test]
fn closed_waits_and_thinks_as_the_trace_did() {
    // Reads 1 ms apart that took 0.4 ms each: 0.6 ms of thought.
    let rows: String =
        (0..100).map(|n| format!("{},queue,{},4096,read,7,400000\n", n * 1_000_000, n * 80_000)).collect();
    let text = format!("time_ns,action,sector,bytes,op,pid,response_ns\n{rows}");
    let folder = Folder::new().with("t.csv", text);
    let simulated = |timing: &str| -> f64 {
        let arguments = format!(
            "replay --kernel 2.6.31 t.csv --device flash-kd --scheduler noop --timing {timing} --output-format json"
        );
        let json: serde_json::Value = serde_json::from_str(&folder.run(&arguments).ok()).unwrap();
        json["runs"][0]["simulated_ns"].as_f64().unwrap()
    };
    let (asap, closed) = (simulated("asap"), simulated("closed"));
    let thought = 99.0 * 600_000.0;
    // Flash does not mind when it is asked; each of asap's calls computes for some microseconds.
    let difference = closed - asap;
    assert!((0.95 * thought..=thought).contains(&difference), "closed {closed}, asap {asap}");
    assert!((simulated("scaled=4") - 4.0 * 99e6).abs() < 1e6, "the last arrival is at 396 ms");
    assert_eq!(folder.run("replay --kernel 2.6.31 t.csv --timing scaled 4").code, 0, "two words");
}

#[test]
fn a_replay_says_why_requests_waited() {
    let folder = recorded();
    let plain = folder.run("replay --kernel 2.6.31 head --scheduler cfq --timing closed").ok();
    let told = folder.run("replay --kernel 2.6.31 head --scheduler cfq --timing closed --explain").ok();
    let figures = |text: &str| text.split("about the trace").next().unwrap().to_owned();
    for words in ["Why, under cfq", "the device", "requests of", "fio", "the slowest requests", "idles for"] {
        assert!(told.contains(words), "no '{words}' in\n{told}");
    }
    let why = told.find("Why, under").unwrap();
    assert!(figures(&plain).starts_with(told[..why].trim_end()), "recording changes nothing");
    let json = folder
        .run("replay --kernel 2.6.31 head --scheduler cfq --timing closed --explain --output-format json")
        .ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let explain = &json["runs"][0]["explain"];
    assert_eq!(explain["slowest"].as_array().unwrap().len(), 10);
    let sum = |shares: &serde_json::Value| -> u64 {
        shares.as_array().unwrap().iter().map(|share| share["ns"].as_u64().unwrap()).sum()
    };
    for task in explain["tasks"].as_array().unwrap() {
        assert_eq!(task["request_ns"].as_u64(), Some(sum(&task["request_causes"])), "{task}");
    }
}

/// Random reads of two volumes, all of them under way at once.
fn volumes() -> String {
    let row = |n: usize| format!("{n},{},4096,read,{},1\n", (n * 7919) % 400_000 * 8, ["db", "logs"][n % 2]);
    format!("time_us,sector,bytes,op,device,response_s\n{}", (0..400).map(row).collect::<String>())
}

#[test]
fn volumes_are_groups_that_share_by_weight() {
    let folder = Folder::new().with("v.csv", volumes());
    let replay = "replay --kernel 2.6.31 v.csv --timing asap --scheduler noop,noop:groups=0";
    let groups = |arguments: &str, run: usize| -> Vec<(String, u64, f64)> {
        let json = folder.run(&format!("{replay} {arguments} --output-format json")).ok();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let groups = json["runs"][run]["groups"].as_array().unwrap().iter();
        let row = |g: &serde_json::Value| {
            let path = g["path"].as_str().unwrap().to_owned();
            (path, g["all"]["read_requests"].as_u64().unwrap(), g["all"]["latency_mean_ns"].as_f64().unwrap())
        };
        groups.map(row).collect()
    };
    let even = groups("", 0);
    let requests: Vec<_> = even.iter().map(|g| (g.0.as_str(), g.1)).collect();
    assert_eq!(requests, [("/", 400), ("/db", 200), ("/logs", 200)]);
    let heavy = groups("--set group./db.weight=1000", 0);
    assert!(heavy[1].2 < 0.5 * heavy[2].2, "ten times the weight waits less: {heavy:?}");
    assert!((0.7..1.4).contains(&(even[1].2 / even[2].2)), "equal weights wait alike: {even:?}");
    let flat = groups("--set group./db.weight=1000", 1);
    assert!((0.7..1.4).contains(&(flat[1].2 / flat[2].2)), "no groups for the queue: {flat:?}");
}

#[test]
fn a_replay_tells_what_groups_got_and_waited_for() {
    let folder = Folder::new().with("v.csv", volumes());
    let text = folder
        .run(
            "replay --kernel 2.6.31 v.csv --timing asap --scheduler cfq --set group./db.weight=500 --explain",
        )
        .ok();
    for words in ["/db (weight 500)", "/logs (weight 100)", "requests of group", "2 volumes: each is a group"]
    {
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
    let complaint = folder.run("replay --kernel 2.6.31 v.csv --set group./dv.weight=5").complaint();
    assert!(complaint.contains("did you mean '/db'"), "{complaint}");
    let json = folder
        .run("replay --kernel 2.6.31 v.csv --timing asap --scheduler cfq --explain --output-format json")
        .ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let run = &json["runs"][0];
    for (group, told) in
        run["groups"].as_array().unwrap().iter().zip(run["explain"]["groups"].as_array().unwrap())
    {
        assert_eq!(told["requests"], group["own"]["read_requests"], "{}", group["path"]);
        let causes = told["request_causes"].as_array().unwrap().iter();
        assert_eq!(told["request_ns"].as_u64(), Some(causes.map(|c| c["ns"].as_u64().unwrap()).sum()));
    }
    let lone = Folder::new().with("one.csv", volumes().replace("logs", "db"));
    let complaint = lone.run("replay --kernel 2.6.31 one.csv --set group./db.weight=5").complaint();
    assert!(complaint.contains("several volumes and no processes"), "{complaint}");
}

#[test]
fn control_groups_of_a_blktrace_are_groups_and_processes_in_them_contexts() {
    let rows = "\
0,queue,8,4096,read,7,4711\n100,queue,80,4096,write,8,4711\n200,queue,800,4096,read,9,1\n300,queue,8000,4096,read,7,512\n";
    let folder = Folder::new().with("c.csv", format!("time_us,action,sector,bytes,op,pid,cgroup\n{rows}"));
    folder.run("convert c.csv c.bin --to blktrace8").ok();
    let json = folder.run("replay --kernel 2.6.31 c.bin --scheduler noop --output-format json").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let text = |value: &serde_json::Value, key: &str| value[key].as_str().map(str::to_owned);
    let processes = json["replay"]["processes"].as_array().unwrap().iter();
    let groups: Vec<_> = processes.map(|p| (p["pid"].as_u64().unwrap(), text(p, "group"))).collect();
    let wanted = [(7, Some("/cgroup-4711")), (8, Some("/cgroup-4711")), (9, None), (7, Some("/cgroup-512"))];
    assert_eq!(groups, wanted.map(|(pid, group)| (pid, group.map(str::to_owned))));
    let rows = json["runs"][0]["groups"].as_array().unwrap().iter();
    let rows: Vec<_> = rows
        .map(|g| {
            (
                text(g, "path").unwrap(),
                g["own"]["read_requests"].as_u64(),
                g["own"]["write_requests"].as_u64(),
            )
        })
        .collect();
    let row = |path: &str, reads, writes| (path.to_owned(), Some(reads), Some(writes));
    assert_eq!(rows, [row("/", 1, 0), row("/cgroup-4711", 1, 1), row("/cgroup-512", 1, 0)]);
}

#[test]
fn a_replay_says_what_the_trace_lacks() {
    let whole = "time_s,sector,bytes,op,device\n0,0,4096,read,a\n0,8,4096,read,b\n1,0,4096,read,a\n";
    let folder = recorded().with("whole.csv", whole);
    let table = folder.run("replay --kernel 2.6.31 whole.csv --timing closed --scheduler noop").ok();
    for words in
        ["no process numbers: each volume", "no completions", "whole seconds", "one behind the other"]
    {
        assert!(table.contains(words), "no '{words}' in\n{table}");
    }
    let table =
        folder.run("replay --kernel 2.6.31 mysql-first-rows.load --device sata7200-2009,flash-kd").ok();
    assert!(table.contains("case sata7200-2009") && table.contains("case flash-kd"), "{table}");
    let complaint = folder.run("replay --kernel 2.6.31 whole.csv --only c").complaint();
    assert!(complaint.contains("nothing in the trace is on c") && complaint.contains("a, b"), "{complaint}");
}

#[test]
fn bad_traces_are_told_by_record_and_offset_and_used_as_far_as_they_go() {
    let folder = recorded();
    folder.run("convert head good.bin").ok();
    let good = std::fs::read(folder.path().join("good.bin")).unwrap();
    let mut corrupt = good.clone();
    corrupt[0..4].copy_from_slice(b"junk");
    let folder = folder
        .with("cut.bin", &good[..good.len() - 7])
        .with("corrupt.bin", corrupt)
        .with("negative.trace", "0.5 0 1 8 1\n-0.25 0 9 8 1\n1.5 0 17 8 0\n")
        .with("order.csv", "time_ns,sector,bytes,op\n5,0,512,read\n3,8,512,read\n9,16,512,read\n");
    for (name, place) in [
        ("cut.bin", "at byte"),
        ("corrupt.bin", "record 1 at byte 0"),
        ("negative.trace", "negative.trace:2 (byte 12)"),
        ("order.csv", "order.csv:3"),
    ] {
        for command in [
            format!("inspect {name}"),
            format!("replay --kernel 2.6.31 {name}"),
            format!("convert {name} out.csv"),
        ] {
            let complaint = folder.run(&command).complaint();
            assert!(
                complaint.contains(place) && complaint.contains("--keep-going"),
                "{command}: {complaint}"
            );
            let answer = folder.run(&format!("{command} --keep-going"));
            assert_eq!(answer.code, 0, "{command}: {}", answer.stderr);
            assert!(answer.stderr.contains("1 fault left out"), "{command}: {}", answer.stderr);
            assert!(command.starts_with("convert") || !folder.names().contains(&"out.csv".to_owned()));
            let _ = std::fs::remove_file(folder.path().join("out.csv"));
        }
    }
    let folder = folder.with("empty.bin", "").with("a.blktrace.0", "x").with("b.blktrace.0", "x");
    assert!(folder.run("inspect empty.bin").complaint().contains("the file is empty"));
    assert!(folder.run("inspect .").complaint().contains("traces of several devices: a, b"));
    assert!(folder.run("inspect good.bin --format blktrac").complaint().contains("did you mean 'blktrace'"));
    assert!(folder.run("convert good.bin out.xyz").complaint().contains("names no trace format"));
}

#[test]
fn capture_refuses_clearly() {
    let folder = Folder::new();
    assert!(folder.run("capture").complaint().contains("what is to be recorded"));
    assert!(folder.run("capture --device no-such-disk").complaint().contains("no device or path"));
    assert_eq!(folder.names(), [""; 0], "nothing is left behind");
}

/// Two reads by one process, each of whose other half the recorder lost, and two whole ones.
const TORN: &str = "\
fio-7 [000] 1.000000: block_bio_queue: 8,0 R 1000 + 8 [fio]
fio-7 [000] 1.000010: block_rq_issue: 8,0 R 4096 () 1000 + 8 [fio]
CPU:0 [LOST 12 EVENTS]
fio-7 [000] 1.100000: block_rq_complete: 8,0 R () 1000 + 8 [0]
fio-7 [000] 1.200000: block_bio_queue: 8,0 R 2000 + 8 [fio]
fio-7 [000] 1.200010: block_rq_issue: 8,0 R 4096 () 2000 + 8 [fio]
fio-7 [000] 1.200100: block_rq_complete: 8,0 R () 2000 + 8 [0]
fio-7 [000] 1.300000: block_bio_queue: 8,0 R 3000 + 8 [fio]
fio-7 [000] 1.300010: block_rq_issue: 8,0 R 4096 () 3000 + 8 [fio]
fio-7 [000] 1.300100: block_rq_complete: 8,0 R () 3000 + 8 [0]
";

#[test]
fn a_trace_whose_recorder_lost_events_is_warned_of_by_every_command() {
    let folder = Folder::new().with("torn.ftrace", TORN);
    folder.run("convert torn.ftrace kept.blktrace").ok();
    for command in [
        "inspect torn.ftrace",
        "inspect kept",
        "replay torn.ftrace --device hdd --scheduler none --timing closed",
        "convert torn.ftrace again.csv",
        "diff torn.ftrace kept",
        "validate sata7200-2009 --trace torn.ftrace",
    ] {
        let answer = folder.run(command);
        assert_eq!(answer.code, 0, "{command}: {}", answer.stderr);
        assert!(answer.stderr.contains("lost"), "{command}: {}", answer.stderr);
    }
    let json = folder.run("inspect torn.ftrace --output-format json").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["all"]["ios"], 3);
    let q2c = json["all"]["intervals"].as_array().unwrap().iter().find(|i| i["name"] == "Q2C").unwrap();
    assert_eq!((&q2c["ios"], &q2c["max_ns"]), (&2.into(), &100_000.into()), "not the 100 ms across the gap");
    assert!(folder.run("validate sata7200-2009 --trace torn.ftrace").stderr.contains("there is no score"));
    let said = folder.run("replay torn.ftrace").complaint();
    assert!(said.contains("no device is named") && said.contains("--device nvme"), "{said}");
}
