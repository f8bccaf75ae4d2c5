//! `fairlift diff`: what it says of two traces of the same I/O.

mod common;

use common::{Folder, SMALL};

/// Four reads and a write: arrival, dispatch and completion of each, microseconds.
const A: &str = "\
time_us,action,op,flags,sector,bytes,pid,payload
0,queue,read,,1000,4096,7,
10,issue,read,,1000,4096,7,
20,queue,read,,2000,4096,7,
30,queue,read,,3000,4096,8,
40,queue,write,,4000,4096,8,
900,complete,read,,1000,4096,7,
1000,issue,read,,2000,4096,7,
1900,complete,read,,2000,4096,7,
1950,message,,,,,,expired 12
2000,issue,read,,3000,4096,8,
2900,complete,read,,3000,4096,8,
3000,issue,write,,4000,4096,8,
3900,complete,write,,4000,4096,8,
";

/// The same a second later: 3000 before 2000, the write only in A, a read of 5000 only here.
const B: &str = "\
time_us,action,op,flags,sector,bytes,pid,payload
1000000,queue,read,,1000,4096,7,
1000010,issue,read,,1000,4096,7,
1000020,queue,read,,2000,4096,7,
1000030,queue,read,,3000,4096,8,
1000900,complete,read,,1000,4096,7,
1001000,issue,read,,3000,4096,8,
1001900,complete,read,,3000,4096,8,
1001950,message,,,,,,expired 9
1001960,message,,,,,,idle
1002000,issue,read,,2000,4096,7,
1002900,complete,read,,2000,4096,7,
1003000,queue,read,,5000,4096,8,
1003000,issue,read,,5000,4096,8,
1003900,complete,read,,5000,4096,8,
";

fn folder() -> Folder {
    Folder::new().with("a.csv", A).with("b.csv", B)
}

fn json(folder: &Folder, arguments: &str) -> serde_json::Value {
    serde_json::from_str(&folder.run(&format!("diff {arguments} --output-format json")).stdout).unwrap()
}

#[test]
fn a_trace_agrees_with_itself_whatever_the_tolerance() {
    let answer = folder().run("diff a.csv a.csv --within 0");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.ends_with("The traces agree.\n"), "{}", answer.stdout);
}

#[test]
fn order_times_and_what_is_missing_are_counted() {
    let found = json(&folder(), "a.csv b.csv --within 0.5");
    assert_eq!(found["is_same"], false);
    let all = &found["figures"][0];
    assert_eq!((&all["both"], &all["only_a"], &all["only_b"]), (&3.into(), &1.into(), &1.into()));
    assert_eq!(all["arrived_within"], 3);
    assert_eq!(all["dispatched_in_order"], 2, "2000 and 3000 changed places");
    assert_eq!(all["dispatched_within"], 1);
    assert_eq!(all["dispatch_apart"]["max_ns"], 1_000_000);
    let classes: Vec<_> = found["figures"].as_array().unwrap().iter().map(|f| f["ios"].clone()).collect();
    assert_eq!(classes, ["all", "reads", "async writes"]);
    let sectors: Vec<_> = found["first"].as_array().unwrap().iter().map(|l| l["sector"].clone()).collect();
    assert_eq!(sectors, [2000, 3000, 4000, 5000]);
    assert_eq!(found["first"][0]["b_ns"], 2_000_000, "counted from each trace's first common arrival");
}

#[test]
fn a_wider_tolerance_takes_times_for_equal_but_not_the_order() {
    let found = json(&folder(), "a.csv b.csv --within 1");
    assert_eq!(found["figures"][0]["dispatched_within"], 3);
    assert_eq!(found["figures"][0]["dispatched_in_order"], 2);
    assert_eq!(found["is_same"], false);
}

#[test]
fn messages_are_compared_by_kind() {
    let found = json(&folder(), "a.csv b.csv");
    let kinds: Vec<_> = found["messages"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(kinds, [r##"{"a":1,"b":1,"text":"expired #"}"##, r#"{"a":0,"b":1,"text":"idle"}"#]);
}

#[test]
fn people_get_a_table_and_an_exit_code() {
    let answer = folder().run("diff a.csv b.csv");
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let rows = ["I/Os in both", "dispatched in one order", "merged in B only", "The traces differ."];
    assert!(rows.iter().all(|row| answer.stdout.contains(row)), "{}", answer.stdout);
}

#[test]
fn two_schedulers_of_the_lab_differ_and_one_agrees_with_itself() {
    let folder = Folder::new().with("job.fio", SMALL);
    folder.run("compare job.fio --device hdd --scheduler none,bfq --trace t.blktrace").ok();
    folder.run("compare job.fio --device hdd --scheduler bfq --trace again.blktrace").ok();
    assert_eq!(folder.run("diff t-bfq again --within 0").code, 0);
    let found = json(&folder, "t-none t-bfq --within 0");
    assert_eq!(found["figures"][0]["only_a"], 0, "the job asks for the same under both");
    assert_eq!(found["is_same"], false);
}

#[test]
fn a_merge_in_one_trace_only_is_a_difference() {
    let merged = A.replace("20,queue,read,,2000", "20,queue,read,,1008").replace("read,,2000", "read,,1008");
    let merged =
        merged.replace("30,queue,read,,3000", "25,back-merge,read,,1008,4096,7,\n30,queue,read,,3000");
    let plain = merged.replace("25,back-merge,read,,1008,4096,7,\n", "");
    let folder = Folder::new().with("m.csv", merged).with("p.csv", plain);
    let found = json(&folder, "m.csv p.csv");
    assert_eq!((&found["figures"][0]["merged_a"], &found["is_same"]), (&1.into(), &false.into()));
}

#[test]
fn wrong_input_is_told() {
    let arrivals = Folder::new().with("a.csv", A).with("d.disksim", "0.5 0 2048 8 1\n1.25 0 2056 8 0\n");
    let said = arrivals.run("diff a.csv d.disksim --format csv").complaint();
    assert!(said.contains("d.disksim"), "{said}");
    let said = arrivals.run("diff d.disksim d.disksim").complaint();
    assert!(said.contains("does not say when an I/O was dispatched"), "{said}");
    assert!(arrivals.run("diff a.csv nothing").complaint().contains("nothing"));
    assert!(arrivals.run("diff - -").complaint().contains("only one of the two"));
    assert!(arrivals.run("diff a.csv a.csv --within x").complaint().contains("milliseconds"));
}

const GROUPS: &str = "\
[global]
direct=1
bs=4k
size=1m
rw=read
[a]
cgroup=a
[b]
cgroup=b
";

#[test]
fn decisions_are_compared_line_by_line() {
    let folder = Folder::new().with("job.fio", GROUPS);
    let run = |scheduler: &str, name: &str| {
        let options = "--device sata7200-2009 --kernel 2.6.31 --set group./a.weight=500";
        folder.run(&format!("run job.fio {options} --scheduler {scheduler} --trace {name}.blktrace")).ok();
    };
    run("cfq", "a");
    run("cfq", "again");
    run("cfq:slice_sync=20", "b");
    let found = json(&folder, "a again --within 0");
    let figures = &found["message_figures"];
    let count = figures["both"].as_u64().unwrap();
    assert!(count > 10, "{figures}");
    for same in ["in_order", "within"] {
        assert_eq!(figures[same], count, "{same}");
    }
    assert_eq!(found["first_messages"].as_array().unwrap().len(), 0);
    let other = json(&folder, "a b --within 0");
    assert!(other["message_figures"]["within"].as_u64().unwrap() < count, "{other}");
    assert!(
        other["message_figures"]["only_b"].as_u64().unwrap() > 0,
        "shorter turns are more turns: {other}"
    );
    let first = other["first_messages"][0]["text"].as_str().unwrap();
    assert!(first.starts_with("fairlift "), "{first}");
}

/// The lab's words are those that the kernel module writes.
#[test]
fn the_lab_tells_decisions_in_the_module_s_words() {
    let module =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/src/decisions.c"))
            .unwrap();
    let formats = ["fairlift turn group %u\"", "fairlift idle group %u for %llu us\""];
    assert!(formats.iter().all(|format| module.contains(format)), "{module}");
    assert!(module.contains("fairlift held group %u %s %llu + %u, %llu wait\""));
    let folder =
        Folder::new().with("job.fio", &*GROUPS.replace("cgroup=a", "cgroup=a\niodepth=4\nioengine=libaio"));
    let options = "--device sata7200-2009 --kernel 2.6.31 --scheduler cfq --set group./a.max='riops=50'";
    folder.run(&format!("run job.fio {} --trace t.blktrace", options.replace('\'', ""))).ok();
    let seen = json_of(&folder, "inspect t --output-format json").to_string();
    for words in [
        "fairlift turn group #",
        "fairlift idle group # for # us",
        "fairlift held group # read # + #, # wait",
    ] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
}

fn json_of(folder: &Folder, arguments: &str) -> serde_json::Value {
    serde_json::from_str(&folder.run(arguments).stdout).unwrap()
}
