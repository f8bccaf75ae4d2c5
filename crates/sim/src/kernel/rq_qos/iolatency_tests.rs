use super::*;

/// Two siblings below the root: the first has a target, the second has none.
fn pair(target_ns: u64) -> IoLatency {
    let groups = [(None, 0), (Some(0), target_ns), (Some(0), 0)];
    IoLatency::new(64, false, groups.into_iter()).expect("somebody has a target")
}

const TARGET_NS: u64 = 10 * MS;
const PROTECTED: usize = 1;
const OTHER: usize = 2;

impl IoLatency {
    /// An I/O of the protected group that came at `came_ns` and took so long.
    fn one(&mut self, came_ns: u64, took_ns: u64) {
        let io = Io { group: PROTECTED, meta: false, came_ns };
        assert!(self.ask(0, PROTECTED, false, came_ns, &mut Vec::new()));
        self.done(&io, came_ns + took_ns, &mut Vec::new());
    }

    /// A window of ten I/Os in that second that take so long each; it ends with the tenth.
    fn window(&mut self, second: u64, took_ns: u64) {
        for tenth in 1..=10 {
            let came_ns = second * SECOND + tenth * 90 * MS;
            self.groups[PROTECTED].window_since_ns = if tenth == 10 { 0 } else { came_ns };
            self.one(came_ns, took_ns);
        }
    }

    /// The other group's depth, after it looked.
    fn depth(&mut self, now: u64) -> u32 {
        assert!(self.ask(0, OTHER, true, now, &mut Vec::new()));
        self.done(&Io { group: OTHER, meta: true, came_ns: now }, now, &mut Vec::new());
        self.groups[OTHER].depth
    }
}

#[test]
fn nobody_with_a_target_is_nobody_to_ask() {
    assert!(IoLatency::new(64, false, [(None, 0), (Some(0), 0)].into_iter()).is_none());
}

/// 64 requests: each complaint halves the neighbour's depth, down to one; then its tasks are to pause.
#[test]
fn a_missed_target_halves_the_neighbours_depth() {
    let mut latency = pair(TARGET_NS);
    assert_eq!(latency.depth(0), u32::MAX);
    let depths: Vec<u32> = (1..=7)
        .map(|second| {
            latency.window(second, TARGET_NS);
            latency.depth((second + 1) * SECOND)
        })
        .collect();
    assert_eq!(depths, [32, 16, 8, 4, 2, 1, 1]);
    assert_eq!(latency.groups[OTHER].delay.complaints, 1);
    assert_eq!(latency.groups[PROTECTED].depth, u32::MAX, "who complains is not cut");
}

/// One of ten is too many, one of twenty is not.
#[test]
fn a_tenth_may_be_missed_on_flash_and_the_mean_counts_on_a_disk() {
    let sample = |count, missed, mean_ns| Sample { count, missed, total_ns: mean_ns * count };
    assert!(!sample(10, 1, 0).is_good(TARGET_NS, false));
    assert!(!sample(5, 1, 0).is_good(TARGET_NS, false));
    assert!(sample(20, 1, 0).is_good(TARGET_NS, false));
    assert!(sample(10, 5, TARGET_NS).is_good(TARGET_NS, true));
    assert!(!sample(10, 1, TARGET_NS + 1).is_good(TARGET_NS, true));
}

/// Content again, it gives back a sixteenth of the queue for each window, and at the end there is no limit.
#[test]
fn a_content_group_gives_back_in_small_steps() {
    let mut latency = pair(TARGET_NS);
    latency.window(1, TARGET_NS);
    assert_eq!(latency.depth(2 * SECOND), 32);
    let depths: Vec<u32> = (3..=7)
        .map(|second| {
            latency.window(second, MS);
            latency.depth((second + 1) * SECOND)
        })
        .collect();
    assert_eq!(depths, [36, 40, 44, u32::MAX, u32::MAX], "16 down is four times 4 up");
}

/// A bio over the depth waits in its group's line; a done one lets the next one go.
#[test]
fn those_over_the_depth_wait_in_line() {
    let mut latency = pair(TARGET_NS);
    (1..=6).for_each(|second| {
        latency.window(second, TARGET_NS);
        latency.depth((second + 1) * SECOND);
    });
    let (now, mut woken) = (8 * SECOND, Vec::new());
    assert!(latency.ask(1, OTHER, false, now, &mut woken));
    assert!(!latency.ask(2, OTHER, false, now, &mut woken));
    assert!(!latency.ask(3, OTHER, false, now, &mut woken));
    assert!(latency.ask(4, OTHER, true, now, &mut woken), "metadata is never held up");
    let io = Io { group: OTHER, meta: false, came_ns: now };
    latency.done(&io, now, &mut woken);
    assert_eq!(woken, [], "the metadata is under way");
    latency.done(&io, now, &mut woken);
    assert_eq!(woken, [2]);
}

/// The shortest target wins: a group with a shorter one than the complainer's is not cut.
#[test]
fn who_has_a_shorter_target_is_left_alone() {
    let groups = [(None, 0), (Some(0), TARGET_NS), (Some(0), TARGET_NS / 2), (Some(0), TARGET_NS * 2)];
    let mut latency = IoLatency::new(64, false, groups.into_iter()).expect("targets");
    let busy = |latency: &mut IoLatency, group: usize, second: u64, took_ns: u64| {
        for tenth in 1..=10 {
            let came_ns = second * SECOND + tenth * 90 * MS;
            assert!(latency.ask(0, group, false, came_ns, &mut Vec::new()));
            latency.done(&Io { group, meta: false, came_ns }, came_ns + took_ns, &mut Vec::new());
        }
    };
    for second in 1..=6 {
        for (group, took_ns) in [(2, MS), (3, MS), (1, TARGET_NS)] {
            busy(&mut latency, group, second, took_ns);
        }
    }
    assert_eq!(latency.groups[2].depth, u32::MAX);
    assert!(latency.groups[3].depth < 64, "{:?}", latency.groups[3]);
}

/// Metadata that took less than the target is paid for by pauses, once the depth is one and complaints go on.
#[test]
fn metadata_is_paid_for_by_pauses() {
    let groups = [(None, 0), (Some(0), TARGET_NS), (Some(0), TARGET_NS * 4)];
    let mut latency = IoLatency::new(64, false, groups.into_iter()).expect("targets");
    latency.groups[OTHER].delay.complaints = 1;
    latency.groups[OTHER].depth = 1;
    let io = Io { group: OTHER, meta: true, came_ns: SECOND };
    assert!(latency.ask(0, OTHER, true, SECOND, &mut Vec::new()));
    latency.done(&io, SECOND + TARGET_NS, &mut Vec::new());
    assert_eq!(latency.pause_ns(OTHER, SECOND + TARGET_NS), 3 * TARGET_NS);
    assert_eq!(latency.pause_ns(OTHER, 4 * SECOND), 0, "seconds later it is paid for");
}

/// Nobody speaks for five seconds: the complainer is forgotten, then the mark rises each second.
#[test]
fn a_complaint_is_forgotten() {
    let mut latency = pair(TARGET_NS);
    latency.window(1, TARGET_NS);
    let cut = latency.groups[0].mark;
    let mut marks = Vec::new();
    for second in 2..14 {
        latency.tick_ns = Some(second * SECOND);
        latency.advance(second * SECOND);
        marks.push(latency.groups[0].mark);
    }
    assert_eq!(cut, MARK - 16);
    assert_eq!(marks[5], MARK - 16, "at 7 s it is forgotten");
    assert_eq!(marks[6..10], [MARK - 12, MARK - 8, MARK - 4, MARK]);
}
