//! Records of the module in a virtual machine (Linux 6.12.117, `kernel/test/run record`; the first 1,500 lines): the core
//! still answers every call as it did in the kernel.

use fairlift_core::collections::Id;
use fairlift_core::context::IoClass;
use fairlift_core::{Dispatch, Flags, IoPrio, Op};
use fairlift_kernel::host::{Arrival, Host, Setup};
use fairlift_kernel::record::Call;
use fairlift_kernel::replay::{Disagreement, Header, replay};

const CFQ: &str = include_str!("records/fl-cfq-files.record");
const ANTICIPATORY: &str = include_str!("records/fl-as-raw.record");

#[test]
fn the_core_decides_as_it_did_in_the_kernel() {
    for record in [CFQ, ANTICIPATORY] {
        let agreement = replay(record).unwrap_or_else(|difference| panic!("{difference}"));
        assert!(agreement.calls == 1_499 && agreement.issued > 100, "{agreement:?}");
    }
}

#[test]
fn another_decision_is_noticed() {
    let line = ANTICIPATORY.lines().find(|l| l.contains(" dispatch -> ") && !l.ends_with('-')).unwrap();
    let (call, _) = line.split_once(" -> ").unwrap();
    let changed = ANTICIPATORY.replacen(line, &format!("{call} -> 4000"), 1);
    assert!(matches!(replay(&changed), Err(Disagreement::Differs { .. })));
}

#[test]
fn what_is_no_record_is_named_by_line() {
    assert_eq!(replay("hello"), Err(Disagreement::NoRecord));
    let header = CFQ.lines().next().unwrap();
    assert_eq!(replay(&format!("{header}\n12 dance -> -\n")), Err(Disagreement::NoCall(2)));
}

#[test]
fn a_record_says_in_which_group_a_task_begins() {
    let header = "elevator=cfq profile=2.6.37 requests=8 contexts=2 groups=2 rotational=1";
    let calls = "1 group-new 0 100 be -> 1\n2 context-new be4 grp=1 -> 1\n";
    assert_eq!(replay(&format!("fairlift-record-3 {header}\n{calls}")).map(|seen| seen.calls), Ok(2));
    // Before that it was not said.
    assert_eq!(
        replay(&format!("fairlift-record-2 {header}\n1 context-new be4 -> 1\n")).map(|seen| seen.calls),
        Ok(1)
    );
    assert_eq!(
        replay(&format!("fairlift-record-3 {header}\n1 context-new be4 grp -> 1\n")),
        Err(Disagreement::NoCall(2))
    );
}

/// A queue with two groups of one weight and requests of 1 and of 200 ms, which turns of 100 ms tell apart; as a record of this
/// version. What is charged is set first, and that is not in the record.
fn record_of_turns(version: u32, fairness: u64) -> String {
    let setup = Setup {
        elevator: "noop",
        profile: "",
        requests_max: 16,
        contexts_max: 0,
        groups_max: 2,
        records_max: 10_000,
        rotational: true,
    };
    let mut host = Host::new(setup).expect("known");
    let at = (0..).map_while(|i| host.get(i).map(|(t, _)| t.name)).position(|name| name == "fairness");
    host.set(at.expect("there"), fairness);
    let groups = [0, 0].map(|parent| host.group_new(parent, 100, IoClass::BestEffort).expect("room"));
    let (mut now, mut sent) = (1, Vec::new());
    for round in 0..400 {
        for (at, group) in groups.into_iter().enumerate() {
            while sent.iter().filter(|(_, of)| *of == at).count() < 4 {
                let read = Arrival {
                    op: Op::Read,
                    flags: Flags::SYNC,
                    sector: round * 800,
                    sectors: 8,
                    context: 0,
                    group,
                    own: true,
                    ioprio: IoPrio::DEFAULT,
                };
                sent.push((host.insert(&read, now).expect("a slot"), at));
            }
        }
        match host.dispatch(now) {
            Dispatch::Issue(rq) => {
                let index = sent.iter().position(|(slot, _)| *slot as usize == rq.index()).expect("sent");
                let (slot, of) = sent.swap_remove(index);
                now += [1_000_000, 200_000_000][of];
                host.complete(slot, now);
            }
            Dispatch::Idle { until } => now = until,
            Dispatch::Empty | Dispatch::Busy => panic!("nothing comes"),
        }
    }
    let header = Header(host.setup()).to_string();
    let (_, setup) = header.split_once(' ').expect("words");
    let calls = host.recorder().entries().iter().filter(|entry| !matches!(entry.call, Call::Set(..)));
    let lines: Vec<String> = calls.map(|entry| entry.to_string()).collect();
    format!("fairlift-record-{version} {setup}\n{}\n", lines.join("\n"))
}

#[test]
fn a_record_means_the_defaults_of_its_time() {
    for (version, fairness) in [(2, 0), (3, 0), (4, 1)] {
        assert!(replay(&record_of_turns(version, fairness)).is_ok(), "version {version}");
        let other = replay(&record_of_turns(version, 1 - fairness));
        assert!(matches!(other, Err(Disagreement::Differs { .. })), "version {version}: {other:?}");
    }
}

/// What goes around the queue has a slot, is in the device at once, and is billed to its group of that leaf weight.
#[test]
fn a_record_holds_what_goes_around_the_queue() {
    let record = "fairlift-record-4 elevator=noop profile=- requests=8 contexts=0 groups=2 rotational=1\n\
                  1 group-new 0 100 be -> 1\n\
                  1 group-leaf 1 300 -> -\n\
                  2 insert read sync 80+8 ctx=0 grp=1 be4 -> 0\n\
                  3 issue-around write sync 800+8 ctx=0 grp=1 be4 -> 1\n\
                  4 complete 1 -> -\n\
                  5 dispatch -> 0\n";
    assert_eq!(replay(record).map(|seen| seen.calls), Ok(6));
}

/// In version 3 what goes to the head was inserted like any other where there could be groups; before and after, it goes first.
#[test]
fn a_record_means_the_head_of_its_time() {
    for (version, groups, last_slot_goes_first) in
        [(2, 2, true), (3, 2, false), (3, 0, true), (4, 2, true), (4, 0, true)]
    {
        let first = if last_slot_goes_first { 1 } else { 0 };
        let record = format!(
            "fairlift-record-{version} elevator=noop profile=- requests=8 contexts=0 groups={groups} rotational=1\n\
             1 insert write sync 80+8 ctx=0 grp=0 be4 -> 0\n\
             2 insert-head write sync 800+8 ctx=0 grp=0 be4 -> 1\n\
             3 dispatch -> {first}\n"
        );
        assert_eq!(replay(&record).map(|seen| seen.calls), Ok(3), "version {version}, {groups} groups");
    }
}
