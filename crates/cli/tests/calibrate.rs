//! Calibration: a device that is known is found again; nothing is written unasked; wrong input is told.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::Folder;
use serde_json::Value;

/// What fio would report of the series on a modelled device: the lab writes fio's own schema.
fn measured(folder: &Folder, device: &str, size: &str, seconds: u32, write: bool) {
    measured_on(folder, device, size, seconds, write, "none");
}

/// The same on a host with these settings.
fn measured_on(folder: &Folder, device: &str, size: &str, seconds: u32, write: bool, host: &str) {
    let series = folder
        .run(&format!("calibrate --device made --write --size {size} --seconds {seconds} --print-series"))
        .ok();
    let reading = series.split("\n[write-sequential]").next().unwrap();
    let series = if write { &series } else { reading };
    std::fs::write(folder.path().join("series.fio"), series).unwrap();
    let run =
        format!("run series.fio --device {device} --scheduler {host} --kernel 6.12 --output-format json");
    std::fs::write(folder.path().join("report.json"), folder.run(&run).ok()).unwrap();
}

fn fitted(folder: &Folder) -> (Value, toml::Table) {
    let json = folder.run("calibrate --from report.json --output-format json").ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let file = json["device_file"].as_str().unwrap().parse().unwrap();
    (json, file)
}

fn of(file: &toml::Table, section: &str, key: &str) -> f64 {
    let value = &file[section][key];
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).unwrap()
}

fn near(value: f64, wanted: f64, part: f64) -> bool {
    (value / wanted - 1.0).abs() <= part
}

#[test]
fn a_known_flash_drive_is_found_again() {
    let folder = Folder::new();
    measured(&folder, "flash-kd", "4G", 1, true);
    let (report, file) = fitted(&folder);
    assert_eq!(report["model"], "flash");
    // The preset: 16 dies, 36 us with 17 % of variation, 21.5 us, 32 KiB pages, 3,360 MB/s.
    assert!(near(of(&file, "die", "count"), 16.0, 0.13), "{file:?}");
    assert!(near(of(&file, "die", "read_us"), 36.0, 0.1), "{file:?}");
    assert!(near(of(&file, "die", "read_cv"), 0.17, 0.1), "{file:?}");
    assert!(near(of(&file, "firmware", "read_us"), 21.5, 0.2), "{file:?}");
    assert!(near(of(&file, "link", "rate_mb_per_s"), 3360.0, 0.01), "{file:?}");
    assert_eq!(of(&file, "die", "page_kib"), 32.0);
    assert!(report["fitted_rms"].as_f64().unwrap() < 0.05, "{report}");
    assert!(report["predicted_rms"].as_f64().unwrap() < 0.2, "{report}");
}

/// The host takes 20 us for a command: 50,000 a second, a ninth of what the drive does. From depth 8 on it holds the rate, so that the
/// series does not tell 8 dies from 16; what it tells is met.
#[test]
fn a_flash_drive_behind_a_slow_host_is_predicted() {
    let folder = Folder::new();
    measured_on(&folder, "flash-kd", "4G", 1, false, "none:cpu_per_io_ns=20000");
    let (report, file) = fitted(&folder);
    assert!((4.0..=32.0).contains(&of(&file, "die", "count")), "{file:?}");
    let sum_us = of(&file, "die", "read_us") + of(&file, "firmware", "read_us");
    assert!(near(sum_us, 57.5, 0.1), "one read takes as long as on the preset: {file:?}");
    assert_eq!(report["verdict"]["good"], true, "{report}");
    assert!(report["fitted_rms"].as_f64().unwrap() < 0.03, "{report}");
}

#[test]
fn a_known_disk_is_found_again() {
    let folder = Folder::new();
    measured(&folder, "sata7200-2009", "900G", 20, false);
    let (report, file) = fitted(&folder);
    assert_eq!(report["model"], "disk");
    // The preset: 7,200 rpm, seeks of 0.8 / 8.5 / 16 ms over all of the disk, of which this is nine tenths.
    assert_eq!(file["rpm"].as_integer(), Some(7200));
    assert!(near(of(&file, "seek", "min_ms"), 0.8, 0.15), "{file:?}");
    assert!(near(of(&file, "seek", "mean_ms"), 8.2, 0.05), "{file:?}");
    assert!(near(of(&file, "geometry", "sectors_per_track_outer"), 1850.0, 0.02), "{file:?}");
    // No deeper queue was fitted to: the ladder is a prediction.
    assert!(report["predicted_rms"].as_f64().unwrap() < 0.05, "{report}");
    assert!(report["notes"].to_string().contains("writes were not measured"), "{report}");
}

/// Bursts of 40 operations that a period of 100 ms lets through: one read at a time mostly takes 0.1 ms, and one in 40 a tenth of a second.
const PERIOD: &str = "based_on = \"cloud-gp3\"\n[operations]\nrate_per_s = 400\nburst = 40\nunit_kib = 1048576\n\
    [bytes]\nrate_mib_per_s = 20\nburst_mib = 2\n[throttle]\nperiod_ms = 100\n\
    [latency]\nmedian_us = 100\nsigma = 0.2\n[limits]\nmax_kib = 1280\n";

#[test]
fn a_throttle_that_looks_once_in_a_period_is_found_again() {
    let folder = Folder::new().with("volume.toml", PERIOD);
    measured(&folder, "volume.toml", "4G", 5, false);
    let (report, file) = fitted(&folder);
    assert_eq!(report["model"], "cloud");
    assert!(near(of(&file, "operations", "rate_per_s"), 400.0, 0.03), "{file:?}");
    assert!(near(of(&file, "bytes", "rate_mib_per_s"), 20.0, 0.1), "{file:?}");
    assert!(near(of(&file, "throttle", "period_ms"), 100.0, 0.02), "{file:?}");
    assert!(near(of(&file, "latency", "median_us"), 100.0, 0.1), "{file:?}");
    assert!(near(of(&file, "latency", "sigma"), 0.2, 0.2), "{file:?}");
    assert!(report["predicted_rms"].as_f64().unwrap() < 0.1, "{report}");
    assert_eq!(report["verdict"]["good"], true, "{report}");
}

#[test]
fn a_continuous_throttle_is_found_again() {
    let folder = Folder::new();
    measured(&folder, "cloud-gp3", "4G", 2, true);
    let (report, file) = fitted(&folder);
    assert_eq!(report["model"], "cloud");
    assert!(near(of(&file, "operations", "rate_per_s"), 3000.0, 0.03), "{file:?}");
    assert!(near(of(&file, "bytes", "rate_mib_per_s"), 125.0, 0.05), "{file:?}");
    assert!(near(of(&file, "latency", "median_us"), 600.0, 0.05), "{file:?}");
    assert!(file.get("throttle").is_none(), "no period, and writes as fast as reads: {file:?}");
    assert!(report["predicted_rms"].as_f64().unwrap() < 0.1, "{report}");
}

#[test]
fn a_cache_before_a_drive_is_found_again() {
    let cached = "based_on = \"flash-kd\"\n[cache]\nsize_mib = 512\nover_mib = 4096\nread_us = 12\n";
    let folder = Folder::new().with("cached.toml", cached);
    measured(&folder, "cached.toml", "4G", 1, false);
    let (report, file) = fitted(&folder);
    assert_eq!(report["model"], "flash");
    assert!(near(of(&file, "cache", "size_mib"), 512.0, 0.2), "{file:?}");
    assert!(near(of(&file, "cache", "read_us"), 12.0, 0.1), "{file:?}");
    assert!(near(of(&file, "die", "read_us"), 36.0, 0.25), "{file:?}");
    assert!(report["notes"].to_string().contains("a cache of about"), "{report}");
}

#[test]
fn reads_that_cost_by_size_are_predicted_by_size() {
    let sized = "based_on = \"flash-kd\"\n[die]\nread_per_4k_us = 10\n";
    let folder = Folder::new().with("sized.toml", sized);
    measured(&folder, "sized.toml", "4G", 1, false);
    let (report, file) = fitted(&folder);
    assert!(near(of(&file, "die", "read_us"), 36.0, 0.15), "{file:?}");
    // 16 KiB at depth 4 and 64 KiB at depth 12 were not fitted.
    assert!(report["predicted_rms"].as_f64().unwrap() < 0.15, "{report}");
    let fastest = report["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["measured"]["bandwidth_bytes_per_s"].as_f64().unwrap());
    let fastest = fastest.fold(0.0, f64::max) / 1e6;
    assert!(of(&file, "link", "rate_mb_per_s") >= fastest * 0.999, "{file:?}");
}

/// A drive that answers one of the series' jobs four times as slowly as its others say.
#[test]
fn a_fit_that_misses_its_own_checks_is_not_written() {
    let folder = Folder::new();
    measured(&folder, "flash-kd", "4G", 1, false);
    let path = folder.path().join("report.json");
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let jobs = report["jobs"].as_array_mut().unwrap();
    let check = jobs.iter_mut().find(|job| job["jobname"] == "check-read-16k").unwrap();
    check["read"]["iops"] = (check["read"]["iops"].as_f64().unwrap() / 4.0).into();
    std::fs::write(&path, report.to_string()).unwrap();
    let folder = folder.with("mine.toml", "what was here before");
    let refused = folder.run("calibrate --from report.json --output mine.toml");
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    for words in ["check-read-16k", "nothing was written", "--force", "verdict: worst miss"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    let text = || std::fs::read_to_string(folder.path().join("mine.toml")).unwrap();
    assert_eq!(text(), "what was here before");
    assert_eq!(folder.run("calibrate --from report.json").stdout, "");
    let json = folder.run("calibrate --from report.json --output-format json");
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["device_file"].is_null() && json["verdict"]["good"] == false, "{json}");
    folder.run("calibrate --from report.json --output mine.toml --force").ok();
    assert!(
        text().contains("based_on = \"flash-kd\"") && text().contains("verdict: worst miss check-read-16k")
    );
}

#[test]
fn the_file_has_its_errors_in_it_and_can_be_used() {
    let folder = Folder::new().with("job.fio", common::SMALL);
    measured(&folder, "sata7200-2009", "900G", 5, false);
    let table = folder.run("calibrate --from report.json --output mine.toml").ok();
    assert!(table.contains("predicted: nothing was fitted to these"), "{table}");
    let file = std::fs::read_to_string(folder.path().join("mine.toml")).unwrap();
    assert!(file.contains("#   check-read-16k") && file.contains("root mean square"), "{file}");
    folder.run("compare job.fio --device mine.toml").ok();
}

#[test]
fn jobs_that_are_not_of_the_series_are_predicted() {
    let folder = Folder::new();
    measured(&folder, "sata7200-2009", "900G", 5, false);
    let job = "[other]\nfilename=t\nsize=100g\nrw=randread\nbs=128k\ndirect=1\nioengine=libaio\niodepth=6\ntime_based\nruntime=5\n";
    let folder = folder.with("other.fio", job);
    let run = "run other.fio --device sata7200-2009 --scheduler none --kernel 6.12 --output-format json";
    let folder_report = folder.run(run).ok();
    let folder = folder.with("other.json", folder_report);
    let json = folder.run("calibrate --from report.json --from other.json --output-format json").ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let other = json["jobs"].as_array().unwrap().iter().find(|job| job["job"] == "other").unwrap();
    assert_eq!(other["fitted"], false);
    assert!(other["iops_error"].as_f64().unwrap().abs() < 0.1, "{other}");
}

/// A stand-in for fio: keeps its arguments and the job file, and gives back a report that is there.
fn with_stand_in(folder: Folder) -> Folder {
    let script = "#!/bin/sh\necho \"$@\" > arguments\nfor word in \"$@\"; do case $word in\n\
                  --output=*) cp report.json \"${word#--output=}\";;\n*.fio) cp \"$word\" ran.fio;;\nesac; done\n";
    let folder = folder.with("stand-in", script).with("data", vec![1u8; 65 << 20]);
    let path = folder.path().join("stand-in");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn only_reading_is_asked_of_fio_unless_write_is_given() {
    let folder = Folder::new();
    measured(&folder, "sata7200-2009", "900G", 5, false);
    let folder = with_stand_in(folder);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    folder.run("calibrate --device data --fio ./stand-in --seconds 1 --save kept.json").ok();
    assert!(read("arguments").contains("--readonly"));
    assert!(!read("ran.fio").contains("write") && read("ran.fio").contains("filename=data"));
    assert_eq!(read("kept.json"), read("report.json"));
    let answer = folder.run("calibrate --device data --fio ./stand-in --seconds 1 --write");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("OVERWRITTEN"), "{}", answer.stderr);
    assert!(!read("arguments").contains("--readonly") && read("ran.fio").contains("rw=randwrite"));
}

#[test]
fn wrong_input_is_told() {
    let folder = Folder::new().with("data", vec![1u8; 65 << 20]).with("small", "x").with("no.json", "{}");
    std::fs::File::create(folder.path().join("holes")).unwrap().set_len(1 << 30).unwrap();
    let folder = folder.with("other.json", r#"{"jobs":[{"jobname":"a","read":{"iops":1.0}}]}"#);
    for (arguments, words) in [
        ("", "--device FILE-or-DISK measures it"),
        ("--device gone", "--write --size 4G makes a file"),
        ("--device small", "too few"),
        ("--device .", "this is a folder"),
        ("--device holes", "has holes"),
        ("--device data --fio ./no-such-fio", "apt install fio"),
        ("--device data --fio false", "fio failed"),
        ("--device data --seconds 0", "--seconds"),
        ("--device new --write --size 4x", "a size such as 500M"),
        ("--from gone.json", "gone.json"),
        ("--from small", "not a JSON report of fio"),
        ("--from no.json", "no \"jobs\" in it"),
        ("--from other.json", "job 'read-random-1' is missing"),
        ("--from other.json --from other.json", "there twice"),
    ] {
        let answer = folder.run(&format!("calibrate {arguments} --output mine.toml"));
        assert_eq!(answer.code, 2, "{arguments}: {}", answer.stderr);
        assert!(answer.stderr.contains(words), "{arguments}: {}", answer.stderr);
        assert!(!folder.names().contains(&"mine.toml".to_owned()), "{arguments}");
    }
    assert!(!folder.names().contains(&"new".to_owned()));
}
