//! What a failed request, a wait and a shared flush cost, and whom.

use fairlift_core::queue::{QueueConfig, RequestQueue};
use fairlift_core::request::Status;
use fairlift_core::{Bio, ContextId, Dispatch, GroupId, GroupParams, MS, Op};

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

/// Being waited for costs as long as the queue asked the host to wait; how much later the host comes is nobody's fault.
#[test]
fn a_host_that_comes_late_costs_nobody() {
    for elevator in ELEVATORS {
        let (mut q, [one, other]) = with_groups(grouped(), elevator, [100, 100]);
        queued(q.submit(read(one.1, 100, 8), T));
        queued(q.submit(read(other.1, 50_000, 8), T));
        let mut now = T;
        let first = next(&mut q, &mut now);
        let waited_for = q.requests()[first].group;
        now += MS;
        complete(&mut q, first, now);
        let until = match q.dispatch(now) {
            Dispatch::Idle { until } => until,
            // It serves others meanwhile.
            Dispatch::Issue(_) if elevator.0 == "fair" => continue,
            other => panic!("{elevator:?}: worth waiting for, but {other:?}"),
        };
        let late = until + 500 * MS;
        let second = issue(&mut q, late);
        complete(&mut q, second, late + MS);
        q.groups_mut().set_params(one.0, GroupParams::weight(200)).expect("settles");
        assert_eq!(q.groups()[waited_for].stats().idle_ns, until - now, "{elevator:?}");
    }
}

/// One flush for three groups costs each of them a third of its time.
#[test]
fn who_shares_a_flush_shares_its_cost() {
    for elevator in ELEVATORS {
        let config = QueueConfig { ordering: sequences(), ..unplugged() };
        let (mut q, groups) = with_groups(config, elevator, [100, 1000, 300]);
        for (cookie, (_, task)) in groups.iter().enumerate() {
            queued(q.submit(Bio { cookie: cookie as u64, ..flush(*task) }, T));
        }
        let mut now = T;
        let command = next(&mut q, &mut now);
        assert_eq!(q.requests()[command].op, Op::Flush, "{elevator:?}");
        let mut done = complete(&mut q, command, now + 9 * MS);
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2], "{elevator:?}: it was for all of them");
        q.groups_mut().set_params(groups[0].0, GroupParams::weight(200)).expect("settles");
        let paid = groups.map(|(group, _)| {
            let stats = q.groups()[group].stats();
            stats.time_ns - stats.idle_ns
        });
        assert_eq!(paid, [3 * MS; 3], "{elevator:?}");
    }
}

/// Two groups of equal weight, of which one sends nothing but flushes, under `charge=bytes`: it transfers nothing, yet the
/// device is as long busy for it as for the other one's writes, and it pays for that as for what would have been written meanwhile.
#[test]
fn time_without_a_transfer_costs_under_bytes_what_the_device_would_have_transferred() {
    for elevator in ELEVATORS.into_iter().filter(|(name, _)| *name != "cfq") {
        let (mut q, [flusher, writer]) = with_groups(grouped_with_sequences(), elevator, [100, 100]);
        q.groups_mut().set("charge", "bytes").expect("a word of it");
        let mut now = T;
        let send = |q: &mut RequestQueue, tenant: (GroupId, ContextId), at: u64, now: u64| {
            let one = if tenant == flusher { flush(tenant.1) } else { write(tenant.1, 1000 * at, 8) };
            queued(q.submit(Bio { cookie: at, ..one }, now));
        };
        // So that it is known how fast the device is.
        for at in 1..20 {
            send(&mut q, writer, at, now);
            let rq = next(&mut q, &mut now);
            now += 10 * MS;
            complete(&mut q, rq, now);
        }
        send(&mut q, flusher, 20, now);
        send(&mut q, writer, 21, now);
        let mut served = [0_u32; 2];
        for at in 22..422 {
            let rq = next(&mut q, &mut now);
            let is_flush = q.requests()[rq].op == Op::Flush;
            now += 10 * MS;
            complete(&mut q, rq, now);
            served[usize::from(is_flush)] += 1;
            send(&mut q, if is_flush { flusher } else { writer }, at, now);
        }
        let [writes, flushes] = served;
        let part = f64::from(flushes) / f64::from(writes + flushes);
        assert!((part - 0.5).abs() < 0.06, "{elevator:?}: {flushes} flushes beside {writes} writes");
    }
}
