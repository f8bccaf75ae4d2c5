//! Wrong input: exit code 2, nothing on standard output, and a message with place and suggestion.

mod common;

use common::{Folder, SMALL};
use insta::assert_snapshot;

fn small() -> Folder {
    Folder::new().with("small.fio", SMALL)
}

fn of_job(text: &str) -> String {
    Folder::new().with("job.fio", text).run("compare --kernel 2.6.31 job.fio").complaint()
}

#[test]
fn a_file_that_is_not_there() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 smal.fio").complaint());
}

#[test]
fn a_folder_given_as_a_file() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 .").complaint());
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = small();
    std::fs::set_permissions(folder.path().join("small.fio"), std::fs::Permissions::from_mode(0o000))
        .unwrap();
    if std::fs::read(folder.path().join("small.fio")).is_ok() {
        return; // The superuser may read everything.
    }
    assert_eq!(
        folder.run("compare --kernel 2.6.31 small.fio").complaint(),
        "error: cannot read 'small.fio': permission denied\n"
    );
}

#[test]
fn an_unknown_option_a_wrong_word_and_a_wrong_number() {
    assert_snapshot!(of_job("[a]\niodept=3\nrw=raed\nsize=1x\n"));
}

#[test]
fn a_size_of_zero() {
    assert_snapshot!(of_job("[a]\nrw=read\nsize=0\n"));
}

#[test]
fn a_job_larger_than_the_device() {
    assert_snapshot!(of_job("[a]\nrw=read\nsize=2t\n"));
}

#[test]
fn no_job_at_all() {
    assert_snapshot!(of_job("[global]\nrw=read\n"));
}

#[test]
fn an_engine_that_is_not_simulated() {
    assert_snapshot!(of_job("[a]\nioengine=rbd\nrw=read\nsize=1m\n"));
}

#[test]
fn wrong_fio_options() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 -- --name=r --rw=randraed --size=1m").complaint());
}

#[test]
fn unknown_device() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --device sata7200").complaint());
}

#[test]
fn a_device_file_that_is_wrong() {
    let folder = small().with("mine.toml", "based_on = \"null\"\nsectrs = 8\n");
    assert_snapshot!(folder.run("compare small.fio --device mine.toml").complaint());
}

#[test]
fn unknown_scheduler() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --scheduler noop,deadlin").complaint());
}

#[test]
fn a_scheduler_of_another_era() {
    let of = |options: &str| small().run(&format!("compare small.fio --device nvme {options}")).complaint();
    assert_snapshot!(
        of("--scheduler deadline")
            + &of("--scheduler cfq:slice_idle=0")
            + &of("--kernel 2.6.31 --scheduler mq-deadline")
            + &of("--kernel 2.6.31 --scheduler fl-cfq")
    );
}

#[test]
fn no_device_under_a_kernel_of_today() {
    assert_snapshot!(small().run("compare small.fio").complaint());
}

#[test]
fn settings_that_the_kernel_would_refuse() {
    let of = |scheduler: &str| {
        small().run(&format!("compare small.fio --device nvme --scheduler {scheduler}")).complaint()
    };
    assert_snapshot!(
        of("none:nr_requests=1024") + &of("kyber:max_sectors_kb=2") + &of("none:nr_requests=many")
    );
}

#[test]
fn unknown_profile() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --scheduler cfq@2.6.3").complaint());
}

#[test]
fn the_same_scheduler_twice() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --scheduler noop,noop").complaint());
}

#[test]
fn several_schedulers_for_run() {
    assert_snapshot!(small().run("run --kernel 2.6.31 small.fio --scheduler noop,cfq").complaint());
}

#[test]
fn unknown_tunable() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --set cfq.slice_idel=0").complaint());
}

#[test]
fn a_tunable_of_another_kernel() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --set cfq.low_latency=0").complaint());
    small().run("compare small.fio --set cfq.low_latency=0 --kernel 2.6.34 --device null").ok();
}

#[test]
fn a_tunable_out_of_range() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --scheduler cfq:quantum=0").complaint());
}

#[test]
fn a_tunable_that_is_no_number() {
    assert_snapshot!(
        small().run("compare --kernel 2.6.31 small.fio --set deadline.fifo_batch=many").complaint()
    );
}

#[test]
fn a_setting_without_a_column() {
    assert_snapshot!(
        small().run("compare --kernel 2.6.31 small.fio --scheduler noop --set cfq.quantum=8").complaint()
    );
}

#[test]
fn a_setting_that_is_none() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --set slice_idle=0").complaint());
}

#[test]
fn wrong_settings_of_groups() {
    let job = |cgroup: &str| format!("[{cgroup}]\nrw=read\nsize=64k\ncgroup={cgroup}\n");
    let folder = small().with("groups.fio", job("vm1") + &job("vm2/db"));
    let of = |file: &str, setting: &str| {
        folder.run(&format!("compare --kernel 2.6.31 {file} --device null --set group.{setting}")).complaint()
    };
    let all = of("small.fio", "/vm1.weight=200")
        + &of("groups.fio", "/vm3.weight=200")
        + &of("groups.fio", "/vm2/bd.weight=200")
        + &of("groups.fio", "/vm1.wieght=200")
        + &of("groups.fio", "/vm1.weight=0")
        + &of("groups.fio", "/vm1.weight=much")
        + &of("groups.fio", "/vm1.class=real")
        + &of("groups.fio", "/.weight=5")
        + &of("groups.fio", "vm1");
    assert_snapshot!(all);
}

#[test]
fn unknown_kernel() {
    assert_snapshot!(small().run("compare small.fio --kernel 2.6.35").complaint());
}

#[test]
fn wrong_runtimes() {
    let folder = small();
    let all: String = ["5x", "0", "2d", "-1"]
        .map(|time| folder.run(&format!("compare --kernel 2.6.31 small.fio --runtime={time}")).complaint())
        .concat();
    assert_snapshot!(all);
}

#[test]
fn wrong_numbers_on_the_command_line() {
    let folder = small();
    let all: String = ["--seed x", "--threads 0"]
        .map(|option| folder.run(&format!("compare --kernel 2.6.31 small.fio {option}")).complaint())
        .concat();
    assert_snapshot!(all);
}

#[test]
fn an_unknown_command_line_option() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio --sheduler cfq").complaint());
}

#[test]
fn nothing_to_run() {
    assert_snapshot!(small().run("compare --kernel 2.6.31").complaint());
}

#[test]
fn files_and_options_together() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 small.fio -- --name=r --size=1m").complaint());
}

#[test]
fn empty_standard_input() {
    assert_snapshot!(small().run("compare --kernel 2.6.31 -").complaint());
}

#[test]
fn an_output_file_that_cannot_be_written() {
    let folder = small();
    let all = [". ", "nowhere/out.json", "small.fio/out.json"]
        .map(|path| folder.run(&format!("compare --kernel 2.6.31 small.fio --output {path}")).complaint())
        .concat();
    assert_snapshot!(all);
}

#[test]
fn warnings_are_errors_when_asked() {
    let folder = Folder::new().with("job.fio", "[a]\nrw=read\nsize=64k\nlatency_target=5\n");
    let lenient = folder.run("compare --kernel 2.6.31 job.fio --device null");
    assert!(lenient.stderr.starts_with("warning: "), "{}", lenient.stderr);
    lenient.ok();
    assert_snapshot!(folder.run("compare --kernel 2.6.31 job.fio --strict").complaint());
}

#[test]
fn a_scenario_with_an_unknown_key() {
    let text = "title = \"x\"\ndevise = \"null\"\nschedulers = [\"noop\"]\njobs = \"[a]\"\n";
    assert_snapshot!(Folder::new().with("x.toml", text).run("compare x.toml").complaint());
}

#[test]
fn a_scenario_and_other_files() {
    assert_snapshot!(small().run("compare small.fio x.toml").complaint());
}

#[test]
fn unknown_experiment() {
    let folder = Folder::new();
    let complaint = folder.run("reproduce goyal-flat-seqraed").complaint();
    assert!(complaint.contains("did you mean 'goyal-flat-seqread'?"), "{complaint}");
}

#[test]
fn an_experiment_without_figures() {
    assert_snapshot!(Folder::new().run("reproduce demo-readers").complaint());
}

/// Ten megabytes that mean nothing, always the same.
fn garbage() -> Vec<u8> {
    let mut state = 1u64;
    (0..10 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn ten_megabytes_of_garbage() {
    let folder = Folder::new().with("garbage.fio", garbage()).with("garbage.toml", garbage());
    let folder = folder.with("less.fio", &garbage()[..100_000]).with("less.toml", &garbage()[..100_000]);
    let mut all = String::new();
    for arguments in [
        "compare --kernel 2.6.31 garbage.fio",
        "compare garbage.toml",
        "compare less.toml",
        "devices garbage.toml",
    ] {
        all += &folder.run(arguments).complaint();
    }
    all += &folder.run_with_input("compare --kernel 2.6.31 -", &garbage()).complaint();
    assert_snapshot!(all);
    let many = folder.run("compare --kernel 2.6.31 less.fio").complaint();
    assert!(
        many.len() < 100_000 && many.lines().all(|line| line.chars().count() < 400),
        "short enough to read"
    );
}
