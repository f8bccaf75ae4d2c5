//! blk-throttle, the kernel's `io.max`: bios over a limit are held in the kernel, level by level.
//!
//! Facts: Linux 6.12 `block/blk-throttle.c` (first in 2.6.37); `docs/sources.md`. A bio is charged to its group, then to every
//! ancestor, as far as it gets; where a limit is in the way it is queued, and the groups above see it when it is let go there. All
//! counting is in jiffies and in slices of 100 ms, whose allowance is to be had at once. Slices that are over are forgotten, with what
//! they allowed; since 6.15 all but the last: a bio that goes later than it might have keeps what the delay allowed, and a low limit in
//! bytes is reached (before, each bio lost up to a slice).
//!
//! Not modelled: changes at run time (the carry-over), splits of a bio below.

use std::collections::{BTreeSet, VecDeque};

use super::{Ask, Controller, Place, Ticket, Verdict};

/// A slice is a tenth of a second.
const SLICES_PER_SECOND: u64 = 10;
/// Bios a group lets go in a round: reads, and all (`THROTL_GRP_QUANTUM` and three quarters of it).
const ROUND_READS: u32 = 6;
const ROUND_WRITES: u32 = 2;
/// Bios a run of the timer lets go (`THROTL_QUANTUM`).
const ROUND_ALL: u32 = 32;
/// The timer is set no further ahead, in slices: it may find nothing to do.
const TIMER_SLICES: u64 = 8;

/// One direction of one group.
#[derive(Clone, Debug, Default)]
struct Side {
    bps: u64,
    iops: u64,
    bytes: u64,
    ios: u64,
    slice_start: u64,
    slice_end: u64,
    /// Held bios by where they came from (a child group, or `usize::MAX`: the group's own), in turns.
    from: VecDeque<(usize, VecDeque<(Ticket, Ask)>)>,
    held: usize,
}

#[derive(Clone, Debug, Default)]
struct Group {
    parent: Option<usize>,
    /// Reads, writes.
    sides: [Side; 2],
    /// When its next bio may go; it is in its parent's `pending` then.
    disptime: Option<u64>,
    /// Bios came when nothing of their direction was held, and it was not entered with its parent since.
    was_empty: bool,
    /// Children (or itself, for the root's own bios) by when they may let go.
    pending: BTreeSet<(u64, u64, usize)>,
    timer: Option<u64>,
}

/// io.max on one device.
#[derive(Debug)]
pub struct BlkThrottle {
    tick_ns: u64,
    /// Jiffies a second, and in a slice.
    hz: u64,
    slice: u64,
    /// Is the last slice that is over kept?
    keeps_slice: bool,
    /// The groups; behind the last one the top, above the root.
    groups: Vec<Group>,
    /// Past the root's limit, for the thread to submit.
    ready: [VecDeque<(Ticket, Ask)>; 2],
    seq: u64,
}

const OWN: usize = usize::MAX;

impl BlkThrottle {
    /// With the groups' [`max`](super::Entitled::max).
    pub fn new(place: &Place<'_>) -> BlkThrottle {
        let tick_ns = place.tick_ns.max(1);
        let hz = (1_000_000_000 / tick_ns).max(SLICES_PER_SECOND);
        let top = place.groups.len();
        let side = |bps, iops| Side { bps, iops, ..Side::default() };
        let mut groups: Vec<Group> = place
            .groups
            .iter()
            .map(|g| Group {
                parent: Some(g.parent.unwrap_or(top)),
                sides: [side(g.max.read_bps, g.max.read_iops), side(g.max.write_bps, g.max.write_iops)],
                ..Group::default()
            })
            .collect();
        groups.push(Group::default());
        let (slice, keeps_slice) = (hz / SLICES_PER_SECOND, place.keeps_slice);
        BlkThrottle { tick_ns, hz, slice, keeps_slice, groups, ready: Default::default(), seq: 0 }
    }

    fn top(&self) -> usize {
        self.groups.len() - 1
    }

    // ---- one limit ----------------------------------------------------------------------------------------------------

    /// Jiffies until a bio of `size` bytes may pass; 0: now. Begins or lengthens the slice.
    fn wait(&mut self, group: usize, at: usize, size: u64, now: u64) -> u64 {
        let (slice, hz) = (self.slice, self.hz);
        let side = &mut self.groups[group].sides[at];
        if side.bps == 0 && side.iops == 0 {
            return 0;
        }
        if side.held == 0 && now > side.slice_end {
            side.begin_slice(now, slice);
        } else {
            side.lengthen(now + slice, slice);
        }
        let wait = side.bytes_wait(size, now, slice, hz).max(side.ios_wait(now, slice, hz));
        if wait > 0 {
            side.lengthen(now + wait, slice);
        }
        wait
    }

    /// A bio passes here.
    fn charge(&mut self, group: usize, at: usize, size: u64, now: u64) {
        let side = &mut self.groups[group].sides[at];
        side.bytes += size;
        side.ios += 1;
        self.trim(group, at, now);
    }

    fn trim(&mut self, group: usize, at: usize, now: u64) {
        let kept = if self.keeps_slice { self.slice } else { 0 };
        self.groups[group].sides[at].trim(now, self.slice, self.hz, kept);
    }

    // ---- queues -------------------------------------------------------------------------------------------------------

    /// Hold a bio at `group`.
    fn hold(&mut self, group: usize, from: usize, bio: (Ticket, Ask)) {
        let at = usize::from(!bio.1.read);
        let here = &mut self.groups[group];
        here.was_empty |= here.sides[at].held == 0;
        let side = &mut here.sides[at];
        side.held += 1;
        match side.from.iter_mut().find(|(who, _)| *who == from) {
            Some((_, bios)) => bios.push_back(bio),
            None => side.from.push_back((from, VecDeque::from([bio]))),
        }
    }

    fn peek(&self, group: usize, at: usize) -> Option<Ask> {
        let side = &self.groups[group].sides[at];
        side.from.front().and_then(|(_, bios)| bios.front()).map(|(_, ask)| *ask)
    }

    /// The next bio of `group`; the child it came from goes behind the others.
    fn pop(&mut self, group: usize, at: usize) -> Option<(Ticket, Ask)> {
        let side = &mut self.groups[group].sides[at];
        let (from, mut bios) = side.from.pop_front()?;
        let bio = bios.pop_front();
        if !bios.is_empty() {
            side.from.push_back((from, bios));
        }
        side.held -= usize::from(bio.is_some());
        bio
    }

    /// Enter `group` with its parent by when its next bio may go.
    fn enlist(&mut self, group: usize, now: u64) {
        let waits = [0, 1].map(|at| self.peek(group, at).map(|ask| self.wait(group, at, size(&ask), now)));
        self.delist(group);
        let Some(wait) = waits.into_iter().flatten().min() else { return };
        let Some(parent) = self.groups[group].parent else { return };
        self.seq += 1;
        self.groups[group].disptime = Some(now + wait);
        self.groups[group].was_empty = false;
        let key = (now + wait, self.seq, group);
        self.groups[parent].pending.insert(key);
    }

    fn delist(&mut self, group: usize) {
        let Some(parent) = self.groups[group].parent else { return };
        if self.groups[group].disptime.take().is_some() {
            self.groups[parent].pending.retain(|(_, _, who)| *who != group);
        }
    }

    /// Set the timer of `parent`'s children. `false`: one of them may go now, and `force` is not set.
    fn schedule(&mut self, parent: usize, force: bool, now: u64) -> bool {
        let Some((first, ..)) = self.groups[parent].pending.first().copied() else { return true };
        if !force && first <= now {
            return false;
        }
        self.groups[parent].timer = Some(first.min(now + TIMER_SLICES * self.slice).max(now));
        true
    }

    // ---- rounds -------------------------------------------------------------------------------------------------------

    /// A child of `parent` lets go what it may, at most so many.
    fn round_of(&mut self, group: usize, now: u64) -> u32 {
        let mut count = 0;
        for (at, most) in [(0, ROUND_READS), (1, ROUND_WRITES)] {
            for _ in 0..most {
                let Some(ask) = self.peek(group, at) else { break };
                if self.wait(group, at, size(&ask), now) > 0 {
                    break;
                }
                self.let_go(group, at, now);
                count += 1;
            }
        }
        count
    }

    /// The first bio goes on to the parent, which begins a new slice, if its own is over, where the child's began.
    fn let_go(&mut self, group: usize, at: usize, now: u64) {
        let Some(bio) = self.pop(group, at) else { return };
        self.groups[group].sides[at].bytes += size(&bio.1);
        self.groups[group].sides[at].ios += 1;
        let parent = self.groups[group].parent.unwrap_or_else(|| self.top());
        if parent == self.top() {
            self.ready[at].push_back(bio);
        } else {
            self.hold(parent, group, bio);
            let (start, slice) = (self.groups[group].sides[at].slice_start, self.slice);
            let above = &mut self.groups[parent].sides[at];
            if now > above.slice_end {
                let begun = above.slice_start.max(start);
                above.begin_slice(now, slice);
                above.slice_start = begun;
            }
        }
        self.trim(group, at, now);
    }

    /// `parent`'s children whose time has come let go, up to a round.
    fn round(&mut self, parent: usize, now: u64) -> u32 {
        let mut count = 0;
        while let Some((first, _, group)) = self.groups[parent].pending.first().copied() {
            if first > now || count >= ROUND_ALL {
                break;
            }
            self.delist(group);
            count += self.round_of(group, now);
            self.enlist(group, now);
        }
        count
    }

    /// The timer of `parent`'s children.
    fn ring(&mut self, mut parent: usize, now: u64) {
        loop {
            let mut any = false;
            loop {
                any |= self.round(parent, now) > 0;
                if self.schedule(parent, false, now) {
                    break;
                }
            }
            let Some(above) = self.groups[parent].parent.filter(|_| any && self.groups[parent].was_empty)
            else {
                return;
            };
            self.enlist(parent, now);
            if self.schedule(above, false, now) {
                return;
            }
            parent = above;
        }
    }
}

/// What a bio is charged.
fn size(ask: &Ask) -> u64 {
    u64::from(ask.sectors) * 512
}

impl Side {
    fn begin_slice(&mut self, now: u64, slice: u64) {
        (self.bytes, self.ios) = (0, 0);
        (self.slice_start, self.slice_end) = (now, now + slice);
    }

    /// The slice lasts at least until then, in whole slices.
    fn lengthen(&mut self, end: u64, slice: u64) {
        if self.slice_end < end {
            self.slice_end = self.slice_start + (end - self.slice_start).next_multiple_of(slice);
        }
    }

    /// Forget whole slices that are over, and what they allowed, but for the last `kept` jiffies.
    fn trim(&mut self, now: u64, slice: u64, hz: u64, kept: u64) {
        if (self.bps == 0 && self.iops == 0) || now > self.slice_end {
            return;
        }
        let elapsed = ((now - self.slice_start) / slice * slice).saturating_sub(kept);
        if elapsed == 0 {
            return;
        }
        self.bytes = self.bytes.saturating_sub(per(self.bps, elapsed, hz));
        self.ios = self.ios.saturating_sub(per(self.iops, elapsed, hz));
        self.slice_start += elapsed;
        self.slice_end = self.slice_end.max(now + slice);
    }

    /// The allowance is that of whole slices, the first of which counts at once.
    fn bytes_wait(&self, size: u64, now: u64, slice: u64, hz: u64) -> u64 {
        if self.bps == 0 {
            return 0;
        }
        let elapsed = now - self.slice_start;
        let rounded = elapsed.max(1).next_multiple_of(slice);
        let allowed = per(self.bps, rounded, hz);
        match (self.bytes + size).checked_sub(allowed).filter(|extra| *extra > 0) {
            None => 0,
            Some(extra) => (extra * hz / self.bps).max(1) + (rounded - elapsed),
        }
    }

    fn ios_wait(&self, now: u64, slice: u64, hz: u64) -> u64 {
        if self.iops == 0 {
            return 0;
        }
        let elapsed = now - self.slice_start;
        let rounded = (elapsed + 1).next_multiple_of(slice);
        if self.ios < per(self.iops, rounded, hz) {
            return 0;
        }
        (rounded - elapsed).max(hz / self.iops + 1)
    }
}

/// `rate` a second in so many jiffies.
fn per(rate: u64, jiffies: u64, hz: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(jiffies) / u128::from(hz)).unwrap_or(u64::MAX)
}

impl Controller for BlkThrottle {
    fn ask(&mut self, ask: &Ask, ticket: Ticket, now_ns: u64) -> Verdict {
        let (now, at) = (now_ns / self.tick_ns, usize::from(!ask.read));
        let (mut group, mut from) = (ask.group, OWN);
        while group != self.top() {
            // Metadata is charged, but waits for nobody.
            let waits = self.groups[group].sides[at].held > 0 || self.wait(group, at, size(ask), now) > 0;
            if waits && !ask.meta {
                self.hold(group, from, (ticket, *ask));
                if self.groups[group].was_empty {
                    self.enlist(group, now);
                    let parent = self.groups[group].parent.unwrap_or_else(|| self.top());
                    self.schedule(parent, true, now);
                }
                return Verdict::Hold;
            }
            self.charge(group, at, size(ask), now);
            from = group;
            group = self.groups[group].parent.unwrap_or_else(|| self.top());
        }
        Verdict::Pass
    }

    fn conduct(&mut self, now_ns: u64, out: &mut Vec<Ticket>) {
        let now = now_ns / self.tick_ns;
        for parent in 0..self.groups.len() {
            if self.groups[parent].timer.is_some_and(|at| at <= now) {
                self.groups[parent].timer = None;
                self.ring(parent, now);
            }
        }
        for ready in &mut self.ready {
            out.extend(ready.drain(..).map(|(ticket, _)| ticket));
        }
    }

    fn next_event(&self) -> Option<u64> {
        if self.ready.iter().any(|ready| !ready.is_empty()) {
            return Some(0);
        }
        self.groups.iter().filter_map(|group| group.timer).min().map(|jiffy| jiffy * self.tick_ns)
    }

    fn thread(&self) -> &'static str {
        "kthrotld"
    }

    fn bios_keep_group(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::controller::{Entitled, Max};

    const TICK_NS: u64 = 4_000_000; // HZ=250

    fn controller(groups: &[Entitled]) -> BlkThrottle {
        let groups = [&[Entitled::ROOT], groups].concat();
        BlkThrottle::new(&Place { groups: &groups, nr_requests: 128, tick_ns: TICK_NS, keeps_slice: false })
    }

    fn limited(parent: usize, max: Max) -> Entitled {
        Entitled { max, ..Entitled::below(parent) }
    }

    fn write_bps(bps: u64) -> Max {
        Max { write_bps: bps, ..Max::default() }
    }

    fn write_iops(iops: u64) -> Max {
        Max { write_iops: iops, ..Max::default() }
    }

    fn write(group: usize, sectors: u32) -> Ask {
        Ask { group, read: false, sync: true, sectors, daemon: false, meta: false }
    }

    /// When held bios are released, jiffies.
    fn drain(t: &mut BlkThrottle) -> Vec<(u64, Ticket)> {
        let mut all = Vec::new();
        while let Some(at) = t.next_event() {
            let mut out = Vec::new();
            t.conduct(at, &mut out);
            all.extend(out.into_iter().map(|ticket| (at / TICK_NS, ticket)));
        }
        all
    }

    /// 1 MiB/s: 64 KiB pass at once; the second 64 KiB wait 31 jiffies.
    #[test]
    fn the_second_64_kib_wait_31_jiffies() {
        let mut t = controller(&[limited(0, write_bps(1 << 20))]);
        assert_eq!(t.ask(&write(1, 128), 1, 0), Verdict::Pass);
        assert_eq!(t.ask(&write(1, 128), 2, 0), Verdict::Hold);
        assert_eq!(drain(&mut t), [(31, 2)]);
    }

    /// 1 MiB/s: one bio of 1 MiB waits a second.
    #[test]
    fn a_mebibyte_waits_250_jiffies() {
        let mut t = controller(&[limited(0, write_bps(1 << 20))]);
        assert_eq!(t.ask(&write(1, 2048), 1, 0), Verdict::Hold);
        assert_eq!(t.groups[t.top()].pending.len() + t.groups[0].pending.len(), 1);
        assert_eq!(t.groups[1].disptime, Some(250));
        assert_eq!(drain(&mut t), [(250, 1)]);
    }

    /// 100 a second: ten pass at once, the eleventh waits 25 jiffies.
    #[test]
    fn ten_of_a_hundred_pass_at_once() {
        let mut t = controller(&[limited(0, write_iops(100))]);
        for ticket in 0..10 {
            assert_eq!(t.ask(&write(1, 8), ticket, 0), Verdict::Pass);
        }
        assert_eq!(t.ask(&write(1, 8), 10, 0), Verdict::Hold);
        assert_eq!(drain(&mut t), [(25, 10)]);
    }

    /// 5 a second: the first waits 51 jiffies.
    #[test]
    fn the_first_of_five_waits_51_jiffies() {
        let mut t = controller(&[limited(0, write_iops(5))]);
        assert_eq!(t.ask(&write(1, 8), 0, 0), Verdict::Hold);
        assert_eq!(t.groups[1].disptime, Some(51));
        assert_eq!(drain(&mut t), [(51, 0)]);
    }

    /// A hundred bios at 100 a second are released within the second, ten a slice.
    #[test]
    fn a_queue_drains_a_slice_at_a_time() {
        let mut t = controller(&[limited(0, write_iops(100))]);
        let held = (0..100).filter(|ticket| t.ask(&write(1, 8), *ticket, 0) == Verdict::Hold).count();
        assert_eq!(held, 90);
        let out = drain(&mut t);
        assert_eq!(out.iter().map(|(_, ticket)| *ticket).collect::<Vec<_>>(), (10..100).collect::<Vec<_>>());
        for slice in 1..10 {
            assert_eq!(out.iter().filter(|(at, _)| at / 25 == slice).count(), 10, "slice {slice}: {out:?}");
        }
    }

    /// 1 MiB/s, 500,000 bytes gone, 100 jiffies (four slices) on: 6.12 forgets 419,430 bytes that these allowed, since 6.15 the last
    /// slice is kept and 314,572 are forgotten.
    #[test]
    fn the_last_slice_that_is_over_is_kept_since_6_15() {
        let trimmed = |kept| {
            let mut side = Side { bps: 1 << 20, bytes: 500_000, slice_end: 200, ..Side::default() };
            side.trim(100, 25, 250, kept);
            (side.bytes, side.slice_start)
        };
        assert_eq!([trimmed(0), trimmed(25)], [(80_570, 100), (185_428, 75)]);
    }

    /// Two children of a limited parent, each with 60 waiting, are released in turns.
    #[test]
    fn children_take_turns_at_their_parent() {
        let mut t = controller(&[
            limited(0, write_iops(100)),
            limited(1, write_iops(1000)),
            limited(1, write_iops(1000)),
        ]);
        for ticket in 0..120 {
            let group = if ticket < 60 { 2 } else { 3 };
            t.ask(&write(group, 8), ticket, 0);
        }
        let out = drain(&mut t);
        assert_eq!(out.len(), 110);
        let first = out.iter().take(60).filter(|(_, ticket)| *ticket < 60).count();
        assert!((28..=32).contains(&first), "{first} of the first 60 are of the first child: {out:?}");
    }

    /// Reads and writes do not wait for each other; metadata waits for neither.
    #[test]
    fn directions_are_apart_and_metadata_passes() {
        let mut t = controller(&[limited(0, Max { read_iops: 100, ..write_iops(5) })]);
        assert_eq!(t.ask(&write(1, 8), 0, 0), Verdict::Hold);
        assert_eq!(t.ask(&Ask { read: true, ..write(1, 8) }, 1, 0), Verdict::Pass);
        assert_eq!(t.ask(&Ask { meta: true, ..write(1, 8) }, 2, 0), Verdict::Pass);
    }
}
