//! Which flow of a group is served next: earliest eligible virtual deadline first, as among groups ([`crate::group`]).
//!
//! A flow's *start* advances by what it was served, divided by its weight; *now* is the average of the starts of those that
//! want to be served, by weight. A flow whose start is not after now has had no more than its due and is *eligible*; of the
//! eligible the one with the earliest *deadline* goes, which is its start plus what it takes at a time. So a flow of single
//! requests goes between the long turns of streams, and not after all of them.
//!
//! A flow that comes back starts where it was, but no further behind now than the lag it is given: its debt stays, and its credit
//! is bounded. (A task that reads one block at a time leaves with each of them, and would never get its part without.)
//! Costs are an estimate when the request goes out and are put right when it is done, in either direction.

use super::flow::FlowId;
use crate::collections::{Id, Table, Tree, TreeLinks};
use crate::context::{IoClass, IoPrio};

/// Virtual time, nanoseconds of the device at the default level. One busy flow advances it by 2.5 a nanosecond at most, so that
/// its end is 230 years of service away.
pub(super) type Virtual = u64;

/// The longest cost that counts, nanoseconds (18 minutes).
const COST_MAX_NS: u64 = 1 << 40;
/// Flows that may become eligible at one pick.
const MOVED_AT_ONCE: usize = 16;
/// What a flow owes waits for its next request if it is no more than one part in so many of what it takes at a time.
const OWED: u64 = 8;
/// The weight of level 4; level 0 weighs 9 and level 7 weighs 2, as cfq's slices do.
const WEIGHT_DEFAULT: u64 = 5;

/// A flow's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) start: Virtual,
    deadline: Virtual,
    weight: u64,
    pub(super) class: IoClass,
    /// What it cost others that it went through their turns, and was not made up for yet by pauses.
    disturbed: Virtual,
    /// What it has cost more than was charged, or less, and is charged with the next request.
    owed_ns: i64,
    /// What it takes at a time, nanoseconds.
    pub(super) quantum_ns: u64,
    pub(super) busy: bool,
    /// In the tree of those that are not eligible?
    ahead: bool,
}

impl Place {
    pub(super) const NEW: Place = Place {
        start: 0,
        deadline: 0,
        disturbed: 0,
        owed_ns: 0,
        weight: WEIGHT_DEFAULT,
        class: IoClass::BestEffort,
        quantum_ns: 0,
        busy: false,
        ahead: false,
    };

    /// Its start times its weight.
    #[inline]
    fn weighed(&self) -> u128 {
        u128::from(self.start) * u128::from(self.weight)
    }

    /// What it was served since its start was `start`, nanoseconds.
    pub(super) fn served_since(&self, start: Virtual) -> u64 {
        self.start.saturating_sub(start).saturating_mul(self.weight) / WEIGHT_DEFAULT
    }

    /// It went without going on where the device was: the stream that was there has to come back, which costs `return_ns`.
    #[inline]
    pub(super) fn disturbs(&mut self, return_ns: u64, lag_ns: u64) {
        let more = self.advance(return_ns);
        self.disturbed = self.disturbed.saturating_add(more).min(2 * self.advance(lag_ns));
    }

    /// Its start after it has cost `more_ns` more than was charged so far, or `less_ns` less, and what it owes.
    #[inline]
    fn moved(&mut self, more_ns: u64, less_ns: u64) -> Virtual {
        let owed_ns = core::mem::take(&mut self.owed_ns);
        if owed_ns == 0 && less_ns == 0 {
            return self.start.saturating_add(self.advance(more_ns));
        }
        let more_ns = more_ns.saturating_add(owed_ns.max(0).unsigned_abs());
        let less_ns = less_ns.saturating_add(owed_ns.min(0).unsigned_abs());
        self.start.saturating_add(self.advance(more_ns)).saturating_sub(self.advance(less_ns))
    }

    /// `cost_ns` in its virtual time: divided by its weight.
    #[inline]
    fn advance(&self, cost_ns: u64) -> Virtual {
        // 2^16 * 5 / weight, of weights 2 to 9. The product is below 2^40 * 2^18.
        const FACTOR: [u64; 16] = {
            let mut factor = [0; 16];
            let mut weight = 2;
            while weight < 10 {
                factor[weight] = (WEIGHT_DEFAULT << 16) / weight as u64;
                weight += 1;
            }
            factor
        };
        (cost_ns.min(COST_MAX_NS) * FACTOR[self.weight as usize % FACTOR.len()]) >> 16
    }
}

/// The flows of one class that want to be served.
#[derive(Clone, Copy, Debug)]
struct Band {
    eligible: Tree<FlowId>,
    ahead: Tree<FlowId>,
    /// Starts times weights, and weights, summed over both.
    sum: u128,
    weight: u64,
    /// Now, while none is there.
    left_at: Virtual,
}

impl Band {
    #[inline]
    fn has_reached(&self, start: Virtual) -> bool {
        u128::from(start) * u128::from(self.weight) <= self.sum
    }

    fn now(&self) -> Virtual {
        match self.weight {
            0 => self.left_at,
            weight => match u64::try_from(self.sum) {
                Ok(sum) => sum / weight,
                Err(_) => (self.sum / u128::from(weight)) as Virtual,
            },
        }
    }

    fn is_empty(&self) -> bool {
        self.weight == 0
    }

    /// Those that are not ahead any more become eligible.
    fn let_in(&mut self, links: &mut RoundLinks, places: &mut Table<Place>) {
        for _ in 0..MOVED_AT_ONCE {
            let Some(flow) = self.ahead.first().filter(|flow| self.has_reached(links.key(*flow))) else {
                break;
            };
            self.ahead.remove(links, flow);
            self.file(links, (flow, &mut places[flow.index()]));
        }
    }

    /// The tree that `place` is in.
    #[inline]
    fn tree_of(&mut self, place: &Place) -> &mut Tree<FlowId> {
        if place.ahead { &mut self.ahead } else { &mut self.eligible }
    }

    #[inline]
    fn file(&mut self, links: &mut RoundLinks, (flow, place): (FlowId, &mut Place)) {
        let key = self.find_tree(place);
        self.tree_of(place).insert(links, flow, key);
    }

    /// `flow`, which is filed, was moved.
    fn refile(&mut self, links: &mut RoundLinks, (flow, place): (FlowId, &mut Place)) {
        let was_ahead = place.ahead;
        let key = self.find_tree(place);
        // Often it stays between its neighbours.
        if place.ahead == was_ahead && self.tree_of(place).rekey(links, flow, key) {
            return;
        }
        let tree = if was_ahead { &mut self.ahead } else { &mut self.eligible };
        tree.remove(links, flow);
        self.tree_of(place).insert(links, flow, key);
    }

    /// In which tree `place` is to be; and with what key.
    #[inline]
    fn find_tree(&self, place: &mut Place) -> Virtual {
        place.deadline = place.start.saturating_add(place.advance(place.quantum_ns));
        place.ahead = !self.has_reached(place.start);
        if place.ahead { place.start } else { place.deadline }
    }
}

/// The flows of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    bands: [Band; 3],
}

impl Round {
    pub(super) const NEW: Round = Round {
        bands: [Band { eligible: Tree::new(), ahead: Tree::new(), sum: 0, weight: 0, left_at: 0 }; 3],
    };
}

/// The links of all rounds.
pub(super) type RoundLinks = TreeLinks<FlowId, Virtual>;

impl Round {
    /// `flow` wants to be served, at its priority of now.
    #[inline]
    pub(super) fn join(
        &mut self,
        links: &mut RoundLinks,
        (flow, place): (FlowId, &mut Place),
        ioprio: IoPrio,
        lag_ns: u64,
    ) {
        if place.busy {
            return;
        }
        (place.class, place.weight) = (ioprio.class(), 9 - u64::from(ioprio.level()));
        let band = &mut self.bands[place.class as usize];
        let earliest = band.now().saturating_sub(place.advance(lag_ns));
        place.disturbed = place.disturbed.saturating_sub(earliest.saturating_sub(place.start));
        (place.busy, place.start) = (true, place.start.max(earliest));
        band.weight += place.weight;
        band.sum += place.weighed();
        band.file(links, (flow, place));
    }

    /// `flow` wants nothing any more.
    #[inline]
    pub(super) fn leave(&mut self, links: &mut RoundLinks, (flow, place): (FlowId, &mut Place)) {
        if !place.busy {
            return;
        }
        let band = &mut self.bands[place.class as usize];
        band.tree_of(place).remove(links, flow);
        place.busy = false;
        band.weight -= place.weight;
        band.sum -= place.weighed();
        band.left_at = place.start;
    }

    /// `flow`, which is served for `cost_ns` now, wants nothing any more.
    #[inline(always)] // for `take`
    pub(super) fn served_last(
        &mut self,
        links: &mut RoundLinks,
        (flow, place): (FlowId, &mut Place),
        cost_ns: u64,
    ) {
        self.leave(links, (flow, place));
        place.start = place.moved(cost_ns, 0);
        self.bands[place.class as usize].left_at = place.start;
    }

    /// A request of `flow` has cost `cost_ns`, and was charged `charged_ns`. What hardly matters is charged with its next one: a
    /// place in the round costs more to find than that is worth.
    #[inline]
    pub(super) fn correct(
        &mut self,
        links: &mut RoundLinks,
        (flow, place): (FlowId, &mut Place),
        cost_ns: u64,
        charged_ns: u64,
    ) {
        let wrong_ns = cost_ns.min(COST_MAX_NS) as i64 - charged_ns.min(COST_MAX_NS) as i64;
        place.owed_ns += wrong_ns;
        if !place.busy {
            let advance = place.advance(place.owed_ns.unsigned_abs());
            place.start = match core::mem::take(&mut place.owed_ns) > 0 {
                true => place.start.saturating_add(advance),
                false => place.start.saturating_sub(advance),
            };
        } else if OWED * place.owed_ns.unsigned_abs() > place.quantum_ns {
            self.charge(links, (flow, place), 0, 0);
        }
    }

    /// `flow` has cost `more_ns` more than was charged so far, or `less_ns` less.
    #[inline]
    pub(super) fn charge(
        &mut self,
        links: &mut RoundLinks,
        (flow, place): (FlowId, &mut Place),
        more_ns: u64,
        less_ns: u64,
    ) {
        let moved = place.moved(more_ns, less_ns);
        self.move_to(links, (flow, place), moved);
    }

    /// `flow` takes so long at a time from now on.
    pub(super) fn takes(
        &mut self,
        links: &mut RoundLinks,
        (flow, place): (FlowId, &mut Place),
        quantum_ns: u64,
    ) {
        place.quantum_ns = quantum_ns;
        if place.busy {
            self.bands[place.class as usize].refile(links, (flow, place));
        }
    }

    /// `flow` goes because those who are due cannot: it is charged for no more than to be ahead of the average by `lag_ns`.
    pub(super) fn bound_debt(
        &mut self,
        links: &mut RoundLinks,
        (flow, place): (FlowId, &mut Place),
        lag_ns: u64,
    ) {
        let latest = self.bands[place.class as usize].now().saturating_add(place.advance(lag_ns));
        if place.busy && place.start > latest {
            self.move_to(links, (flow, place), latest);
        }
    }

    fn move_to(&mut self, links: &mut RoundLinks, (flow, place): (FlowId, &mut Place), moved: Virtual) {
        if moved == place.start {
            return;
        }
        if !place.busy {
            place.start = moved;
            return;
        }
        let band = &mut self.bands[place.class as usize];
        let old = place.weighed();
        place.start = moved;
        band.sum = band.sum + place.weighed() - old;
        band.refile(links, (flow, place));
    }

    /// Who is to be served: of the best class the eligible flow with the earliest deadline.
    #[inline(always)] // for `next_flow`
    pub(super) fn first(&mut self, links: &mut RoundLinks, places: &mut Table<Place>) -> Option<FlowId> {
        let band = self.bands.iter_mut().find(|band| !band.is_empty())?;
        if band.ahead.first().is_some_and(|flow| band.has_reached(links.key(flow))) {
            band.let_in(links, places);
        }
        // The average is rounded nowhere, so somebody is not after it; more than can be moved at once may still be filed as ahead.
        band.eligible.first().or_else(|| band.ahead.first())
    }

    /// The flows of the best class, the eligible ones first.
    pub(super) fn in_order(&self, links: &RoundLinks) -> impl Iterator<Item = FlowId> {
        let band = self.bands.iter().find(|band| !band.is_empty());
        let trees = band.into_iter().flat_map(|band| [&band.eligible, &band.ahead]);
        trees.flat_map(|tree| core::iter::successors(tree.first(), |flow| tree.next(links, *flow)))
    }

    /// Is a flow in this place of the best class there is, and ahead of the average by no more than `lag_ns`?
    pub(super) fn is_within(&self, place: &Place, lag_ns: u64) -> bool {
        let best = self.bands.iter().position(|band| !band.is_empty());
        let start = place.start.saturating_sub(place.advance(lag_ns));
        best == Some(place.class as usize) && self.bands[place.class as usize].has_reached(start)
    }

    /// Is a flow in this place of the best class there is, and has it had no more than its due even if it pays for what it costs others
    /// to come back after it? By no less than `behind_ns`.
    #[inline]
    pub(super) fn is_light(&self, place: &Place, behind_ns: u64) -> bool {
        let best = self.bands.iter().position(|band| !band.is_empty());
        let start = place.start.saturating_add(place.disturbed).saturating_add(place.advance(behind_ns));
        best == Some(place.class as usize) && self.bands[place.class as usize].has_reached(start)
    }

    /// Has a flow had less than its due, by more than `behind_ns`, even if it pays for what it costs others to come back after it? It need not
    /// want anything now.
    pub(super) fn is_behind(&self, place: &Place, behind_ns: u64) -> bool {
        let start = place.start.saturating_add(place.disturbed).saturating_add(place.advance(behind_ns));
        start < self.bands[place.class as usize].now()
    }

    /// Is there a flow of a better class than that in this place?
    pub(super) fn is_outranked(&self, place: &Place) -> bool {
        self.bands[..place.class as usize].iter().any(|band| !band.is_empty())
    }

    /// Is the flow in this place the only one that wants to be served?
    pub(super) fn is_alone(&self, place: &Place) -> bool {
        let busy = self.bands.iter().map(|band| band.weight).sum::<u64>();
        busy == if place.busy { place.weight } else { 0 }
    }
}
