use super::model::{Measured, NUMBERS};
use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn io_cost(qos: &str, groups: &[(Option<usize>, u32)]) -> IoCost {
    let groups = [&[(None, 100)], groups].concat();
    IoCost::new(CostModel::default(), CostQos::parse(qos).expect("a qos"), (false, 64), &groups)
}

fn read(group: usize, at: u64) -> Io {
    Io { group, write: false, sector: at, sectors: 8, meta: false }
}

// ---- model ------------------------------------------------------------------------------------------------------------------

/// 4 KiB read at random: what Linux' presets make of it.
#[test]
fn costs_of_the_presets() {
    let cost =
        |preset: usize| Costs::of(&PRESETS[preset].numbers)[0].of_io(1 << 30, 8, 8) as f64 / V_PER_US as f64;
    let near = |cost: f64, us: f64| (cost / us - 1.0).abs() < 0.01;
    for (preset, us) in [(0, 2703.0), (1, 144.0), (2, 117.4), (3, 1.32)] {
        assert!(near(cost(preset), us), "preset {preset}: {} us", cost(preset));
    }
}

/// Beyond 16 MiB from the end of the last I/O, and never for the first one, an I/O is random.
#[test]
fn random_is_sixteen_mebibytes_away() {
    let costs = Costs::of(&[4_096_000, 500, 100, 4_096_000, 500, 100])[0];
    let ms = |sector, sectors, cursor| costs.of_io(sector, sectors, cursor).div_ceil(V_PER_US) / 1000;
    assert_eq!(ms(1000, 8, 1000), 2, "500 a second, of which a page takes 1 ms");
    assert_eq!(ms(1000 + 32_768, 8, 1000), 2);
    assert_eq!(ms(1000 + 32_776, 8, 1000), 10);
    assert_eq!(ms(1 << 30, 8, 0), 2);
    assert_eq!(ms(1000, 80, 1000), 11);
    assert_eq!(costs.of_size(1), costs.of_size(8), "a part of a page is one");
}

#[test]
fn all_measured_models_are_at_hand() {
    let all: Vec<_> = Measured::all().collect();
    let lines = include_str!("../../../../../../devices/iocost/models.csv").lines();
    assert_eq!(all.len(), lines.filter(|line| !line.starts_with('#')).count() - 1, "every line but the head");
    for measured in &all {
        assert!(measured.numbers.iter().all(|number| *number > 0), "{measured}");
        assert_eq!(Measured::find(&measured.to_string()).as_ref(), Ok(measured));
    }
    let model = CostModel::parse("Samsung_SSD_860").expect("measured");
    assert_eq!(model.numbers(&PRESETS[0])[..3], [571_977_404, 94_009, 98_549]);
    let qos = CostQos::parse("Samsung_SSD_860 min=50").expect("measured");
    assert_eq!((qos.enable, qos.part[0], qos.latency_us), (true, Some(9500), [Some(36_372), Some(38_732)]));
}

#[test]
fn the_kernels_lines_are_read_as_they_are() {
    let model = "8:16 ctrl=user model=linear rbps=2706339840 rseqiops=89698 rrandiops=110036 wbps=1063126016 \
                 wseqiops=135560 wrandiops=130734";
    let model = CostModel::parse(model).expect("the kernel's own documentation has it");
    assert_eq!(model.numbers(&PRESETS[2])[3], 1_063_126_016);
    let qos = CostQos::parse(
        "8:16 enable=1 ctrl=auto rpct=95.00 rlat=75000 wpct=95.00 wlat=150000 min=50.00 max=150.0",
    );
    assert!(!qos.expect("so has it this").is_users(), "ctrl=auto");
}

#[test]
fn wrong_words_are_answered() {
    let model = |text: &str| CostModel::parse(text).unwrap_err();
    let qos = |text: &str| CostQos::parse(text).unwrap_err();
    assert!(
        model("rbp=1")
            .starts_with("io.cost.model has no 'rbp'; did you mean 'rbps'? (allowed: ctrl, model, ")
    );
    assert!(model("model=cubic").contains("allowed: linear"));
    assert!(model("rbps=0").contains("rbps=0 is not a number from 1"));
    assert!(model("Samsung_SSD_861").contains("did you mean 'Samsung_SSD_860'?"));
    assert!(model("Samsung_SSD_860/x").contains("allowed: Samsung_SSD_860/01aa1b72"));
    assert!(qos("enable=2").contains("is not 0 or 1"));
    assert!(qos("rpct=101").contains("not a percentage from 0.00 to 100.00"));
    assert!(qos("enable=1 min=200 max=100").contains("min is above max"));
    assert!(qos("ctrl=maybe").contains("is not auto or user"));
    assert_eq!(NUMBERS.len(), 6);
}

// ---- one group --------------------------------------------------------------------------------------------------------------

/// It starts with half a period of 50 ms: 25 ms, 213 random reads at 117.4 us.
#[test]
fn half_a_period_goes_at_once() {
    let mut io_cost = io_cost("enable=1", &[(Some(0), 100)]);
    io_cost.members[1].cursor = 8;
    let at_once = (0..).take_while(|at| {
        let read = read(1, (1 << 30) + at % 2 * (1 << 20));
        matches!(io_cost.ask(0, &read, 0), Answer::Go(_))
    });
    assert_eq!(at_once.count(), 212, "25 ms / 117.4 us, rounded down");
}

#[test]
fn the_root_and_those_above_active_groups_are_not_held_up() {
    let mut io_cost = io_cost("enable=1", &[(Some(0), 100), (Some(1), 100)]);
    assert_eq!(io_cost.ask(0, &read(0, 0), 0), Answer::Go(0));
    assert!(matches!(io_cost.ask(0, &read(2, 0), 0), Answer::Go(paid) if paid > 0));
    assert_eq!(io_cost.ask(0, &read(1, 0), 0), Answer::Go(0), "its child is active");
}

/// Metadata goes at once; what it cost is owed, and the group's own I/O waits until that is paid.
#[test]
fn metadata_is_owed() {
    let mut io_cost = io_cost("enable=1 min=100 max=100", &[(Some(0), 100)]);
    let journal = Io { meta: true, sectors: 1 << 16, ..read(1, 0) };
    let cost = io_cost.costs[0].of_io(0, 1 << 16, 0);
    assert_eq!(
        io_cost.ask(0, &journal, 0),
        Answer::Owes(0),
        "32 MiB are over the credit, by less than five periods"
    );
    assert_eq!(io_cost.members[1].debt, cost);
    assert_eq!(io_cost.ask(7, &read(1, 0), 0), Answer::Waits);
    let mut granted = Vec::new();
    io_cost.waits(1, 0, &mut granted);
    let mut now = 0;
    while granted.is_empty() {
        now = io_cost.next_event().expect("it goes on some day");
        io_cost.advance(now, &mut granted);
    }
    // 32 MiB at 488,636,629 bytes a second are 68.7 ms, of which 25 were there.
    assert!((40 * MS..60 * MS).contains(&now), "{now}");
    assert_eq!((granted[0].0, io_cost.members[1].debt), (7, 0));
}

#[test]
fn a_deep_debt_makes_its_task_pause() {
    let mut io_cost = io_cost("enable=1", &[(Some(0), 100)]);
    let journal = |mib: u32| Io { meta: true, sectors: mib << 11, ..read(1, 0) };
    assert_eq!(io_cost.ask(0, &journal(100), 0), Answer::Owes(0), "four periods");
    let Answer::Owes(pause_ns) = io_cost.ask(0, &journal(400), 0) else { panic!("owes") };
    assert!((250_000..250 * MS).contains(&pause_ns), "{pause_ns}");
    assert_eq!(
        io_cost.ask(0, &journal(7000), 0),
        Answer::Owes(250 * MS),
        "250 periods and more: a quarter of a second"
    );
}

// ---- several ----------------------------------------------------------------------------------------------------------------

/// Groups that keep `depth` random reads of 4 KiB each under way, on a drive that answers in 100 us whatever comes. A gap: the
/// group waits so long after each answer.
struct Load {
    io_cost: IoCost,
    /// By group: depth, gap in nanoseconds.
    groups: Vec<(u32, u64)>,
}

impl Load {
    /// I/Os of each group in the last `seconds - 1` of so many.
    fn run(&mut self, seconds: u64) -> Vec<u64> {
        let mut done = vec![0; self.groups.len()];
        let mut asked = vec![0; self.groups.len()];
        // What happens when: an answer (with what was paid) or a new I/O.
        let mut events: BTreeSet<(u64, u64, usize, Option<u64>)> = BTreeSet::new();
        let mut seq = 0;
        for (group, (depth, _)) in self.groups.iter().enumerate() {
            for _ in 0..*depth {
                seq += 1;
                events.insert((seq, seq, group, None));
            }
        }
        let mut granted: Vec<(Slot, u64)> = Vec::new();
        loop {
            let next = events.first().map(|(at, ..)| *at);
            let at = crate::engine::earlier(next, self.io_cost.next_event()).expect("something happens");
            if at > seconds * SECOND {
                return done;
            }
            self.io_cost.advance(at, &mut granted);
            while let Some((_, _, group, paid)) = events.first().copied().filter(|event| event.0 <= at) {
                events.pop_first();
                seq += 1;
                if let Some(paid) = paid {
                    self.io_cost.bio_done(group, paid);
                    self.io_cost.request_done(false, 8, (at - 100_000, at - 100_000), at);
                    done[group] += u64::from(at > SECOND);
                    events.insert((at + self.groups[group].1, seq, group, None));
                    continue;
                }
                // Far apart, so that all are random.
                asked[group] += 1;
                match self.io_cost.ask(group as Slot, &read(group, (asked[group] % 2 + 1) << 30), at) {
                    Answer::Go(paid) => {
                        events.insert((at + 100_000, seq, group, Some(paid)));
                    }
                    Answer::Waits => self.io_cost.waits(group, at, &mut granted),
                    Answer::Owes(_) => panic!("nothing is metadata"),
                }
            }
            for (slot, paid) in granted.drain(..) {
                seq += 1;
                events.insert((at + 100_000, seq, slot as usize, Some(paid)));
            }
        }
    }
}

fn load(qos: &str, groups: &[(Option<usize>, u32)], busy: &[(u32, u64)]) -> Load {
    Load { io_cost: io_cost(qos, groups), groups: [&[(0, 0)], busy].concat() }
}

const FIXED: &str = "enable=1 min=100 max=100";

/// 8,518 random reads a second, shared by weight to a percent: flat, 1:10, and 1:3 of a half in a tree.
#[test]
fn busy_groups_share_by_weight() {
    let near = |got: u64, wanted: f64| (got as f64 / wanted - 1.0).abs() < 0.01;
    for (light, heavy) in [(100, 300), (10, 100), (1, 1000)] {
        let done = load(FIXED, &[(Some(0), light), (Some(0), heavy)], &[(64, 0), (64, 0)]).run(11);
        let whole = 85_180.0;
        let part = f64::from(light) / f64::from(light + heavy);
        let tolerance_ios = 4.0;
        assert!((done[1] as f64 - whole * part).abs() < (whole * part * 0.01).max(tolerance_ios), "{done:?}");
        assert!(near(done[2], whole * (1.0 - part)), "{done:?}");
    }
    let tree = [(Some(0), 100), (Some(0), 100), (Some(1), 100), (Some(1), 300)];
    let done = load(FIXED, &tree, &[(0, 0), (32, 0), (32, 0), (32, 0)]).run(11);
    for (group, part) in [(2, 0.5), (3, 0.125), (4, 0.375)] {
        assert!(near(done[group], 85_180.0 * part), "{group}: {done:?}");
    }
}

/// A group that uses a tenth of its half lends the rest, and all of the device is used; it gets what it asks for.
#[test]
fn what_one_leaves_others_get() {
    let equal = [(Some(0), 100), (Some(0), 100)];
    // One read in 2.348 ms: a twentieth of the device.
    let done = load(FIXED, &equal, &[(1, 2_248_000), (64, 0)]).run(11);
    assert!((4_000..=4_300).contains(&done[1]), "{done:?}");
    assert!(done[1] + done[2] > 85_180 * 97 / 100, "{done:?}");
}

/// In a tree what one lends is everybody's, by the same factor: 1/2 : 1/4 : 1/4, and the first uses little.
#[test]
fn all_others_gain_by_the_same_factor() {
    let tree = [(Some(0), 100), (Some(0), 100), (Some(2), 100), (Some(2), 100)];
    let done = load(FIXED, &tree, &[(1, 2_248_000), (0, 0), (64, 0), (64, 0)]).run(11);
    let ratio = done[3] as f64 / done[4] as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{done:?}");
    assert!(done[1] + done[3] + done[4] > 85_180 * 97 / 100, "{done:?}");
}

/// Who comes back has its part at once, although others had it meanwhile.
#[test]
fn what_was_lent_is_taken_back() {
    let mut load = load(FIXED, &[(Some(0), 100), (Some(0), 100)], &[(1, 2_248_000), (64, 0)]);
    load.run(3);
    assert!(load.io_cost.tree.parts(1).1 < WHOLE / 5, "it lends");
    let now = load.io_cost.next_event().expect("a period ends");
    let mut granted = Vec::new();
    load.io_cost.advance(now, &mut granted);
    for at in 0..400 {
        load.io_cost.ask(9, &read(1, (at % 2 + 1) << 30), now);
    }
    assert_eq!(load.io_cost.tree.parts(1).1, WHOLE / 2);
}

// ---- the rate ---------------------------------------------------------------------------------------------------------------

/// The drive could do more than the model says, and somebody waits: the clock goes faster, until nobody does. 64 reads of
/// 100 us each are 640,000 a second, 75 times the model.
#[test]
fn the_rate_rises_while_somebody_waits_and_all_is_well() {
    let mut load = load("enable=1 rpct=95 rlat=5000 wpct=95 wlat=5000", &[(Some(0), 100)], &[(64, 0)]);
    load.run(3);
    let rate = load.io_cost.rate_percent();
    assert!(rate > 1000, "{rate} %");
    let mut bounded = self::load("enable=1 min=50 max=150", &[(Some(0), 100)], &[(64, 0)]);
    bounded.run(12);
    assert_eq!(bounded.io_cost.rate_percent(), 150);
}

/// Reads that take too long, and waits for request slots, slow it down to its lower bound.
#[test]
fn the_rate_falls_while_the_device_is_late() {
    for (slot_wait_ns, took_ns) in [(10 * MS, 0), (0, 10 * MS)] {
        let mut io_cost = io_cost("enable=1 rpct=95 rlat=5000 wpct=95 wlat=5000 min=25", &[(Some(0), 100)]);
        let mut granted = Vec::new();
        for ms in 0..5000 {
            let now = ms * MS;
            io_cost.advance(now, &mut granted);
            io_cost.ask(0, &read(1, 0), now);
            let asked_ns = now.saturating_sub(slot_wait_ns + took_ns);
            io_cost.request_done(false, 8, (asked_ns, asked_ns + slot_wait_ns), now);
        }
        assert_eq!(io_cost.rate_percent(), 25, "{slot_wait_ns} {took_ns}");
    }
}

/// Idle groups leave, and the last one stops the clock's periods.
#[test]
fn who_does_nothing_leaves() {
    let mut io_cost = io_cost(FIXED, &[(Some(0), 100)]);
    let Answer::Go(paid) = io_cost.ask(0, &read(1, 0), 0) else { panic!("goes") };
    io_cost.bio_done(1, paid);
    let mut granted = Vec::new();
    while let Some(at) = io_cost.next_event() {
        assert!(at < SECOND, "it goes on and on");
        io_cost.advance(at, &mut granted);
    }
    assert!(io_cost.active.is_empty());
}
