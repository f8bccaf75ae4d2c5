//! What the modules work out, by hand: budgets, the price of time, the peak rate, habits, raises, limits of injection.

use super::super::Expiry;
use super::super::budget::{self, Turn, after_turn, is_slow, pays_for_time, price_of_time};
use super::super::habits::Habits;
use super::super::inject::Limit;
use super::super::raise::{self, INTERACTIVE, Kind, Raise, SOFT_RT, SOFT_RT_NS};
use super::super::rate::PeakRate;
use crate::context::ContextId;
use crate::request::{Flags, Op, Request, request};
use crate::{MS, SECOND};

fn read(sector: u64, sectors: u32) -> Request {
    request(Op::Read, Flags::NONE, sector, sectors, ContextId::OVERFLOW, 0)
}

// ---- budgets ----

const MAX: u64 = 16_384; // the least is 512

fn ended(why: Expiry, service: u64) -> Turn {
    Turn { why, budget: 9000, left: 0, service, in_device: false }
}

#[test]
fn a_budget_follows_how_the_last_one_was_used() {
    let next = |old, turn| after_turn(old, turn, MAX, true);
    assert_eq!(next(1024, ended(Expiry::Exhausted, 0)), 4096, "fourfold");
    assert_eq!(next(8192, ended(Expiry::Exhausted, 0)), MAX);
    assert_eq!(next(1024, ended(Expiry::Timeout, 0)), 2048, "twofold");
    assert_eq!(next(8192, ended(Expiry::TooIdle, 0)), 6144, "less four times the least");
    assert_eq!(next(2560, ended(Expiry::TooIdle, 0)), 512);
    let waits_for_device = Turn { in_device: true, ..ended(Expiry::TooIdle, 0) };
    assert_eq!(next(8192, waits_for_device), MAX);
    assert_eq!(next(8192, ended(Expiry::NoMoreRequests, 700)), 700, "what it used");
    assert_eq!(next(8192, ended(Expiry::NoMoreRequests, 100)), 512);
    assert_eq!(next(8192, ended(Expiry::Preempted, 100)), 8192);
    assert_eq!(after_turn(8192, ended(Expiry::NoMoreRequests, MAX + 8), MAX, false), MAX + 8);
}

#[test]
fn slow_is_who_had_little_in_a_long_time() {
    let turn = |service| ended(Expiry::NoMoreRequests, service);
    assert_eq!(is_slow(turn(8), MS / 2, true, true, MAX), (true, 8 * MS), "too short to tell: a seeker is");
    assert_eq!(is_slow(turn(8), MS / 2, false, false, MAX), (false, 2 * MS));
    assert_eq!(is_slow(turn(8), 10 * MS, false, true, MAX), (false, 10 * MS));
    assert_eq!(is_slow(turn(MAX / 2 - 1), 21 * MS, false, true, MAX), (true, 21 * MS));
    assert_eq!(is_slow(turn(MAX / 2), 21 * MS, true, true, MAX), (false, 21 * MS));
}

#[test]
fn time_has_the_price_of_the_sectors_it_is_good_for() {
    assert_eq!(price_of_time(62 * MS, MAX), MAX / 2);
    assert_eq!(price_of_time(500 * MS, MAX), MAX);
    let timed_out = Turn { left: 3000, ..ended(Expiry::Timeout, 6000) };
    assert!(pays_for_time(timed_out, false), "a third of 9000 is left");
    assert!(!pays_for_time(Turn { left: 2999, ..timed_out }, false));
    assert!(!pays_for_time(Turn { why: Expiry::TooIdle, ..timed_out }, false));
    assert!(pays_for_time(ended(Expiry::TooIdle, 0), true));
    assert_eq!(budget::least(MAX), 512);
}

// ---- peak rate ----

/// A disk: two thirds of 14,000 = 9333 / 2^16 sectors/us, good for 17,659 sectors in 124 ms. Others: 22,000, and 41,625.
#[test]
fn the_first_estimates() {
    assert_eq!(PeakRate::new(true).rate, 9333);
    assert_eq!(PeakRate::new(true).budget(124 * MS), 9333 * 124_000 / 65_536);
    assert_eq!(PeakRate::new(false).budget(124 * MS), 41_625);
}

/// Requests of 256 sectors, 1 ms apart; the first completion after a long time starts it over. In a second 1001 x 256 x 2^16 / 10^6 us = 16,794. 1000 of 1001 followed another: weight
/// 9 * 1000 / 1001 = 8 for a whole second, so half of it counts: 9333 / 2 + 16,794 / 2.
#[test]
fn a_second_of_sequential_requests_counts_half() {
    let mut rate = PeakRate::new(true);
    let mut changes = 0;
    for i in 0..=1001u64 {
        let now = 10 * SECOND + i * MS;
        changes += u32::from(rate.dispatched(now, &read(256 * i, 256), 256 * i, true, 0));
        assert!(!rate.completed(now + MS / 2));
    }
    assert_eq!(changes, 1);
    assert_eq!(rate.rate, 9333 / 2 + (1001 * 256 * 65_536 / 1_000_000) / 2);
}

#[test]
fn seeks_say_nothing_of_the_peak() {
    let mut rate = PeakRate::new(true);
    for i in 0..2000u64 {
        let now = 10 * SECOND + i * 8 * MS;
        assert!(!rate.dispatched(now, &read(i * 1_000_000, 8), 8, true, 1));
    }
    assert_eq!(rate.rate, 9333);
}

#[test]
fn a_pause_ends_an_observation() {
    let mut rate = PeakRate::new(true);
    for i in 0..400u64 {
        rate.dispatched(10 * SECOND + i * MS, &read(256 * i, 256), 256 * i, true, 0);
        rate.completed(10 * SECOND + i * MS + MS / 2);
    }
    // Of 399 requests 398 follow another: weight 8 * 398,500 us = 3, so a seventh counts. It ends with the last completion.
    let seen = 399 * 256 * 65_536 / 398_500;
    assert!(rate.dispatched(20 * SECOND, &read(0, 8), 0, true, 0), "a new one begins");
    assert_eq!(rate.rate, 9333 * 6 / 7 + seen / 7);
}

// ---- habits ----

#[test]
fn twenty_of_the_last_32_requests_jumping_make_a_seeker() {
    let mut habits = Habits::new(0);
    // It begins with one jump noted.
    for i in 0..18 {
        habits.saw(&read((i + 1) * 100_000, 8), true);
        assert!(!habits.is_seeky(), "after {}", i + 2);
    }
    habits.saw(&read(100_000, 8), true);
    assert!(habits.is_seeky() && !habits.is_totally_seeky());
    for _ in 0..12 {
        habits.saw(&read(100_000, 8), true);
    }
    assert!(habits.is_totally_seeky(), "32 in a row");
    habits.saw(&read(800, 8), true);
    assert!(!habits.is_totally_seeky(), "800 sectors are near");
}

#[test]
fn a_jump_to_a_large_request_matters_only_to_a_disk() {
    let mut disk = Habits::new(0);
    let mut flash = Habits::new(0);
    for _ in 0..32 {
        disk.saw(&read(100_000, 64), true);
        flash.saw(&read(100_000, 64), false);
    }
    assert!(disk.is_seeky() && !flash.is_seeky());
}

/// Three thoughts are needed; the first request counts as none at all. 0, 6 and 6 ms: 4.3 on (decaying) average, more than half of
/// `slice_idle`. With 2 more: 3.6.
#[test]
fn think_time_is_short_below_half_of_slice_idle() {
    let mut habits = Habits::new(0);
    let mut short = std::vec::Vec::new();
    for thought_ms in [0, 6, 6, 2] {
        let now = habits.last_done_ns + thought_ms * MS;
        habits.thought(now, 8 * MS);
        habits.judge_think_time(now, 8 * MS, true);
        short.push(habits.has_short_think);
        habits.last_done_ns = now + MS;
    }
    assert_eq!(short, [true, true, false, true]);
    assert!(habits.judge_think_time(40 * MS, 8 * MS, false), "nobody is there to come back");
    assert!(!habits.has_short_think);
}

#[test]
fn who_is_away_a_fifth_of_the_time_is_not_bound_by_io() {
    let mut habits = Habits::new(0);
    habits.last_done_ns = 80 * MS;
    habits.judge_io_bound(100 * MS, true);
    assert!(habits.is_io_bound, "20 of 100");
    habits.last_done_ns = 120 * MS;
    habits.judge_io_bound(130 * MS, true);
    assert!(!habits.is_io_bound, "30 of 130");
}

// ---- raises ----

const STARTS: Kind = Kind { interactive: true, soft_rt: false, in_burst: false };
const PLAYS: Kind = Kind { interactive: false, soft_rt: true, in_burst: false };
const NEITHER: Kind = Kind { interactive: false, soft_rt: false, in_burst: false };

/// 14,000 x 7 s / 9333 = 10.5 s; 33,000 x 2.5 s / 22,000 = 3.75 s; a device ten times as fast is bounded by 3 s.
#[test]
fn how_long_a_start_takes() {
    assert_eq!(raise::interactive_ns(9333, true) / MS, 10_500);
    assert_eq!(raise::interactive_ns(22_000, false), 3750 * MS);
    assert_eq!(raise::interactive_ns(220_000, false), 3 * SECOND);
    assert_eq!(raise::interactive_ns(10, true), 25 * SECOND);
}

#[test]
fn an_interactive_raise_ends_with_time_or_service() {
    let mut raise = Raise::new(0);
    raise.came_back(10 * MS, STARTS, true, 4 * SECOND);
    assert_eq!(raise.factor, INTERACTIVE);
    raise.review(10 * MS + 4 * SECOND, false, 4 * SECOND);
    assert_eq!(raise.factor, INTERACTIVE, "to the end");
    raise.review(11 * MS + 4 * SECOND, false, 4 * SECOND);
    assert_eq!(raise.factor, 1);

    raise.came_back(5 * SECOND, STARTS, true, 4 * SECOND);
    raise.served(120_000);
    raise.review(5 * SECOND, false, 4 * SECOND);
    assert_eq!(raise.factor, INTERACTIVE);
    raise.served(1);
    raise.review(5 * SECOND, false, 4 * SECOND);
    assert_eq!(raise.factor, 1, "61 MB are no start");

    raise.came_back(20 * SECOND, STARTS, true, 4 * SECOND);
    raise.review(20 * SECOND, true, 4 * SECOND);
    assert_eq!(raise.factor, 1, "a burst");
}

/// A start interrupted by regular reads goes on after them: raised 3000-fold until 300 ms after the last, then 30-fold for what is
/// left of its 4 s.
#[test]
fn soft_real_time_interrupts_a_start() {
    let mut raise = Raise::new(0);
    raise.came_back(0, STARTS, true, 4 * SECOND);
    raise.came_back(SECOND, PLAYS, true, 4 * SECOND);
    assert_eq!((raise.factor, raise.since_ns), (SOFT_RT, SECOND));
    raise.came_back(SECOND + 100 * MS, PLAYS, true, 4 * SECOND);
    assert_eq!(raise.since_ns, SECOND + 100 * MS, "renewed");
    raise.came_back(SECOND + 110 * MS, NEITHER, true, 4 * SECOND);
    assert_eq!(raise.since_ns, SECOND + 100 * MS, "too soon to renew");
    let over = SECOND + 100 * MS + SOFT_RT_NS;
    raise.review(over, false, 4 * SECOND);
    assert_eq!(raise.factor, SOFT_RT);
    raise.review(over + 1, false, 4 * SECOND);
    assert_eq!((raise.factor, raise.since_ns), (INTERACTIVE, 0));
    raise.review(4 * SECOND + 1, false, 4 * SECOND);
    assert_eq!(raise.factor, 1);
}

/// 700 sectors at 7000 a second are worth 100 ms from the beginning of the backlog; and never less than 8 + 16 ms from its end.
#[test]
fn soft_real_time_is_who_waits_long_enough() {
    let mut raise = Raise::new(0);
    raise.backlog_since_ns = SECOND;
    raise.served(700);
    raise.backlog_ended(SECOND + 10 * MS, 8 * MS);
    assert_eq!(raise.soft_rt_from_ns, SECOND + 100 * MS);
    raise.backlog_ended(SECOND + 90 * MS, 8 * MS);
    assert_eq!(raise.soft_rt_from_ns, SECOND + 114 * MS);
    (raise.backlog_since_ns, raise.backlog_service) = (SECOND, 0);
    raise.backlog_ended(SECOND, 8 * MS);
    assert_eq!(raise.soft_rt_from_ns, SECOND + 114 * MS, "what it had before is not forgotten");
}

#[test]
fn waiting_for_service_does_not_use_up_a_soft_real_time_raise() {
    let mut raise = Raise::new(0);
    raise.came_back(SECOND, PLAYS, true, 4 * SECOND);
    raise.waited_since(SECOND + 50 * MS, SECOND + 90 * MS);
    assert_eq!(raise.since_ns, SECOND + 40 * MS);
}

#[test]
fn async_queues_are_raised_at_most_every_half_second() {
    let mut raise = Raise::new(0);
    assert!(!raise.grew_async(500 * MS, SECOND));
    assert!(raise.grew_async(501 * MS, SECOND));
    assert!(!raise.grew_async(502 * MS, SECOND), "it is");
    raise.end(2 * SECOND);
    assert!(!raise.grew_async(2 * SECOND + 500 * MS, SECOND));
}

// ---- injection ----

/// Alone a request takes 4 ms: the limit is 1. With one injected it takes 5, less than 6: 2. With two, 6: 1 again.
#[test]
fn a_limit_is_found_by_trying() {
    let mut limit = Limit::new(0);
    assert_eq!(limit.requests, 0);
    limit.measured(20 * MS, 4 * MS, false, 1, 4);
    assert_eq!(limit.requests, 1);
    limit.measured(40 * MS, 5 * MS, true, 1, 4);
    assert_eq!(limit.requests, 2);
    limit.measured(60 * MS, 6 * MS, true, 1, 4);
    assert_eq!(limit.requests, 1);
    assert!(!limit.may_measure(69 * MS, 0, false), "10 ms after it was lowered");
    assert!(limit.may_measure(70 * MS, 0, false));
    assert!(!limit.may_measure(70 * MS, 1, false), "somebody's request is in the way");
    assert!(limit.may_measure(70 * MS, 1, true), "injected: that is what is to be measured");
    limit.measured(80 * MS, 3 * MS, false, 1, 4);
    limit.measured(90 * MS, 4 * MS + MS / 2, true, 1, 4);
    assert_eq!(limit.requests, 0, "3 ms alone are a new measure: 4.5 is too slow");
    assert!(!limit.is_old(1089 * MS) && limit.is_old(1090 * MS));
}

#[test]
fn a_limit_stays_below_the_depth_seen() {
    let mut limit = Limit::new(0);
    limit.measured(0, 4 * MS, false, 1, 2);
    for _ in 0..5 {
        limit.measured(0, 4 * MS, true, 2, 2);
    }
    assert_eq!(limit.requests, 3, "one beyond the two there were");
}

#[test]
fn a_long_thinker_is_injected_from_the_start() {
    let mut limit = Limit::new(0);
    assert!(limit.follows_think_time(10 * MS, false), "became long: at once");
    limit.reset(10 * MS, false);
    assert_eq!(limit.requests, 1);
    assert!(!limit.follows_think_time(109 * MS, true) && limit.follows_think_time(110 * MS, true));
    limit.reset(110 * MS, true);
    assert_eq!(limit.requests, 0);
    limit.measured(120 * MS, MS, false, 1, 1);
    assert!(!limit.follows_think_time(500 * MS, false), "it is measured now");
}
