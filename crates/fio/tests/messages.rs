//! What a wrong job file earns: place, word, suggestion.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use fairlift_fio::{Amount, ParseOptions, Parsed, Severity, Source, parse, parse_command_line};

fn read(text: &str) -> Result<Parsed, Vec<String>> {
    read_with(text, &ParseOptions::default())
}

fn read_with(text: &str, options: &ParseOptions<'_>) -> Result<Parsed, Vec<String>> {
    parse(&[Source::new("job.fio", text)], options)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn errors(text: &str) -> Vec<String> {
    read(text).expect_err("a wrong job file")
}

#[test]
fn an_unknown_option_names_the_nearest() {
    let errors = errors("[a]\nsize=1m\nrwmixreed=70\nBS=4k\n");
    assert_eq!(
        errors,
        [
            "job.fio:3: unknown option 'rwmixreed'; did you mean 'rwmixread'?",
            "job.fio:4: unknown option 'BS'; did you mean 'bs'?"
        ]
    );
}

#[test]
fn columns_point_at_the_word() {
    let errors =
        parse(&[Source::new("job.fio", "[a]\n  rw = randreed  ; hm\nsize=1m\n")], &ParseOptions::default());
    let errors = errors.unwrap_err();
    assert_eq!(errors[0].to_string(), "job.fio:2: rw: 'randreed' is not known; did you mean 'randread'?");
    assert_eq!(errors[0].place.columns, 7..15);
    assert!(errors[0].allowed.starts_with("read, write, trim"));
}

#[test]
fn all_errors_are_collected() {
    let errors = errors(
        "[a]\nsize=1q\nbs=0\nnumjobs=0\niodepth=x\nruntime=5sec\ndirect=2\n[b\nioengine=libaoi\nsize=\n",
    );
    assert_eq!(errors.len(), 9, "{errors:#?}");
    assert!(errors.iter().any(|error| error.contains("'[b' is not a section heading")));
    assert!(errors.iter().any(|error| error.contains("did you mean 'libaio'")));
}

#[test]
fn no_sections_no_job_no_size() {
    assert_eq!(errors("rw=read\nbs=4k\n"), ["job.fio:1: option 'rw=read' stands before the first [section]"]);
    assert_eq!(errors(""), ["job.fio: no [section] in this file"]);
    assert_eq!(errors("[global]\nrw=read\n"), ["(input): no job to run: no section besides [global]"]);
    assert!(errors("[a]\nsize=0\n")[0].contains("nothing to do with 0 bytes"));
    assert!(errors("[a]\nsize=2k\nbs=4k\n")[0].contains("smaller than the smallest block"));
    let assumed = read("[a]\nrw=read\n").unwrap();
    assert!(assumed.refused.is_empty() && assumed.warnings[0].message.contains("add size="), "{assumed:?}");
    assert_eq!(assumed.jobs[0].files.file_bytes, 1 << 30);
    let strict = ParseOptions { strict: true, ..ParseOptions::default() };
    assert!(read_with("[a]\nrw=read\n", &strict).is_err());
}

#[test]
fn blanks_around_the_equals_sign_are_read_as_meant_and_warned_about() {
    let parsed = read("[a]\nsize=1m\nbs = 8k\n").unwrap();
    assert_eq!(parsed.jobs[0].blocks[0].min_bytes, 8192);
    assert_eq!(parsed.warnings.len(), 1);
    assert!(parsed.warnings[0].message.contains("blank after 'bs='"));
    let strict = ParseOptions { strict: true, ..ParseOptions::default() };
    assert!(read_with("[a]\nsize=1m\nbs = 8k\n", &strict).is_err());
}

#[test]
fn warnings_are_named_once_and_strict_makes_them_errors() {
    let text = "[global]\nsize=1m\npre_read=1\n[a]\n[b]\n";
    let parsed = read(text).unwrap();
    assert_eq!(parsed.warnings.len(), 1);
    assert_eq!(parsed.warnings[0].severity, Severity::Warning);
    assert_eq!(parsed.warnings[0].place.line, 3);
    assert!(read_with(text, &ParseOptions { strict: true, ..ParseOptions::default() }).is_err());
    assert!(read("[a]\nsize=1m\nthread\nmem=malloc\ncpus_allowed=1\n").unwrap().warnings.is_empty());
}

#[test]
fn globals_hold_for_later_jobs_and_add_up() {
    let text =
        "[early]\nsize=1m\n[global]\nbs=8k ; comment\n[globalfoo]\nrw=randwrite # comment\n[late]\nsize=1m\n";
    let jobs = read(text).unwrap().jobs;
    assert_eq!((jobs[0].blocks[0].min_bytes, jobs[0].access.name()), (4096, "read"));
    assert_eq!((jobs[1].blocks[0].min_bytes, jobs[1].access.name()), (8192, "randwrite"));
    assert_eq!(jobs[1].options, [("size".to_owned(), "1m".to_owned())]);
}

#[test]
fn several_files_wait_for_each_other() {
    let file = |name: &str| Source::new(name, "[global]\nsize=1m\n[a]\n[b]\n");
    let jobs = parse(&[file("1"), file("2")], &ParseOptions::default()).unwrap().jobs;
    let order: Vec<_> =
        jobs.iter().map(|job| (job.schedule.stonewall, job.schedule.group_id, job.first_thread)).collect();
    assert_eq!(order, [(false, 0, 1), (false, 0, 2), (true, 1, 3), (false, 1, 4)]);
}

#[test]
fn includes_are_relative_nested_and_limited() {
    let files = HashMap::from([
        ("dir/a.inc", "bs=8k\ninclude sub/b.inc\n"),
        ("dir/sub/b.inc", "rw=randread\n"),
        ("dir/loop.inc", "include loop.inc\n"),
        ("dir/fan.inc", "include fan.inc\ninclude fan.inc\n"),
        ("dir/section.inc", "[x]\n"),
    ]);
    let read_file = |path: &Path| {
        let text = files.get(path.to_str().unwrap()).ok_or(io::ErrorKind::NotFound)?;
        Ok(text.as_bytes().to_vec())
    };
    let options = ParseOptions { read_file: &read_file, ..ParseOptions::default() };
    let read = |text: &str| parse(&[Source::new("dir/job.fio", text)], &options);
    let job = &read("[a]\nsize=1m\ninclude a.inc\n").unwrap().jobs[0];
    assert_eq!((job.blocks[0].min_bytes, job.access.name()), (8192, "randread"));
    let first = |text: &str| read(text).unwrap_err()[0].to_string();
    assert!(
        first("[a]\ninclude loop.inc\n").starts_with("dir/loop.inc:1: includes are nested deeper than 16")
    );
    assert!(first("[a]\ninclude fan.inc\n").starts_with("dir/fan.inc:1: includes are nested"));
    assert!(first("[a]\ninclude section.inc\n").starts_with("dir/section.inc:1: an included file cannot"));
    assert!(
        first("[a]\ninclude none.inc\n").starts_with("job.fio:2: cannot read")
            || first("[a]\ninclude none.inc\n").starts_with("dir/job.fio:2: cannot read")
    );
}

#[test]
fn variables_come_from_the_environment_given() {
    let env = |name: &str| (name == "SIZE").then(|| "64k".to_owned());
    let options = ParseOptions { env: &env, ..ParseOptions::default() };
    let parsed = read_with("[a]\nsize=${SIZE}\nbs=2*$pagesize\ndirectory=${NONE}\n", &options).unwrap();
    assert_eq!(parsed.jobs[0].extent.size, Some(Amount::Bytes(65_536)));
    assert_eq!(parsed.jobs[0].blocks[0].min_bytes, 8192);
    assert!(parsed.warnings[0].message.contains("'NONE' is not set"));
}

#[test]
fn values_per_direction() {
    let sizes = |bs: &str| {
        let jobs = read(&format!("[a]\nsize=1m\nrw=rw\nbs={bs}\n")).unwrap().jobs;
        jobs[0].blocks.each_ref().map(|sizes| sizes.min_bytes)
    };
    assert_eq!(sizes("8k"), [8192, 8192, 8192]);
    assert_eq!(sizes("8k,"), [8192, 4096, 4096]);
    assert_eq!(sizes(",8k"), [4096, 8192, 8192]);
    assert_eq!(sizes("8k,32k,"), [8192, 32_768, 4096]);
    assert_eq!(sizes("8k,32k,1k"), [8192, 32_768, 1024]);
}

#[test]
fn contradicting_options_follow_the_later_one() {
    let job = |text: &str| read(&format!("[a]\nsize=1m\n{text}")).unwrap().jobs.remove(0);
    assert!(!job("direct=1\nbuffered=1\n").submission.direct);
    assert!(job("buffered=1\ndirect=1\n").submission.direct);
    assert_eq!(job("rwmixread=70\nrwmixwrite=80\n").read_percent, 20);
    assert_eq!(job("rwmixwrite=80\nrwmixread=70\n").read_percent, 70);
}

#[test]
fn command_lines_start_a_job_at_each_name() {
    let line = "fio --size=1m --output-format=json --name=x --rw randread --direct=1 --time_based --runtime=5 --name=y --bs=8k";
    let parsed = parse_command_line(&line.split(' ').collect::<Vec<_>>(), false).unwrap();
    let names: Vec<_> = parsed.jobs.iter().map(|job| (job.name.as_str(), job.access.name())).collect();
    assert_eq!(names, [("x", "randread"), ("y", "read")]);
    assert!(parsed.jobs[0].schedule.time_based && !parsed.jobs[1].schedule.time_based);
    assert_eq!(parsed.global_options, [("size".to_owned(), "1m".to_owned())]);
    let errors = parse_command_line(&["--size=1m", "job.fio", "--iodepht=3"], false).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "(command line):2: 'job.fio' is no option; job files are given by themselves"
    );
    assert_eq!(errors[1].to_string(), "(command line):3: unknown option 'iodepht'; did you mean 'iodepth'?");
}

#[test]
fn refused_jobs_still_count_for_thread_numbers() {
    let parsed = read("[net]\nioengine=net\nhostname=x\nnumjobs=3\nsize=1m\n[disk]\nsize=1m\n").unwrap();
    assert_eq!(
        parsed.refused[0].reasons[0].to_string(),
        "job.fio:2: engine 'net' is not simulated: it does network I/O"
    );
    assert_eq!(parsed.jobs[0].first_thread, 4);
}

#[test]
fn wait_for_needs_an_earlier_job() {
    assert!(read("[one]\nsize=1m\n[b]\nsize=1m\nwait_for=one\n").is_ok());
    assert!(errors("[one]\nsize=1m\n[b]\nsize=1m\nwait_for=onr\n")[0].ends_with("did you mean 'one'?"));
}

#[test]
fn options_without_effect_say_so() {
    let job = "[a]\nrw=write\nsize=1m\nioengine=libaio\niodepth=8\nrate=2m\nrate_min=1m\nserialize_overlap=1\niodepth_batch_complete_max=4\n";
    let warned: Vec<String> = read(job).unwrap().warnings.into_iter().map(|w| w.word).collect();
    assert_eq!(warned, ["iodepth_batch_complete_max", "serialize_overlap", "rate_min"].map(str::to_owned));
    let without_depth = "[a]\nrw=write\nsize=1m\nserialize_overlap=1\niodepth_batch_complete_max=4\n";
    assert_eq!(read(without_depth).unwrap().warnings, [], "one I/O at a time: they change nothing");
}

/// What engines that call the file system do not take is an error, as under fio; what only the lab cannot do is a refusal.
#[test]
fn calls_on_files_say_what_they_do_not_take() {
    let of = |text: &str| parse(&[Source::new("a.fio", text)], &ParseOptions::default());
    let error = |text: &str| of(text).unwrap_err()[0].to_string();
    let read = error("[a]\nioengine=ftruncate\nsize=1m\n");
    assert!(read.contains("a.fio:1") && read.contains("takes writes only"), "{read}");
    assert!(error("[a]\nioengine=filecreate\nfilename=/dev/sdb\n").contains("not on devices"));
    assert!(error("[a]\nioengine=falloc\nrw=write\nsize=1m\nfsync=1\n").contains("no data to sync"));
    let refused = |text: &str| of(text).unwrap().refused[0].reasons[0].message.clone();
    assert!(
        refused("[a]\nfilename=f\nrw=randwrite\nfill_device=1\n").contains("once, from its start to its end")
    );
    assert!(refused("[a]\nfilename=f\nfill_device=1\n").contains("for jobs that only write"));
    let later = "[a]\nfilename=f\nrw=write\nfill_device=1\n[b]\nstonewall\nfilename=f\nrw=randread\n";
    assert!(refused(later).contains("once, from its start to its end"));
    let parsed =
        of("[a]\nfilename=f\nrw=write\nfill_device=1\n[b]\nstonewall\nfilename=f\nrw=read\n").unwrap();
    assert_eq!((parsed.jobs.len(), parsed.warnings.len()), (2, 0), "nobody assumes a size");
}
