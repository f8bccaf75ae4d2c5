use fairlift_core::collections::Id;

use super::*;

fn wbt(queue_depth: u32, write_cache: bool) -> Wbt {
    Wbt::new(None, false, queue_depth, write_cache).expect("on by default")
}

/// How many of a kind go on at once.
fn pass_at_once(wbt: &mut Wbt, want: Want, now: u64) -> u32 {
    (0..).take_while(|slot| wbt.ask(*slot, want, now)).count() as u32
}

fn read(index: usize) -> RequestId {
    RequestId::from_index(index)
}

/// A window in which reads and writes were done, the fastest read in `read_ns`; ends it.
fn window(wbt: &mut Wbt, read_ns: u64) {
    if wbt.window.is_none() {
        wbt.begin_window(0);
    }
    let ends_ns = wbt.window.expect("begun").ends_ns;
    (0..WRITES_MIN).for_each(|_| wbt.write_done());
    wbt.read_issued(read(0), ends_ns - read_ns);
    wbt.read_done(read(0), ends_ns - read_ns, ends_ns);
    wbt.advance(ends_ns, &mut Vec::new());
}

#[test]
fn the_default_target_goes_by_seeks_and_zero_is_off() {
    assert_eq!(wbt(64, false).target_ns, 2 * MS);
    assert_eq!(Wbt::new(None, true, 64, false).expect("on").target_ns, 75 * MS);
    assert!(Wbt::new(Some(0), true, 64, false).is_none());
}

/// 16 for who waits, 8 for others, 4 in the background; 4 for others, too, for 100 ms after a read; all 16 for a second after a
/// dirtier was made to pause.
#[test]
fn limits_at_the_middle_depth() {
    let of = |want, now| {
        let mut wbt = wbt(64, false);
        wbt.read_came(SECOND);
        pass_at_once(&mut wbt, want, now)
    };
    let later = SECOND + READ_RECENT_NS;
    assert_eq!([Want::Urgent, Want::Other, Want::Background].map(|want| of(want, later)), [16, 8, 4]);
    assert_eq!(of(Want::Other, later - 1), 4);
    assert_eq!(of(Want::Discard, later), 4);
    let mut paused = wbt(64, false);
    paused.dirtier_pauses(0);
    assert_eq!(pass_at_once(&mut paused, Want::Background, PAUSE_RECENT_NS - 1), 16);
}

/// 31, 16, 8, 4, 2, 1 for steps -1 to 4 of 64 requests; of 31 the depth ends at three quarters of them.
#[test]
fn depth_by_step() {
    let depths = |queue_depth: u32, steps: std::ops::RangeInclusive<i32>| {
        let mut wbt = wbt(queue_depth, false);
        steps
            .map(|step| {
                wbt.step = step;
                wbt.set_depth();
                wbt.depth
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(depths(64, -1..=4), [31, 16, 8, 4, 2, 1]);
    assert_eq!(depths(64, -2..=-2), [48]);
    assert_eq!(depths(31, -1..=0), [23, 16]);
    assert_eq!(depths(1, 0..=1), [2, 1]);
}

#[test]
fn slow_reads_cut_the_depth_and_fast_ones_raise_it() {
    let mut wbt = wbt(64, false);
    window(&mut wbt, 2 * MS + 1);
    assert_eq!((wbt.step, wbt.depth), (1, 8));
    assert_eq!(
        wbt.window.expect("as long as it is cut").length_ns,
        ((100 * MS) << 4) / 22,
        "100 ms by the root of 2"
    );
    window(&mut wbt, 5 * MS);
    assert_eq!((wbt.step, wbt.depth), (2, 4));
    window(&mut wbt, 2 * MS);
    assert_eq!((wbt.step, wbt.depth), (1, 8), "exactly the target is good");
    window(&mut wbt, MS);
    window(&mut wbt, MS);
    assert_eq!((wbt.step, wbt.depth), (-1, 31));
    window(&mut wbt, 3 * MS);
    assert_eq!(wbt.step, 0, "what was raised is taken back at once");
}

#[test]
fn a_read_that_does_not_come_back_counts() {
    let mut wbt = wbt(64, false);
    wbt.begin_window(0);
    wbt.read_issued(read(7), 100 * MS - 2 * MS - 1);
    wbt.advance(100 * MS, &mut Vec::new());
    assert_eq!(wbt.step, 1);
}

/// Nobody reads: the depth grows to three quarters of the requests. Then nothing happens: five windows for each step back.
#[test]
fn writes_alone_get_more_and_silence_leads_back() {
    let mut wbt = wbt(64, false);
    let mut window = |write: bool| {
        if wbt.window.is_none() {
            wbt.begin_window(0);
        }
        let ends_ns = wbt.window.expect("begun").ends_ns;
        if write {
            wbt.write_done();
        }
        wbt.advance(ends_ns, &mut Vec::new());
        wbt.depth
    };
    assert_eq!([window(true), window(true), window(true)], [31, 48, 48]);
    assert_eq!([(); 10].map(|()| window(false)), [48, 48, 48, 48, 31, 31, 31, 31, 31, 16]);
    assert!(wbt.window.is_none(), "at rest nobody looks");
}

/// With a write cache those that wait go on when nothing is under way, without one as soon as there is room for half of the
/// background's limit.
#[test]
fn a_write_cache_runs_dry_first() {
    for (write_cache, left) in [(true, 0), (false, 6)] {
        let mut wbt = wbt(64, write_cache);
        assert_eq!(pass_at_once(&mut wbt, Want::Other, 0), 8);
        let mut granted = Vec::new();
        while granted.is_empty() {
            wbt.done(Line::Write, 0, &mut granted);
        }
        assert_eq!(
            wbt.under_way[Line::Write as usize] - granted.len() as u32,
            left,
            "write cache {write_cache}"
        );
    }
}

#[test]
fn those_that_wait_go_on_in_their_order() {
    let mut wbt = wbt(64, false);
    let under_way = pass_at_once(&mut wbt, Want::Background, 0);
    assert!(!wbt.ask(100, Want::Urgent, 0), "who comes later does not pass one that waits");
    let mut granted = Vec::new();
    (0..under_way).for_each(|_| wbt.done(Line::Write, 0, &mut granted));
    assert_eq!(granted, [under_way, 100]);
}
