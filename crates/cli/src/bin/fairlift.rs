//! The command; all of it is the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairlift_cli::main()
}
