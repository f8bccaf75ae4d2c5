//! Device files: presets, files based on them, and every way to get one wrong.

use fairlift_sim::device::{DeviceSpec, PRESETS};

fn error(text: &str) -> String {
    match DeviceSpec::parse(text, "my.toml") {
        Ok(spec) => panic!("accepted:\n{}", spec.describe()),
        Err(error) => error.to_string(),
    }
}

fn based(changes: &str) -> String {
    format!("based_on = \"sata7200-2009\"\n{changes}")
}

#[test]
fn every_preset_loads_builds_and_describes_itself() {
    for preset in PRESETS {
        let spec = DeviceSpec::load(preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.description(), preset.description, "the list and the file say the same");
        let text = spec.describe();
        println!("{text}");
        assert!(text.contains(preset.name) && text.lines().count() > 5);
        assert_eq!(spec.build(1).limits(), spec.limits());
        assert_eq!(spec.build(1).next_event(), None, "at rest");
    }
}

#[test]
fn every_value_of_a_preset_names_its_source() {
    for preset in PRESETS {
        for line in preset.text.lines() {
            let value = line.split_once(" = ").is_some() && !line.starts_with(['#', ' ']);
            let itself = [
                "model",
                "based_on",
                "description",
                "curve",
                "disk",
                "zone_table",
                "min_ms",
                "mean_ms",
                "max_ms",
            ];
            let exempt = itself.iter().any(|key| line.starts_with(key)) || preset.name == "null";
            assert!(!value || exempt || line.contains('#'), "{}: {line}", preset.name);
        }
    }
}

#[test]
fn the_sizes_are_the_published_ones() {
    for (name, sectors) in
        [("sata7200-2009", 1_953_525_168), ("fc15k", 878_900_000), ("nearline4t", 7_725_673_570)]
    {
        assert_eq!(DeviceSpec::load(name).expect("a preset").limits().sectors, sectors);
    }
}

#[test]
fn a_file_based_on_a_preset_changes_what_it_says_and_no_more() {
    let spec = DeviceSpec::parse(
        &based("description = \"mine\"\n[seek]\nmin_ms = 1.2\n[write_cache]\nenabled = false\n"),
        "my.toml",
    )
    .expect("fine");
    assert!(!spec.limits().write_cache);
    assert_eq!(spec.limits().queue_depth, 31);
    assert_eq!((spec.name(), spec.description(), spec.model()), ("my.toml", "mine", "disk"));
    let text = spec.describe();
    assert!(text.contains("min                          1.2 ms"), "{text}");
}

#[test]
fn another_curve_leaves_the_bases_parameters_behind() {
    let points = "[seek]\ncurve = \"table\"\npoints = [[1, 0.8], [1000, 2], [153352, 16.0]]\n";
    assert!(DeviceSpec::parse(&based(points), "my.toml").is_ok());
}

#[test]
fn files_are_read_by_path_and_may_be_based_on_one_beside_them() {
    let folder = std::env::temp_dir().join(format!("fairlift-device-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("base.toml"), based("rpm = 5400\n")).expect("written");
    std::fs::write(folder.join("top.toml"), "based_on = \"base.toml\"\n[limits]\nqueue_depth = 1\n")
        .expect("written");
    std::fs::write(folder.join("loop.toml"), "based_on = \"loop.toml\"\n").expect("written");
    std::fs::write(folder.join("binary.toml"), [0x80, 0xFE, 0]).expect("written");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let spec = DeviceSpec::load(&path("top.toml")).expect("fine");
    assert_eq!(spec.limits().queue_depth, 1);
    assert!(spec.describe().contains("11.111 ms"), "5,400 rpm");
    let looped = DeviceSpec::load(&path("loop.toml")).expect_err("a loop").to_string();
    assert!(looped.contains("based on one another"), "{looped}");
    let binary = DeviceSpec::load(&path("binary.toml")).expect_err("binary").to_string();
    assert!(binary.contains("not a text file"), "{binary}");
    let folder_itself = DeviceSpec::load(&folder.to_string_lossy()).expect_err("a folder").to_string();
    assert!(folder_itself.contains("not a file"), "{folder_itself}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn errors_name_file_line_word_and_the_nearest_right_one() {
    let cases: &[(&str, &[&str])] = &[
        (
            "[seek]\nmin_msec = 1\n",
            &["my.toml:3:", "\"seek.min_msec\"", "did you mean \"seek.min_ms\"?", "seek.max_ms"],
        ),
        ("[seeks]\nmin_ms = 1\n", &["my.toml:3:", "did you mean \"seek.min_ms\"?"]),
        ("[zzz]\nqqq = 1\n", &["my.toml:3:", "sections here", "geometry"]),
        ("rpm = 0\n", &["my.toml:2:", "rpm is 0", "from 60 to 1000000"]),
        ("rpm = nan\n", &["my.toml:2:", "rpm is NaN"]),
        ("rpm = -inf\n", &["my.toml:2:"]),
        ("rpm = \"fast\"\n", &["my.toml:2:", "rpm is fast (a string)"]),
        ("rpm = 1979-05-27\n", &["my.toml:2:", "a date"]),
        (
            "[firmware]\norder = \"stpf\"\n",
            &["my.toml:3:", "\"stpf\"", "fifo, c-look, sstf, sptf", "did you mean \"sptf\"?"],
        ),
        ("[limits]\nqueue_depth = 0\n", &["my.toml:3:", "from 1 to 65536"]),
        ("[limits]\nqueue_depth = 1.5\n", &["my.toml:3:", "an integer"]),
        ("[limits]\nqueue_depth = 99999999999999999999\n", &["my.toml:3:", "too large"]),
        ("[write_cache]\nenabled = 1\n", &["my.toml:3:", "true or false"]),
        ("[seek]\nmean_ms = 15\n", &["my.toml:3:", "from 5.867 to 8.907"]),
        ("[geometry]\nsectors = 1_999_999_999_999\n", &["my.toml:3:", "the zones hold only"]),
        ("[geometry]\nzone_table = []\n", &["my.toml:3:", "pairs"]),
        ("[geometry]\nzone_table = [[1, 2], [3]]\n", &["my.toml:3:", "entry 2"]),
        ("[geometry]\nzone_table = [[1.5, 2]]\n", &["my.toml:3:", "whole numbers"]),
        ("[seek]\ncurve = \"table\"\npoints = [[5, 1], [5, 2]]\n", &["my.toml:4:", "must rise"]),
        ("[seek]\ncurve = \"hp\"\n", &["\"seek.near_ms\" is missing"]),
        ("[a.b.c.d.e]\nf = 1\n", &["nested too deeply"]),
        ("rpm = [\n", &["my.toml:", "not TOML"]),
        ("rpm = 1\nrpm = 2\n", &["my.toml:3:", "not TOML"]),
    ];
    for (changes, expected) in cases {
        let error = error(&based(changes));
        println!("{error}");
        for part in *expected {
            assert!(error.contains(part), "{changes:?} gives {error:?} without {part:?}");
        }
    }
    let misspelled = error(
        "model = \"null\"\nsectors = 8\nlatncy_ns = 5\n[limits]\nqueue_depth = 1\nmax_kib = 4\nmax_segments = 1\n",
    );
    assert!(
        misspelled.contains("\"latency_ns\" is missing") && misspelled.contains("line 3 has \"latncy_ns\"")
    );
    assert!(error("").contains("\"model\" is missing"));
    assert!(error("model = \"dsk\"").contains("did you mean \"disk\"?"));
    let unknown = error("based_on = \"sata7200\"\n");
    assert!(
        unknown.contains("my.toml:1:") && unknown.contains("did you mean \"sata7200-2009\"?"),
        "{unknown}"
    );
    let unknown = DeviceSpec::load("flash-dk").expect_err("no such device").to_string();
    assert!(unknown.contains("did you mean \"flash-kd\"?") && unknown.contains("cloud-gp3"), "{unknown}");
    let missing = DeviceSpec::load("no/such.toml").expect_err("no such file").to_string();
    assert!(missing.contains("cannot read"), "{missing}");
    assert!(error(&"x".repeat(10 << 20)).contains("too many"));
    assert!(error(&format!("x = {}1", "[".repeat(100_000))).contains("not TOML"));
}

/// Every value of every preset, replaced by nasty ones: an error or a device that can be built and used, no panic.
#[test]
fn no_value_makes_it_panic() {
    const NASTY: [&str; 16] = [
        "0",
        "1",
        "-1",
        "1e-300",
        "1e300",
        "nan",
        "inf",
        "9223372036854775807",
        "\"\"",
        "true",
        "[]",
        "[[0, 0]]",
        "[[1, 1], [2, 1]]",
        "1979-05-27",
        "{ a = 1 }",
        "0.5",
    ];
    let (mut accepted, mut refused) = (0, 0);
    for preset in PRESETS {
        let lines: Vec<&str> = preset.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| !key.contains(['#', ' '])) else {
                continue;
            };
            // Gigabytes of cache lines are allowed but slow to take sixteen times.
            for nasty in NASTY {
                let changed = format!("{key} = {nasty}");
                let mut text = lines.clone();
                text[index] = &changed;
                match DeviceSpec::parse(&text.join("\n"), "nasty.toml") {
                    Ok(spec) => {
                        accepted += 1;
                        let _ = spec.describe();
                        crate::properties::exercise(&spec, 40, 1);
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(!error.message.is_empty());
                    }
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 100 && refused > 500);
}

mod garbage {
    use fairlift_sim::device::{DeviceSpec, PRESETS};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_refused_or_read(text in "\\PC{0,200}") {
            let _ = DeviceSpec::parse(&text, "garbage");
        }

        #[test]
        fn a_preset_with_bytes_changed_is_refused_or_read(
            which in 0..PRESETS.len(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..128), 1..6),
        ) {
            let mut bytes = PRESETS[which].text.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(text) = String::from_utf8(bytes) {
                let _ = DeviceSpec::parse(&text, "garbage");
            }
        }
    }
}
