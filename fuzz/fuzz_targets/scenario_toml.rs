//! Scenario files. An error names the file.
#![no_main]

use fairlift_sim::scenario::parse_among;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = parse_among(text, "fuzz.toml", &|_| None) {
        assert!(error.place.starts_with("fuzz.toml"), "{error}");
    }
});
