//! `dispatch_many` is `dispatch`, again and again.

use fairlift_core::queue::QueueConfig;
use fairlift_core::{Dispatch, Flags, MS, Op};

use super::rig::*;

#[test]
fn dispatch_many_is_dispatch_again_and_again() {
    for elevator in ELEVATORS {
        let ordering = sequences();
        let [one, same] = [(); 2].map(|()| both(elevator, QueueConfig { ordering, ..grouped() }));
        for ((mut q, tasks), (mut twin, _)) in one.into_iter().zip(same) {
            let mut random = Random(7);
            let (mut now, mut issued) = (T, Vec::new());
            for step in 0..1000_u64 {
                for _ in 0..random.below(4) {
                    let bio = random.any(&tasks, step);
                    assert_eq!(q.submit(bio, now), twin.submit(bio, now));
                }
                let most = random.below(5) as usize;
                let (mut by_one, mut last) = (Vec::new(), Dispatch::Empty);
                while by_one.len() < most {
                    last = q.dispatch(now);
                    let Dispatch::Issue(rq) = last else { break };
                    by_one.push(rq);
                }
                let mut at_once = Vec::new();
                let answer = twin.dispatch_many(now, most, |rq| at_once.push(rq));
                assert_eq!((at_once, answer), (by_one.clone(), last), "{elevator:?} at step {step}");
                issued.extend(by_one);
                now += random.below(4 * MS);
                if !issued.is_empty() && random.below(3) > 0 {
                    let rq = issued.remove(0);
                    assert_eq!(complete(&mut q, rq, now), complete(&mut twin, rq, now));
                }
            }
        }
    }
}

#[test]
fn dispatch_many_stops_at_most_and_says_why_there_are_no_more() {
    everywhere(unplugged(), |mut q, [task, _], what| {
        for sector in 0..5 {
            queued(q.submit(bio(Op::Write, Flags::NOMERGE, task, sector * 100, 8), T));
        }
        let mut out = Vec::new();
        assert_eq!(q.dispatch_many(T, 0, |rq| out.push(rq)), Dispatch::Empty, "{what}: nobody was asked");
        assert_eq!((out.len(), q.in_flight()), (0, [0, 0]), "{what}");
        let answer = q.dispatch_many(T, 2, |rq| out.push(rq));
        assert_eq!(out.len(), 2, "{what}");
        assert_eq!(answer, Dispatch::Issue(out[1]), "{what}: the last of them");
        let answer = q.dispatch_many(T, usize::MAX, |rq| out.push(rq));
        assert!(!matches!(answer, Dispatch::Issue(_)), "{what}: {answer:?}");
        assert_answer(&q, answer, what);
    });
}
