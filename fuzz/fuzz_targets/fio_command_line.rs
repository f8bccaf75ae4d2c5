//! fio command lines: one argument a line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let arguments: Vec<&str> = text.lines().collect();
    _ = fairlift_fio::parse_command_line(&arguments, false);
    _ = fairlift_fio::parse_command_line(&arguments, true);
});
