//! The ledger: the one place where service is counted.
//!
//! A request goes out, comes back, is handed back, fails or is waited for through here and nowhere else. Its *owner* is the
//! group that sent it; its *payer* is the group that is billed, the same unless another group waits for the owner and pays for
//! what it waits for ([`super::waits`]). Statistics of what was done are the owner's, everything below is the payer's.
//!
//! **Each nanosecond once.** A busy stretch, from one completion to the next, is billed to the payer of the request whose
//! completion ends it, whichever group has the turn by then. While the device is empty and the core holds others' requests back for
//! a group's next one, the time is billed to that group. An empty device without any queued request is billed to no group, and neither
//! is the time by which a host calls later than the core asked it to. What a request for several (a flush) took is split
//! among them, the remainder going to the first. So the bills add up to the time the device was busy or waited for; the
//! property tests hold the core to that.
//!
//! **One currency.** Bills are made out in time, sectors and requests; [`Ledger::cost_ns`] makes one number of a bill, in the
//! nanoseconds that turns and deadlines are reckoned in. Under `charge=bytes` and `requests` a wait costs what the device
//! would have done in the meantime, at the speed it was seen to have.
//!
//! A bill is kept on the group's account until the turn that goes on is over, or until it is decided whose the next one is:
//! the tree ([`super::fair`]) is charged then, once, at every level.

use super::GroupId;
use super::charge::{Bill, Charge, Speed};
use crate::collections::{Id, List, ListLinks, Table};

/// What a group has with the core now, and owes: all that a request touches of its group on its way, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Account {
    /// Requests that wait, and those in the device.
    pub(super) queued: u32,
    pub(super) in_flight: u32,
    /// What holds the slot: requests, contexts, child groups and bios that a limit holds.
    pub(super) holds: u32,
    /// Of those that wait the sync ones, which a latency goal counts for (65,535 at most).
    pub(super) sync_queued: u16,
    marks: Marks,
    /// Was the last request that came a sync one? `None`: no request of it was queued yet; the elevator may still have state of the group
    /// that had the slot before.
    last_was_sync: Option<bool>,
    unsettled: Bill,
    /// What it was charged for requests that are still in the device, in the nanoseconds of [`Ledger::cost_ns`].
    prepaid_ns: u64,
    /// When a request of its went out or was done last, nanoseconds; 0 before the first.
    pub(super) last_ns: u64,
}

const _: () = assert!(size_of::<Account>() == 64, "an account is one cache line");

impl Account {
    pub(super) const NEW: Account = Account {
        queued: 0,
        in_flight: 0,
        holds: 0,
        sync_queued: 0,
        marks: Marks(0),
        last_was_sync: None,
        unsettled: Bill::NONE,
        prepaid_ns: 0,
        last_ns: 0,
    };
}

impl Account {
    #[inline]
    pub(super) fn marks(&self) -> Marks {
        self.marks
    }

    #[inline]
    pub(super) fn mark(&mut self, mark: Marks, is: bool) {
        self.marks.set(mark, is);
    }

    /// One more waits.
    #[inline]
    fn enqueue(&mut self, sync: bool) -> Came {
        self.queued += 1;
        self.sync_queued = self.sync_queued.saturating_add(u16::from(sync));
        Came {
            first: self.last_was_sync.is_none(),
            alone: self.queued == 1,
            busy: self.marks.has(Marks::BUSY),
        }
    }

    /// One fewer waits. None does once nothing is queued, also of those beyond the count.
    #[inline]
    fn dequeue(&mut self, sync: bool) {
        self.queued -= 1;
        self.sync_queued =
            if self.queued == 0 { 0 } else { self.sync_queued.saturating_sub(u16::from(sync)) };
    }
}

/// What is so of a group, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks(u8);

impl Marks {
    /// On the list of those whose bills the tree does not know.
    const LISTED: Marks = Marks(1);
    /// There is such a group, and it was not removed.
    pub(super) const LIVE: Marks = Marks(1 << 1);
    /// Its own tasks take part in the tree, as [`super::fair`] has it.
    pub(super) const BUSY: Marks = Marks(1 << 2);

    #[inline]
    pub(super) fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, mark: Marks, is: bool) {
        self.0 = if is { self.0 | mark.0 } else { self.0 & !mark.0 };
    }
}

/// A request that waits was counted for its payer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// No request of the group was queued before: the slot's last tenant may have left something.
    pub(crate) first: bool,
    /// No other waits of the group.
    pub(crate) alone: bool,
    /// The group took part in the tree already.
    pub(crate) busy: bool,
}

/// The device is empty and kept so for a group.
#[derive(Clone, Copy, Debug)]
struct Wait {
    payer: GroupId,
    since_ns: u64,
    /// When it ends by itself.
    until_ns: u64,
}

/// What was billed in all, and what there was to bill: they are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Time the device had something to do, nanoseconds.
    pub busy_ns: u64,
    /// Time for which the device idled for the group, nanoseconds.
    pub waited_ns: u64,
    /// Sum of all bills, nanoseconds.
    pub billed_ns: u64,
}

/// The accounts of all groups.
#[derive(Debug)]
pub(crate) struct Ledger {
    accounts: Table<Account>,
    /// Over all groups.
    pub(super) queued: u32,
    pub(super) in_flight: u32,
    /// A new request finds a request slot of the host's while fewer are taken than this: an async one, a sync one.
    pub(super) request_slots: [u32; 2],
    /// Up to here the device's time is billed, or was no group's.
    counted_ns: u64,
    wait: Option<Wait>,
    unsettled: List<GroupId>,
    links: ListLinks<GroupId>,
    speed: Speed,
    totals: Totals,
}

impl Ledger {
    pub(super) fn new(slots: usize) -> Ledger {
        let mut accounts = Table::new(Account::NEW, slots);
        let root = &mut accounts[GroupId::ROOT.index()];
        root.last_was_sync = Some(true);
        root.mark(Marks::LIVE, true);
        Ledger {
            accounts,
            queued: 0,
            in_flight: 0,
            request_slots: [u32::MAX; 2],
            counted_ns: 0,
            wait: None,
            unsettled: List::new(),
            links: ListLinks::new(slots),
            speed: Speed::UNKNOWN,
            totals: Totals::default(),
        }
    }

    #[inline]
    pub(super) fn account(&self, group: GroupId) -> &Account {
        &self.accounts[group.index()]
    }

    #[inline]
    pub(super) fn account_mut(&mut self, group: GroupId) -> &mut Account {
        &mut self.accounts[group.index()]
    }

    /// When the device was done with something last, or began with something when it had nothing.
    #[inline]
    pub(super) fn last_ns(&self) -> u64 {
        self.counted_ns
    }

    /// What so many requests take of the device, as fast as it has been lately, nanoseconds.
    #[inline]
    pub(super) fn time_of(&self, requests: u32) -> u64 {
        self.speed.time_of(requests)
    }

    /// Requests that wait, of all groups.
    #[inline]
    pub(crate) fn queued(&self) -> u32 {
        self.queued
    }

    /// Can a request of `group`, which has none queued, come before the device gets or answers another group's? Not while the requests
    /// that the core knows have all request slots: to wait for the group is in vain then. (Its own answer gives it one back.) The next
    /// request is taken to be sync or async as the last one was.
    #[inline]
    pub(super) fn finds_slot(&self, group: GroupId) -> bool {
        let account = &self.accounts[group.index()];
        let sync = account.last_was_sync.unwrap_or(true);
        account.in_flight > 0 || self.queued + self.in_flight < self.request_slots[usize::from(sync)]
    }

    /// See [`Totals`].
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Counting begins with requests in the device already, which are the root's.
    pub(super) fn start(&mut self, queued: u32, in_flight: u32, now: u64) {
        let root = &mut self.accounts[GroupId::ROOT.index()];
        (root.queued, root.in_flight) = (queued, in_flight);
        (self.queued, self.in_flight, self.counted_ns) = (queued, in_flight, now);
    }

    /// A new group in this slot: it has nothing and owes nothing.
    pub(super) fn open(&mut self, group: GroupId) {
        let account = &mut self.accounts[group.index()];
        debug_assert!(!account.marks.has(Marks::LISTED), "its last tenant left a bill");
        *account = Account { marks: Marks::LIVE, ..Account::NEW };
    }

    // ---- a request's way ----

    /// One more request of `payer` waits.
    #[inline]
    pub(super) fn arrived(&mut self, payer: GroupId, sync: bool) -> Came {
        self.queued += 1;
        let account = &mut self.accounts[payer.index()];
        let came = account.enqueue(sync);
        account.last_was_sync = Some(sync);
        came
    }

    /// One more holds `group`; no, and nothing is counted, if there is no such group. The root's are not counted.
    #[inline]
    pub(super) fn hold_if_live(&mut self, group: GroupId) -> bool {
        let account = self.accounts.get_mut(group.index()).filter(|it| it.marks.has(Marks::LIVE));
        account.map(|it| it.holds += u32::from(group != GroupId::ROOT)).is_some()
    }

    /// One of those will not go to the device by itself: it went up in another, or was cancelled.
    #[inline]
    pub(super) fn withdrawn(&mut self, payer: GroupId, sync: bool) {
        self.queued -= 1;
        self.accounts[payer.index()].dequeue(sync);
    }

    /// A request that waited goes to the device. Answers with how many more of `payer` wait.
    #[inline]
    pub(super) fn issued(&mut self, payer: GroupId, sync: bool, now: u64) -> u32 {
        if self.in_flight == 0 {
            self.stop_waiting(now);
            self.counted_ns = now;
        }
        self.queued -= 1;
        self.in_flight += 1;
        let account = &mut self.accounts[payer.index()];
        account.dequeue(sync);
        account.in_flight += 1;
        account.last_ns = now;
        account.queued
    }

    /// The device is done with a request, or failed it: both are service.
    #[inline]
    pub(super) fn completed(&mut self, payer: GroupId, sectors: u32, now: u64) {
        let busy_ns = self.end_stretch(now);
        self.speed.learn(busy_ns, sectors);
        let account = &mut self.accounts[payer.index()];
        account.in_flight -= 1;
        account.last_ns = now;
        let dry_ns = if sectors == 0 { busy_ns } else { 0 };
        self.bill(payer, Bill { time_ns: busy_ns, dry_ns, waited_ns: 0, sectors, requests: 1 });
    }

    /// The device gave a request back unserved: it waits again, and what it took of the device is paid for.
    pub(super) fn returned(&mut self, payer: GroupId, sync: bool, now: u64) -> Came {
        let busy_ns = self.end_stretch(now);
        self.queued += 1;
        let account = &mut self.accounts[payer.index()];
        account.in_flight -= 1;
        let came = account.enqueue(sync);
        self.bill_apart(payer, Bill { time_ns: busy_ns, dry_ns: busy_ns, ..Bill::NONE });
        Came { first: false, ..came }
    }

    /// The device is done with a request that `payers` wanted together, `count` of them; `carrier` was counted in flight.
    pub(super) fn completed_for(
        &mut self,
        carrier: GroupId,
        payers: impl Iterator<Item = GroupId>,
        count: u32,
        now: u64,
    ) {
        let busy_ns = self.end_stretch(now);
        self.accounts[carrier.index()].in_flight -= 1;
        let part_ns = busy_ns / u64::from(count.max(1));
        let mut first_ns = busy_ns - part_ns * u64::from(count.max(1)) + part_ns;
        let mut billed = false;
        for payer in payers {
            let time_ns = core::mem::replace(&mut first_ns, part_ns);
            self.bill_apart(
                payer,
                Bill { time_ns, dry_ns: time_ns, requests: u32::from(!billed), ..Bill::NONE },
            );
            billed = true;
        }
        if !billed {
            self.bill_apart(carrier, Bill { time_ns: busy_ns, dry_ns: busy_ns, requests: 1, ..Bill::NONE });
        }
    }

    /// One request less in the device: how long was the stretch it ends?
    #[inline]
    fn end_stretch(&mut self, now: u64) -> u64 {
        self.in_flight = self.in_flight.saturating_sub(1);
        let busy_ns = now.saturating_sub(core::mem::replace(&mut self.counted_ns, now));
        self.totals.busy_ns += busy_ns;
        busy_ns
    }

    // ---- waiting ----

    /// Nothing goes out before `until_ns` for the sake of `payer`'s next request. With requests in the device there is no
    /// wait: that time is theirs.
    pub(super) fn wait(&mut self, payer: GroupId, now: u64, until_ns: u64) {
        if self.in_flight > 0 {
            return;
        }
        match &mut self.wait {
            Some(wait) if wait.payer == payer && now <= wait.until_ns => wait.until_ns = until_ns,
            _ => {
                self.stop_waiting(now);
                self.wait = Some(Wait { payer, since_ns: now, until_ns });
            }
        }
    }

    /// The idling ends: the group that it was for pays, up to the time the host was asked to come back.
    #[inline]
    pub(super) fn stop_waiting(&mut self, now: u64) {
        if self.wait.is_some() {
            self.end_wait(now);
        }
    }

    #[inline(never)] // most requests end none
    fn end_wait(&mut self, now: u64) {
        if let Some(wait) = self.wait.take() {
            let waited_ns = now.min(wait.until_ns).saturating_sub(wait.since_ns);
            self.totals.waited_ns += waited_ns;
            self.bill_apart(wait.payer, Bill { waited_ns, ..Bill::NONE });
        }
    }

    // ---- bills ----

    #[inline(never)]
    fn bill_apart(&mut self, payer: GroupId, bill: Bill) {
        self.bill(payer, bill);
    }

    #[inline(always)] // where each request passes
    fn bill(&mut self, payer: GroupId, bill: Bill) {
        self.totals.billed_ns += bill.time_ns + bill.waited_ns;
        let account = &mut self.accounts[payer.index()];
        account.unsettled.add(&bill);
        if !account.marks.has(Marks::LISTED) {
            account.mark(Marks::LISTED, true);
            self.unsettled.push_back(&mut self.links, payer);
        }
    }

    /// The next group with a bill that the tree does not know, and the bill.
    #[inline]
    pub(super) fn take_bill(&mut self) -> Option<(GroupId, Bill)> {
        let payer = self.unsettled.pop_front(&mut self.links)?;
        let account = &mut self.accounts[payer.index()];
        account.mark(Marks::LISTED, false);
        Some((payer, core::mem::replace(&mut account.unsettled, Bill::NONE)))
    }

    /// Has `group` a bill that the tree does not know, or is it about to get one for the device's idling?
    #[inline]
    pub(super) fn owes(&self, group: GroupId) -> bool {
        self.accounts[group.index()].marks.has(Marks::LISTED)
            || self.wait.is_some_and(|wait| wait.payer == group)
    }

    /// What a bill comes to.
    #[inline]
    pub(super) fn cost_ns(&self, bill: &Bill, charge: Charge) -> u64 {
        charge.cost_ns(bill, &self.speed)
    }

    /// What `payer` still has to be charged for this bill, after what it paid in advance.
    #[inline]
    pub(super) fn due_ns(&mut self, payer: GroupId, bill: &Bill, charge: Charge) -> u64 {
        let cost_ns = self.cost_ns(bill, charge);
        let account = &mut self.accounts[payer.index()];
        let paid_ns = account.prepaid_ns.min(cost_ns);
        account.prepaid_ns -= paid_ns;
        cost_ns - paid_ns
    }

    /// What `payer` has to pay in advance for what it has in the device: its turn is over, and when the bills come another one
    /// may have begun. An estimate; what it is wrong by is made up for when the bills come.
    pub(super) fn advance_ns(&mut self, payer: GroupId, charge: Charge) -> u64 {
        let in_flight = self.accounts[payer.index()].in_flight;
        if in_flight == 0 {
            return 0;
        }
        let estimate = self.speed.estimate(in_flight);
        let cost_ns = self.cost_ns(&estimate, charge);
        let account = &mut self.accounts[payer.index()];
        let more_ns = cost_ns.saturating_sub(account.prepaid_ns);
        account.prepaid_ns += more_ns;
        more_ns
    }
}
