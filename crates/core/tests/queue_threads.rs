//! A host whose programs run in several threads. The queue has no locks: each thread leaves what it sends in a common inbox, and
//! whichever finds the queue free hands in what all have left (a *combiner*). Nothing is lost or done twice on that way, and
//! everybody pays for what is theirs.

mod queue_support;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use fairlift_core::elevator;
use fairlift_core::queue::{Admission, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoPrio, MS, Op, RequestId};
use queue_support::unplugged;

const THREADS: usize = 4;
const BIOS: u64 = 2_000;
/// Bios that a thread has under way at a time.
const DEPTH: usize = 8;
/// Requests that the device takes at a time.
const DEVICE: usize = 4;

/// The queue and the device below it: whoever has the lock does the work of all.
struct Machine {
    q: RequestQueue,
    now: u64,
    device: VecDeque<RequestId>,
    /// Bios that found no request slot.
    waiting: VecDeque<Bio>,
    /// To whom a bio's answer goes: cookies are `thread << 32 | number`.
    answers: Vec<Sender<u64>>,
    /// Requests that were not of the thread that handed them in.
    for_others: u64,
}

impl Machine {
    fn submit(&mut self, bio: Bio) {
        match self.q.submit(bio, self.now) {
            Submitted::Full => self.waiting.push_back(bio),
            Submitted::Queued(_) | Submitted::Merged(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Serve until nothing is left to do at once.
    fn run(&mut self) {
        loop {
            while self.device.len() < DEVICE {
                match self.q.dispatch(self.now) {
                    Dispatch::Issue(rq) => self.device.push_back(rq),
                    Dispatch::Idle { until } if self.device.is_empty() => self.now = until,
                    _ => break,
                }
            }
            let Some(rq) = self.device.pop_front() else { return };
            self.now += MS / 10;
            let answers = &self.answers;
            self.q.complete(rq, self.now, |cookie| {
                answers[(cookie >> 32) as usize].send(cookie).expect("the thread waits for it");
            });
            while let Some(woken) = self.q.next_wakeup() {
                let whom = |bio: &Bio| (self.q.group_of(bio), bio.is_sync()) == woken;
                let Some(at) = self.waiting.iter().position(whom) else { continue };
                let bio = self.waiting.remove(at).expect("it is there");
                if self.q.resubmit(bio, self.now) == Submitted::Full {
                    self.waiting.insert(at, bio);
                }
            }
        }
    }
}

struct Host {
    inbox: Mutex<Vec<Bio>>,
    machine: Mutex<Machine>,
}

impl Host {
    /// Leave `bio` in the inbox, and hand in all there is unless somebody else is at it.
    fn send(&self, bio: Bio) {
        let sender = bio.cookie >> 32;
        self.inbox.lock().expect("nobody panicked").push(bio);
        thread::yield_now(); // give others time to leave theirs
        // Who finds the queue taken may go: its owner looks into the inbox once more after it has let go.
        while let Some(mut machine) = self.free_machine() {
            let bios = std::mem::take(&mut *self.inbox.lock().expect("nobody panicked"));
            for bio in bios {
                machine.for_others += u64::from(bio.cookie >> 32 != sender);
                machine.submit(bio);
            }
            machine.run();
            drop(machine);
            if self.inbox.lock().expect("nobody panicked").is_empty() {
                return;
            }
        }
    }

    fn free_machine(&self) -> Option<MutexGuard<'_, Machine>> {
        match self.machine.try_lock() {
            Ok(machine) => Some(machine),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("another thread panicked"),
        }
    }
}

/// One program: keeps [`DEPTH`] bios under way until it has sent all; the cookies it was answered, in order.
fn program(host: &Host, thread: usize, context: ContextId, answers: &Receiver<u64>) -> Vec<u64> {
    let mut done = Vec::new();
    for number in 0..BIOS {
        if number as usize >= DEPTH {
            done.push(answers.recv().expect("the machine lives"));
        }
        let op = if number % 3 == 0 { Op::Write } else { Op::Read };
        let sector = (number * 7_919 + thread as u64 * 104_729) % (1 << 20) * 8;
        host.send(Bio {
            cookie: (thread as u64) << 32 | number,
            op,
            flags: Flags::NONE,
            sector,
            sectors: 8,
            segments: 1,
            context,
            ioprio: None,
            group: None,
        });
    }
    done.extend((0..DEPTH).map(|_| answers.recv().expect("the machine lives")));
    done
}

/// How many requests were handed in by another thread than their own.
fn run(elevator: (&str, &str)) -> u64 {
    let config = QueueConfig {
        groups_max: THREADS,
        // So few that threads wait for each other's slots.
        admission: Admission::Tags { nr_requests: 16 },
        ..unplugged()
    };
    let built = (elevator::find(elevator.0).expect("known").build)(&config.elevator(), elevator.1);
    let mut q = RequestQueue::new(config, built);
    let tenants: Vec<(GroupId, ContextId)> = (0..THREADS)
        .map(|_| {
            let group =
                q.groups_mut().create(GroupId::ROOT, GroupParams::weight(100)).expect("there is room");
            (group, q.contexts_mut().create_in(group, IoPrio::DEFAULT))
        })
        .collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let machine = Machine {
        q,
        now: 1000 * MS,
        device: VecDeque::new(),
        waiting: VecDeque::new(),
        answers: senders,
        for_others: 0,
    };
    let host = Host { inbox: Mutex::new(Vec::new()), machine: Mutex::new(machine) };
    thread::scope(|scope| {
        let programs: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(thread, answers)| {
                let (host, context) = (&host, tenants[thread].1);
                scope.spawn(move || program(host, thread, context, &answers))
            })
            .collect();
        for (thread, program) in programs.into_iter().enumerate() {
            let mut done = program.join().expect("it ends");
            done.sort_unstable();
            let sent: Vec<u64> = (0..BIOS).map(|number| (thread as u64) << 32 | number).collect();
            assert_eq!(done, sent, "thread {thread} under {elevator:?}: each bio is answered once");
        }
    });
    let machine = host.machine.into_inner().expect("nobody panicked");
    assert_eq!((machine.q.pending(), machine.q.in_flight(), machine.q.requests().taken()), (0, [0, 0], 0));
    let totals = machine.q.groups().totals();
    assert_eq!(totals.billed_ns, totals.busy_ns + totals.waited_ns, "{elevator:?}");
    for (group, _) in tenants {
        let sum = machine.q.groups()[group].stats().total();
        assert_eq!(sum.ios + sum.merged, BIOS, "{elevator:?}: {group:?} pays for its own");
    }
    machine.for_others
}

#[test]
fn several_threads_submit_through_a_combiner() {
    for elevator in
        [("noop", ""), ("deadline", ""), ("anticipatory", ""), ("cfq", "2.6.31"), ("cfq", "2.6.34")]
    {
        run(elevator);
    }
}
