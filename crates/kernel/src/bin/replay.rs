//! `fairlift-kernel-replay RECORD...`: do kernel and lab agree? RECORD is what the module shows in
//! `/sys/kernel/debug/block/DISK/sched/record`.

use std::process::ExitCode;

use fairlift_kernel::replay::replay;

fn main() -> ExitCode {
    let records: Vec<String> = std::env::args().skip(1).collect();
    if records.is_empty() || records.iter().any(|r| r.starts_with('-')) {
        eprintln!("usage: fairlift-kernel-replay RECORD...");
        return ExitCode::from(2);
    }
    let mut agree = true;
    for path in records {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::from(2);
            }
        };
        match replay(&text) {
            Ok(seen) => println!(
                "{path}: {} calls, {} decisions ({} requests, {} idled): all the same",
                seen.calls, seen.decisions, seen.issued, seen.idled
            ),
            Err(difference) => {
                println!("{path}: {difference}");
                agree = false;
            }
        }
    }
    if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
