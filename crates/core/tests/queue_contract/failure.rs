//! What a failed request costs.

use fairlift_core::request::Status;
use fairlift_core::{GroupParams, MS};

use super::rig::*;

#[test]
fn a_failed_request_is_done_and_its_slot_is_free() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        let rq = queued(q.submit(read(task, 100, 8), T));
        assert_eq!(merged(q.submit(read(task, 108, 8), T)), rq, "{what}");
        assert_eq!(issue(&mut q, T), rq);
        let mut done = Vec::new();
        q.complete_as(rq, Status::Failed, T + MS, |cookie| done.push(cookie));
        assert_eq!(done, [100, 108], "{what}");
        assert_empty(&q);
    });
}

#[test]
fn a_failed_request_is_billed_like_any_other() {
    for elevator in ELEVATORS {
        let bills = [Status::Done, Status::Failed].map(|status| {
            let (mut q, [(group, task), (_, other)]) = with_groups(grouped(), elevator, [100, 100]);
            let mut now = T;
            for at in 0..20 {
                queued(q.submit(write(task, 100 * at, 8), now));
                queued(q.submit(write(other, 50_000 + 100 * at, 8), now));
                for _ in 0..2 {
                    let rq = next(&mut q, &mut now);
                    now += MS;
                    let status = if q.requests()[rq].group == group { status } else { Status::Done };
                    q.complete_as(rq, status, now, |_| {});
                }
            }
            q.groups_mut().set_params(group, GroupParams::weight(100)).expect("settles");
            let (totals, stats) = (q.groups().totals(), *q.groups()[group].stats());
            assert_eq!(totals.busy_ns, 40 * MS, "{elevator:?} {status:?}");
            assert_eq!(totals.billed_ns, totals.busy_ns + totals.waited_ns, "{elevator:?} {status:?}");
            assert_eq!(stats.total().ios, 20, "{elevator:?} {status:?}");
            assert_eq!(stats.time_ns - stats.idle_ns, 20 * MS, "{elevator:?} {status:?}");
            stats.time_ns - stats.idle_ns
        });
        assert_eq!(bills[0], bills[1], "{elevator:?}");
    }
}
