//! The steady state that is measured: so many requests queued, and per cycle one goes to the device, is done, and the
//! next one is sent: by the next context in turn (nearly every request is of another context than the one before, the
//! worst that can happen to an elevator that thinks in contexts), or by the context whose request is done (as programs
//! do).

use fairlift_core::elevator::{self, AnyElevator, Config};
use fairlift_core::queue::{
    Admission, ElevatorQueue, NoMerges, Plugging, QueueConfig, RequestQueue, Submitted,
};
use fairlift_core::request::request;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoPrio, Op, RequestId};

/// Requests queued.
pub const QUEUED: usize = 32;
/// Time of a request in the device.
const SERVICE_NS: u64 = 100_000;
/// Sectors of the disk that is read: 500 GB.
const DISK: u64 = 976_773_168;

/// A name of an elevator, with its profile behind a colon: `cfq:2.6.34`.
pub fn build(name: &str, config: &Config) -> AnyElevator {
    let (name, profile) = name.split_once(':').unwrap_or((name, ""));
    let descriptor = elevator::find(name).unwrap_or_else(|| panic!("no elevator {name}"));
    (descriptor.build)(config, profile)
}

/// Where and whose the next request is: random sectors of 4 KiB, every fourth an async write.
pub struct Load {
    contexts: Vec<ContextId>,
    turn: usize,
    /// Does the context whose request is done send the next one? Else they take turns.
    own: bool,
    random: u64,
}

impl Load {
    /// For as many contexts, all of them the overflow one.
    #[allow(dead_code)] // for the count of what the harness costs
    pub fn new(contexts: usize) -> Load {
        Load { contexts: vec![ContextId::OVERFLOW; contexts], turn: 0, own: false, random: 1 }
    }

    /// The next request, after one of `done`.
    #[inline]
    pub fn next(&mut self, done: Option<ContextId>) -> (Op, u64, ContextId) {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.turn = if self.turn + 1 == self.contexts.len() { 0 } else { self.turn + 1 };
        let op = if self.random >> 62 == 0 { Op::Write } else { Op::Read };
        let context = done.filter(|_| self.own).unwrap_or(self.contexts[self.turn]);
        (op, ((self.random >> 20) % DISK) & !7, context)
    }
}

/// Whose the contexts are.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // not every bench has groups
pub enum Tree {
    /// The root's; there are no groups.
    Flat,
    /// Of the groups three levels below the root of a tree with four children everywhere, in turn.
    ThreeLevels,
    /// Each of a group of its own below the root.
    Wide,
}

impl Tree {
    /// Requests queued: where there is a group for each context, enough for 1,000 groups to be busy at a time.
    fn queued(self) -> usize {
        if self == Tree::Wide { 1000 } else { QUEUED }
    }

    /// Groups below the root for so many contexts.
    fn groups(self, contexts: usize) -> usize {
        match self {
            Tree::Flat => 0,
            Tree::ThreeLevels => 4 + 16 + 64,
            Tree::Wide => contexts,
        }
    }

    /// The groups for the contexts. Weights differ, so that turns do not simply go round.
    fn plant(self, q: &mut ElevatorQueue, contexts: usize) -> Vec<GroupId> {
        let mut level = vec![GroupId::ROOT];
        let (levels, children) = match self {
            Tree::Flat => (0, 0),
            Tree::ThreeLevels => (3, 4),
            Tree::Wide => (1, contexts),
        };
        for _ in 0..levels {
            let parents = std::mem::take(&mut level);
            for (parent, nth) in parents.iter().flat_map(|parent| (0..children).map(move |nth| (parent, nth)))
            {
                let params = GroupParams::weight(100 + 50 * (nth % 4) as u32);
                level.push(q.groups_mut().create(*parent, params).expect("there is room"));
            }
        }
        level
    }
}

/// A bare [`ElevatorQueue`] in its steady state.
pub struct Bare {
    q: ElevatorQueue,
    load: Load,
    now: u64,
    /// Calls of `dispatch` so far: more than one a request when the elevator answers "wait".
    #[allow(dead_code)] // for the table
    pub asked: u64,
}

impl Bare {
    pub fn new(elevator: &str, contexts: usize, own: bool, tree: Tree) -> Bare {
        let groups = tree.groups(contexts);
        let config = Config::for_queue(2 * tree.queued(), contexts, groups, fairlift_core::MS);
        let mut q = ElevatorQueue::new(config.requests_max, contexts, true, build(elevator, &config))
            .with_groups(groups);
        let groups = tree.plant(&mut q, contexts);
        let mut group = groups.iter().cycle();
        let mut context = || q.contexts_mut().create_in(*group.next().expect("no end"), IoPrio::DEFAULT);
        let contexts = (0..contexts).map(|_| context()).collect();
        let mut bare = Bare { q, load: Load { contexts, turn: 0, own, random: 1 }, now: 0, asked: 0 };
        (0..tree.queued()).for_each(|_| bare.insert(None));
        bare
    }

    #[inline]
    fn insert(&mut self, done: Option<ContextId>) {
        let (op, sector, context) = self.load.next(done);
        let group = self.q.contexts()[context].group;
        let mut request = request(op, Flags::NONE, sector, 8, context, self.now);
        request.group = group;
        if let Some(rq) = self.q.take(request) {
            self.q.insert(rq, self.now);
        }
    }

    /// One request: dispatch, completion, insertion of the next.
    #[inline]
    pub fn cycle(&mut self) {
        let rq = loop {
            self.asked += 1;
            match self.q.dispatch(self.now) {
                Dispatch::Issue(rq) => break rq,
                Dispatch::Idle { until } => self.now = until,
                Dispatch::Empty | Dispatch::Busy => {
                    panic!("nothing in the device, something queued, and no answer")
                }
            }
        };
        self.now += SERVICE_NS;
        self.q.complete(rq, self.now);
        let done = self.q.requests()[rq].context;
        self.q.release(rq);
        self.insert(Some(done));
    }
}

/// A whole [`RequestQueue`] in its steady state.
pub struct Whole {
    q: RequestQueue,
    load: Load,
    now: u64,
    pub done: u64,
}

impl Whole {
    pub fn new(elevator: &str, contexts: usize, merging: bool) -> Whole {
        Whole::with(elevator, contexts, if merging { NoMerges::Off } else { NoMerges::All }, QUEUED)
    }

    /// With so many requests queued.
    pub fn with(elevator: &str, contexts: usize, nomerges: NoMerges, queued: usize) -> Whole {
        let config = QueueConfig {
            contexts_max: contexts,
            admission: Admission::Pools { nr_requests: 128.max(queued as u32) },
            plugging: Plugging::Off,
            nomerges,
            ..QueueConfig::default()
        };
        let mut q = RequestQueue::new(config, build(elevator, &config.elevator()));
        let contexts = (0..contexts).map(|_| q.contexts_mut().create(IoPrio::DEFAULT)).collect();
        let mut whole = Whole { q, load: Load { contexts, turn: 0, own: false, random: 1 }, now: 0, done: 0 };
        while whole.q.pending() < queued {
            whole.submit();
        }
        whole
    }

    #[inline]
    fn submit(&mut self) {
        let (op, sector, context) = self.load.next(None);
        let bio = Bio {
            cookie: sector,
            op,
            flags: Flags::NONE,
            sector,
            sectors: 8,
            segments: 1,
            context,
            ioprio: None,
            group: None,
        };
        assert!(self.q.submit(bio, self.now) != Submitted::Full);
    }

    fn issue(&mut self) -> RequestId {
        loop {
            match self.q.dispatch(self.now) {
                Dispatch::Issue(rq) => return rq,
                Dispatch::Idle { until } => self.now = until,
                Dispatch::Empty | Dispatch::Busy => {
                    panic!("nothing in the device, something queued, and no answer")
                }
            }
        }
    }

    /// One request: dispatch, completion, submission of the next bio.
    #[inline]
    pub fn cycle(&mut self) {
        let rq = self.issue();
        self.now += SERVICE_NS;
        let done = &mut self.done;
        self.q.complete(rq, self.now, |_| *done += 1);
        self.submit();
    }
}
