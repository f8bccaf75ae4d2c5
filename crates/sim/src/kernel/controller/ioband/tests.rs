//! Schedules of dm-ioband computed by hand.

use super::super::Entitled;
use super::*;

fn device(settings: Settings, groups: &[Entitled]) -> Ioband {
    let groups = [&[Entitled::ROOT], groups].concat();
    Ioband::new(settings, &Place { groups: &groups, nr_requests: 128, tick_ns: MS, keeps_slice: false })
}

fn weighing(weight: u32) -> Entitled {
    Entitled { weight, ..Entitled::below(0) }
}

fn read(group: usize, sectors: u32) -> Ask {
    Ask { group, read: true, sync: true, sectors, daemon: false, meta: false }
}

/// What the conductor releases now, run after run.
fn conduct(d: &mut Ioband, now: u64) -> Vec<Ticket> {
    let mut out = Vec::new();
    while out.is_empty() && d.next_event().is_some_and(|at| at <= now) {
        d.conduct(now, &mut out);
    }
    out
}

/// io_limit = 3/2 x 128 = 192, so an epoch has 192 x 4 = 768 tokens: 100, 100 and 200 get 192, 192 and 384 of them; tasks of the
/// heavier group block at 192 / 2 / 4 = 24 held bios.
#[test]
fn tokens_and_limits_go_by_weight() {
    let mut d = device(Settings::default(), &[weighing(100), weighing(200)]);
    let passed = (0..1000).take_while(|_| d.ask(&read(2, 8), 0, 0) == Verdict::Pass).count();
    assert_eq!(passed, 192, "192 may be out");
    let mut d = device(
        Settings { io_limit: 192, token: 768, ..Settings::default() },
        &[weighing(100), weighing(200)],
    );
    for group in [1, 2] {
        let mut passed = 0;
        while passed < 768 && d.ask(&read(group, 8), passed, 0) == Verdict::Pass {
            passed += 1;
            d.completed(&read(group, 8), 0);
        }
        assert_eq!(passed, [192, 384][group - 1]);
    }
    let held = (1..100).take_while(|ticket| d.ask(&read(2, 8), *ticket, 0) == Verdict::Hold).count();
    assert_eq!(held + 1, 24, "with the one before");
    assert_eq!(d.ask(&read(2, 8), 0, 0), Verdict::Block(5));
}

/// Two groups have used up their tokens of the first epoch, 100 and 200 of 400.
#[test]
fn the_conductor_serves_by_tokens_left() {
    let settings = Settings { io_limit: 64, token: 400, ..Settings::default() };
    let mut d = device(settings, &[weighing(100), weighing(200)]);
    for (group, tokens) in [(1, 100), (2, 200)] {
        for _ in 0..tokens {
            assert_eq!(d.ask(&read(group, 8), 0, 0), Verdict::Pass);
            d.completed(&read(group, 8), 0);
        }
    }
    for (group, held) in [(1, [11, 12, 13, 14]), (2, [21, 22, 23, 24])] {
        for ticket in held {
            assert_eq!(d.ask(&read(group, 8), ticket, 0), Verdict::Hold);
        }
    }
    // Nothing is out, so nothing completes: the conductor looks a jiffy after the first bio was held, finds nobody with
    // tokens, begins an epoch and releases those of the first of equals; with the next completion those of the other.
    assert_eq!(d.next_event(), Some(MS));
    assert_eq!(conduct(&mut d, MS), [11, 12, 13, 14]);
    assert_eq!(d.next_event(), None);
    d.completed(&read(1, 8), MS);
    assert_eq!(conduct(&mut d, MS), [21, 22, 23, 24]);
}

/// After 20 tokens the conductor looks again, and the group with more left for its size is next.
#[test]
fn a_batch_is_twenty_tokens() {
    let settings = Settings { io_limit: 1000, token: 300, ..Settings::default() };
    let mut d = device(settings, &[weighing(100), weighing(100)]); // 100 each
    for group in [1, 2] {
        while d.ask(&read(group, 8), 0, 0) == Verdict::Pass {
            d.completed(&read(group, 8), 0);
        }
        for n in 0..50 {
            d.ask(&read(group, 8), group as u32 * 1000 + n, 0);
        }
    }
    let batches: Vec<Vec<Ticket>> = (0..4).map(|_| conduct(&mut d, MS)).collect();
    let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [20; 4]);
    let whose: Vec<_> = batches.iter().map(|batch| batch[19] / 1000).collect();
    assert_eq!(whose, [1, 2, 1, 2]);
}

/// Sectors are tokens under weight-iosize, and a purse may go below zero: the debt counts against the next epoch.
#[test]
fn sectors_are_tokens_and_debts_are_kept() {
    let settings = Settings { policy: PolicyKind::WeightIosize, token: 3000, ..Settings::default() };
    let mut d = device(settings, &[weighing(100), weighing(100)]); // 1000 sectors each
    assert_eq!(d.ask(&read(1, 1800), 0, 0), Verdict::Pass, "on credit");
    d.completed(&read(1, 1800), 0);
    assert_eq!(d.ask(&read(1, 8), 1, 0), Verdict::Hold);
    // The first epoch brings 1000 for a debt of 800: 200 are left, which is enough.
    assert_eq!(conduct(&mut d, MS), [1]);
}

/// The dominant group: while it has more than an eighth of its tokens and io_throttle bios are out, nobody gets new ones.
#[test]
fn an_epoch_waits_for_the_dominant_group() {
    let settings = Settings { token: 300, ..Settings::default() };
    let mut d = device(settings, &[weighing(100), weighing(100)]); // 100 each
    for _ in 0..100 {
        assert_eq!(d.ask(&read(2, 8), 0, 0), Verdict::Pass);
        d.completed(&read(2, 8), 0);
    }
    for _ in 0..40 {
        assert_eq!(d.ask(&read(1, 8), 0, 0), Verdict::Pass); // really active: an eighth is used, 60 left
    }
    assert_eq!(d.ask(&read(2, 8), 7, 0), Verdict::Hold);
    d.completed(&read(1, 8), 0); // 39 out, one held: the conductor looks
    assert_eq!(conduct(&mut d, 0), [], "wait for group 1");
    for _ in 0..36 {
        d.completed(&read(1, 8), 0);
    }
    assert_eq!(conduct(&mut d, 0), [7], "3 out are fewer than io_throttle");
}

/// A thread of the kernel's blocks only when the device is full of held bios, whoever's they are.
#[test]
fn the_flusher_blocks_for_the_device_only() {
    let settings = Settings { io_limit: 40, token: 300, ..Settings::default() };
    let mut d = device(settings, &[weighing(100), weighing(100)]);
    let flusher = Ask { daemon: true, ..read(1, 8) };
    while d.ask(&flusher, 0, 0) == Verdict::Pass {}
    for _ in 1..40 {
        assert_eq!(d.ask(&flusher, 0, 0), Verdict::Hold);
    }
    assert_eq!(d.ask(&flusher, 0, 0), Verdict::Block(7), "40 are held");
    assert_eq!(d.ask(&read(1, 8), 0, 0), Verdict::Block(3), "a task blocks at 40/3/4 = 3 of its group");
}

fn between(min: u64, max: u64) -> Entitled {
    Entitled { range_kb: (min, max), ..Entitled::below(0) }
}

/// 100 to 200 KB/s in bios of 4 KiB (8 tokens of half a KB): 400 tokens are the maximum of a second, 50 bios; the tasks then sleep to
/// the end of the period, and 10 jiffies more.
#[test]
fn range_bw_stops_at_the_maximum() {
    let settings = Settings { policy: PolicyKind::RangeBw, ..Settings::default() };
    let mut d = device(settings, &[between(100, 200)]);
    let mut passed = 0;
    while d.ask(&read(1, 8), passed, 0) == Verdict::Pass {
        passed += 1;
        d.completed(&read(1, 8), 0);
    }
    assert_eq!(passed, 50);
    assert_eq!(d.ask(&read(1, 8), 0, 0), Verdict::Block(6));
    assert_eq!(d.next_event(), Some(1010 * MS));
    d.conduct(1010 * MS, &mut Vec::new());
    let mut woken = Vec::new();
    d.take_woken(&mut woken);
    assert_eq!(woken, [6]);
    assert_eq!(d.ask(&read(1, 8), 0, 1010 * MS), Verdict::Pass);
}

/// Who is below its minimum goes before who has reached it.
#[test]
fn range_bw_serves_minima_first() {
    let settings =
        Settings { policy: PolicyKind::RangeBw, io_limit: 1, io_throttle: 1, ..Settings::default() };
    let mut d = device(settings, &[between(10, 100), between(1000, 2000)]);
    for _ in 0..3 {
        assert_eq!(d.ask(&read(1, 8), 0, 0), Verdict::Pass); // 24 tokens: over its minimum of 20
        d.completed(&read(1, 8), 0);
    }
    assert_eq!(d.ask(&read(1, 8), 1, 0), Verdict::Pass);
    assert_eq!(d.ask(&read(1, 8), 11, 0), Verdict::Hold);
    assert_eq!(d.ask(&read(2, 8), 22, 0), Verdict::Hold);
    d.completed(&read(1, 8), 0);
    assert_eq!(conduct(&mut d, 0), [22]);
}
