//! Who waits for whom, and who ends whom.

use crate::harness::{assert_near, job, lab};

const SECOND_EACH: &str = "[global]\nrw=read\nsize=1g\ndirect=1\nruntime=1\ntime_based\n";

#[test]
fn a_stonewall_waits_for_all_before_it_and_holds_back_all_behind_it() {
    let run = lab(&format!("{SECOND_EACH}[a]\n[b]\nruntime=2\n[c]\nstonewall\n[d]\n")).run();
    let start = |name| job(&run, name).started_ns as f64;
    assert_eq!((start("a"), start("b")), (0.0, 0.0));
    assert_near(start("c"), 2e9, 0.001);
    assert_near(start("d"), 2e9, 0.001);
    assert_eq!((job(&run, "b").group_id, job(&run, "c").group_id, job(&run, "d").group_id), (0, 1, 1));
}

#[test]
fn wait_for_waits_for_every_process_of_a_job() {
    let run = lab(&format!("{SECOND_EACH}[a]\nnumjobs=2\n[long]\nruntime=3\n[b]\nwait_for=a\n")).run();
    assert_near(job(&run, "b").started_ns as f64, 1e9, 0.001);
}

#[test]
fn exitall_ends_the_group_and_nobody_else() {
    let run = lab(&format!("{SECOND_EACH}[a]\nexitall\n[b]\nruntime=5\n[c]\nnew_group\nruntime=3\n")).run();
    assert_near(job(&run, "b").ended_ns as f64, 1e9, 0.01);
    assert_near(job(&run, "c").ended_ns as f64, 3e9, 0.01);
}

#[test]
fn exit_what_all_ends_those_to_come_as_well() {
    let run =
        lab(&format!("{SECOND_EACH}[a]\nexitall\nexit_what=all\n[b]\nruntime=5\n[c]\nstonewall\n")).run();
    assert_near(run.duration_ns as f64, 1e9, 0.01);
    assert_eq!(job(&run, "c").ios(), 0);
}

#[test]
fn exit_what_stonewall_ends_only_those_that_run() {
    let run =
        lab(&format!("{SECOND_EACH}[a]\nexitall\nexit_what=stonewall\n[b]\nruntime=5\n[c]\nstonewall\n"))
            .run();
    assert_near(job(&run, "b").ended_ns as f64, 1e9, 0.01);
    assert_near(job(&run, "c").ended_ns as f64, 2e9, 0.01);
}

#[test]
fn processes_are_merged_where_group_reporting_asks_for_it() {
    let run = lab(&format!("{SECOND_EACH}[a]\nnumjobs=3\nrate_iops=50\n")).run();
    assert_eq!((run.processes.len(), run.jobs().len(), run.reported().len()), (3, 1, 3));
    assert_near(run.jobs()[0].iops(), 150.0, 0.01);
    let grouped =
        lab(&format!("{SECOND_EACH}group_reporting\nrate_iops=50\n[a]\nnumjobs=3\n[b]\n[c]\nstonewall\n"))
            .run();
    assert_eq!(grouped.reported().iter().map(|j| j.processes).collect::<Vec<_>>(), [4, 1]);
}
