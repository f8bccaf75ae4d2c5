//! The answer below a comparison: right where no scheduler matters, by the goal that was asked for, with lines that a kernel takes.

mod common;

use common::Folder;

/// A depth-1 reader beside a deep stream.
const BESIDE: &str = "[light]\nrw=randread\ndirect=1\nbs=4k\nsize=4g\nruntime=3\ntime_based\n\
    [stream]\nrw=read\ndirect=1\nbs=256k\nsize=4g\nioengine=libaio\niodepth=32\nruntime=3\ntime_based\n";

fn answer(job: &str, options: &str) -> String {
    let folder = Folder::new().with("job.fio", job);
    let table = folder.run(&format!("compare job.fio {options}")).ok();
    let at = table.find("\nAnswer, goal ").unwrap_or_else(|| panic!("no answer in\n{table}"));
    assert!(
        table.lines().skip_while(|line| !line.starts_with("Answer")).all(|line| line.len() < 200),
        "{table}"
    );
    // Lines to read as one text: they break where they are full.
    table[at..].to_owned()
}

/// As one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

// ---- no scheduler matters here ------------------------------------------------------------------------------------------

#[test]
fn because_the_drives_queue_takes_everything() {
    let deep = "[deep]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nbs=256k\nsize=1g\nruntime=1\ntime_based\n";
    let text = flat(&answer(deep, "--device nvme --scheduler none,mq-deadline"));
    assert!(
        text.contains("The choice makes no difference here")
            && text.contains("the drive's queue takes everything"),
        "{text}"
    );
}

#[test]
fn because_everything_comes_from_memory() {
    // Less than the page cache holds, not dropped from it, and read over and over: only the first pass sees the device.
    let cached = "[warm]\nrw=randread\nbs=4k\nsize=16m\ninvalidate=0\nloops=200\n";
    let text = flat(&answer(cached, "--device nvme"));
    assert!(
        text.contains("The choice makes no difference here") && text.contains("served from memory"),
        "{text}"
    );
}

#[test]
fn because_the_volumes_rate_limit_decides() {
    let many = "[many]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\nbs=16k\nsize=8g\nruntime=3\ntime_based\n";
    let text = flat(&answer(many, "--device cloud"));
    assert!(
        text.contains("The choice makes no difference here")
            && text.contains("the volume's rate limit decides"),
        "{text}"
    );
}

/// A scenario with a job in a limited group, and perhaps one in none.
fn limited(beside: &str) -> String {
    format!(
        "title = \"t\"\ndevice = \"nvme\"\nkernel = \"6.18\"\nschedulers = [\"none\", \"mq-deadline\", \"kyber\"]\njobs = \"\"\"\n\
         [global]\nrw=randread\ndirect=1\nbs=4k\nsize=1g\nioengine=libaio\niodepth=8\nruntime=2\ntime_based\n\
         [held]\ncgroup=held\n{beside}\"\"\"\n[[group]]\npath = \"held\"\nmax = \"riops=200\"\n"
    )
}

fn answer_of_scenario(scenario: &str) -> String {
    let folder = Folder::new().with("limited.toml", scenario);
    let table = folder.run("compare limited.toml").ok();
    let at = table.find("\nAnswer, goal ").unwrap_or_else(|| panic!("no answer in\n{table}"));
    flat(&table[at..])
}

#[test]
fn because_io_max_decides() {
    let text = answer_of_scenario(&limited(""));
    assert!(
        text.contains("The choice makes no difference here") && text.contains("io.max decides"),
        "{text}"
    );
    // Who is not limited has the device, and what holds the other does not decide for it.
    let text = answer_of_scenario(&limited("[free]\niodepth=64\n"));
    assert!(!text.contains("io.max decides"), "{text}");
}

#[test]
fn because_the_processor_is_the_limit() {
    // Each call computes for 20 us, the device takes 1.
    let busy =
        "[busy]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=16\nbs=4k\nsize=8g\nruntime=1\ntime_based\n";
    let text = flat(&answer(
        busy,
        "--device null --scheduler none,mq-deadline,kyber --set none.cpu_per_io_ns=20000 \
         --set mq-deadline.cpu_per_io_ns=20000 --set kyber.cpu_per_io_ns=20000",
    ));
    assert!(
        text.contains("The choice makes no difference here") && text.contains("the processor is the limit"),
        "{text}"
    );
    // With the kernel's own 2 us what a scheduler costs is what differs, and the answer says so.
    let text = flat(&answer(busy, "--device null --scheduler none,bfq --goal iops"));
    assert!(
        text.contains("none (") && text.contains("is best") && text.contains("the processor is the limit"),
        "{text}"
    );
}

#[test]
fn none_of_these_is_said_where_a_scheduler_matters() {
    let text = flat(&answer(BESIDE, "--device hdd --scheduler none,fl-cfq"));
    assert!(text.contains("Under fl-cfq alone every job gets") && text.contains("stream gets"), "{text}");
    for why in [
        "takes everything",
        "from memory",
        "rate limit decides",
        "io.max decides",
        "processor is the limit",
        "makes no difference",
    ] {
        assert!(!text.contains(why), "{why}: {text}");
    }
}

// ---- goals --------------------------------------------------------------------------------------------------------------

#[test]
fn the_goal_decides_and_is_named() {
    let of =
        |goal: &str| flat(&answer(BESIDE, &format!("--device hdd --scheduler none,fl-cfq --goal {goal}")));
    let light = of("p99:light");
    assert!(
        light.contains("Answer, goal p99:light: the lowest p99 of the completion latency of job light."),
        "{light}"
    );
    assert!(light.contains("fl-cfq (") && light.contains("is best. Not counted: none ("), "{light}");
    let bandwidth = of("bw");
    assert!(
        bandwidth.contains("Answer, goal bandwidth: the highest bandwidth of all jobs together."),
        "{bandwidth}"
    );
    assert!(bandwidth.contains("none (") && bandwidth.contains("is best; then come fl-cfq ("), "{bandwidth}");
    assert!(bandwidth.contains("light gets"), "at whose cost: {bandwidth}");
    let fair = of("fair");
    assert!(fair.contains("fl-cfq (") && fair.contains("is best"), "{fair}");
}

#[test]
fn a_goal_there_is_not_is_answered_with_the_nearest() {
    let folder = Folder::new().with("job.fio", BESIDE);
    let of = |goal: &str| folder.run(&format!("compare job.fio --device hdd --goal {goal}")).complaint();
    insta::assert_snapshot!(
        of("bandwith")
            + &of("p99:lihgt")
            + &of("p99")
            + &of("fair:light")
            + &of("p100:light")
            + &of("troughput:light")
    );
}

#[test]
fn a_programs_figure_can_be_the_goal() {
    let folder = Folder::new();
    let command = |goal: &str| {
        format!(
            "compare --device hdd --scheduler none,bfq --goal {goal} -- fs_mark -S 1 -D 4 -N 40 -n 40 -s 4096 -t 1"
        )
    };
    let wrong = folder.run(&command("files_s:fs_mark")).complaint();
    assert!(
        wrong.contains("program 'fs_mark' has no figure") && wrong.contains("files_per_s:fs_mark"),
        "{wrong}"
    );
    let table = folder.run(&command("files_per_s:fs_mark")).ok();
    assert!(table.contains("Answer, goal files_per_s:fs_mark"), "{table}");
    let unasked = folder.run(&command("balanced")).ok();
    assert!(!unasked.contains("Answer"), "no job, no rates to keep: {unasked}");
}

// ---- what to paste --------------------------------------------------------------------------------------------------------

#[test]
fn an_answer_ends_with_lines_to_paste() {
    let text = answer(
        BESIDE,
        "--device hdd --scheduler none,bfq:back_seek_max=16384:nr_requests=128 --goal p99:light",
    );
    for line in [
        "  echo bfq >/sys/block/sda/queue/scheduler\n",
        "  echo 16384 >/sys/block/sda/queue/iosched/back_seek_max\n",
        "  echo 128 >/sys/block/sda/queue/nr_requests\n",
        "  ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", KERNEL==\"sd[a-z]*\", \
         ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    let nvme = answer(BESIDE, "--device nvme --scheduler none,kyber");
    assert!(nvme.contains("KERNEL==\"nvme[0-9]*n[0-9]*\", ATTR{queue/rotational}==\"0\""), "{nvme}");
    let ours = flat(&answer(BESIDE, "--device hdd --scheduler none,fair --goal p99:light"));
    assert!(ours.contains("echo fl-fair >") != ours.contains("echo none >"), "{ours}");
}

#[test]
fn groups_get_their_files() {
    let job = "[global]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nruntime=1\ntime_based\n\
        [a]\ncgroup=vm1\n[b]\ncgroup=vm2/db\n";
    let set = "--set group./vm2.weight=300 --set group./vm1.max=riops=50";
    let of = |schedulers: &str| answer(job, &format!("--device hdd --scheduler {schedulers} {set}"));
    let bfq = of("bfq,bfq:low_latency=0");
    for line in [
        "  echo +io >/sys/fs/cgroup/cgroup.subtree_control\n",
        "  echo +io >/sys/fs/cgroup/vm2/cgroup.subtree_control\n",
        "  echo 300 >/sys/fs/cgroup/vm2/io.bfq.weight\n",
        "  echo \"$(cat /sys/block/sda/dev) riops=50\" >/sys/fs/cgroup/vm1/io.max\n",
    ] {
        assert!(bfq.contains(line), "no {line} in\n{bfq}");
    }
    let module = of("fl-deadline,fl-deadline:fifo_batch=4");
    assert!(module.contains("echo 300 >/sys/fs/cgroup/vm2/io.fairlift.weight"), "{module}");
    let blind = of("mq-deadline,kyber");
    assert!(blind.contains("ignores the groups' weights") && !blind.contains("weight\n"), "{blind}");
}

// ---- how sure it is -------------------------------------------------------------------------------------------------------

#[test]
fn seeds_move_what_fio_repeats() {
    let folder = Folder::new().with("job.fio", BESIDE);
    let csv = folder
        .run("compare job.fio --device hdd --scheduler none,bfq --runtime 1 --seeds 3 --output-format csv")
        .ok();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|head| *head == name).expect("a column");
    let of = |job: &str| -> Vec<(&str, &str)> {
        let own = rows.iter().filter(|row| row[column("job")] == job && row[column("scheduler")] == "none");
        own.map(|row| (row[column("seed")], row[column("clat_mean_ns")])).collect()
    };
    for job in ["light", "stream"] {
        let results = of(job);
        assert_eq!(results.iter().map(|(seed, _)| *seed).collect::<Vec<_>>(), ["1", "2", "3"], "{job}");
        let mut means: Vec<&str> = results.iter().map(|(_, mean)| *mean).collect();
        means.dedup();
        assert_eq!(means.len(), 3, "{job}: each seed is another run, {results:?}");
    }
}

#[test]
fn several_seeds_give_figures_a_spread_and_the_answer_says_how_sure_it_is() {
    let text = Folder::new()
        .with("job.fio", BESIDE)
        .run("compare job.fio --device hdd --scheduler none,fl-cfq --runtime 1 --seeds 3")
        .ok();
    assert!(text.contains("seeds 1 to 3") && text.contains('±'), "{text}");
    let flat = flat(&text);
    assert!(flat.contains("All 3 seeds give this answer.") || flat.contains("Of 3 seeds"), "{text}");
    assert!(flat.contains("20 % faster or slower") || flat.contains("Knife edge"), "{text}");
    assert!(text.lines().all(|line| line.starts_with("  ") || line.chars().count() <= 100), "{text}");
}

/// One request at a time on a device that takes 100 us. What differs is processor time, 2 us or 6.9: 106.9 / 102 is within 5 %, and on
/// a device that takes 80 us 86.9 / 82 is not.
#[test]
fn a_knife_edge_is_called_so() {
    let device = "based_on = \"null\"\nlatency_ns = 100000\n";
    let one = "[one]\nrw=randread\ndirect=1\nbs=4k\nsize=1g\nruntime=1\ntime_based\n";
    let folder = Folder::new().with("mine.toml", device).with("job.fio", one);
    let of = |cpu_ns: u32| {
        let columns = format!("--scheduler none:cpu_per_io_ns={cpu_ns},none");
        flat(&folder.run(&format!("compare job.fio --device mine.toml --goal iops --seeds 2 {columns}")).ok())
    };
    let edge = of(6900);
    assert!(
        edge.contains("All 2 seeds give this answer. Knife edge: on a device 20 % faster it is none."),
        "{edge}"
    );
    let firm = of(5000);
    assert!(firm.contains("A device 20 % faster or slower gives the same answer."), "{firm}");
}

#[test]
fn one_run_of_each_says_so() {
    let text = flat(&answer(BESIDE, "--device hdd --scheduler none,fl-cfq"));
    assert!(text.contains("One run each: --seeds 5"), "{text}");
    let folder = Folder::new().with("job.fio", BESIDE);
    let wrong = folder.run("compare job.fio --device hdd --seeds 2 --trace x.csv").complaint();
    assert!(wrong.contains("--trace writes down one seed's runs"), "{wrong}");
}

// ---- several devices ------------------------------------------------------------------------------------------------------

#[test]
fn an_answer_for_each_device_and_what_they_have_in_common() {
    let folder = Folder::new().with("job.fio", BESIDE);
    let table = folder
        .run("compare job.fio --device hdd,nvme --device cloud --scheduler none,fl-cfq --runtime 1")
        .ok();
    let (hdd, nvme) =
        (table.find("case nearline4t").expect("hdd"), table.find("case nvme-970evo").expect("nvme"));
    assert!(hdd < nvme && table.contains("case cloud-gp3"), "{table}");
    let flat = flat(&table);
    assert!(flat.contains("nearline4t: ") && flat.contains("In common: "), "{table}");
    assert!(table.contains("/sys/block/sda/") && table.contains("/sys/block/nvme0n1/"), "{table}");
}

#[test]
fn a_folder_of_device_files_is_a_list() {
    let folder = Folder::new().with("job.fio", BESIDE);
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    assert!(
        folder.run("compare job.fio --device mine").complaint().contains("there is no device file in 'mine'")
    );
    for name in ["b.toml", "a.toml"] {
        std::fs::write(folder.path().join("mine").join(name), "based_on = \"null\"\n").unwrap();
    }
    let table = folder.run("compare job.fio --device mine --scheduler none,kyber --runtime 100ms").ok();
    assert!(table.find("case mine/a.toml") < table.find("case mine/b.toml"), "{table}");
    assert!(folder.run("compare job.fio --device hdd,nearline4t").complaint().contains("is given twice"));
    assert!(folder.run("run job.fio --device hdd,nvme").complaint().contains("'run' takes one device"));
}

/// Under fl-cfq its fsyncs are the fastest, since it hardly gets to them.
#[test]
fn a_starved_job_has_no_good_latency() {
    let job = "[global]\ndirect=1\ntime_based\nruntime=200ms\nsize=1g\n[data]\nrw=randrw\nbs=8k\nioengine=libaio\niodepth=32\n[log]\nrw=write\nbs=4k\nsize=64m\nfdatasync=1\n";
    let text = Folder::new()
        .with("db.fio", job)
        .run("compare db.fio --device nvme --scheduler none,fl-cfq,fair --goal fsync:log")
        .ok();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("log gets less than half of its best rate."), "{text}");
    assert!(
        !words.contains("fl-cfq (") || words.find("Not counted").unwrap() < words.find("fl-cfq (").unwrap(),
        "{text}"
    );
}
